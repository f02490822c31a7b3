"""List, read and continue Codex sessions as if they were Claude Code sessions.

This part also answers Codex's hooks, in the format that Codex expects.
"""

from __future__ import annotations

from resume_hooks.part import Agent, Host, Part

PART = Part(
    agents=(
        Agent(
            "codex",
            home_variable="CODEX_HOME",
            default_home=".codex",
            session_folders=("sessions", "archived_sessions"),
            file_pattern=(
                r"rollout-\d{4}-[\dT-]+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}[0-9a-f_-]*"
                r"\.jsonl(?:\.zst)?"
            ),
            session_id_variable="CODEX_THREAD_ID",
            strategy_entry_point="sessions.strategy:Codex",
            writer_entry_point="writer:CodexWriter",
            defect_finder_entry_point="defects:find_thread_defects",
            loss_checker_entry_point="defects:is_content_loss",
            model_entry_point="model:CodexExec",
        ),
    ),
    # Hook events from Codex contain the turn's id and the model's name. Those from Claude Code do
    # not.
    hosts=(Host("codex", ("turn_id", "model"), "host:CODEX_ANSWER_FORMAT"),),
)
