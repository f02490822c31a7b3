"""The way into the index: opened, brought up to date, and made anew where it is damaged.

Or its state, told as it is.

Where it can't be kept (a read-only or full disk, an index of a newer version) one in memory does
the same work for once. Of several commands one writes; the others wait for it a little, and then
search what there is.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.errors import IndexDamaged, IndexUnusable, ResumeHooksError
from resume_hooks.paths import Where, is_private_folder, make_private_folder
from resume_hooks.search.index.archived import ArchivedSessions
from resume_hooks.search.index.changes import FileWork, Sought, UnreadFile, UpdateOutcome, changes
from resume_hooks.search.index.database import (
    VERSION,
    index_file,
    open_index,
    open_read_only,
    open_temporary,
    remove_index,
    sqlite_errors,
    words_folder,
)
from resume_hooks.search.index.postings import LEVELS, Postings
from resume_hooks.sessions.agents.registry import all_files, is_foreign
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.storage import removal
from resume_hooks.storage.locks import lock_descriptor
from resume_hooks.storage.state_file import MODE
from resume_hooks.system import programs
from resume_hooks.system.text import format_count

if TYPE_CHECKING:
    from resume_hooks.search.index.unread import FileWords
    from resume_hooks.search.index.update import IsOver, Progress

PATIENCE = 10.0  # seconds that another command which is writing is waited for

LARGE = 32 * 1024 * 1024
"""Bytes to be read from which on they are looked through for what is sought first.

