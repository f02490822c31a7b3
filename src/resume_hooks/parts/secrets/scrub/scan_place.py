"""Scan one place for the secrets that a cleaner takes out. Nothing is written here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.errors import WriteFailed
from resume_hooks.parts.secrets.contents import files_of, is_lines, pieces_of_kept
from resume_hooks.parts.secrets.locations import INDEXED, KEPT, TRASHED, Location, files_in
from resume_hooks.parts.secrets.scrub.cleaner import Cleaned, Cleaner, RemovedSecret
from resume_hooks.paths import Where
from resume_hooks.sessions.archived import manifest


class LocationContents(NamedTuple):
    """What a place holds; ``stuck`` where some of it stands in what can't be changed: no text, an image, an id."""

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
    return LocationContents(tuple(found), stuck)


def _contents(place: Location, cleaner: Cleaner, where: Where) -> Iterator[Cleaned]:
    if place.kind == KEPT:
        kept = manifest.find(place.session_id, where)
        if kept is None:
            raise WriteFailed(
                manifest.why_unreadable(place.session_id, where) or "It has no note, or can't be listed",
                "What it holds can't be told: update this resume-hooks, or move it away.",
            )
        yield from map(cleaner.piece, pieces_of_kept(kept))
        for text in (kept.title, kept.about.tag, *kept.about.titles):
            yield cleaner.text(text.encode("utf-8", "replace"))
    elif place.kind != INDEXED:  # built anew in any case
        for path in files_of(place):
            yield from cleaner.file(path, lines=is_lines(path))


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
