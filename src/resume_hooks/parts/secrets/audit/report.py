"""The places that an audit looks at, and what it says of each secret in them."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.parts.secrets.audit.cache import FILE_NAME, AuditCache
from resume_hooks.parts.secrets.audit.scan import FileScan, scan, secrets_in
from resume_hooks.parts.secrets.contents import files_of, is_lines, pieces_of_kept
from resume_hooks.parts.secrets.locations import (
    BACKUP,
    INDEXED,
    KEPT,
    READABLE,
    SUBAGENT,
    TRANSCRIPT,
    TRASHED,
    Location,
    files_in,
    inventory,
    notes_of,
)
from resume_hooks.paths import ENDING, Where, session_id_of
from resume_hooks.sessions.agents.registry import others
from resume_hooks.sessions.archived import manifest
from resume_hooks.sessions.archived.layout import MANIFEST
from resume_hooks.sessions.transcript_files import subagent_name

Progress = Callable[[int, int], None]
"""Called with the bytes done and all there are."""


_KEEPERS = frozenset({BACKUP, KEPT, READABLE, TRASHED})
"""Places of ours that may hold any session: what can't be read there is reported for each session."""


class Leak(NamedTuple):
    """A secret in a place. ``reference`` is what ``read`` understands, "" where it can't print the record.

    ``place`` names what holds it (transcript, sub-agent, sidecar, backup, trash, vault ...), ``line`` is 0-based,
    ``time`` that of the record, else of the file; ``length`` is in bytes, as written there.
    """

    kind: str
    place: str
    session_id: str
    reference: str
    file: str
    line: int
    offset: int
    length: int
    uuid: str
    time: str


class Audit(NamedTuple):
    """What an audit found: the leaks, oldest first, how many files and bytes it covers, and what else is to be told.

    ``unread`` says of each place that could not be looked at why; there may be more in it.
    """

    leaks: list[Leak]
    files: int
    size: int
    read: int
    unread: list[str]
    warnings: list[str]


def audit(
    where: Where,
    *,
    sessions: Collection[str] | None,
    kinds: Collection[str] = (),
    since: str = "",
    progress: Progress = lambda _done, _all: None,
) -> Audit:
    """Every secret of these sessions, of all and of our own notes for None.

    ``kinds`` and ``since`` (an instant) leave out others; what was looked at before and has not changed is not read.
    """
    work = _AuditRun(where, [text for place in _places(sessions, where) for text in _texts(place)], progress)
    leaks = [leak for text in work.texts for leak in work.leaks(text)]
    failed = work.memory.store(everything=sessions is None)
    wanted = [leak for leak in leaks if (not kinds or leak.kind in kinds) and leak.time >= since]
    return Audit(
        sorted(wanted, key=lambda leak: (leak.time, leak.file, leak.offset)),
        len(work.texts),
        work.size,
        work.read,
        work.unread,
        [failed] if failed else [],
    )


class _AuditFile(NamedTuple):
    """A file, or the folder of a kept session, that is looked at, and the place that it belongs to."""

    place: Location
    path: str
    size: int


class _AuditRun:
    """The looks of one audit; a file with several names is read once."""

    def __init__(self, where: Where, texts: list[_AuditFile], progress: Progress) -> None:
        self.memory = AuditCache(where)
        self.texts = texts
        self.size = sum(text.size for text in texts)
        self.read = 0
        self.unread: list[str] = []
        self._where = where
        self._progress = progress
        self._done = 0
        self._looks: dict[tuple[int, int], FileScan] = {}

    def leaks(self, text: _AuditFile) -> Iterator[Leak]:
        """The secrets of a file; one that is there and can't be read goes to ``unread``."""
        before = self.read
        try:
            scanned = self._look(text)
        except OSError as error:
            if os.path.lexists(text.path):
                self.unread.append(f"{text.path} could not be looked at: {error.strerror or error}")
            return
        self._done += text.size - (self.read - before)
        self._progress(self._done, self.size)
        yield from _leaks(text, scanned)

    def _told(self, size: int) -> None:
        self.read += size
        self._done += size
        self._progress(self._done, self.size)

    def _look(self, text: _AuditFile) -> FileScan:
        known = self.memory.known(text.path)
        if text.place.kind == KEPT:
            scanned = self._look_at_kept(text, known)
        else:
            status = os.lstat(text.path)
            name = (status.st_dev, status.st_ino)
            scanned = self._looks.get(name) or scan(text.path, known, lines=is_lines(text.path), told=self._told)
            self._looks[name] = scanned
        self.memory.note(text.path, scanned)
        return scanned

    def _look_at_kept(self, text: _AuditFile, known: FileScan | None) -> FileScan:
        """What the vault holds of a session is read anew where its note was written anew. OSError."""
        session_id = text.place.session_id
        kept = manifest.find(session_id, self._where)
        if kept is None:
            why = manifest.why_unreadable(session_id, self._where) if session_id else ""
            raise OSError(errno.EINVAL, why or "It is a link, can't be listed, or has no note")
        status = os.stat(os.path.join(text.path, MANIFEST))
        told = (status.st_ino, text.size, status.st_mtime_ns)
        if known and known[:3] == told:
            return known
        findings = tuple(found for piece in pieces_of_kept(kept) for found in secrets_in(piece))
        self._told(text.size)
        return FileScan(*told, 0, 0, "", findings)


def _places(sessions: Collection[str] | None, where: Where) -> Iterator[Location]:
    files = (file for agent in others(where) for file in agent.files())
    elsewhere = (Location(TRANSCRIPT, file.path, file.session_id, "") for file in files)
    for place in (*inventory({}, where), *elsewhere):
        unknown = not place.session_id and place.kind in _KEEPERS and not os.path.isfile(place.path)
        if sessions is None or place.session_id in sessions or unknown:
            yield place
    if sessions is None:
        own = os.path.join(where.state, FILE_NAME)
        yield from (place for place in notes_of(where) if place.kind != INDEXED and place.path != own)


def _texts(place: Location) -> Iterator[_AuditFile]:
    """The files of a place; nothing of what is gone by now."""
    for path in files_of(place):
        with contextlib.suppress(OSError):
            size = os.lstat(path).st_size
            if place.kind == KEPT:
                size = sum(os.lstat(inner).st_size for inner in files_in(path))
            yield _AuditFile(place, path, size)


def _leaks(text: _AuditFile, scanned: FileScan) -> Iterator[Leak]:
    place = text.place
    when = clock.from_epoch(scanned.mtime_ns / 1e9)
    for found in scanned.findings:
        reference = ""
        own = place.kind == TRANSCRIPT and session_id_of(text.path)
        if own or found.part.endswith(f"/{place.session_id}{ENDING}"):
            reference = f"{place.session_id}:{found.line}"
        elif place.kind == SUBAGENT and place.session_id:
            reference = f"{place.session_id}/{subagent_name(text.path)}:{found.line}"
        yield Leak(
            found.kind,
            place.kind,
            place.session_id,
            reference,
            os.path.join(text.path, found.part) if found.part else text.path,
            found.line,
            found.offset,
            found.length,
            found.uuid,
            clock.normal(found.time) or when,
        )
