"""List, read and continue Codex sessions like Claude Code sessions.

This part also answers Codex's hooks, in the format that Codex expects.
"""

from __future__ import annotations

from resume_hooks.part import Agent, Host, Part

PART = Part(
    agents=(
        Agent(
            "codex",
            home_variable="CODEX_HOME",
            home=".codex",
            folders=("sessions", "archived_sessions"),
            file_pattern=(
                r"rollout-\d{4}-[\dT-]+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}[0-9a-f_-]*"
                r"\.jsonl(?:\.zst)?"
            ),
            session_variable="CODEX_THREAD_ID",
            strategy="sessions.strategy:Codex",
            writer="writer:CodexWriter",
            defects="defects:find_thread_defects",
            is_loss="defects:is_content_loss",
            model="model:CodexExec",
        ),
    ),
    # Hook events from Codex contain the turn's id and the model's name. Those from Claude Code do
    # not.
    hosts=(Host("codex", ("turn_id", "model"), "host:CODEX"),),
)
