"""Bring a session from the team: to read, or to go on in it.

One's own comes whole, at home in another folder, with the ancestors that are one's own; of a colleague's the
conversation alone, under a fresh id, as somebody else's words. Every piece is compared with its digest, and all of
them with the chain, before anything is handed out. No name on the server is used as a path.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.derive.imports.bring_in import BundleOptions, ImportedSession, import_sessions
from resume_hooks.derive.imports.read_bundle import BundledSession, is_place
from resume_hooks.errors import ImportFailed, WriteFailed
from resume_hooks.parts.team.connect import Connection
from resume_hooks.parts.team.cursor import Cursor, keep_cursor, place_at
from resume_hooks.parts.team.pieces import MOST_LINE, MOST_RAW
from resume_hooks.parts.team.sessions import TeamSession, listed
from resume_hooks.parts.team.team_file import folder
from resume_hooks.paths import Where, is_session_id, private_folder, read_object
from resume_hooks.reading.bundle import MAX_FILES, Head, Sums
from resume_hooks.sessions.link_log import Link, record_link
from resume_hooks.storage import state_file
from resume_hooks.storage.staging import MAX_BYTES

KIND = "team"
"""How a session is linked to the colleague's that it was made of."""

MOST_ANCESTORS = 50
_PULLED = "pulled"
_ROWS = "rows.json"


class _Part(NamedTuple):
    """A file of a session as it came: what the server calls it, its path here, its lines, the digest of all."""

    name: str
    path: str
    records: int
    head: bytes
    size: int
    sha256: str


def resume(
    wanted: TeamSession, options: BundleOptions, db: Connection, where: Where
) -> tuple[list[ImportedSession], list[str]]:
    """Make a session of a team's one, whole where it is one's own. ImportFailed, WriteFailed, TeamFailed.

    The sessions that came, oldest first, and what to say of those that did not.
    """
    if not wanted.mine:
        name = f"the team ({wanted.owner}, {wanted.machine}, {wanted.session_id})"
        with _unpacked(wanted, db, where) as (packed, _):
            came = import_sessions([packed], name, options._replace(whole=False), where)
        if not options.dry_run and not came[0].existing:
            with contextlib.suppress(OSError):
                record_link(Link(came[0].session_id, wanted.session_id, KIND, clock.now()), where)
        note = f"It is {wanted.owner}'s: the conversation alone came, and nobody verified what it says."
        return came, [note]
    line, notes = _ancestors(wanted, listed(db))
    with contextlib.ExitStack() as stack:
        fetched = [stack.enter_context(_unpacked(session, db, where)) for session in line]
        came = import_sessions([packed for packed, _ in fetched], wanted.title, options, where)
        if not options.dry_run:
            for session, (_, parts), one in zip(line, fetched, came, strict=True):
                if not one.existing:
                    _remember(session, parts, one, where)
    return came, notes


def pull(wanted: TeamSession, db: Connection, where: Where) -> str:
    """A copy of a session for reading; its path. ImportFailed, WriteFailed, TeamFailed."""
    place = os.path.join(folder(where), _PULLED, str(wanted.row))
    path = os.path.join(place, f"{_checked(wanted)}.jsonl")
    with _unpacked(wanted, db, where) as (packed, _):
        try:
            private_folder(place, where)
            os.replace(packed.path, path)
            rows = {**pulled(where), str(wanted.row): wanted.session_id}
            state_file.replace(os.path.join(folder(where), _PULLED, _ROWS), json.dumps(rows).encode(), where)
        except OSError as error:
            raise WriteFailed(f"Could not write {path}: {error.strerror}", "Check free space.") from error
    return path


def pulled(where: Where) -> dict[str, str]:
    """The rows of the server of which copies for reading are here, each with its session's id."""
    rows = read_object(os.path.join(folder(where), _PULLED, _ROWS))
    return {row: name for row, name in rows.items() if row.isdecimal() and is_session_id(name)}


def drop_gone(db: Connection, where: Where) -> list[str]:
    """Remove copies of what one may not read any more: forgotten, or shared no longer. The ids of their sessions."""
    rows = pulled(where)
    gone = {str(row) for (row,) in db.execute("select team.gone(%s)", (list(map(int, rows)),))} if rows else set()
    for row in gone:
        state_file.discard(os.path.join(folder(where), _PULLED, row))
    if gone:
        left = {row: name for row, name in rows.items() if row not in gone}
        state_file.replace(os.path.join(folder(where), _PULLED, _ROWS), json.dumps(left).encode(), where)
    return [rows[row] for row in sorted(gone)]


