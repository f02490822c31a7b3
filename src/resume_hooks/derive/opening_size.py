"""Parse and format the size of a handoff: tokens such as ``12k``, or ``all`` for a fork."""

from __future__ import annotations

import re

from resume_hooks import settings
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where

WHOLE_SESSION_SIZE = "all"
SIZE_SETTING_NAME = "handoff_size"
MIN_THOUSANDS, MAX_THOUSANDS = 1, 48
"""The smallest and the largest size of a digest, in thousands of tokens.

The largest size fits into a first message. Clients send a first message whole if it has up to
200,000 characters (measured on 2.1.332).
"""

SIZE_EXAMPLES_TEXT = (
    f"Give a size from {MIN_THOUSANDS}k to {MAX_THOUSANDS}k, such as 4k or 24k, or "
    f"{WHOLE_SESSION_SIZE}."
)
_SIZE_PATTERN = re.compile(
    rf"(?P<thousands>[0-9]{{1,6}})k(?!\S)|{WHOLE_SESSION_SIZE}\s*\Z", re.IGNORECASE
)
"""Matches a size at the start of a text.

``all`` is a size only if no other text follows, because many sentences begin with this word.
"""


def split_off_size(text: str) -> tuple[str, str]:
    """Split a text into the size at its start and the remaining text.

    If the text does not start with a size, the first value is ``""``. If the user's next step
    itself starts with a size, the user must type the handoff's size before it: in ``12k 4k of
    memory are too little``, the handoff's size is ``12k``. Raises UsageError if the size is too
    small or too large.
    """
    match = _SIZE_PATTERN.match(text)
    if match is None:
        return "", text
    return normalize_size(match[0]), text[match.end() :].strip()


def normalize_size(word: str) -> str:
    """Return a typed size in lower case. Raises UsageError if ``word`` is not a valid size."""
    match = _SIZE_PATTERN.fullmatch(word.strip())
    if match is None:
        raise UsageError(f"'{word}' is not a size", SIZE_EXAMPLES_TEXT)
    if match["thousands"] and not MIN_THOUSANDS <= int(match["thousands"]) <= MAX_THOUSANDS:
        raise UsageError(f"{word} is not a valid size for a handoff", SIZE_EXAMPLES_TEXT)
    return match[0].lower()


def format_size(tokens: int) -> str:
    """Return a number of tokens in the form of a size, for example ``12k`` for 12,000."""
    return f"{tokens // 1_000}k"


def resolve_size_to_tokens(size: str, where: Where) -> int:
    """Return the number of tokens of ``size``. If it is ``""``, the size in the settings is used."""
    return convert_size_to_tokens(
        size or str(settings.load_settings(where)[SIZE_SETTING_NAME].value)
    )


def convert_size_to_tokens(size: str) -> int:
    """Return the number of tokens of a size, for example 12,000 for ``12k``."""
    return 1_000 * int(size.removesuffix("k"))
