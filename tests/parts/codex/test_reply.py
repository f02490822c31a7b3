"""Answers of a hook, as Codex wants them."""

from __future__ import annotations

import json

from resume_hooks.hooks.hosts import host_of
from resume_hooks.hooks.reply import block


def test_codex_is_answered_in_its_own_form() -> None:
    """Two keys and no third, which its strict schema would refuse; the one form of a trigger that it knows."""
    host = host_of({"turn_id": "t", "model": "gpt-5"})
    card = "  /resume-hooks:handoff [next step]   or  >handoff [next step]\n\nTo confirm, type /resume-hooks:trim yes"
    found = json.loads(block(card, host))
    assert found == {"decision": "block", "reason": "  >handoff [next step]\n\nTo confirm, type >trim yes"}
    assert "hookSpecificOutput" in json.loads(block(card, host_of({"session_id": "s"})))
