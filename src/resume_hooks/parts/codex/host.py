"""How Codex wants its hooks to be answered. Standard library, Python 3.9."""

from __future__ import annotations

import re

from resume_hooks.hooks.hosts import Host

_EITHER = re.compile(r"/resume-hooks:[a-z-]+[^\n]*?\s+or\s+(?=>[a-z])")
_OPENS = re.compile(r"^ +in this client +(/resume [0-9a-f-]{36})$", re.MULTILINE)
_SLASH = re.compile(r"/resume-hooks:(?=[a-z])")


def _in_codex(text: str) -> str:
    """A card with the one form of a trigger that Codex passes to hooks: it knows no commands of plugins.

    What opens a session there comes last.
    """
    said = _SLASH.sub(">", _EITHER.sub("", text)).replace("Claude Code", "Codex")
    opens = _OPENS.search(said)
    return f"{said}\n{opens[1]}" if opens else said


CODEX = Host("codex", {}, _in_codex, empties=True)
"""Its schema is strict: with a key that it does not know the whole reply fails, and the prompt goes to the model."""
