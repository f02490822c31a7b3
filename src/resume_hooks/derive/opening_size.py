"""How much of a session its handoff carries: a number of tokens as it is typed, or all of it, which is a fork."""

from __future__ import annotations

import re

from resume_hooks import settings
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where

ALL = "all"
SETTING = "handoff_size"
LEAST, MOST = 1, 48
"""Thousands of tokens. Clients send a first message of 200,000 characters whole, as measured on 2.1.332."""

EXAMPLES = f"A size is {LEAST}k to {MOST}k, such as 4k or 24k, or {ALL}."
_SIZE = re.compile(rf"(?P<thousands>[0-9]{{1,6}})k(?!\S)|{ALL}\s*\Z", re.IGNORECASE)
"""``all`` is a size where it stands alone: many a sentence begins with that word."""


def split_size(text: str) -> tuple[str, str]:
    """The size that a text begins with, ``""`` for none, and the rest of it.

    UsageError for a size out of bounds.

    A step that begins with such a word needs a size before it: ``12k 4k of memory are too little``.
    """
    match = _SIZE.match(text)
    if match is None:
        return "", text
    return checked_size(match[0]), text[match.end() :].strip()


def checked_size(word: str) -> str:
    """A size as it was typed, in small letters. UsageError for anything else."""
    match = _SIZE.fullmatch(word.strip())
    if match is None:
        raise UsageError(f"'{word}' is not a size", EXAMPLES)
    if match["thousands"] and not LEAST <= int(match["thousands"]) <= MOST:
        raise UsageError(f"{word} is not a size that a handoff can have", EXAMPLES)
    return match[0].lower()


def name_of(tokens: int) -> str:
    """A number of tokens as a size."""
    return f"{tokens // 1_000}k"


def tokens_of(size: str, where: Where) -> int:
    """The tokens of a size; of ``""`` those of the setting."""
    return tokens_named(size or str(settings.load(where)[SETTING].value))


def tokens_named(size: str) -> int:
    """The tokens of a size of thousands, such as ``12k``."""
    return 1_000 * int(size.removesuffix("k"))
