"""Folders that moved: their new place, copies of sessions for it, and sessions that lie in two folders."""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Answer, Check, Option, Part, Verb

PART = Part(
    verbs=(
        Verb(
            "rehome",
            "Give every session of a folder that moved a copy in its new place.",
            before="untrim",
        ),
    ),
    options=(
        Option(
            "delete",
            ("--other-copies",),
            "Of a SESSION in several folders: all copies but one.",
            "verbs.other_copies:delete_other_copies",
        ),
    ),
    checks=(Check("copies", "copies:check_copies", before="giants"),),
    answers=(
        Answer(questions.homes_of_session, "find_moved_repo:homes_of_session"),
        Answer(questions.note_on_session, "copies:copies_note"),
        Answer(questions.line_at_start_in_new_folder, "rehome:line_at_start"),
        Answer(questions.line_of_new_folder, "rehome:line_of_new_folder"),
        Answer(questions.note_on_other_sessions, "rehome:note_on_other_sessions"),
    ),
)
