"""Drop terminal input that is not a key: replies, focus reports, and keys without a binding.

Invariant: Esc counts only if it was pressed alone. Bytes that arrive together with it are not typed
as text.
"""

from __future__ import annotations

import re

from prompt_toolkit.input import Input
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.keys import Keys

MAX_STORED_CHARACTERS = 4_096  # the maximum number of characters of an unfinished sequence to store
PASTE_START = "\x1b[200~"  # the start of a paste; the parser handles the rest
DOUBLE_ESCAPE = "\x1b\x1b"

_COMPLETE_SEQUENCE = re.compile(
    r"\x1b\[M.{3}"  # an old mouse report
    r"|\x1b\[\[."  # a function key of the Linux console
    r"|\x1b{1,2}\[(?![M\[])[0-?]*[ -/]*[@-~]"  # CSI, in which a second Escape means Alt
    r"|\x1b{1,2}O."  # SS3
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[^\[O\]PX^_]",  # Alt with a character, or Escape twice
    re.DOTALL,
)
"""A complete sequence."""

_DOUBLE_ESCAPE_START = re.compile(
    r"\x1b\x1b(?:\[[0-?]*[ -/]*|O)?"
)  # two Escapes, which may begin an arrow key with Alt


class KeyParser(Vt100Parser):
    """A parser that receives only known keys."""

    _unfinished_sequence = ""

    def feed(self, data: str) -> None:
        """Parse the input. Store an unfinished sequence until the rest of it arrives."""
        remaining_input, self._unfinished_sequence = self._unfinished_sequence + data, ""
        while remaining_input:
            if self._in_bracketed_paste:
                super().feed(remaining_input)
                return
            text, escape, after_escape = remaining_input.partition("\x1b")
            super().feed(text)
            remaining_input = escape + after_escape
            sequence = _COMPLETE_SEQUENCE.match(remaining_input)
            if sequence is None or _DOUBLE_ESCAPE_START.fullmatch(remaining_input):
                self._unfinished_sequence = remaining_input[:MAX_STORED_CHARACTERS]
                return
            remaining_input = remaining_input[sequence.end() :]
            if sequence[0] == PASTE_START:
                super().feed(PASTE_START + remaining_input)
                return
            if sequence[0] == DOUBLE_ESCAPE:
                super().feed("\x1b")
                super().flush()
            else:
                # an unknown sequence is dropped, like one that means Escape
                key = ANSI_SEQUENCES.get(sequence[0], Keys.Escape)
                if (key[0] if isinstance(key, tuple) else key) is not Keys.Escape:
                    super().feed(sequence[0])

    def flush(self) -> None:
        """End the input. One or two stored Escapes are the key Esc; the beginning of another sequence is dropped."""
        stored_sequence, self._unfinished_sequence = self._unfinished_sequence, ""
        if stored_sequence in {"\x1b", DOUBLE_ESCAPE}:
            super().feed("\x1b")
        super().flush()


def filter_keys(terminal_input: Input) -> None:
    """Filter a terminal's input, so that only keys pass."""
    if isinstance(terminal_input, Vt100Input):
        terminal_input.vt100_parser = KeyParser(terminal_input.vt100_parser.feed_key_callback)
