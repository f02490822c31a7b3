"""Format the answers to Codex's hooks. Standard library, Python 3.9."""

from __future__ import annotations

import re

from resume_hooks.hooks.hook_replies import Host

_RESUME_COMMAND = re.compile(r"^ +in Codex +(/resume [0-9a-f-]{36})$", re.MULTILINE)


def _format_card(text: str) -> str:
    """Return a card that ends with the command that opens the session."""
    card = text.replace("Claude Code", "Codex")
    command = _RESUME_COMMAND.search(card)
    if command:
        return f"{card}\n{command[1]}"
    return card


CODEX = Host("codex", {}, _format_card, empties_input=True)
"""Codex rejects a whole reply if it has an unknown key. The prompt then goes to the model."""
