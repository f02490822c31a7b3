"""Restore an archived or deleted session for the client: byte for byte if its place is free.

Existing files are never overwritten. The transcript comes last, so no client sees half a session,
and an interrupted restore can be repeated. If the place is taken, a session from the vault gets a
new id, always the same for the same content, and the vault keeps its copy. A session from the trash
leaves the trash, and fails if its place is taken.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import time
import uuid
from collections.abc import Iterable
from typing import NamedTuple

from resume_hooks.archive.vault import commit, trash
from resume_hooks.archive.vault.packs import lines_of
from resume_hooks.clock import DAY
from resume_hooks.errors import (
    CheckFailed,
    PlaceTaken,
    SessionNotFound,
    WriteFailed,
)
from resume_hooks.paths import Where, find_session, make_private_folder, open_regular
from resume_hooks.sessions.archived.layout import BY_ID, PROJECTS, path_of_place, place_beside
from resume_hooks.sessions.archived.manifest import ArchivedFile, ArchivedSession
from resume_hooks.sessions.archived.unpack import (
    hash_pieces,
    pieces_of,
    sha_of,
    verified_transcript,
)
from resume_hooks.sessions.transcript_files import FOLDER as SUBAGENTS
from resume_hooks.storage import removal
from resume_hooks.storage.append_carryover import begins_with_copy
from resume_hooks.storage.atomic import create_session
from resume_hooks.storage.move import has_same_bytes, hash_file, is_empty_file, link_or_copy
from resume_hooks.storage.state_file import remove_stale_temporaries, sync_folder
from resume_hooks.system.claude_settings import retention_days
from resume_hooks.system.text import format_count, plain_line, replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.raw_edit import with_session_id

SPARE_DAYS = 7
"""The fewest days that a restored session has before the client deletes it for its age."""

AGED = (
    "It is older than the {kept} that the client keeps sessions: it counts as newer, and has "
    "{left} left."
)
LOST = "{place} is neither in the trash nor in its place: it was not restored."
CHANGED = "{name} was changed in the trash since the session was deleted."
TWICE = (
    "{path} has the same id: clients since 2.1.223 do not resume an id that is in two folders. "
    "Delete one of them."
)
EMPTIED = "It was already there, byte for byte; it is no longer in the trash."
THERE = "It is already there, byte for byte; nothing had to be restored."
GONE_ON = "It is already there, and has continued since; nothing had to be restored."
RENAMED = "{path} is a different session now, so the archived copy gets a new id."
LEFT = "{path} exists and differs; it was not changed."


class RestoredFile(NamedTuple):
    """A file to restore: its readable source, and its target path."""

    part: ArchivedFile
    source: str
    path: str


class Retrieval(NamedTuple):
    """The plan to restore an archived session. ``session_id`` is its id there.

    Without pieces there is nothing to do.

    ``left`` are the files that stay untouched, because other files are in their place.
    """

    archived: ArchivedSession
    session_id: str
    path: str
    pieces: tuple[RestoredFile, ...]
    warnings: tuple[str, ...]
    left: tuple[str, ...] = ()


def plan_restore(archived: ArchivedSession, where: Where) -> Retrieval:
    """Plan how to restore an archived session.

    Nothing is written except files that must be unpacked. Raises SessionNotFound and WriteFailed if
    the archive is unreadable, and PlaceTaken if the project folder is not a folder, or if the place
    of a deleted session is taken.
    """
    if not archived.deleted_at:
        return _plan_from_vault(archived, where)
    try:
        return _plan_from_trash(archived, where)
    except (SessionNotFound, WriteFailed):
        now = trash.entry_in(archived.folder, where)
        if now is None or now == archived:
            raise
        return _plan_from_trash(now, where)  # packed since the lookup


def _plan_from_vault(archived: ArchivedSession, where: Where) -> Retrieval:
    """Plan a restore from the vault, with a new id if another session is in its place."""
    source = verified_transcript(archived, where)
    # An earlier state may have another title.
    title = replace_surrogates(plain_line(HeadTail(source).title))
    archived = archived._replace(title=title)
    place = path_of_place(archived.place, where)
    warnings = []
    try:
        existing = find_session(archived.session_id, where) or _existing_at(place)
        session_id, path = archived.session_id, existing or place
        if existing and not _begins_as_archived(existing, archived):
            session_id = _session_id_of_content(archived)
            path = os.path.join(os.path.dirname(place), f"{session_id}.jsonl")
            warnings.append(RENAMED.format(path=existing))
            existing = path if os.path.lexists(path) else ""
        if existing:
            is_same = os.path.getsize(existing) == archived.transcript.size
            warnings.append(THERE if is_same else GONE_ON)
        folder = os.path.dirname(path)
        _require_real_folder(folder, folder)
        parts = (*archived.parts[1:], archived.transcript)
        source_folder = os.path.dirname(source)
        pieces, left = _pieces_to_put(archived, parts, session_id, folder, source_folder, where)
    except OSError as error:
        raise _unreadable(error, place) from error
    if pieces:
        warnings += _age_warnings(archived, where)
    return Retrieval(archived, session_id, path, tuple(pieces), (*warnings, *left), tuple(left))


def _existing_at(place: str) -> str:
    """Return ``place`` if a file other than a stub is there, else ``""``."""
    if os.path.lexists(place) and not is_empty_file(place):
        return place
    return ""


def _begins_as_archived(path: str, archived: ArchivedSession) -> bool:
    """Check whether a file begins with the archived transcript, byte for byte."""
    size, sha256 = archived.transcript.size, archived.transcript.sha256
    return os.path.getsize(path) >= size and sha_of(path, size) == sha256


def _session_id_of_content(archived: ArchivedSession) -> str:
    """Return a new id for a session, always the same for the same content."""
    content = f"{archived.session_id} {archived.transcript.sha256}"
    digest_of_content = hashlib.sha256(content.encode()).digest()
    return str(uuid.UUID(bytes=digest_of_content[:16], version=4))


def _plan_from_trash(entry: ArchivedSession, where: Where) -> Retrieval:
    """Plan a restore from the trash: the missing files."""
    place = path_of_place(entry.place, where)
    notes = _age_warnings(entry, where)
    try:
        folder, parts = os.path.dirname(place), (*entry.parts[1:], entry.transcript)
        source_folder = _source_folder(entry, where)
        pieces, left = _pieces_to_put(entry, parts, entry.session_id, folder, source_folder, where)
        pieces, warnings = _pieces_in_trash(pieces, entry)
    except OSError as error:
        raise _unreadable(error, place) from error
    if not pieces and not left:
        notes.append(EMPTIED)
    other = find_session(entry.session_id, where)
    if other is not None and other != place:
        notes.append(TWICE.format(path=other))
    sentences = (*notes, *warnings, *left)
    return Retrieval(entry, entry.session_id, place, tuple(pieces), sentences, tuple(left))


def _pieces_in_trash(
    pieces: Iterable[RestoredFile], entry: ArchivedSession
) -> tuple[list[RestoredFile], list[str]]:
    """Return the pieces that the trash still has, and warnings about missing or changed ones.

    Raises SessionNotFound if the transcript is missing.
    """
    there, warnings = [], []
    for piece in pieces:
        if os.path.lexists(piece.source):
            there.append(piece)
            if piece.part.sha256 and hash_file(piece.source) != piece.part.sha256:
                warnings.append(CHANGED.format(name=place_beside(piece.part.place)))
        elif piece.part == entry.transcript:
            raise SessionNotFound(
                f"{piece.source} is gone from the trash",
                f"It is not at {piece.path} either: somebody removed it.",
            )
        else:
            warnings.append(LOST.format(place=piece.path))
    return there, warnings


def _unreadable(error: OSError, place: str) -> WriteFailed:
    return WriteFailed(
        f"{error.filename or place} can't be read: {error.strerror}", "Check its permissions."
    )


def _source_folder(entry: ArchivedSession, where: Where) -> str:
    """Return a folder with the readable files of a deleted session, in the client's layout."""
    if entry.transcript.where:
        return os.path.dirname(verified_transcript(entry, where))
    return entry.folder


