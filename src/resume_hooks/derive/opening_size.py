"""The size of a handoff: a number of tokens as the user types it, or ``all``, which is a fork."""

from __future__ import annotations

import re

from resume_hooks import settings
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where

ALL = "all"
SETTING = "handoff_size"
LEAST, MOST = 1, 48
"""Thousands of tokens.

Clients send a first message of 200,000 characters whole (measured on 2.1.332).
"""

EXAMPLES = f"A size is {LEAST}k to {MOST}k, such as 4k or 24k, or {ALL}."
_SIZE = re.compile(rf"(?P<thousands>[0-9]{{1,6}})k(?!\S)|{ALL}\s*\Z", re.IGNORECASE)
"""``all`` counts as a size only if nothing follows it, because many sentences begin with that word."""


def split_size(text: str) -> tuple[str, str]:
    """Split a text into its leading size, or ``""``, and the rest.

    Raises UsageError for a size out of bounds.

    A step that itself begins with a size needs another one before it: ``12k 4k of memory are too
    little``.
    """
    match = _SIZE.match(text)
    if match is None:
        return "", text
    return checked_size(match[0]), text[match.end() :].strip()


def checked_size(word: str) -> str:
    """Return a typed size in lower case. Raises UsageError for anything else."""
    match = _SIZE.fullmatch(word.strip())
    if match is None:
        raise UsageError(f"'{word}' is not a size", EXAMPLES)
    if match["thousands"] and not LEAST <= int(match["thousands"]) <= MOST:
        raise UsageError(f"{word} is not a size that a handoff can have", EXAMPLES)
    return match[0].lower()


def name_of(tokens: int) -> str:
    """Format a number of tokens as a size."""
    return f"{tokens // 1_000}k"


def tokens_of(size: str, where: Where) -> int:
    """Return the tokens of a size, or of the setting if ``size`` is ``""``."""
    return tokens_named(size or str(settings.load_settings(where)[SETTING].value))


def tokens_named(size: str) -> int:
    """Return the tokens of a size in thousands, such as ``12k``."""
    return 1_000 * int(size.removesuffix("k"))
