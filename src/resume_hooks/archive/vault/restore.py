"""Bringing an archived session back to the client: byte for byte where its place is free, else under a new id.

What is there is never written over. The transcript comes last, so that no client sees half a session; interrupted, it
can be run again: the new id is always the same for the same content. The vault keeps what it has.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from resume_hooks.archive.trash.restore import AGED, floor, require_real, spare
from resume_hooks.archive.vault.pack_writer import lines_of
from resume_hooks.errors import CheckFailed, ResumeHooksError, WriteFailed
from resume_hooks.paths import Where, find_session, private_folder
from resume_hooks.sessions.archived.layout import HISTORY, PROJECTS, beside, real
from resume_hooks.sessions.archived.manifest import ArchivedFile, ArchivedSession
from resume_hooks.sessions.archived.unpack import compared, hashed, pieces_of, sha_of
from resume_hooks.sessions.transcript_files import FOLDER as SUBAGENTS
from resume_hooks.storage.atomic import create_session
from resume_hooks.storage.move import is_same, is_stub
from resume_hooks.storage.state_file import MODE, sweep
from resume_hooks.system.claude_settings import kept_days
from resume_hooks.system.text import counted, encodable, plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.raw_edit import encode, with_field
from resume_hooks.transcripts.records import parse

THERE = "It is there already, byte for byte; nothing had to be brought back."
GONE_ON = "It is there already, and went on since it was kept; nothing had to be brought back."
RENAMED = "{path} is something else by now, so the kept one comes back under a new id."
LEFT = "{path} is there and not the same; it was left alone."


class RestoredFile(NamedTuple):
    """A file on its way back: where it can be read, and where it goes."""

    part: ArchivedFile
    source: str
    path: str


class Retrieval(NamedTuple):
    """A archived session on its way back; ``session_id`` is what it has there. No pieces: there is nothing to do."""

    archived: ArchivedSession
    session_id: str
    path: str
    pieces: tuple[RestoredFile, ...]
    warnings: tuple[str, ...]


def plan(archived: ArchivedSession, where: Where) -> Retrieval:
    """Decide how an archived session comes back; nothing is written but what has to be unpacked.

    SessionNotFound, WriteFailed where it can't be opened; PlaceTaken where its project folder is none.
    """
    source = compared(archived, where)
    archived = archived._replace(
        title=encodable(plain_line(HeadTail(source).title))
    )  # an earlier state may have had another
    place = real(archived.place, where)
    try:
        there = find_session(archived.session_id, where) or (
            place if os.path.lexists(place) and not is_stub(place) else ""
        )
        warnings = []
        session_id, path = archived.session_id, there or place
        if there and not _begins_with(there, archived.transcript):
            session_id = _new_id(archived)
            path = os.path.join(os.path.dirname(place), f"{session_id}.jsonl")
            warnings.append(RENAMED.format(path=there))
            there = path if os.path.lexists(path) else ""
        if there:
            warnings.append(THERE if os.path.getsize(there) == archived.transcript.size else GONE_ON)
        folder = os.path.dirname(path)
        require_real(folder, folder)
        pieces, left = _pieces(archived, session_id, folder, os.path.dirname(source), where)
    except OSError as error:
        raise WriteFailed(
            f"{error.filename or place} can't be read: {error.strerror}", "Check its permissions."
        ) from error
    days = kept_days(archived.cwd, where)
    if pieces and days is not None and archived.transcript.mtime_ns / 1e9 < floor(archived.cwd, where):
        warnings.append(AGED.format(kept=counted(days, "day"), left=counted(spare(days), "day")))
    return Retrieval(archived, session_id, path, tuple(pieces), (*warnings, *left))


def write(decided: Retrieval, where: Where) -> Retrieval:
    """Bring an archived session back; what was done.

    WriteFailed where the disk refuses, PlaceTaken where somebody put something there meanwhile: what came back stays,
    and it can be run again.
    """
    archived, oldest = decided.archived, floor(decided.archived.cwd, where)
    folder = os.path.dirname(decided.path)
    targets = (_target(part, archived.session_id, decided.session_id, folder, where) for part in archived.parts)
    for each in {os.path.dirname(target) for target in targets} if decided.pieces else ():
        sweep(each)
    for piece in decided.pieces:
        renamed = decided.session_id if decided.session_id != decided.archived.session_id else ""
        try:
            private_folder(os.path.dirname(piece.path), where)
            if is_stub(piece.path):
                os.unlink(piece.path)
            _put(piece, renamed, int(oldest * 1e9))
        except ResumeHooksError:
            raise
        except OSError as error:
            raise WriteFailed(
                f"{error.filename or piece.path} could not be brought back: {error.strerror or error}",
                f"Nothing is lost. When the cause is mended: resume-hooks restore {decided.archived.session_id}",
            ) from error
    return decided


def _put(piece: RestoredFile, renamed: str, oldest: int) -> None:
    """Write one file and compare it as read back; lines of transcripts under the new id, if there is one.

    It has its mode and its time, no earlier than ``oldest``, in nanoseconds, before it has its name.
    """
    whole, before = hashlib.sha256(), hashlib.sha256()

    def pieces() -> Iterator[bytes]:
        content: Iterable[bytes] = hashed(pieces_of(piece.source, os.path.getsize(piece.source)), before)
        if renamed and piece.path.endswith(".jsonl"):
            content = (_renamed(line, renamed) for line in lines_of(iter(content)))
        for each in content:
            whole.update(each)
            yield each

    def check(temporary: str) -> None:
        if before.hexdigest() != piece.part.sha256:
            raise CheckFailed(f"{piece.source} is not what was kept: its hash differs", "Nothing of it was written.")
        if sha_of(temporary, os.path.getsize(temporary)) != whole.hexdigest():
            raise CheckFailed(f"{piece.path} was read back otherwise than it was written", "Nothing of it was kept.")
        os.chmod(temporary, piece.part.mode & 0o777 | MODE)
        os.utime(temporary, ns=(time.time_ns(), max(piece.part.mtime_ns, oldest)))

    create_session(piece.path, pieces(), check)


def _renamed(line: bytes, session_id: str) -> bytes:
    """A line under the new id; one that names no session as it is."""
    body = line.rstrip(b"\r\n")
    record = parse(body)
    if record is None or not isinstance(record.get("sessionId"), str):
        return line
    new = with_field(body, record, "sessionId", session_id) or encode({**record, "sessionId": session_id})
    return new + line[len(body) :]


def _pieces(
    archived: ArchivedSession, session_id: str, folder: str, source: str, where: Where
) -> tuple[list[RestoredFile], list[str]]:
    """What has to be put, transcript last, and sentences on what is there and differs."""
    pieces, left = [], []
    for part in (*archived.parts[1:], archived.transcript):
        own = part is archived.transcript
        path = _target(part, archived.session_id, session_id, folder, where)
        piece = RestoredFile(part, os.path.join(source, *beside(part.place).split("/")), path)
        if not os.path.lexists(path) or is_stub(path):
            own_folder = os.path.dirname(path)
            require_real(own_folder, folder if part.place.startswith(PROJECTS) else own_folder)
            pieces.append(piece)
        elif not own and session_id == archived.session_id and not is_same(piece.source, path):
            left.append(LEFT.format(path=path))
    return pieces, left


def _target(part: ArchivedFile, old: str, new: str, folder: str, where: Where) -> str:
    """Where a part goes: as it lay, or under the new id; sub-agents beside the old transcript into the new folder."""
    first, _, rest = part.place.partition("/")
    steps = rest.split("/")
    if first == HISTORY:
        return real(f"{HISTORY}/{new}/{steps[-1]}", where)
    below = steps[1:]
    if below[0] == f"{old}.jsonl":
        below = [f"{new}.jsonl"]
    elif below[0] == old:
        below = [new, *below[1:]]
    elif new != old:
        below = [new, SUBAGENTS, *below]
    return os.path.join(folder, *below)


def _begins_with(there: str, part: ArchivedFile) -> bool:
    """Whether a file of the client's is what was archived, or went on from it."""
    return os.path.getsize(there) >= part.size and sha_of(there, part.size) == part.sha256


def _new_id(archived: ArchivedSession) -> str:
    """An id of the usual form, the same whenever the same content comes back."""
    told = f"{archived.session_id} {archived.transcript.sha256}"
    return str(uuid.UUID(bytes=hashlib.sha256(told.encode()).digest()[:16], version=4))