def _age_warnings(archived: ArchivedSession, where: Where) -> list[str]:
    """Return a warning if a session is so old that its file times must be changed."""
    days = retention_days(archived.cwd, where)
    if days is None:
        return []
    written = archived.transcript.mtime_ns / 1e9
    if written >= _oldest_time_left(archived.cwd, where):
        return []
    return [AGED.format(kept=format_count(days, "day"), left=format_count(_days_left(days), "day"))]


def restore_session(decided: Retrieval, where: Where) -> Retrieval:
    """Restore an archived session. Return what was done.

    It leaves the trash, unless a file was left untouched.

    Raises WriteFailed for a disk error and PlaceTaken if a file appeared in its place meanwhile.
    Restored files then stay, and the command can be repeated. Raises SessionNotFound if another
    command removed the session from the trash.
    """
    if not decided.archived.deleted_at:
        return _restore_locked(decided, where)
    with commit.only_one_in_trash(where):
        entry = trash.entry_in(decided.archived.folder, where)
        if entry is None:
            raise _restored_by_another_command(decided)
        done = _restore_locked(plan_restore(entry, where), where)
        if not done.left:
            # The session is restored. A leftover in the trash is listed there.
            with contextlib.suppress(OSError):
                trash.drop_from_trash(entry.folder, where)
    return done


