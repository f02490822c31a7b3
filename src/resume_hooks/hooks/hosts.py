"""The clients whose hooks ask us: how each wants to be answered. Standard library, Python 3.9.

A host is told by the fields of what it sends.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, cast

from resume_hooks.part_table import HOSTS

Event = Dict[str, Any]


class Host(NamedTuple):
    """A client, and how it takes a block.

    ``extra`` is what its block holds beside the reason, ``words`` makes our words those of its user, ``empties`` says
    that a blocked prompt leaves its input box empty.
    """

    name: str
    extra: Dict[str, Any]
    words: Callable[[str], str]
    empties: bool


CLAUDE = Host(
    "claude",
    {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "suppressOriginalPrompt": True}},
    str,
    empties=False,
)


def host_of(event: Event) -> Host:
    """The client that sent an event."""
    for part, fields, host in HOSTS.values():
        if all(event.get(field) for field in fields):
            from resume_hooks import seam  # no event of this client waits for it

            if seam.is_there(part):
                return cast("Host", seam.function_of(part, host))
    return CLAUDE
