"""Store the upload progress of each session in a small state file.

If that file is lost, no data is lost, but the next push compares everything again.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from typing import NamedTuple

from resume_hooks.errors import WriteFailed
from resume_hooks.parts.team.team_file import team_folder_path
from resume_hooks.paths import Where, is_session_id, open_regular, read_json_object
from resume_hooks.storage import removal, state_file
from resume_hooks.transcripts.lines import read_bytes_before

_CURSOR_VERSION = 1
_CURSOR_FILE = "cursor.json"


class FileProgress(NamedTuple):
    """The uploaded part of a file: bytes, lines, a checksum of the part's last bytes, and the server's digest."""

    inode: int
    offset: int
    record_count: int
    checksum: int
    chain_digest: str


class Cursor(NamedTuple):
    """The upload progress of a session: its row on the server (0 if none), the row that it continues, its files.

    If ``drop`` is true, the server's copy contains scrubbed text and must be replaced if it
    differs.
    """

    row: int = 0
    base: int = 0
    drop: bool = False
    places: dict[str, FileProgress] = {}  # noqa: RUF012 - never changed, a new one takes its place


def cursor_folder(session_id: str, where: Where) -> str:
    """Return the folder of a session's progress file. Raise ValueError if the session id is invalid."""
    if not is_session_id(session_id):
        raise ValueError("That is not a session's id")
    return os.path.join(_cursors_folder(where), session_id)


def _cursors_folder(where: Where) -> str:
    return os.path.join(team_folder_path(where), "sessions")


def read_cursor(session_id: str, where: Where) -> Cursor:
    """Return the upload progress of a session, or an empty cursor if there is no record of it."""
    row = read_json_object(os.path.join(cursor_folder(session_id, where), _CURSOR_FILE))
    try:
        if row["version"] != _CURSOR_VERSION:
            return Cursor()
        files = {}
        for name, fields in row["places"].items():
            files[str(name)] = FileProgress(*fields)
        return Cursor(int(row["row"]), int(row["base"]), bool(row["drop"]), files)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Cursor()


def read_pushed_ids(where: Where) -> set[str]:
    """Return the ids of the sessions that this machine has pushed completely or partly."""
    try:
        return {name for name in os.listdir(_cursors_folder(where)) if is_session_id(name)}
    except OSError:
        return set()


def write_cursor(session_id: str, cursor: Cursor, where: Where) -> None:
    """Record the progress of a session. Raise WriteFailed."""
    path = os.path.join(cursor_folder(session_id, where), _CURSOR_FILE)
    try:
        state_file.replace_state_file(
            path, json.dumps({"version": _CURSOR_VERSION, **cursor._asdict()}).encode(), where
        )
    except OSError as error:
        raise WriteFailed(
            f"Could not write {path}: {error.strerror}",
            "The sent data is on the server. Try again.",
        ) from error


def record_forgotten_session(session_id: str, where: Where) -> None:
    """Record that the server will never accept a session again."""
    removal.remove_if_possible(cursor_folder(session_id, where), where.state)
    with contextlib.suppress(OSError):
        state_file.replace_state_file(_forgotten_mark_path(session_id, where), b"", where)


def is_forgotten(session_id: str, where: Where) -> bool:
    """Check whether this machine has recorded that the server will never accept a session again."""
    return os.path.exists(_forgotten_mark_path(session_id, where))


def _forgotten_mark_path(session_id: str, where: Where) -> str:
    return os.path.join(team_folder_path(where), "forgotten", session_id)


def measure_progress(
    path: str, offset: int, record_count: int, chain_digest: bytes
) -> FileProgress:
    """Return the progress after the first ``offset`` bytes of a file. Raise OSError."""
    with open_regular(path, follow=False) as stream:
        checksum = zlib.crc32(read_bytes_before(stream, offset))
        return FileProgress(
            os.fstat(stream.fileno()).st_ino, offset, record_count, checksum, chain_digest.hex()
        )


def begins_with_uploaded_part(progress: FileProgress, path: str) -> bool:
    """Check whether a file still begins with its uploaded part.

    If the last uploaded line had no line feed, the line must still end at the same offset.
    """
    with open_regular(path, follow=False) as stream:
        status = os.fstat(stream.fileno())
        last_bytes = read_bytes_before(stream, progress.offset)
        is_same = (
            status.st_ino == progress.inode
            and status.st_size >= progress.offset
            and zlib.crc32(last_bytes) == progress.checksum
        )
        return is_same and (
            last_bytes[-1:] in {b"", b"\n"} or stream.read(1) in {b"", b"\r", b"\n"}
        )
