"""Show the prompts of sessions whose transcripts were deleted.

The client's ``history.jsonl`` still contains these prompts. They are copied into the state folder
in the format of transcripts, and are read like the sessions of another agent. A session is not lost
if it still has a transcript, an archived copy or an entry in the trash.
"""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Agent, Answer, Check, Part

PART = Part(
    agents=(
        Agent(
            "prompts",
            default_home="history.jsonl",
            loss_note=(
                "Only its prompts are left, from history.jsonl: answers, tool calls and "
                "their output are gone"
            ),
            strategy_entry_point="strategy:LostPromptsAgent",
        ),
    ),
    checks=(Check("prompts", "strategy:check_for_lost_prompts", insert_before="giants"),),
    answers=(Answer(questions.note_on_lost_sessions, "strategy:build_note_on_lost_sessions"),),
)
