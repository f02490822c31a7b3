"""Deleting: a session's transcript and all that belongs to it moved to the trash; and the trash emptied for good.

The transcript goes first, so that no client sees half a session; whatever fails puts everything back. Killed at any
point, what is in the trash and what is still in its place are the whole, and ``restore`` joins them.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterable
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.archive.trash import contents, restore
from resume_hooks.archive.trash.contents import BY_ID, StrayFolder, TrashEntry, TrashPart, weighed, write_manifest
from resume_hooks.errors import PlaceTaken, SessionLive, SessionNotFound, UsageError, WriteFailed
from resume_hooks.paths import Where, all_folders, is_session_file
from resume_hooks.sessions.archived.layout import PROJECTS
from resume_hooks.sessions.archived.sessions import require_own
from resume_hooks.sessions.held_links import release
from resume_hooks.sessions.lineage import Descendant, Family
from resume_hooks.sessions.liveness import why_live
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.session_files import SessionFile, is_known
from resume_hooks.sessions.transcript_files import beside_sessions
from resume_hooks.storage.move import move, take, weigh
from resume_hooks.system.text import encodable, plain_line
from resume_hooks.transcripts.head_tail import HeadTail


class Deletion(NamedTuple):
    """A delete to be: ``entry`` is what the trash will hold, but for its folder; ``live`` says why it is, or ``""``.

    ``derived`` are the sessions that came from it and stay.
    """

    session: SessionFile
    entry: TrashEntry
    live: str
    derived: tuple[Descendant, ...]


def plan(session: SessionFile, where: Where) -> Deletion:
    """Decide what a delete takes away; nothing is moved. UsageError for what is no session of a client.

    OnlyKept where the kept copy alone is left; WriteFailed where what belongs to it can't be looked through.
    """
    require_own(session, where)
    if not is_known(session, where) or os.path.islink(os.path.dirname(session.path)):
        raise UsageError(
            f"{session.path} is no session in a project folder", "Other files are yours to remove, with rm."
        )
    glance = HeadTail(session.path)
    try:
        parts = tuple(_parts(session, where))
    except OSError as error:
        raise WriteFailed(
            f"{error.filename or session.path} can't be read: {error.strerror}", "Check its permissions."
        ) from error
    if any(part.place != encodable(part.place) for part in parts):
        raise UsageError(f"{session.path} has a name that is no UTF-8", "Rename it first: no manifest could name it.")
    title = encodable(plain_line(glance.title))
    cwd = encodable(home_folder(glance, where))
    ended = clock.from_epoch(session.mtime)
    entry = TrashEntry(session.session_id, "", title, cwd, ended, deleted_at=clock.now(), parts=parts, complete=False)
    derived = Family(where).descendants(session.session_id)
    return Deletion(session, entry, why_live(session, where), tuple(derived))


def require_quiet(session: SessionFile, where: Where) -> None:
    """Raise SessionLive where a session is live."""
    if why := why_live(session, where):
        raise SessionLive(
            f"The session is live: {why}",
            "Quit its client and wait a minute, or add --force: a client that has it open begins it anew.",
        )


def write(decided: Deletion, where: Where, *, force: bool = False) -> TrashEntry:
    """Move a session to the trash; what the trash then holds.

    SessionLive where it is live and not ``force``; WriteFailed, SessionNotFound where something can't be moved: all is
    in its place then, unless the message says so.
    """
    if not force:
        require_quiet(decided.session, where)
    with contents.only_one(where):
        at = clock.now()
        try:
            folder = contents.new_folder(decided.session.session_id, at, where)
        except OSError as error:
            raise _refused(decided.session.path, error) from error
        return _moved(decided.entry._replace(folder=folder, deleted_at=at), where)


def empty(entries: Iterable[TrashEntry], where: Where, strays: Iterable[StrayFolder] = ()) -> list[TrashEntry]:
    """Remove what the trash holds of these sessions, for good, and these strays; the sessions that were removed.

    Where a delete was interrupted the entry stays: its parts may be the only ones. What another command took meanwhile
    is passed over. WriteFailed where something can't be removed; all else is.
    """
    removed: list[TrashEntry] = []
    failed: list[tuple[str, OSError | PlaceTaken]] = []
    with contents.only_one(where):
        left = {stray.folder for stray in contents.strays(where)}
        for folder, entry in [(each.folder, None) for each in strays] + [(each.folder, each) for each in entries]:
            wanted = folder in left if entry is None else entry.complete and os.path.isdir(folder)
            try:
                if wanted and entry is not None:
                    restore.leave_companions(entry, where)
                if wanted:
                    contents.drop(folder)
            except (OSError, PlaceTaken) as error:
                failed.append((folder, error))
            else:
                removed += [entry] if wanted and entry is not None else []
    if failed:
        folder, cause = failed[0]
        place, why = (cause.filename or folder, cause.strerror) if isinstance(cause, OSError) else (folder, cause)
        raise WriteFailed(
            f"{place} could not be removed: {why}" + (f"; nor could {len(failed) - 1:,} more" if failed[1:] else ""),
            f"{len(removed):,} of the sessions were. Check its permissions, then run it again.",
        ) from cause
    return removed


def _moved(entry: TrashEntry, where: Where) -> TrashEntry:
    kept = False
    try:
        write_manifest(entry, where)
        for part in entry.parts:
            release(part.path(where), where)  # what the user deletes is not lost
            take(part.path(where), entry.kept(part), entry.hidden(part, where))
        whole = weighed(entry._replace(complete=True))
        write_manifest(whole, where)
        kept = True
    except FileNotFoundError as error:
        raise SessionNotFound(
            f"{error.filename or entry.session_id} is gone", "Was it deleted by somebody else just now?"
        ) from error
    except OSError as error:
        raise _refused(error.filename or entry.folder, error) from error
    finally:  # also where the user interrupts
        if not kept:
            _put_back(entry, where)
    return whole


def _put_back(entry: TrashEntry, where: Where) -> None:
    """Undo what was moved; the manifest goes last. What can't be put back stays, and so does the manifest."""
    for part in reversed(entry.parts):
        kept, place = entry.kept(part), part.path(where)
        try:
            if os.path.lexists(kept) and not (os.path.lexists(place) and weigh(kept) == weigh(place)):
                move(kept, place)
            if os.path.lexists(hidden := entry.hidden(part, where)):
                raise FileExistsError(None, f"a client began it anew, and the old one is {hidden}")
        except OSError as error:
            gone, back = entry.missing(where), f"resume-hooks restore {shlex.quote(entry.locator)}"
            raise WriteFailed(
                f"{place} could not be put back: {error.strerror or error}",
                f"{gone[0]} is nowhere." if gone else f"Nothing is lost. When the cause is mended: {back}",
            ) from error
    with contextlib.suppress(OSError):
        contents.drop(entry.folder)


def _parts(session: SessionFile, where: Where) -> Iterable[TrashPart]:
    """The transcript, then what belongs to it; links are left where they are. OSError where it can't be listed."""
    folder = os.path.dirname(session.path)
    key = f"{PROJECTS}/{os.path.basename(folder)}"
    beside = beside_sessions(folder).get(session.session_id, [])
    places = [f"{key}/{os.path.basename(path)}" for path in (session.path, *beside)]
    folders = [f"{key}/{session.session_id}"]
    copies = (os.path.join(other, os.path.basename(session.path)) for other in all_folders(where) if other != folder)
    if not any(map(is_session_file, copies)):  # a copy in another project would miss them
        folders += [f"{home}/{session.session_id}" for home in sorted(BY_ID)]
    paths = ((place, os.path.join(where.config, *place.split("/"))) for place in folders)
    places += [place for place, path in paths if os.path.isdir(path) and not os.path.islink(path)]
    for place in places:
        part = TrashPart(place, 0, 0)
        yield TrashPart(place, *weigh(part.path(where), contents=False))


def _refused(path: str, error: OSError) -> WriteFailed:
    return WriteFailed(
        f"{path} could not be moved to the trash: {error.strerror or error}",
        "Nothing was changed. Check free space and permissions.",
    )
