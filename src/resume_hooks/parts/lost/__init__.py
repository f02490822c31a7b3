"""What is left of sessions whose transcripts are gone: their prompts, which the client's ``history.jsonl`` still has.

They are copied into our form of record, in the state folder, and read as any other agent's sessions are. A session with
a transcript, a kept copy or a place in the trash is none of them.
"""

from __future__ import annotations

from resume_hooks.part import Agent, Answer, Check, Part

PART = Part(
    agents=(
        Agent(
            "prompts",
            home="history.jsonl",
            left="Only its prompts are left, from history.jsonl: answers, tool calls and their output are gone",
            strategy="strategy:PromptsLeft",
        ),
    ),
    checks=(Check("prompts", "strategy:check", before="giants"),),
    answers=(Answer("what was lost before", "strategy:at_first"),),
)
