"""Define the roles of records and the values of search options.

This module imports nothing, so that the help text appears quickly.
"""

from __future__ import annotations

ROLES = ("prompt", "reply", "title", "call", "result", "thinking", "summary", "task", "note")
"""The roles of records. The index stores the position of a role in this tuple, so the order must
not change."""

ROLE_ALIASES = {
    "user": ("prompt",),
    "assistant": ("reply", "thinking", "call"),
    "tool": ("call", "result"),
    **{role: (role,) for role in ROLES},
}
"""The values of ``--role``, each mapped to the roles that it stands for in the index."""

DEFAULT_MAX_SEARCH_HITS = 10  # number of hits in an answer if the user specifies none
MAX_SEARCH_HITS = 1_000  # maximum number of hits in an answer
