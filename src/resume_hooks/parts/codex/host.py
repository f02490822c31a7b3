"""Format the answers to Codex's hooks.

This module needs only the standard library of Python 3.9.
"""

from __future__ import annotations

import re

from resume_hooks.hooks.hook_replies import Host

_RESUME_COMMAND_PATTERN = re.compile(r"^ +in Codex +(/resume [0-9a-f-]{36})$", re.MULTILINE)


def _format_answer_card(text: str) -> str:
    """Adapt an answer's text for Codex, and append a line with the command that opens the new session."""
    card = text.replace("Claude Code", "Codex")
    command = _RESUME_COMMAND_PATTERN.search(card)
    if command:
        return f"{card}\n{command[1]}"
    return card


CODEX_ANSWER_FORMAT = Host("codex", {}, _format_answer_card, empties_input=True)
"""The format of answers to Codex. It adds no keys to an answer, because Codex rejects an answer
that has an unknown key, and then sends the prompt to the model."""
