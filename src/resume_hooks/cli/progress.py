"""A progress bar for long work, on a terminal only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from resume_hooks.transcripts.lines import Line
    from resume_hooks.transcripts.nodes import Node
    from resume_hooks.transcripts.records import Record
    from resume_hooks.transcripts.transcript import Observer

LONG = 32 * 1024 * 1024  # bytes to be read from which on somebody waits
DRAWN = 4 * 1024 * 1024  # bytes of one file between two looks of its bar


@contextmanager
def at_work(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that takes the bytes done and the total; it draws nothing if nobody would see it."""
    bar = _Bar(what)
    shown = not quiet and sys.stderr.isatty()
    try:
        yield bar.advance if shown else lambda _done, _total: None
    finally:
        bar.end()


@contextmanager
def watched(path: str, *, quiet: bool) -> Iterator[list[Observer]]:
    """Yield observers that show how far the scan of a large file is, if somebody waits; they cost time."""
    size = os.path.getsize(path) if os.path.isfile(path) else 0
    if quiet or size < LONG or not sys.stderr.isatty():
        yield []
        return
    with at_work("Reading", quiet=quiet) as advance:
        yield [_Reached(advance, size)]


class _Reached:
    def __init__(self, advance: Callable[[int, int], None], size: int) -> None:
        self._advance = advance
        self._size = size
        self._next = 0

    def __call__(self, line: Line, _record: Record, _node: Node | None) -> None:
        if line.offset >= self._next:
            self._next = line.offset + DRAWN
            self._advance(line.offset, self._size)


class _Bar:
    def __init__(self, what: str) -> None:
        self._what = what
        self._drawn: tuple[Progress, TaskID] | None = None

    def advance(self, done: int, total: int) -> None:
        if self._drawn is None:
            if total < LONG:
                return
            # rich takes 50 ms to load, which only long work has to spend.
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
            progress = Progress(*columns, console=Console(stderr=True), transient=True)
            progress.start()
            self._drawn = progress, progress.add_task(self._what, total=total)
        progress, task = self._drawn
        progress.update(task, completed=done)

    def end(self) -> None:
        if self._drawn is not None:
            self._drawn[0].stop()
