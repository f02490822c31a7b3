"""Scan one place for secrets: its lines and texts without them, and what was in them. Nothing is written here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.archive.vault.pack_writer import lines_of
from resume_hooks.errors import WriteFailed
from resume_hooks.parts.secrets.scrub.cleaner import Cleaned, Cleaner, RemovedSecret
from resume_hooks.parts.secrets.scrub.locations import INDEXED, KEPT, TRASHED, Location, files_in
from resume_hooks.paths import ENDING, Where, open_regular
from resume_hooks.sessions.archived import manifest, packs
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.storage.atomic import BUFFER
from resume_hooks.transcripts.lines import read_lines

LARGEST_TEXT = 64 * 1024 * 1024
"""Bytes of a text that is looked at as a whole; a longer one is, line by line."""

_HEAD = 8 * 1024
"""Bytes in which a NUL says that a file is no text."""


class LocationContents(NamedTuple):
    """What a place holds; ``stuck`` where some of it stands in what can't be changed: no text, an image, an id."""

    place: Location
    found: tuple[RemovedSecret, ...]
    stuck: bool


def look(place: Location, cleaner: Cleaner, where: Where) -> LocationContents:
    """The secrets that a place holds. OSError or WriteFailed, which says why, where that can't be told."""
    if os.path.islink(place.path):
        raise WriteFailed("It is a symbolic link, which is not followed", "Look at what is behind it by hand.")
    found: list[RemovedSecret] = []
    stuck = False
    for cleaned in _contents(place, cleaner, where):
        found += cleaned.found
        stuck = stuck or cleaned.stuck
    return LocationContents(place, tuple(found), stuck)


def _contents(place: Location, cleaner: Cleaner, where: Where) -> Iterator[Cleaned]:
    if place.kind == KEPT:
        kept = manifest.find(place.session_id, where)
        if kept is None:
            raise WriteFailed(
                manifest.why_unreadable(place.session_id, where) or "It has no note, or can't be listed",
                "What it holds can't be told: update this resume-hooks, or move it away.",
            )
        yield from _cleaned_kept(kept, cleaner)
    elif place.kind == TRASHED and os.path.isdir(place.path):
        for path in files_in(place.path):
            yield from cleaned_of(path, cleaner, lines=is_lines(path))
    elif place.kind != INDEXED:  # built anew in any case
        yield from cleaned_of(place.path, cleaner, lines=is_lines(place.path))


class CleanLocations:
    """The places that held nothing when they were looked at, which are not read again as long as they stay so."""

    def __init__(self) -> None:
        self._clean: dict[Location, object] = {}

    def knows(self, place: Location) -> bool:
        """Whether a place held nothing, and nobody changed it since."""
        return place in self._clean and self._clean[place] == _state(place)

    def look(self, place: Location, cleaner: Cleaner, where: Where) -> LocationContents:
        """As ``look``, remembered."""
        state = _state(place)
        held = look(place, cleaner, where)
        if not held.found and not held.stuck:
            self._clean[place] = state
        return held


def _state(place: Location) -> object:
    """What changes with any change of a place."""
    paths = [place.path, *files_in(place.path)] if place.kind in {KEPT, TRASHED} else [place.path]
    return [(path, *_status(path)) for path in paths]


def _status(path: str) -> tuple[int, ...]:
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def cleaned_of(path: str, cleaner: Cleaner, *, lines: bool) -> Iterator[Cleaned]:
    """A file's content without secrets, by ``lines``, or whole where a secret may go over several. OSError."""
    with open_regular(path, follow=False) as stream:
        binary = b"\0" in stream.read(_HEAD)
        stream.seek(0)
        if binary:
            yield from (Cleaned(piece, (), cleaner.knows(piece)) for piece in iter(lambda: stream.read(BUFFER), b""))
        elif lines or os.fstat(stream.fileno()).st_size > LARGEST_TEXT:
            yield from (cleaner.line(line.raw) for line in read_lines(stream))
        else:
            yield cleaner.text(stream.read())


def is_lines(path: str) -> bool:
    """Whether a file is lines of records, by its name."""
    return ENDING in os.path.basename(path)


def _cleaned_kept(kept: ArchivedSession, cleaner: Cleaner) -> Iterator[Cleaned]:
    """What the vault holds of a session without secrets: lines of records, and other texts whole."""
    for part, pieces in packs.contents(kept.folder, list(kept.all_parts)):
        if is_lines(part.place) or part.size > LARGEST_TEXT:
            yield from map(cleaner.line, lines_of(pieces))
        else:
            yield cleaner.text(b"".join(pieces))
    for text in (kept.title, kept.about.tag, *kept.about.titles):
        yield cleaner.text(text.encode("utf-8", "replace"))