def _restored_by_another_command(decided: Retrieval) -> SessionNotFound:
    if os.path.lexists(decided.path):
        remedy = f"{decided.path} is in its place."
    else:
        remedy = "It is not in its place: was the trash emptied?"
    return SessionNotFound(
        f"{decided.archived.locator} is no longer in the trash: another command was faster", remedy
    )


def leave_companions(entry: ArchivedSession, where: Where) -> None:
    """Give an existing session of the same id the files that belong to the id, before its entry leaves the trash.

    Existing files stay. Raises SessionNotFound if the entry is unreadable, WriteFailed and
    PlaceTaken.
    """
    if find_session(entry.session_id, where) is not None:
        path = path_of_place(entry.place, where)
        shared = []
        for part in entry.parts:
            if part.place.split("/")[0] in BY_ID:
                shared.append(part)
        source_folder = _source_folder(entry, where) if shared else ""
        folder = os.path.dirname(path)
        pieces, _ = _pieces_to_put(entry, shared, entry.session_id, folder, source_folder, where)
        _restore_locked(Retrieval(entry, entry.session_id, path, tuple(pieces), ()), where)


def _restore_locked(decided: Retrieval, where: Where) -> Retrieval:
    """Write every piece to its place, while the trash is locked."""
    archived, folder = decided.archived, os.path.dirname(decided.path)
    oldest = _oldest_time_left(archived.cwd, where)
    targets = []
    for part in archived.parts:
        target = _target(part, archived.session_id, decided.session_id, folder, where)
        targets.append(target)
    for target_folder in {os.path.dirname(target) for target in targets}:
        remove_stale_temporaries(target_folder)
    if archived.deleted_at:
        for target in targets:
            _keep_from_expiring(target, oldest)
    for piece in decided.pieces:
        try:
            _put_piece(piece, decided, oldest, where)
        except OSError as error:
            raise _put_failed(error, piece, decided) from error
    changed_folders = set()
    for piece in decided.pieces:
        piece_folder = os.path.dirname(piece.path)
        changed_folders |= {piece_folder, os.path.dirname(piece_folder)}
    for changed_folder in changed_folders:  # sync before the entry leaves the trash
        sync_folder(changed_folder)
    return decided


def _put_piece(piece: RestoredFile, decided: Retrieval, oldest: float, where: Where) -> None:
    """Write one file to its place, no older than ``oldest``.

    Raises OSError, CheckFailed and PlaceTaken.
    """
    folder = os.path.dirname(piece.path)
    oldest_ns = int(oldest * 1e9)
    make_private_folder(folder, where)
    if is_empty_file(piece.path):
        removal.remove_file(piece.path, folder, follow_root=True)
    if not piece.part.where:
        _keep_from_expiring(piece.source, oldest)
        link_or_copy(piece.source, piece.path)
    elif piece.part.is_link:
        os.symlink(os.readlink(piece.source), piece.path)
        newest = max(piece.part.mtime_ns, oldest_ns)
        os.utime(piece.path, ns=(newest, newest), follow_symlinks=False)
    else:
        is_renamed = decided.session_id != decided.archived.session_id
        _put_file(piece, decided.session_id if is_renamed else "", oldest_ns)


def _put_failed(error: OSError, piece: RestoredFile, decided: Retrieval) -> WriteFailed:
    """Return the error for a disk failure on ``piece``: either the command can be repeated, or a file is lost."""
    archived = decided.archived
    message = f"{error.filename or piece.path} could not be restored: {error.strerror or error}"
    for each in decided.pieces:
        if not os.path.lexists(each.path) and not os.path.lexists(each.source):
            lost = f"{each.path} is neither in {archived.folder} nor in its place."
            return WriteFailed(message, lost)
    name = archived.locator if archived.deleted_at else archived.session_id
    again = f"run it again: resume-hooks restore {name}"
    return WriteFailed(message, f"Nothing is lost. After fixing the cause, {again}")


def _keep_from_expiring(path: str, oldest: float) -> None:
    """Set the time of a file that is too old to ``oldest``.

    The client deletes each file by its own time.
    """
    with contextlib.suppress(FileNotFoundError):
        status = os.lstat(path)
        if status.st_mtime < oldest:
            os.utime(path, (status.st_atime, oldest), follow_symlinks=False)


