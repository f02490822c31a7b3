"""Sub-agents that go on: `handoff` and `fork` take `<session>/agent-<id>`; `sessions --subagents` lists them."""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Answer, Option, Part

PART = Part(
    options=(
        Option(
            "sessions",
            ("--subagents",),
            "Their sub-agents instead, with the task of each; handoff and fork take their ids.",
            "verbs:print_subagents",
        ),
    ),
    answers=(Answer(questions.subagent_as_session, "as_session:subagent_as_session"),),
)
