"""The clients whose hooks ask us: how each wants to be answered. Standard library, Python 3.9.

A host is told by what it sends: Codex names the turn and the model, which Claude Code does not.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, NamedTuple

Event = Dict[str, Any]


class Host(NamedTuple):
    """A client: whether an event is its own, and how it takes a block.

    ``extra`` is what its block holds beside the reason, ``words`` makes our words those of its user, ``empties`` says
    that a blocked prompt leaves its input box empty.
    """

    name: str
    sent: Callable[[Event], bool]
    extra: Dict[str, Any]
    words: Callable[[str], str]
    empties: bool


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


CLAUDE = Host(
    "claude",
    lambda _: True,
    {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "suppressOriginalPrompt": True}},
    str,
    empties=False,
)
CODEX = Host("codex", lambda event: bool(event.get("turn_id") and event.get("model")), {}, _in_codex, empties=True)
"""Its schema is strict: with a key that it does not know the whole reply fails, and the prompt goes to the model."""

HOSTS = (CODEX, CLAUDE)


def host_of(event: Event) -> Host:
    """The client that sent an event."""
    return next(host for host in HOSTS if host.sent(event))
