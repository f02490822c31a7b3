"""Record how much of each session was uploaded. Each session has its own small state file.

If a state file is lost, the next push compares the whole session with the server's copy.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from typing import NamedTuple

from resume_hooks.errors import WriteFailed
from resume_hooks.parts.team.team_file import find_team_folder
from resume_hooks.paths import Where, is_session_id, open_regular, read_json_object
from resume_hooks.storage import removal, state_file
from resume_hooks.transcripts.lines import read_bytes_before

_PROGRESS_FILE_VERSION = 1
_PROGRESS_FILE_NAME = "cursor.json"


class FileProgress(NamedTuple):
    """The progress of a file's upload: the number of uploaded bytes (``offset``) and of uploaded lines.

    ``checksum`` is the checksum of the bytes directly before ``offset``. ``chain_digest`` is the
    server's digest of all uploaded chunks.
    """

    inode: int
    offset: int
    record_count: int
    checksum: int
    chain_digest: str


class UploadProgress(NamedTuple):
    """The progress of a session's upload. ``progress_by_file`` maps the name of each file to its progress.

    ``row_id`` is the id of the session's row on the server, or 0 if the server has none. If the
    session was restored from the server, ``restored_from_row_id`` is the id of the row from which
    it was restored, and otherwise 0. If ``must_replace_server_copy`` is true, the session was
    scrubbed after its last push, and the next push must replace the server's copy.
    """

    row_id: int = 0
    restored_from_row_id: int = 0
    must_replace_server_copy: bool = False
    progress_by_file: dict[str, FileProgress] = {}  # noqa: RUF012 - this dictionary is never changed


def find_upload_progress_folder(session_id: str, where: Where) -> str:
    """Return the path of the folder that contains the upload progress of a session.

    Raise ValueError if the session id is invalid.
    """
    if not is_session_id(session_id):
        raise ValueError(f"{session_id!r} is not a session id")
    return os.path.join(_find_upload_progress_root(where), session_id)


def _find_upload_progress_root(where: Where) -> str:
    return os.path.join(find_team_folder(where), "sessions")


def read_upload_progress(session_id: str, where: Where) -> UploadProgress:
    """Return the recorded upload progress of a session, or empty progress if none is recorded."""
    row = read_json_object(
        os.path.join(find_upload_progress_folder(session_id, where), _PROGRESS_FILE_NAME)
    )
    try:
        if row["version"] != _PROGRESS_FILE_VERSION:
            return UploadProgress()
        files = {}
        for name, fields in row["places"].items():
            files[str(name)] = FileProgress(*fields)
        return UploadProgress(int(row["row"]), int(row["base"]), bool(row["drop"]), files)
    except (KeyError, TypeError, ValueError, AttributeError):
        return UploadProgress()


def read_pushed_session_ids(where: Where) -> set[str]:
    """Return the ids of all sessions that this machine has pushed at least in part."""
    try:
        return {
            name for name in os.listdir(_find_upload_progress_root(where)) if is_session_id(name)
        }
    except OSError:
        return set()


def write_upload_progress(session_id: str, upload_progress: UploadProgress, where: Where) -> None:
    """Save the upload progress of a session. Raise WriteFailed if it cannot be saved."""
    path = os.path.join(find_upload_progress_folder(session_id, where), _PROGRESS_FILE_NAME)
    try:
        fields = {
            "version": _PROGRESS_FILE_VERSION,
            "row": upload_progress.row_id,
            "base": upload_progress.restored_from_row_id,
            "drop": upload_progress.must_replace_server_copy,
            "places": upload_progress.progress_by_file,
        }
        state_file.replace_state_file(path, json.dumps(fields).encode(), where)
    except OSError as error:
        raise WriteFailed(
            f"Could not write {path}: {error.strerror}",
            "The data has already reached the server. Try again to complete the push.",
        ) from error


def record_forgotten_session(session_id: str, where: Where) -> None:
    """Record that the server will always refuse a session, because its owner ordered to forget it."""
    removal.remove_if_possible(find_upload_progress_folder(session_id, where), where.state)
    with contextlib.suppress(OSError):
        state_file.replace_state_file(
            _build_forgotten_session_marker_path(session_id, where), b"", where
        )


def is_forgotten(session_id: str, where: Where) -> bool:
    """Check whether a session was forgotten, according to this machine's records."""
    return os.path.exists(_build_forgotten_session_marker_path(session_id, where))


def _build_forgotten_session_marker_path(session_id: str, where: Where) -> str:
    return os.path.join(find_team_folder(where), "forgotten", session_id)


def build_file_progress(
    path: str, offset: int, record_count: int, chain_digest: bytes
) -> FileProgress:
    """Return the progress of a file whose first ``offset`` bytes were uploaded.

    Raise OSError if the file cannot be read.
    """
    with open_regular(path, follow=False) as stream:
        checksum = zlib.crc32(read_bytes_before(stream, offset))
        return FileProgress(
            os.fstat(stream.fileno()).st_ino, offset, record_count, checksum, chain_digest.hex()
        )


def is_uploaded_content_unchanged(progress: FileProgress, path: str) -> bool:
    """Check whether a file still begins with its uploaded content.

    If the last uploaded line had no line feed, return False if text was appended to that line.
    Raise OSError if the file cannot be read.
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
