"""How far a session was sent: a small file of ours a session.

Without it nothing is lost, all is compared.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from typing import NamedTuple

from resume_hooks.errors import WriteFailed
from resume_hooks.parts.team.team_file import team_folder
from resume_hooks.paths import Where, is_session_id, open_regular, read_json_object
from resume_hooks.storage import removal, state_file
from resume_hooks.transcripts.lines import bytes_before

_VERSION = 1
_FILE = "cursor.json"


class SentPlace(NamedTuple):
    """How far a file was sent: so many bytes and lines, the checksum before that place, the server's digest of all."""

    inode: int
    offset: int
    records: int
    check: int
    head: str


class Cursor(NamedTuple):
    """What is remembered of a session: its row on the server (0: none), the row it went on from, its files' places.

    ``drop``: what the server has must go once it differs, since it holds what was scrubbed.
    """

    row: int = 0
    base: int = 0
    drop: bool = False
    places: dict[str, SentPlace] = {}  # noqa: RUF012 - never changed, a new one takes its place


def session_folder(session_id: str, where: Where) -> str:
    """The file that notes how far a session was sent. ValueError for anything but a session's id."""
    if not is_session_id(session_id):
        raise ValueError("That is not a session's id")
    return os.path.join(_folders(where), session_id)


def _folders(where: Where) -> str:
    return os.path.join(team_folder(where), "sessions")


def cursor_of(session_id: str, where: Where) -> Cursor:
    """What is remembered of a session; an empty one where that is nothing."""
    row = read_json_object(os.path.join(session_folder(session_id, where), _FILE))
    try:
        if row["version"] != _VERSION:
            return Cursor()
        places = {}
        for name, place in row["places"].items():
            places[str(name)] = SentPlace(*place)
        return Cursor(int(row["row"]), int(row["base"]), bool(row["drop"]), places)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Cursor()


def pushed_here(where: Where) -> set[str]:
    """The sessions of which this machine sent something."""
    try:
        return {name for name in os.listdir(_folders(where)) if is_session_id(name)}
    except OSError:
        return set()


def keep_cursor(session_id: str, cursor: Cursor, where: Where) -> None:
    """Remember how far a session was sent. WriteFailed."""
    path = os.path.join(session_folder(session_id, where), _FILE)
    try:
        state_file.replace_state_file(
            path, json.dumps({"version": _VERSION, **cursor._asdict()}).encode(), where
        )
    except OSError as error:
        raise WriteFailed(
            f"Could not write {path}: {error.strerror}", "What was sent is sent; try again."
        ) from error


def note_forgotten(session_id: str, where: Where) -> None:
    """Remember that the server takes a session never again."""
    removal.remove_if_possible(session_folder(session_id, where), where.state)
    with contextlib.suppress(OSError):
        state_file.replace_state_file(_mark(session_id, where), b"", where)


def is_forgotten(session_id: str, where: Where) -> bool:
    """Whether the server, as far as this machine has heard, takes a session never again."""
    return os.path.exists(_mark(session_id, where))


def _mark(session_id: str, where: Where) -> str:
    return os.path.join(team_folder(where), "forgotten", session_id)


def place_at(path: str, offset: int, records: int, head: bytes) -> SentPlace:
    """The place behind so many bytes of a file. OSError."""
    with open_regular(path, follow=False) as stream:
        check = zlib.crc32(bytes_before(stream, offset))
        return SentPlace(os.fstat(stream.fileno()).st_ino, offset, records, check, head.hex())


def stands(place: SentPlace, path: str) -> bool:
    """Whether a file still begins with what was sent, and a last line sent without its line feed ends there."""
    with open_regular(path, follow=False) as stream:
        status = os.fstat(stream.fileno())
        before = bytes_before(stream, place.offset)
        same = (
            status.st_ino == place.inode
            and status.st_size >= place.offset
            and zlib.crc32(before) == place.check
        )
        return same and (before[-1:] in {b"", b"\n"} or stream.read(1) in {b"", b"\r", b"\n"})
