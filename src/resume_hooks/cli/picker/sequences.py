"""Drop terminal input that is not a key, such as the terminal's own reports, and unknown keys.

Esc counts as a key only if it was pressed alone. The bytes of a sequence that begins with Esc are
never typed into the search field.
"""

from __future__ import annotations

import re

from prompt_toolkit.input import Input
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.keys import Keys

MAX_UNFINISHED_SEQUENCE_CHARACTERS = (
    4_096  # the maximum number of stored characters of an unfinished sequence
)
PASTE_START_SEQUENCE = (
    "\x1b[200~"  # the beginning of pasted text, which prompt_toolkit's parser reads
)
DOUBLE_ESCAPE_SEQUENCE = "\x1b\x1b"

_WHOLE_ESCAPE_SEQUENCE_PATTERN = re.compile(
    r"\x1b\[M.{3}"  # a mouse report in the old format
    r"|\x1b\[\[."  # a function key of the Linux console
    r"|\x1b{1,2}\[(?![M\[])[0-?]*[ -/]*[@-~]"  # CSI; a second Escape means that Alt was pressed too
    r"|\x1b{1,2}O."  # SS3
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[^\[O\]PX^_]",  # Alt with a character, or Escape twice
    re.DOTALL,
)
"""Matches a complete sequence that begins with Escape."""

# matches two Escapes, which may be the beginning of the sequence of Alt+arrow key
_DOUBLE_ESCAPE_PATTERN = re.compile(r"\x1b\x1b(?:\[[0-?]*[ -/]*|O)?")


class KeyParser(Vt100Parser):
    """A parser of terminal input that passes on only known keys."""

    _unfinished_sequence = ""

    def feed(self, data: str) -> None:
        """Parse the input. Store an unfinished sequence until the next call."""
        remaining_input, self._unfinished_sequence = self._unfinished_sequence + data, ""
        while remaining_input:
            if self._in_bracketed_paste:
                super().feed(remaining_input)
                return
            text, escape, after_escape = remaining_input.partition("\x1b")
            super().feed(text)
            remaining_input = escape + after_escape
            sequence = _WHOLE_ESCAPE_SEQUENCE_PATTERN.match(remaining_input)
            if sequence is None or _DOUBLE_ESCAPE_PATTERN.fullmatch(remaining_input):
                self._unfinished_sequence = remaining_input[:MAX_UNFINISHED_SEQUENCE_CHARACTERS]
                return
            remaining_input = remaining_input[sequence.end() :]
            if sequence[0] == PASTE_START_SEQUENCE:
                super().feed(PASTE_START_SEQUENCE + remaining_input)
                return
            if sequence[0] == DOUBLE_ESCAPE_SEQUENCE:
                super().feed("\x1b")
                super().flush()
            else:
                # For a sequence that means nothing, prompt_toolkit returns Keys.Escape. Such a
                # sequence is dropped, and so is an unknown one.
                key = ANSI_SEQUENCES.get(sequence[0], Keys.Escape)
                if (key[0] if isinstance(key, tuple) else key) is not Keys.Escape:
                    super().feed(sequence[0])

    def flush(self) -> None:
        """Handle the stored sequence when no more input arrives.

        One or two stored Escapes are the key Esc. Any other unfinished sequence is dropped.
        """
        stored_sequence, self._unfinished_sequence = self._unfinished_sequence, ""
        if stored_sequence in {"\x1b", DOUBLE_ESCAPE_SEQUENCE}:
            super().feed("\x1b")
        super().flush()


def filter_keys(terminal_input: Input) -> None:
    """Make a terminal's input drop everything that is not a known key."""
    if isinstance(terminal_input, Vt100Input):
        terminal_input.vt100_parser = KeyParser(terminal_input.vt100_parser.feed_key_callback)
