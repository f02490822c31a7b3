"""Answers of a hook, as Codex wants them."""

from __future__ import annotations

import json

from resume_hooks.hooks.reply import block, host_of


def test_codex_is_answered_in_its_own_form() -> None:
    """Two keys and no third, which its strict schema would refuse."""
    host = host_of({"turn_id": "t", "model": "gpt-5"})
    card = "To confirm, type >trim yes in Claude Code"
    found = json.loads(block(card, host))
    assert found == {"decision": "block", "reason": "To confirm, type >trim yes in Codex"}
    assert "hookSpecificOutput" in json.loads(block(card, host_of({"session_id": "s"})))
