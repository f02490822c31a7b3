"""Emulate a terminal that turns the client's output into the lines of a screen.

The emulator is pyte. Sequences that pyte cannot parse are removed first.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable

import pyte

# pyte prints the ends of these sequences as text. The sequences are private control sequences
# without "?" (XTVERSION, kitty keys), queries with an intermediate byte, and strings (DCS, APC,
# OSC).
_STRING_SEQUENCE_PATTERN = rb"\x1b[P_^X\]][^\x07\x1b]*(?:\x07|\x1b\\)"
_UNPARSED_SEQUENCE_PATTERN = re.compile(
    rb"\x1b\[[<=>][0-9;:]*[ -/]*[@-~]|\x1b\[\??[0-9;:]*[ -/]+[@-~]|\x1b\[\?[0-9;]*[mu]|"
    + _STRING_SEQUENCE_PATTERN
)
_UNFINISHED_SEQUENCE_PATTERN = re.compile(
    rb"\x1b(?:\[[<=>?]?[0-9;:]*[ -/]*|[P_^X\]][^\x07\x1b]*\x1b?)?\Z"
)
_OSC_52_PATTERN = re.compile(rb"\x1b\]52;[a-z0-9]*;([A-Za-z0-9+/=]*)(?:\x07|\x1b\\)")


class _Screen(pyte.Screen):
    """A screen that answers the client's queries about the terminal."""

    def __init__(self, columns: int, rows: int, answer: Callable[[bytes], None]) -> None:
        super().__init__(columns, rows)
        self._answer = answer

    def write_process_input(self, data: str) -> None:
        self._answer(data.encode())


class Emulator:
    """A terminal screen that uses pyte and is not thread-safe.

    It calls ``answer`` with its replies to the client.
    """

    def __init__(self, columns: int, rows: int, answer: Callable[[bytes], None]) -> None:
        """Create an empty screen with ``columns`` and ``rows``."""
        self._screen = _Screen(columns, rows, answer)
        self._stream = pyte.ByteStream(self._screen)
        self._pending = b""
        self._lines: list[str] | None = None
        self.raw = bytearray()

    def feed(self, data: bytes) -> None:
        """Show the client's output on the screen.

        A sequence that is incomplete at the end of ``data`` is kept for the next call.
        """
        self.raw += data
        data = _UNPARSED_SEQUENCE_PATTERN.sub(b"", self._pending + data)
        cut = _UNFINISHED_SEQUENCE_PATTERN.search(data)
        end = cut.start() if cut else len(data)
        self._pending = data[end:]
        self._stream.feed(data[:end])
        self._lines = None

    def lines(self) -> list[str]:
        """Return the lines of the screen without trailing blanks.

        The lines are cached until the screen changes, because a waiting test reads them often.
        """
        if self._lines is None:
            self._lines = [line.rstrip() for line in self._screen.display]
        return self._lines.copy()

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the screen. Its content stays until the client redraws it."""
        self._screen.resize(rows, columns)
        self._lines = None

    def clipboard_writes(self) -> list[str]:
        """Return the texts that the client copied to the clipboard with OSC 52 sequences, oldest first."""
        return [b64decode(found).decode() for found in _OSC_52_PATTERN.findall(bytes(self.raw))]
