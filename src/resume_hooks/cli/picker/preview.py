"""What the chooser shows beside its list of the session it stands on.

Made in a thread of its own, the last one asked for next.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from resume_hooks.hooks.session_list.preview import preview
from resume_hooks.paths import Where
from resume_hooks.search.listing import ListedSession

READING = "reading ..."
PAUSE = 0.06  # seconds that somebody who runs through the list stays on a session at most
KEPT = 200  # previews that are kept


class Previews:
    """Previews by kind and session; ``changed`` is called, from another thread, when one that was wanted is there."""

    def __init__(self, where: Where, changed: Callable[[], None]) -> None:
        self._where = where
        self._changed = changed
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str], list[str]] = {}
        self._wanted: tuple[str, ListedSession] | None = None
        self.thread: threading.Thread | None = None

    def of(self, kind: str, row: ListedSession) -> list[str]:
        """The lines of a preview, or that it is being read."""
        with self._lock:
            if (made := self._made.get((kind, row.path))) is not None:
                return made
            self._wanted = (kind, row)
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="resume-hooks-preview", daemon=True)
                self.thread.start()
        return [READING]

    def fail(self, error: BaseException | None) -> None:
        """Take the end of the thread by a bug: it costs a preview, never the choice."""
        with self._lock:
            self.thread = None
            if self._wanted is not None:
                kind, row = self._wanted
                self._made[kind, row.path] = [f"This can't be shown: {type(error).__name__}"]
        self._changed()

    def _run(self) -> None:
        while True:
            time.sleep(PAUSE)
            with self._lock:
                wanted = self._wanted
                if wanted is None or (wanted[0], wanted[1].path) in self._made:
                    self.thread = None
                    return
            lines = preview(*wanted, self._where)
            with self._lock:
                if len(self._made) >= KEPT:
                    self._made.clear()
                self._made[wanted[0], wanted[1].path] = lines
            self._changed()