Less is indexed as fast.
"""

_GO_ON = (
    "import sys; sys.path[:0] = sys.argv[1:]; from resume_hooks.search.index.connect import "
    "run_on; run_on()"
)
LONGEST = 240.0  # seconds for which another process goes on
NICE = 10
LEAST = 0.3  # seconds for which is indexed after that

Identity = tuple[int, int]  # what tells a file from the one that took its place


class OpenIndex(NamedTuple):
    """An index ready to be searched.

    ``notes`` say what is not as it should be; ``rebuilt`` that it was made anew.

    ``unread`` are the files that were sought in, and that it has not as they are.
    """

    db: sqlite3.Connection
    words: Postings
    outcome: UpdateOutcome
    notes: list[str]
    rebuilt: bool = False
    unread: tuple[UnreadFile, ...] = ()


@contextlib.contextmanager
def opened_index(
    where: Where,
    *,
    limit: float = float("inf"),
    progress: Progress | None = None,
    needed: Collection[str] | None = None,
    rebuild: bool = False,
    sought: Sought | None = None,
) -> Iterator[OpenIndex]:
    """The index of this config home, up to date as far as ``limit`` seconds allow, closed at the end of the block.

    ``needed`` names the project folders that must be in it where it can only be made for once; None
    for all. What is ``sought`` is looked for in all files that it has not read: those that hold
    most of it are read first, the rest by another process, for which nobody waits.
    """
    task = _Task(where, _Clock(limit), progress, min(PATIENCE, limit), sought)
    ready = _ready(task, needed, rebuild=rebuild)
    try:
        with sqlite_errors():
            yield ready
    except IndexDamaged as error:
        # Some pages are read by a search only. The next one makes it anew.
        with contextlib.suppress(IndexUnusable):
            forget_index(where)
        error.remedy = "Run it again: the index is then made anew."
        raise
    finally:
        ready.db.close()
        if sought:
            index_in_background(ready, where)


def bring_up_to_date(where: Where, is_over: IsOver) -> UpdateOutcome:
    """Index what was said, until it is over, so that a search need not.

    Nothing where another command is at it.

    IndexUnusable where no index can be kept.
    """
    task = _Task(where, is_over)
    if task.empty:
        return UpdateOutcome()
    opened = _open_stored(task)
    opened.db.close()
    return opened.outcome


def index_in_background(index: OpenIndex, where: Where) -> None:
    """Have another process index what time did not allow.

    Nobody waits for it, and it ends by itself.
    """
    if not index.outcome.behind:
        return
    import subprocess  # 4 ms, which nothing else here needs

    # By a shell that ends at once: who waits for a process of ours does not wait for that one.
    words = [
        "/bin/sh",
        "-c",
        '"$@" </dev/null >/dev/null 2>&1 &',
        "sh",
        sys.executable,
        "-I",
        "-c",
        _GO_ON,
    ]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # the next search goes on
        programs.run_program(  # our own code, which needs to know all that we do
            [*words, *filter(None, sys.path)],
            where.environ,
            environ=where.environ,
            timeout=5,
            start_new_session=True,
        )


def run_on() -> None:
    """What that process does."""
    with contextlib.suppress(OSError, AttributeError):  # Windows has no such call
        os.nice(NICE)
    with contextlib.suppress(ResumeHooksError):
        bring_up_to_date(Where(), _Clock(LONGEST))


def forget_index(where: Where) -> None:
    """Remove the index with every word in it; the next search rebuilds it.

    IndexUnusable where it can't be.
    """
    _remove(where, _identity(index_file(where)))


class _Clock:
    """Tells whether the time for an update is over."""

    def __init__(self, limit: float) -> None:
        self._end = time.monotonic() + limit

    def __call__(self) -> bool:
        return time.monotonic() > self._end

    def leave(self, seconds: float) -> None:
        self._end = max(self._end, time.monotonic() + seconds)


class _Task:
    """What is to be indexed, and how long that may take."""

    def __init__(
        self,
        where: Where,
        is_over: IsOver,
        progress: Progress | None = None,
        patience: float = 0.0,
        sought: Sought | None = None,
    ) -> None:
        self.sought = sought
        self.path = index_file(where)
        self.where = where
        self.files = all_files(where)
        self.shelf = ArchivedSessions(where, self.files)
        self.is_over = is_over
        self.progress = progress
        self.patience = patience

    @property
    def empty(self) -> bool:
        """Whether there is nothing to keep, so that no folder need be made for it."""
        return not self.files and not self.shelf.states and not os.path.lexists(self.path)

    def brought_up(self, index: OpenIndex, *, ours: bool = True) -> OpenIndex:
        """An index with what changed, as far as time allows, and with what a search then doesn't look through said.

        One that is not ``ours`` stays as it is.
        """
        from resume_hooks.search.index.unread import (
            ranks,  # where nothing changed, nobody waits for
        )
        from resume_hooks.search.index.update import update  # these two

        work, gone = changes(index.db, self.files, self.shelf)
        if sum(item.size for item in work) > LARGE:
            held = self._words_held(work)
        else:
            held = {}
        if ours:
            if held and isinstance(self.is_over, _Clock):
                self.is_over.leave(LEAST)
            worth = ranks(held)
            work = [item._replace(worth=worth.get(item.file.path, 0.0)) for item in work]
            to, over = self.where, self.is_over
            outcome = update(
                index.db, index.words, work, gone, where=to, is_over=over, progress=self.progress
            )
            left = f"{format_count(outcome.behind, 'file')} ({size_text(outcome.size_behind)})"
            note = f"Not indexed yet: {left}. To index all: resume-hooks doctor --index update"
        else:
            outcome = UpdateOutcome(behind=len(work) + len(gone))
            note = (
                f"Another command is updating the index; {format_count(len(work), 'file')} may be "
                "missing from it"
            )
        if not outcome.behind:
            return index._replace(outcome=outcome)
        if ours:
            late = changes(index.db, self.files, self.shelf)[0]
        else:
            late = work
        unread = tuple(self._unread(late, held)) if self.sought else ()
        return index._replace(outcome=outcome, notes=[*index.notes, note], unread=unread)

    def _words_held(self, work: Iterable[FileWork]) -> dict[str, FileWords]:
        """By path, what a file holds of the words that are sought, of those that can be looked through."""
        if self.sought is None:
            return {}
        from resume_hooks.search.index.unread import RawWords  # as above

        words = RawWords(self.sought.terms)
        found: dict[str, FileWords] = {}
        for item in work:
            if not item.same and item.file.inode > 0 and self.sought.is_meant(item.file):
                held = words.words_of_file(item.file.path, item.job.place.offset)
                if held is not None:
                    found[item.file.path] = held
        return found

    def _unread(
        self, work: Sequence[FileWork], held: Mapping[str, FileWords]
    ) -> Iterator[UnreadFile]:
        """What was sought in and is not in the index, what is worth most first."""
        from resume_hooks.search.index.unread import ranks  # as above

        held = {**held, **self._words_held(item for item in work if item.file.path not in held)}
        counts = ranks(held)
        for item in sorted(
            work, key=lambda item: (-counts.get(item.file.path, 0.0), -item.file.mtime)
        ):
            if not item.same and self.sought and self.sought.is_meant(item.file):
                words = held.get(item.file.path)
                yield UnreadFile(item.file, words.held if words else None)


def _ready(task: _Task, needed: Collection[str] | None, *, rebuild: bool) -> OpenIndex:
    """The index that is kept, else one in memory of what is needed now."""
    if task.empty:
        return OpenIndex(open_temporary(), Postings(None), UpdateOutcome(), [])
    try:
        return _open_stored(task, rebuild=rebuild)
    except (IndexUnusable, IndexDamaged) as error:
        note = f"{error.message.rstrip('.')}. A temporary index was used"
    if needed is not None:
        task.files = [file for file in task.files if file.folder in needed]
        task.shelf.keep_to(needed)
    index = OpenIndex(open_temporary(), Postings(None), UpdateOutcome(), [note])
    with _closed_if_it_fails(index):
        return task.brought_up(index)


def _open_stored(task: _Task, *, rebuild: bool = False) -> OpenIndex:
    """The index that is kept, made anew where it is damaged. IndexUnusable, IndexDamaged."""
    seen = _identity(task.path)
    if rebuild:
        _remove(task.where, seen)
    try:
        return _index_on_disk(task)
    except IndexDamaged:
        _remove(task.where, seen)
        return _index_on_disk(task)._replace(rebuilt=True)


def _index_on_disk(task: _Task) -> OpenIndex:
    """The index on disk, brought up to date by us, or as it is where another command is at it.

    Its words are opened at ``look``: of a table that was removed before that they would be those of
    the next one.
    """
    seen = _identity(task.path)
    index = _open_stores(task.where, writing=False)
    with _closed_if_it_fails(index):
        if not any(changes(index.db, task.files, task.shelf)):  # there is nothing to wait for
            index.words.look()
            if _identity(task.path) == seen:
                return index
    index.db.close()
    with _only_one(task.path, task.patience) as ours:
        while True:
            seen = _identity(task.path)
            index = _open_stores(task.where, writing=ours)
            with _closed_if_it_fails(index):
                index = task.brought_up(index, ours=ours)
                index.words.look()
            if ours or _identity(task.path) == seen:
                return index
            index.db.close()


def _open_stores(where: Where, *, writing: bool) -> OpenIndex:
    """The table and the words that belong to it; without a file in the table there are no words.

    Who is ``writing`` alone makes them, and is alone. A table that was removed meanwhile has other
    words than those that are there now, so it is opened once more.
    """
    while True:
        seen = _identity(index_file(where))
        db = open_index(where)
        index = OpenIndex(db, Postings(None), UpdateOutcome(), [])
        with _closed_if_it_fails(index):
            known = db.execute("SELECT 1 FROM files").fetchone() is not None
            if known or writing:
                index = index._replace(words=_open_postings(where, fresh=not known))
        if writing or seen in (None, _identity(index_file(where))):
            return index
        db.close()


def _open_postings(where: Where, *, fresh: bool) -> Postings:
    """The words on disk; with ``fresh`` none at first, whatever is there.

    IndexUnusable where that is not our own.
    """
    folder = words_folder(where)
    try:
        make_private_folder(folder, where)
        for level in LEVELS:
            own = os.path.join(folder, level)
            if fresh and os.path.lexists(own):
                removal.remove_for_good(own, where.state)
            make_private_folder(own, where)
    except OSError as error:
        raise IndexUnusable(
            f"{folder} can't be used: {error.strerror}", "Check the state folder."
        ) from error
    return Postings(folder, fresh=fresh)


@contextlib.contextmanager
def _closed_if_it_fails(index: OpenIndex) -> Iterator[None]:
    with contextlib.ExitStack() as failing:
        failing.callback(index.db.close)
        with sqlite_errors():
            yield
        failing.pop_all()


def _identity(path: str) -> Identity | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _remove(where: Where, seen: Identity | None) -> None:
    """Remove the index that was seen, not one that another command put there since.

    IndexUnusable if it can't be.

    Not while another command writes it, either, whose words would come to lie among those of the
    next one.
    """
    path = index_file(where)
    if seen is None and not os.path.lexists(words_folder(where)):
        return
    if not is_private_folder(os.path.dirname(path), where):
        raise IndexUnusable(
            f"{path} is not in a folder of our own", "See what is wrong: resume-hooks doctor."
        )
    try:
        with _only_one(path, PATIENCE) as ours:
            if not ours:
                raise IndexUnusable(
                    "Another command is updating the index", "Run it again once that has ended."
                )
            if _identity(path) == seen:
                remove_index(where)
    except OSError as error:
        raise IndexUnusable(
            f"{path} can't be removed: {error.strerror}", "Check the state folder."
        ) from error


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
        yield (
            lock_descriptor(descriptor, patience) is not False
        )  # a volume without locks: SQLite's own must do
    finally:
        os.close(descriptor)


_COUNTS = (
    "count(DISTINCT session) FROM files",
    "group_concat(path, char(10)) FROM files WHERE inode<0 AND agent=''",
)


class Status(NamedTuple):
    """``state`` is ready, missing, damaged or newer; ``behind`` counts files to be read or dropped.

    Sizes in bytes.

    ``vaulted`` are those of its sessions of which the vault alone has a copy; ``transcripts`` are
    the client's.
    """

    file: str
    state: str
    size: int
    transcripts: int
    transcripts_size: int
    sessions: int
    records: int
    behind: int
    vaulted: int = 0


def status_of(where: Where) -> Status:
    """The state of the index of this config home."""
    path, files = index_file(where), all_files(where)
    there = (len(files), sum(file.size for file in files))
    shelf = ArchivedSessions(where, files)
    nothing = Status(path, "missing", 0, *there, 0, 0, len(files) + len(shelf.states))
    if (
        not os.path.isfile(path)
        or os.path.islink(path)
        or not is_private_folder(os.path.dirname(path), where)
    ):
        return nothing
    try:
        db = open_read_only(path)
        try:
            (version,) = db.execute("SELECT version FROM about").fetchone()
            if version != VERSION:
                return nothing._replace(
                    state="newer" if version > VERSION else "missing", size=index_size(where)
                )
            counts = []
            for what in _COUNTS:
                counts.append(db.execute(f"SELECT {what}").fetchone()[0])
            held = count_records(where) if counts[0] else 0
            work, gone = changes(db, files, shelf)
        finally:
            db.close()
    except (sqlite3.DatabaseError, IndexDamaged, IndexUnusable, TypeError):
        return nothing._replace(state="damaged", size=index_size(where))
    behind = sum(not item.same for item in work) + len(gone)
    sessions, elsewhere = counts
    vaulted = sum(not is_foreign(path, where) for path in (elsewhere or "").split("\n") if path)
    return Status(path, "ready", index_size(where), *there, sessions, held, behind, vaulted)


def count_records(where: Where) -> int:
    """How many records there are, all of them looked at. IndexDamaged or IndexUnusable."""
    folder = words_folder(where)
    if not is_private_folder(folder, where):
        raise IndexDamaged(f"{folder} is not a resume-hooks folder")
    words = Postings(folder, fresh=False)
    words.check()
    return words.records


def index_size(where: Where) -> int:
    """Bytes of the index: its table, and what SQLite keeps beside it, and its words."""
    path = index_file(where)
    files = [path, f"{path}-wal"]
    for folder, _, names in os.walk(words_folder(where)):
        for name in names:
            files.append(os.path.join(folder, name))
    return sum(os.path.getsize(file) for file in files if os.path.isfile(file))
