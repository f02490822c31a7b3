"""Continue sub-agents as sessions.

``handoff`` and ``fork`` accept ``<session>/agent-<id>``, and ``sessions --subagents`` lists these
names.
"""

from __future__ import annotations

from resume_hooks import questions
from resume_hooks.part import Answer, Option, Part

PART = Part(
    options=(
        Option(
            "sessions",
            ("--subagents",),
            "List sub-agents and their tasks instead of sessions; handoff and fork accept a sub-agent's id.",
            "verbs:print_subagents",
        ),
    ),
    answers=(Answer(questions.open_subagent_as_session, "as_session:open_subagent_as_session"),),
)