def _put_file(piece: RestoredFile, renamed: str, oldest: int) -> None:
    """Write one file and compare it as read back.

    If there is a new id, the lines of a transcript get it.

    The file gets its mode and its time, no earlier than ``oldest`` (nanoseconds), before it gets
    its name.
    """
    whole, before = hashlib.sha256(), hashlib.sha256()
    content = hash_pieces(pieces_of(piece.source, os.path.getsize(piece.source)), before)
    if renamed and piece.path.endswith(".jsonl"):
        content = (
            with_session_id(body, renamed) + line[len(body) :]
            for line in lines_of(content)
            for body in [line.rstrip(b"\r\n")]
        )

    def check(temporary: str) -> None:
        if before.hexdigest() != piece.part.sha256:
            raise CheckFailed(
                f"{piece.source} is not what was stored: its hash differs",
                "Nothing of it was written.",
            )
        if sha_of(temporary, os.path.getsize(temporary)) != whole.hexdigest():
            raise CheckFailed(
                f"{piece.path} differs from what was written",
                "Nothing of it was left there.",
            )
        os.chmod(temporary, piece.part.mode & 0o777)
        os.utime(temporary, ns=(time.time_ns(), max(piece.part.mtime_ns, oldest)))

    create_session(piece.path, hash_pieces(content, whole), check)


def _pieces_to_put(
    archived: ArchivedSession,
    parts: Iterable[ArchivedFile],
    session_id: str,
    folder: str,
    source: str,
    where: Where,
) -> tuple[list[RestoredFile], list[str]]:
    """Return the parts to write, and sentences on existing files that differ.

    Raises PlaceTaken if one of these is a deleted session's own file.
    """
    pieces, left = [], []
    for part in parts:
        own = part is archived.transcript
        path = _target(part, archived.session_id, session_id, folder, where)
        piece = RestoredFile(part, os.path.join(source, *place_beside(part.place).split("/")), path)
        is_free = not os.path.lexists(path) or is_empty_file(path)
        if is_free or archived.deleted_at:
            own_folder = os.path.dirname(path)
            _require_real_folder(
                own_folder, folder if part.place.startswith(PROJECTS) else own_folder
            )
        if is_free and (part.size or not os.path.lexists(path)):
            pieces.append(piece)
        elif archived.deleted_at and part.place.startswith(PROJECTS):
            _require_same(piece, archived)
        elif own or session_id != archived.session_id or not os.path.lexists(piece.source):
            continue
        elif not has_same_bytes(piece.source, path):
            left.append(LEFT.format(path=path))
    return pieces, left


def _require_same(piece: RestoredFile, entry: ArchivedSession) -> None:
    """Raise PlaceTaken if another file is in a file's place.

    After a killed deletion the file may have grown.
    """
    if os.path.lexists(piece.source) and not has_same_bytes(piece.source, piece.path):
        if not entry.complete and not piece.part.is_link:
            with open_regular(piece.path, follow=False) as there:
                if begins_with_copy(there.fileno(), piece.source):
                    return
        if piece.part == entry.transcript:
            way = "First: resume-hooks delete"
        else:
            way = "First move that away:"
        raise PlaceTaken(
            f"{piece.path} is there again, and differs",
            f"{way} {shlex.quote(piece.path)}, then: resume-hooks restore {entry.locator}",
        )


def _target(part: ArchivedFile, old: str, new: str, folder: str, where: Where) -> str:
    """Return the target path of a part, with the new id if there is one.

    Sub-agents next to the old transcript go into the new session's folder.
    """
    first, _, rest = part.place.partition("/")
    steps = rest.split("/")
    if first in BY_ID:
        return path_of_place("/".join([first, new, *steps[1:]]), where)
    below = steps[1:]
    if below[0] == f"{old}.jsonl":
        below = [f"{new}.jsonl"]
    elif below[0] == old:
        below = [new, *below[1:]]
    elif new != old:
        below = [new, SUBAGENTS, *below]
    return os.path.join(folder, *below)


def _require_real_folder(folder: str, top: str) -> None:
    """Raise PlaceTaken if a folder, or a parent of it up to ``top``, is a link or not a folder."""
    if os.path.lexists(folder) and (os.path.islink(folder) or not os.path.isdir(folder)):
        raise PlaceTaken(
            f"{folder} is a symbolic link, or not a folder", "Move it away, then try again."
        )
    if folder != top:
        _require_real_folder(os.path.dirname(folder), top)


def _days_left(kept: int) -> int:
    """Return the fewest days that are left to a restored session, for a retention of ``kept`` days."""
    return min(SPARE_DAYS, (kept + 1) // 2)


def _oldest_time_left(cwd: str, where: Where) -> float:
    """Return the oldest time that a restored file may have, in seconds since the epoch, or 0 without a limit."""
    kept = retention_days(cwd, where)
    if kept is None:
        return 0.0
    return time.time() - (kept - _days_left(kept)) * DAY
