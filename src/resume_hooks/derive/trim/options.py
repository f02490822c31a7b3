"""What may be trimmed: the options of a trim, as values; the command line and the trigger make them of words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

THRESHOLD = 500
"""Characters that an output or input may have."""

KEEP_RECENT = 2
"""Turns at the end that are left alone."""

KEPT_RESULTS = 20
"""Answers of tools that this protects at most: one turn may be the whole session."""

MIN_SAVINGS = 300
"""Tokens that a trim must save to be worth a new session."""

KEPT_TOOLS = frozenset({"askuserquestion", "exitplanmode", "toolsearch"})
"""Tools whose results are trimmed only by name: what the user chose or approved, and schemas the client loads."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a trim.

    ``tools`` are lower-case names or patterns, none for all; ``thresholds`` override ``threshold`` by tool.
    ``keep_recent`` None protects the usual number of turns, and of a long one no more than its last results.
    ``assistant``: N > 0 trims the first N long answers, N < 0 all but the last N. ``target_tokens`` 0: no target.
    ``only``/``skip`` name rules.
    """

    tools: tuple[str, ...] = ()
    threshold: int | None = None
    thresholds: Mapping[str, int] = field(default_factory=dict)
    keep_recent: int | None = None
    assistant: int = 0
    target_tokens: int = 0
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    min_savings: int = MIN_SAVINGS
    usual_threshold: int = THRESHOLD
    usual_recent: int = KEEP_RECENT

    def limit(self, tool: str) -> int:
        """The characters that an output or input of ``tool`` may have."""
        return self.thresholds.get(tool.lower(), self.usual_threshold if self.threshold is None else self.threshold)

    def allows(self, tool: str) -> bool:
        """Whether contents of ``tool`` may be trimmed; ``""`` is what belongs to no tool."""
        name = tool.lower()
        if not self.tools:
            return name not in KEPT_TOOLS
        return bool(name) and any(fnmatchcase(name, pattern) for pattern in self.tools)
