"""What the trash holds: deleted sessions in our state folder, each with a manifest that says where its parts came from.

``trash/<session id>/<instant>/`` holds the parts under names of their own. The manifest is there before the first part
and is complete after the last, so that an interrupted delete can be taken back.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.archive.trash.manifest import GONE, TrashEntry, read_manifest
from resume_hooks.errors import AmbiguousLocator, SessionNotFound, UsageError, WriteFailed
from resume_hooks.paths import Where, is_session_id, private_folder
from resume_hooks.sessions.locate import MIN_PREFIX
from resume_hooks.storage.locks import locked_folder
from resume_hooks.storage.move import remove
from resume_hooks.storage.state_file import sync_folder

FOLDER = "trash"
IN_USE = "Another command is at work in the trash"

_LAST = re.compile(r"(.*)@([0-9TZ:.-]+)")
"""A locator with the instant of one of several deletes behind it."""


class StrayFolder(NamedTuple):
    """A folder in the trash that is no session: ``gone`` if it was being removed or took nothing yet.

    Else it has no readable manifest.
    """

    folder: str
    files: int
    size: int
    gone: bool


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
    if os.path.islink(folder):
        raise NotADirectoryError(errno.ENOTDIR, "Is a symbolic link", folder)
    made = os.path.join(folder, at.replace(":", "-"))
    os.mkdir(made, 0o700)  # of two deletes within a millisecond one fails
    return made


def retire(folder: str) -> str:
    """Take an entry's folder away from every reader at once; the path of what is left. OSError where it can't be."""
    gone = folder if folder.endswith(GONE) else folder + GONE
    if gone != folder:
        os.rename(folder, gone)
        sync_folder(os.path.dirname(folder))
    return gone


def drop(folder: str) -> None:
    """Remove a folder of the trash and all that is in it for good. OSError where it can't be; it is a stray then."""
    remove(retire(folder))
    with contextlib.suppress(OSError):  # it holds another delete of the same session
        os.rmdir(os.path.dirname(folder))


def all_deleted(where: Where) -> list[TrashEntry]:
    """Every deleted session that can be told, the last deleted first."""
    owned = ((path, os.path.basename(path)) for path in _folders_in(_home(where)))
    own = ((folder, name) for path, name in owned if is_session_id(name) for folder in _folders_in(path))
    found = (_taken(folder, session_id, where) for folder, session_id in own)
    return sorted((entry for entry in found if entry), key=lambda entry: entry.deleted_at, reverse=True)


def strays(where: Where) -> list[StrayFolder]:
    """Every folder in the trash that is no session, with what can be counted of it."""
    found = []
    for path in _folders_in(_home(where)):
        session_id = os.path.basename(path)
        for folder in _folders_in(path) if is_session_id(session_id) else [path]:
            told = read_manifest(folder, session_id) is not None
            gone = (folder != path and folder.endswith(GONE)) or (told and _taken(folder, session_id, where) is None)
            if gone or not told:
                sizes = list(_sizes(folder))
                found += [StrayFolder(folder, len(sizes), sum(sizes), gone)] if gone or sizes else []
    return found


def holds(session_id: str, where: Where) -> bool:
    """Whether a session lies in the trash."""
    if not is_session_id(session_id):
        return False
    return any(_taken(folder, session_id, where) for folder in _folders_in(os.path.join(_home(where), session_id)))


def find(locator: str, where: Where) -> TrashEntry:
    """The deleted session that a locator names: by id or its beginning, by its exact title, by the path it had.

    ``@`` and an instant behind any of them name one of several deletes. UsageError, SessionNotFound, AmbiguousLocator.
    """
    wanted = locator.strip()
    if not wanted:
        raise UsageError("An empty locator names no session", "Give an id or a title.")
    entries = all_deleted(where)
    found = _named(wanted, entries, where)
    if not found and (last := _LAST.fullmatch(wanted)):
        instant = last[2].replace(":", "-")
        found = _named(last[1], [entry for entry in entries if entry.instant == instant], where)
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


def _taken(folder: str, session_id: str, where: Where) -> TrashEntry | None:
    """The entry of a folder; None if it has none, or was killed before it took anything."""
    entry = read_manifest(folder, session_id)
    if entry is None or entry.complete or any(entry.lies(part, where) for part in entry.parts):
        return entry
    return None


def _named(wanted: str, entries: list[TrashEntry], where: Where) -> list[TrashEntry]:
    by_id = [entry for entry in entries if entry.session_id.startswith(wanted.lower())]
    found = by_id if len(wanted) >= MIN_PREFIX else []
    return found or [entry for entry in entries if wanted in (entry.title, entry.parts[0].path(where))]


def _sizes(folder: str) -> Iterator[int]:
    """The bytes of each file in a folder, as far as it can be looked through."""
    for root, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                yield os.lstat(os.path.join(root, name)).st_size


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
