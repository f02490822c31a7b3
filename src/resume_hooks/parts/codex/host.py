"""How Codex wants its hooks to be answered. Standard library, Python 3.9."""

from __future__ import annotations

import re

from resume_hooks.hooks.reply import Host

_OPENS = re.compile(r"^ +in Codex +(/resume [0-9a-f-]{36})$", re.MULTILINE)


def _in_codex(text: str) -> str:
    """A card in which what opens a session comes last."""
    said = text.replace("Claude Code", "Codex")
    opens = _OPENS.search(said)
    if opens:
        return f"{said}\n{opens[1]}"
    return said


CODEX = Host("codex", {}, _in_codex, empties=True)
"""Its schema is strict: with a key that it does not know the whole reply fails, and the prompt goes to the model."""
