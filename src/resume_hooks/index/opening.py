"""The way into the index: opened, brought up to date, and made anew where it is damaged.

Where it can't be kept (a read-only or full disk, an index of a newer version) one in memory does the same work for
once. Of several commands one writes; the others wait for it a little, and then search what there is.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from resume_hooks.index.database import (
    IndexDamaged,
    IndexUnusable,
    index_file,
    open_index,
    open_temporary,
    remove_index,
    telling,
)
from resume_hooks.index.files import Found, all_files
from resume_hooks.index.updating import Outcome, Progress, changes, update
from resume_hooks.rewrite import MODE

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PATIENCE = 10.0
"""Seconds that another command which is writing is waited for."""

PAUSE = 0.05


class Opened(NamedTuple):
    """An index ready to be searched. ``notes`` say what is not as it should be; ``rebuilt`` that it was made anew."""

    db: sqlite3.Connection
    outcome: Outcome
    notes: list[str]
    rebuilt: bool = False


@contextlib.contextmanager
def opened_index(
    environ: Mapping[str, str],
    *,
    limit: float = float("inf"),
    progress: Progress | None = None,
    needed: Collection[str] | None = None,
    rebuild: bool = False,
) -> Iterator[Opened]:
    """The index of this config home, up to date as far as ``limit`` seconds allow, closed at the end of the block.

    ``needed`` names the project folders that must be in it where it can only be made for once; None for all.
    """
    ready = _ready(_Task(environ, limit, progress, needed), rebuild=rebuild)
    try:
        with telling():
            yield ready
    finally:
        ready.db.close()


class _Task:
    """What is to be indexed, and how long that may take."""

    def __init__(
        self, environ: Mapping[str, str], limit: float, progress: Progress | None, needed: Collection[str] | None
    ) -> None:
        self.path = index_file(environ)
        self.found = all_files(environ)
        self.limit = limit
        self.progress = progress
        self.needed = needed

    def bring_up(self, db: sqlite3.Connection, found: list[Found]) -> Outcome:
        work, gone = changes(db, found)
        if not work and not gone:
            return Outcome()
        return update(db, work, gone, limit=self.limit, progress=self.progress)


def _ready(task: _Task, *, rebuild: bool) -> Opened:
    try:
        if rebuild:
            _remove(task.path)
        try:
            return _kept(task)
        except IndexDamaged:
            _remove(task.path)
            return _kept(task)._replace(rebuilt=True)
    except (IndexUnusable, IndexDamaged) as error:
        return _for_once(task, error.message)


def _kept(task: _Task) -> Opened:
    """The index on disk, brought up to date by us, or as it is where another command is at it."""
    db = open_index(task.path)
    try:
        with telling(), _only_one(task.path, min(PATIENCE, task.limit)) as ours:
            if ours:
                outcome = task.bring_up(db, task.found)
                behind = f"{outcome.behind:,} files are not indexed yet; run: resume-hooks index"
                return Opened(db, outcome, [behind] if outcome.behind else [])
            work, gone = changes(db, task.found)
            busy = f"Another command is updating the index; {len(work):,} files may be missing from it"
            return Opened(db, Outcome(behind=len(work) + len(gone)), [busy] if work or gone else [])
    except BaseException:
        db.close()
        raise


def _for_once(task: _Task, why: str) -> Opened:
    """An index in memory of what is needed now."""
    found = [file for file in task.found if task.needed is None or file.folder in task.needed]
    db = open_temporary()
    try:
        with telling():
            outcome = task.bring_up(db, found)
    except BaseException:
        db.close()
        raise
    return Opened(db, outcome, [f"{why.rstrip('.')}. A temporary index was used"])


def _remove(path: str) -> None:
    """Remove the index; IndexUnusable where that can't be done."""
    try:
        with _only_one(path, PATIENCE):
            remove_index(path)
    except OSError as error:
        raise IndexUnusable(f"{path} can't be removed: {error.strerror}", "Check the state folder.") from error


@contextlib.contextmanager
def _only_one(path: str, patience: float) -> Iterator[bool]:
    """Whether nobody else writes the index while the block runs."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(f"{path}.lock", flags, MODE)
    except OSError:
        yield True  # then there is nothing that could be written either
        return
    try:
        yield _locked(descriptor, patience)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(PAUSE)
        except OSError:
            return True  # a volume without locks: SQLite's own must do
        else:
            return True
    return True
