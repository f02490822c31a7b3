"""The roles of records, and the values of search options. The help text needs only this module."""

from __future__ import annotations

ROLES = ("prompt", "reply", "title", "call", "result", "thinking", "summary", "task", "note")
"""The roles of records; the index stores their positions in this tuple."""

ROLE_ALIASES = {
    "user": ("prompt",),
    "assistant": ("reply", "thinking", "call"),
    "tool": ("call", "result"),
    **{role: (role,) for role in ROLES},
}
"""The values of ``--role``: the index's roles, and more familiar words for the same roles."""

DEFAULT_SEARCH_HITS = 10  # the default number of hits in an answer
MAX_SEARCH_HITS = 1_000  # the maximum number of hits
