"""Format the answers to Codex's hooks.

This module needs only the standard library of Python 3.9.
"""

from __future__ import annotations

import re

from resume_hooks.hooks.hook_replies import Host

_RESUME_COMMAND = re.compile(r"^ +in Codex +(/resume [0-9a-f-]{36})$", re.MULTILINE)


def _format_card(text: str) -> str:
    """Adapt the text of an answer for Codex, and add the command that opens the new session as last line."""
    card = text.replace("Claude Code", "Codex")
    command = _RESUME_COMMAND.search(card)
    if command:
        return f"{card}\n{command[1]}"
    return card


CODEX = Host("codex", {}, _format_card, empties_input=True)
"""The format of answers to Codex. It adds no keys, because Codex rejects a reply with an unknown
key and then sends the prompt to the model."""
