"""The size of a handoff: a number of tokens as the user types it, or ``all``, which is a fork."""

from __future__ import annotations

import re

from resume_hooks import settings
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where

WHOLE_SESSION = "all"
SIZE_SETTING = "handoff_size"
MIN_THOUSANDS, MAX_THOUSANDS = 1, 48
"""Sizes in thousands of tokens.

Clients send a first message of up to 200,000 characters whole (measured on 2.1.332).
"""

EXAMPLES = f"A size is {MIN_THOUSANDS}k to {MAX_THOUSANDS}k, such as 4k or 24k, or {WHOLE_SESSION}."
_SIZE = re.compile(rf"(?P<thousands>[0-9]{{1,6}})k(?!\S)|{WHOLE_SESSION}\s*\Z", re.IGNORECASE)
"""``all`` counts as a size only if no text follows it, because many sentences begin with that
word."""


def split_size(text: str) -> tuple[str, str]:
    """Split a text into the size at its start, or ``""``, and the rest.

    Raises UsageError if the size is out of bounds.

    If a step itself begins with a size, another size must precede it: ``12k 4k of memory are too
    little``.
    """
    match = _SIZE.match(text)
    if match is None:
        return "", text
    return parse_size(match[0]), text[match.end() :].strip()


def parse_size(word: str) -> str:
    """Return a typed size in lower case. Raises UsageError for anything else."""
    match = _SIZE.fullmatch(word.strip())
    if match is None:
        raise UsageError(f"'{word}' is not a size", EXAMPLES)
    if match["thousands"] and not MIN_THOUSANDS <= int(match["thousands"]) <= MAX_THOUSANDS:
        raise UsageError(f"{word} is not a size that a handoff can have", EXAMPLES)
    return match[0].lower()


def format_size(tokens: int) -> str:
    """Format a number of tokens as a size."""
    return f"{tokens // 1_000}k"


def tokens_for_size(size: str, where: Where) -> int:
    """Return the number of tokens of a size, or of the size in the settings if ``size`` is ``""``."""
    return parse_tokens(size or str(settings.load_settings(where)[SIZE_SETTING].value))


def parse_tokens(size: str) -> int:
    """Return the number of tokens of a size in thousands, such as ``12k``."""
    return 1_000 * int(size.removesuffix("k"))
