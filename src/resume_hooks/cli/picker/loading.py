"""The sessions of a chooser, listed in a thread of their own and handed over in pieces.

Invariant: the first paint waits for none of them, and neither does leaving.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from resume_hooks.cli.picker.state import Found
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.search import listing
from resume_hooks.system.text import one_line
from resume_hooks.transcripts.head_tail import HeadTail

EVERY = 0.05
"""Seconds between two pieces."""

PROMPT = 400
"""Characters of a first prompt that are searched."""


class Loading:
    """A listing under way; ``take`` is called from its thread with every piece, and once more, empty, at its end."""

    def __init__(self, found: Iterator[Found], take: Callable[[Loading, list[Found]], None]) -> None:
        self.done = False
        self.failure = ""
        self._found = found
        self._take = take
        self._stopped = False
        # Nobody waits for it: a chooser that is left ends at once.
        threading.Thread(target=self._run, name="resume-hooks-listing", daemon=True).start()

    def stop(self) -> None:
        """Hand nothing over any more."""
        self._stopped = True

    def _run(self) -> None:
        piece: list[Found] = []
        since = time.monotonic()
        for one in self._found:
            piece.append(one)
            if self._stopped:
                return
            if time.monotonic() - since >= EVERY:
                self._take(self, piece)
                piece, since = [], time.monotonic()
        self.done = True
        self._take(self, piece)


def sessions(cwd: str, where: Where, *, everywhere: bool) -> Iterator[Found]:
    """The sessions of the project of ``cwd``, or of all, newest first, with what they began with."""
    for row in listing.listed(cwd, where, everywhere=everywhere):
        try:
            prompt = HeadTail(row.path).first_prompt
        except SessionNotFound:
            continue  # deleted since it was listed
        yield Found(row, one_line(prompt, PROMPT))
