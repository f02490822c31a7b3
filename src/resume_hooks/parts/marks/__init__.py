"""Mark a point in a session, and go back to it later with a report of what happened since.

``back`` creates a new session. The session contains the conversation up to the mark, followed by
the lineage and the report. A call is never split from its result. In a fork without a mark,
``back`` goes back to the point where the fork branched off from its parent.
"""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Answer, FormerVerb, Part, Verb
from resume_hooks.seam import Trigger

PART = Part(
    verbs=(
        Verb("mark", "Mark a point in a session, to return to it later.", insert_before="fork"),
        Verb(
            "back",
            "Go back to the mark in a new session, with a report of what came after it.",
            insert_before="fork",
        ),
    ),
    answers=(Answer(questions.notes_after_delete, "state:remove_mark_after_delete"),),
    former_verbs=(FormerVerb("checkpoint", "mark"), FormerVerb("rewind", "back")),
    triggers=(
        Trigger(
            "mark",
            "[goal]",
            "Mark this place before you try something",
            module="trigger_answers",
            insert_before="search",
            help_row="mark [goal]           mark this place; back report: go back to the mark",
            command="mark",
            asks_first=True,
        ),
        Trigger(
            "back",
            "report",
            "Go back to the mark (or from a fork to its parent) in a new session that contains only a report",
            module="trigger_answers",
            insert_before="search",
            command="back",
        ),
    ),
)
