"""A bar for work that takes long, on a terminal only; loaded once there is something to show."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LONG = 32 * 1024 * 1024
"""Bytes to be read from which on somebody waits."""


@contextmanager
def at_work(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A function to be called with the bytes done and all there are; it draws nothing where nobody would see it."""
    bar = _Bar(what)
    shown = not quiet and sys.stderr.isatty()
    try:
        yield bar.advance if shown else lambda _done, _total: None
    finally:
        bar.end()


class _Bar:
    def __init__(self, what: str) -> None:
        self._what = what
        self._drawn: tuple[Progress, TaskID] | None = None

    def advance(self, done: int, total: int) -> None:
        if self._drawn is None:
            if total < LONG:
                return
            self._drawn = _start(self._what, total)
        progress, task = self._drawn
        progress.update(task, completed=done)

    def end(self) -> None:
        if self._drawn is not None:
            self._drawn[0].stop()


def _start(what: str, total: int) -> tuple[Progress, TaskID]:
    # rich takes 50 ms to load, which only long work has to spend.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    progress.start()
    return progress, progress.add_task(what, total=total)
