"""The format in which Codex expects the answers of its hooks. Standard library, Python 3.9."""

from __future__ import annotations

import re

from resume_hooks.hooks.reply import Host

_OPENS = re.compile(r"^ +in Codex +(/resume [0-9a-f-]{36})$", re.MULTILINE)


def _in_codex(text: str) -> str:
    """Return a card that ends with the command that opens the session."""
    said = text.replace("Claude Code", "Codex")
    opens = _OPENS.search(said)
    if opens:
        return f"{said}\n{opens[1]}"
    return said


CODEX = Host("codex", {}, _in_codex, empties=True)
"""Codex validates replies strictly: an unknown key invalidates the whole reply, and the prompt goes to the model."""
