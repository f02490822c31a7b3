"""What a search may be asked for; what its help names stands apart from all that makes one."""

from __future__ import annotations

ROLES = ("prompt", "reply", "title", "call", "result", "thinking", "summary", "task", "note")
"""Who said something, by the number that stands for it in the index."""

ALIASES = {
    "user": ("prompt",),
    "assistant": ("reply", "thinking", "call"),
    "tool": ("call", "result"),
    **{role: (role,) for role in ROLES},
}
"""What ``--role`` takes: the roles of the index, and the words that people know them by."""

DEFAULT_LIMIT = 10  # hits of an answer
MOST_LIMIT = 1_000  # hits that can be asked for
