"""Swallow what a terminal sends beside keys: replies, reports of focus, keys that nothing is bound to.

Invariant: Escape is heard only where it was pressed alone; nothing that follows it in one breath is
typed.
"""

from __future__ import annotations

import re

from prompt_toolkit.input import Input
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.keys import Keys

LONGEST = 4_096  # characters that are kept of a sequence while its end is waited for
PASTE = "\x1b[200~"  # what a paste begins with; the parser takes it from there
TWICE = "\x1b\x1b"

_WHOLE = re.compile(
    r"\x1b\[M.{3}"  # a mouse report of old
    r"|\x1b\[\[."  # a function key of the Linux console
    r"|\x1b{1,2}\[(?![M\[])[0-?]*[ -/]*[@-~]"  # CSI; with a second Escape where Alt is down
    r"|\x1b{1,2}O."  # SS3
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[^\[O\]PX^_]",  # Alt with a character; Escape twice
    re.DOTALL,
)
"""A whole sequence."""

_WITH_ALT = re.compile(
    r"\x1b\x1b(?:\[[0-?]*[ -/]*|O)?"
)  # escape twice, which an arrow with Alt begins with, too


class KeysOnly(Vt100Parser):
    """A parser of what is typed that is fed with known keys alone."""

    _held = ""

    def feed(self, data: str) -> None:
        """Take what was read; a sequence that has not ended yet waits for its rest."""
        rest, self._held = self._held + data, ""
        while rest:
            if self._in_bracketed_paste:
                super().feed(rest)
                return
            text, escape, behind = rest.partition("\x1b")
            super().feed(text)
            rest = escape + behind
            whole = _WHOLE.match(rest)
            if whole is None or _WITH_ALT.fullmatch(rest):
                self._held = rest[:LONGEST]
                return
            rest = rest[whole.end() :]
            if whole[0] == PASTE:
                super().feed(PASTE + rest)
                return
            if whole[0] == TWICE:
                super().feed("\x1b")
                super().flush()
            else:
                key = ANSI_SEQUENCES.get(whole[0], Keys.Escape)  # of what is no key
                if (key[0] if isinstance(key, tuple) else key) is not Keys.Escape:
                    super().feed(whole[0])

    def flush(self) -> None:
        """Nothing more comes: Escape, once or twice, is the key, of anything else the beginning is swallowed."""
        held, self._held = self._held, ""
        if held in {"\x1b", TWICE}:
            super().feed("\x1b")
        super().flush()


def keep_keys(source: Input) -> None:
    """Let only keys through an input that is a terminal."""
    if isinstance(source, Vt100Input):
        source.vt100_parser = KeysOnly(source.vt100_parser.feed_key_callback)
