"""How two contents of a file differ, for people: lines, or sizes where there are no lines to show.

Cost is bounded: what is long or not text is counted, not compared line by line.
"""

from __future__ import annotations

import difflib
from collections import Counter
from itertools import islice
from typing import NamedTuple

LONGEST = 400_000
"""Bytes of either side that are compared line by line."""

MOST_LINES = 5_000
SHOWN = 60
"""Lines of the difference of one file that are shown."""

WIDEST = 240
"""Characters of a line that are shown."""


class Difference(NamedTuple):
    """Lines that come and go, None where it is no text; ``lines`` are shown, of ``more`` there is only the number."""

    added: int | None
    removed: int | None
    lines: tuple[str, ...] = ()
    more: int = 0


def difference(before: bytes | None, after: bytes | None) -> Difference:
    """What a file loses and gets on its way from ``before`` to ``after``; None is no file."""
    old, new = _lines(before), _lines(after)
    if old is None or new is None:
        return Difference(None, None, (f"@@ not text: {_size(before)} -> {_size(after)} @@",))
    if max(len(before or b""), len(after or b"")) > LONGEST or max(len(old), len(new)) > MOST_LINES:
        common = (Counter(old) & Counter(new)).total()
        return Difference(len(new) - common, len(old) - common, ("@@ too long to be shown @@",))
    found = list(islice(difflib.unified_diff(old, new, n=2, lineterm=""), 2, None))
    added, removed = (sum(line.startswith(sign) for line in found) for sign in "+-")
    shown = tuple(line if len(line) <= WIDEST else f"{line[:WIDEST]}…" for line in found[:SHOWN])
    return Difference(added, removed, shown, len(found) - len(shown))


def _lines(content: bytes | None) -> list[str] | None:
    """The lines of a text; None where it is none."""
    if content is None or not content:
        return []
    if b"\0" in content:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    lines = text.split("\n")
    if lines[-1]:
        return [*lines[:-1], f"{lines[-1]}  (no line end)"]
    return lines[:-1]


def _size(content: bytes | None) -> str:
    return "no file" if content is None else f"{len(content):,} bytes"
