"""The manifest of a deleted session: what it was, and where each of its parts came from.

What a manifest says is acted upon only where every place in it is one that a session's parts have.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

import orjson

from resume_hooks.paths import TASKS, Where, read_object
from resume_hooks.sessions.archived.layout import HISTORY, PROJECTS
from resume_hooks.sessions.transcript_files import PREFIX
from resume_hooks.storage import project_files, state_file
from resume_hooks.storage.move import is_stub, weigh

MANIFEST = "manifest.json"
"""In each entry's folder; of a finished delete it has the digests, too."""

GONE = ".gone"
"""What the name of a folder ends with that is being removed for good."""

BY_ID = frozenset({HISTORY, TASKS})
"""Folders of the config home that have a folder a session, so that all sessions of that id share it."""

VERSION = 1
"""Of the manifests; one of another is left alone."""


class TrashPart(NamedTuple):
    """A file or folder of a session. ``place`` is where it belongs, from the config home on; the rest as ``Weight``."""

    place: str
    files: int
    size: int
    sha256: str = ""

    @property
    def name(self) -> str:
        """What it is called in the trash."""
        first, _, rest = self.place.partition("/")
        return first if first in BY_ID else rest.rpartition("/")[2]

    def path(self, where: Where) -> str:
        """Where it belongs."""
        return os.path.join(where.config, *self.place.split("/"))


class TrashEntry(NamedTuple):
    """A deleted session. ``folder`` is where it is kept, ``parts`` begin with the transcript; instants as transcripts.

    ``complete`` is false where the delete was interrupted: parts may still lie where they were.
    """

    session_id: str
    folder: str
    title: str
    cwd: str
    ended: str
    deleted_at: str
    parts: tuple[TrashPart, ...]
    complete: bool

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(part.size for part in self.parts)

    @property
    def files(self) -> int:
        """Files of all parts."""
        return sum(part.files for part in self.parts)

    @property
    def instant(self) -> str:
        """What its folder is called: when it was deleted, without colons."""
        return os.path.basename(self.folder)

    @property
    def locator(self) -> str:
        """What names this delete and no other of the session."""
        return f"{self.session_id}@{self.instant}"

    def kept(self, part: TrashPart) -> str:
        """Where a part lies in the trash."""
        return os.path.join(self.folder, part.name)

    def hidden(self, part: TrashPart, where: Where) -> str:
        """What a part is called, beside its place, while it is copied to the trash."""
        folder, name = os.path.split(part.path(where))
        return os.path.join(folder, f".{name}.{self.instant}.moving")

    def lies(self, part: TrashPart, where: Where) -> str:
        """Where a part that is to come back lies; ``""`` where it is neither in the trash nor on the way there."""
        both = (self.kept(part), self.hidden(part, where))
        return next((path for path in both if os.path.lexists(path) and not (part.size and is_stub(path))), "")

    def missing(self, where: Where) -> list[str]:
        """The places of parts that are neither there nor anywhere that we would have put them."""
        places = ((part, part.path(where)) for part in self.parts)
        return [place for part, place in places if not (os.path.lexists(place) or self.lies(part, where))]


def write_manifest(entry: TrashEntry, where: Where) -> None:
    """Write an entry's manifest, whole and synced. WriteFailed where it can't be."""
    row = entry._asdict() | {"version": VERSION, "parts": [part._asdict() for part in entry.parts]}
    del row["folder"]
    path = os.path.join(entry.folder, MANIFEST)
    try:
        state_file.replace(path, orjson.dumps(row, option=orjson.OPT_INDENT_2), where)
    except OSError as error:
        raise project_files.refused(path, error) from error


def read_manifest(folder: str, session_id: str) -> TrashEntry | None:
    """The entry that a folder's manifest describes; None if none can be acted upon."""
    row = read_object(os.path.join(folder, MANIFEST))
    complete = row.get("complete")
    texts = [row.get(name) for name in ("title", "cwd", "ended", "deleted_at")]
    parts = tuple(part for each in _rows(row) if (part := _part(each, session_id)))
    if row.get("version") != VERSION or folder.endswith(GONE):
        return None
    if not all(isinstance(text, str) for text in texts) or not isinstance(complete, bool) or not parts:
        return None
    if parts[0].name != f"{session_id}.jsonl" or len(parts) != len(_rows(row)):
        return None
    title, cwd, ended, deleted_at = map(str, texts)
    return TrashEntry(session_id, folder, title, cwd, ended, deleted_at, parts, complete)


def _rows(row: Mapping[str, object]) -> list[object]:
    parts = row.get("parts")
    return parts if isinstance(parts, list) else []


def _part(row: object, session_id: str) -> TrashPart | None:
    """A part as a manifest has it; None where its place is none that a session's parts have."""
    if not isinstance(row, dict):
        return None
    place, files, size, digest = (row.get(name) for name in TrashPart._fields)
    if not (isinstance(place, str) and isinstance(files, int) and isinstance(size, int) and isinstance(digest, str)):
        return None
    return TrashPart(place, files, size, digest) if _is_place(place.split("/"), session_id) else None


def _is_place(steps: list[str], session_id: str) -> bool:
    if {"", ".", ".."} & set(steps) or any("\0" in step or os.sep in step for step in steps):
        return False
    if steps[0] in BY_ID:
        return steps[1:] == [session_id]
    own = steps[-1] in {session_id, f"{session_id}.jsonl"} or steps[-1].startswith(PREFIX)
    return steps[0] == PROJECTS and len(steps) == 3 and own


def weighed(entry: TrashEntry) -> TrashEntry:
    """A whole entry with its parts as they are now in the trash; another one as it is. OSError."""
    if not entry.complete:
        return entry
    return entry._replace(parts=tuple(TrashPart(part.place, *weigh(entry.kept(part))) for part in entry.parts))


def unweighed(entry: TrashEntry) -> TrashEntry:
    """An entry whose parts are known without their digests, for as long as they change."""
    return entry._replace(parts=tuple(part._replace(sha256="") for part in entry.parts))
