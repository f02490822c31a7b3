"""What the trash holds: deleted sessions in our state folder, each with a manifest that says where its parts came from.

``trash/<session id>/<instant>/`` holds the parts under names of their own. The manifest is there before the first part
and is complete after the last, so that an interrupted delete can be taken back. What it says is acted upon only where
every place in it is one that a session's parts have.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

import orjson

from resume_hooks.errors import AmbiguousLocator, SessionNotFound, UsageError, WriteFailed
from resume_hooks.paths import TASKS, Where, is_session_id, private_folder, read_object
from resume_hooks.sessions.archived.layout import HISTORY, PROJECTS
from resume_hooks.sessions.locator_forms import KeptNames, kept_as
from resume_hooks.sessions.transcript_files import PREFIX
from resume_hooks.storage import project_files, state_file
from resume_hooks.storage.locks import locked_folder
from resume_hooks.storage.move import is_stub, remove, sizes_in, weigh
from resume_hooks.storage.state_file import sync_folder
from resume_hooks.storage.typed_rows import read_as

FOLDER = "trash"
IN_USE = "Another command is at work in the trash"

_LAST = re.compile(r"(.*)@([0-9TZ:.-]+)")
"""A locator with the instant of one of several deletes behind it."""

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


class StrayFolder(NamedTuple):
    """A folder in the trash that is no session: ``gone`` if it was being removed or took nothing yet.

    Else it has no readable manifest.
    """

    folder: str
    files: int
    size: int
    gone: bool


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
    entry = read_as(TrashEntry, {**row, "session_id": session_id, "folder": folder})
    if row.get("version") != VERSION or folder.endswith(GONE) or entry is None or not entry.parts:
        return None
    if not all(_is_place(part.place.split("/"), session_id) for part in entry.parts):
        return None
    return entry if entry.parts[0].name == f"{session_id}.jsonl" else None


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


@contextlib.contextmanager
def only_one(where: Where) -> Iterator[None]:
    """While the block runs no other command moves anything into or out of the trash. SessionLive, WriteFailed."""
    home = _home(where)
    if os.path.islink(home):
        raise WriteFailed(f"{home} is a symbolic link, so it was left alone", "Put a folder in its place.")
    with locked_folder(home, where, IN_USE, "The trash can't be used:"):
        yield


def new_folder(session_id: str, at: str, where: Where) -> str:
    """A private folder for a session that is deleted ``at`` an instant. OSError where it can't be made."""
    folder = os.path.join(_home(where), session_id)
    private_folder(folder, where)
    made = os.path.join(folder, at.replace(":", "-"))
    os.mkdir(made, 0o700)  # of two deletes within a millisecond one fails
    return made


def drop(folder: str) -> None:
    """Remove a folder of the trash and all that is in it for good. OSError where it can't be; it is a stray then."""
    gone = folder if folder.endswith(GONE) else folder + GONE
    if gone != folder:  # no reader sees it from here on
        os.rename(folder, gone)
        sync_folder(os.path.dirname(folder))
    remove(gone)
    with contextlib.suppress(OSError):  # it holds another delete of the same session
        os.rmdir(os.path.dirname(folder))


def all_deleted(where: Where) -> list[TrashEntry]:
    """Every deleted session that can be told, the last deleted first."""
    found = (each for each in _contents(where) if isinstance(each, TrashEntry))
    return sorted(found, key=lambda entry: entry.deleted_at, reverse=True)


def strays(where: Where) -> list[StrayFolder]:
    """Every folder in the trash that is no session, with what can be counted of it."""
    return [each for each in _contents(where) if isinstance(each, StrayFolder)]


def _contents(where: Where) -> Iterator[TrashEntry | StrayFolder]:
    """What each folder of the trash is; a delete that was killed before it took anything is as good as removed."""
    for path in _folders_in(_home(where)):
        session_id = os.path.basename(path)
        for folder in _folders_in(path) if is_session_id(session_id) else [path]:
            entry = read_manifest(folder, session_id) if folder != path else None
            if entry and (entry.complete or any(entry.lies(part, where) for part in entry.parts)):
                yield entry
                continue
            gone = entry is not None or (folder != path and folder.endswith(GONE))
            sizes = list(sizes_in(folder))
            if gone or sizes:
                yield StrayFolder(folder, len(sizes), sum(sizes), gone)


def find(locator: str, where: Where, *, by_part: bool = True) -> TrashEntry:
    """The deleted session that a locator names, in one of the forms of ``kept_as``.

    ``@`` and an instant behind any of them name one of several deletes. UsageError, SessionNotFound, AmbiguousLocator.
    """
    wanted = locator.strip()
    if not wanted:
        raise UsageError("An empty locator names no session", "Give an id or a title.")
    entries = all_deleted(where)
    found = _named(wanted, entries, where, by_part=by_part)
    if not found and (last := _LAST.fullmatch(wanted)):
        instant = last[2].replace(":", "-")
        of_then = [entry for entry in entries if entry.instant == instant]
        found = _named(last[1], of_then, where, by_part=by_part)
    if not found:
        raise SessionNotFound(
            f"The trash holds no session '{wanted}'", "See what it holds: resume-hooks restore --list"
        )
    if len(found) > 1:
        rows = [_candidate(entry, where) for entry in found]
        raise AmbiguousLocator(
            wanted, rows, remedy="Give one of these, with its instant: resume-hooks restore ID@INSTANT"
        )
    return found[0]


def _named(wanted: str, entries: list[TrashEntry], where: Where, *, by_part: bool) -> list[TrashEntry]:
    def names(entry: TrashEntry) -> KeptNames:
        return KeptNames(entry.session_id, entry.parts[0].path(where), {entry.title})

    return kept_as(wanted, entries, names, by_part=by_part)


def _home(where: Where) -> str:
    return os.path.join(where.state, FOLDER)


def _folders_in(folder: str) -> list[str]:
    """The folders in a folder, sorted; links are none."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _candidate(entry: TrashEntry, where: Where) -> dict[str, object]:
    return {
        "session_id": entry.session_id,
        "locator": entry.locator,
        "title": entry.title,
        "ended": entry.ended,
        "size": entry.size,
        "session_file": entry.parts[0].path(where),
    }