def piece_text(data: bytes, raw: int, sha: bytes) -> bytes:
    """The lines of a piece. ImportFailed where they are not what was sent."""
    unpacking = zlib.decompressobj()
    if raw > MOST_RAW + MOST_LINE:  # before anything is unpacked
        raise _damaged()
    try:
        body = unpacking.decompress(data, max(raw, 1))
    except zlib.error as error:
        raise _damaged() from error
    if len(body) != raw or unpacking.unconsumed_tail or hashlib.sha256(body).digest() != sha:
        raise _damaged()
    return body


def _ancestors(wanted: TeamSession, sessions: list[TeamSession]) -> tuple[list[TeamSession], list[str]]:
    """One's own sessions from the first ancestor down to the wanted one, and what to say of one that is missing."""
    mine: dict[str, TeamSession] = {}
    for session in sessions:
        if session.mine:
            mine.setdefault(session.session_id, session)  # the newest of several machines
    line = [wanted]
    while (parent := line[0].parent) and len(line) < MOST_ANCESTORS:
        above = mine.get(parent)
        if above is None:
            return line, [f"Its ancestor {parent} is private to somebody, or was never pushed."]
        if above in line:
            break
        line.insert(0, above)
    return line, []


def _remember(session: TeamSession, parts: list[_Part], came: ImportedSession, where: Where) -> None:
    """Note from where on the session is our own, so that only what follows is sent."""
    file, places = came.receipt.file, {}
    with contextlib.suppress(OSError):  # then all is sent
        for part in parts:
            path = os.path.join(file.removesuffix(".jsonl"), *part.name.split("/")) if part.name else file
            places[part.name] = place_at(path, os.path.getsize(path), part.records, part.head)
        keep_cursor(came.session_id, Cursor(0, session.row, places=places), where)


@contextlib.contextmanager
def _unpacked(session: TeamSession, db: Connection, where: Where) -> Iterator[tuple[BundledSession, list[_Part]]]:
    """A session's files in private ones of ours, for the length of the block."""
    session_id, made = _checked(session), list[str]()
    try:
        try:
            parts = _fetched(session, db, where, made)
        except OSError as error:
            raise WriteFailed(f"The session could not be kept: {error.strerror}", "Check free space.") from error
        main = next((part for part in parts if not part.name), None)
        if main is None:
            raise ImportFailed(f"Of session {session_id} nothing was sent yet", "Push it where it lies.")
        parent = (session.parent, session.kind) if is_session_id(session.parent) else ("", "")
        head = Head(session_id, session.title, session.folder, session.created, session.ended, *parent)
        places = [part for part in parts if is_place(part.name)]
        files = tuple((part.name, part.path) for part in places)
        refused = len(parts) - 1 - len(files)
        sums = Sums(main.records, main.sha256, 0, 0)
        yield BundledSession(head, sums, main.path, main.size, files, refused), [main, *places]
    finally:
        for path in made:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _fetched(session: TeamSession, db: Connection, where: Where, made: list[str]) -> list[_Part]:
    """Every file of a session, checked. ImportFailed, OSError."""
    here = private_folder(folder(where), where)
    state_file.sweep(here)
    query = "select id, name, records, head from team.part where session = %s order by name limit %s"
    found: list[_Part] = []
    for part, name, records, head in db.execute(query, (session.row, MAX_FILES)).fetchall():
        path = state_file.temporary_in(here)
        made.append(path)
        digest, count, chain, size = hashlib.sha256(), 0, b"", 0
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, state_file.MODE), "wb") as stream:
            pieces = (
                "select first, records, raw, sha, data from team.chunk where part = %s and first < %s order by first"
            )
            for first, lines, raw, sha, data in db.cursor(binary=True).stream(pieces, (part, records)):
                body = piece_text(bytes(data), raw, bytes(sha))
                size += stream.write(body)
                digest.update(body)
                chain = hashlib.sha256(chain + bytes(sha)).digest()
                if first != count or size > MAX_BYTES:
                    raise _damaged()
                count += lines
        if (count, chain) != (records, bytes(head)):
            raise _damaged()
        found.append(_Part(name, path, records, chain, size, digest.hexdigest()))
    return found


def _checked(session: TeamSession) -> str:
    """The id of a session, if it has the form of one: it is used as a file's name. ImportFailed."""
    if not is_session_id(session.session_id):
        raise ImportFailed(
            "The server names a session that is none of Claude Code's", "It can be searched, not resumed."
        )
    return session.session_id


def _damaged() -> ImportFailed:
    return ImportFailed(
        "What the server has of this session is damaged, or not complete", "Push it again, with --rescan."
    )
