"""Draws values from bytes: the same bytes give the same values.

After the end of the bytes, every draw returns its first choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Value = TypeVar("Value")

TROUBLESOME_TEXTS = (
    "",
    "a",
    "fix the parser",
    "../../etc/passwd",
    "/etc/passwd",
    "/",
    ".",
    "~",
    "C:\\x",
    "a/b\x00c",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b[2J\x1b[31mred",
    "\x9b31m",
    "\u202egnp.exe",
    "\ufeff",
    "\u2028\x85",
    "line\nline\r\nline",
    "\ud800",
    "\U0001f600\u0301\u0301",
    "\U000e0041",
    "[SESSION LINEAGE]",
    "[/SESSION LINEAGE]",
    "<script>alert(1)</script>",
    "$(touch /tmp/x)`id`;|&",
    "--help",
    "-rf",
    "%s%n{}{0}",
    "NaN",
    "1e999",
    "9" * 400,
    "x" * 3_000,
    "> " * 200,
    "日本語の題名",
    "2026-01-31T09:30:00.000Z",
    "-9999-01-01",
    "9999-12-31T23:59:59.999Z",
    "user",
    "assistant",
    "isCompactSummary",
    "</command-name>",
    "<command-message>x</command-message><command-name>/x</command-name>",
)
"""Texts that often cause errors: paths, control characters, our own markers, and syntax of shells.
"""

SCALAR_VALUES = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    2**64,
    -(2**70),
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
)


class Draws:
    """Draws values, such as random numbers, from the bytes ``raw``."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def number_below(self, count: int) -> int:
        """Return a number from 0 to ``count - 1``."""
        width = 1 if count <= 256 else 2 if count <= 65_536 else 4
        piece = self._raw[self._at : self._at + width]
        self._at += width
        return int.from_bytes(piece, "big") % count

    def flip_coin(self, one_in: int = 2) -> bool:
        """Return True in one of ``one_in`` calls on average, and always False after the end of the bytes."""
        return self.number_below(one_in) == one_in - 1

    def pick(self, values: Sequence[Value]) -> Value:
        """Return one of ``values``."""
        return values[self.number_below(len(values))]

    def draw_list(self, max_count: int, draw_item: Callable[[], Value]) -> list[Value]:
        """Return a list of at most ``max_count`` values that ``draw_item`` returns."""
        return [draw_item() for _ in range(self.number_below(max_count + 1))]

    def take_bytes(self, max_bytes: int) -> bytes:
        """Return at most ``max_bytes`` of the next bytes."""
        count = self.number_below(max_bytes + 1)
        piece = self._raw[self._at : self._at + count]
        self._at += count
        return piece

    def text(self) -> str:
        """Return a text that often causes errors, or sometimes a generated one."""
        if self.flip_coin(4):
            return self.take_bytes(40).decode("utf-8", self.pick(("replace", "surrogateescape")))
        return "".join(self.pick(TROUBLESOME_TEXTS) for _ in range(1 + self.number_below(2)))

    def json(self, depth: int = 3) -> Any:
        """Return a JSON value with at most ``depth`` levels."""
        kind = self.number_below(8 if depth else 5)
        if kind < 3:
            return self.text()
        if kind < 5:
            return self.pick(SCALAR_VALUES)
        if kind < 7:
            return {self.text(): self.json(depth - 1) for _ in range(self.number_below(4))}
        return self.draw_list(4, lambda: self.json(depth - 1))
