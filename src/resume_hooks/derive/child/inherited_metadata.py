"""Metadata that a child takes over from its parent: tag, pull request, mode, folder, file snapshots.

Invariant: in each line only the session's id changes and, if the session moves, the paths in its
old home. A fresh child's tag also loses its secrets. Messages never change.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from resume_hooks.paths import canonical_path
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import Line, open_transcript, read_exactly
from resume_hooks.transcripts.metadata_records import MODE, PR_LINK, RELOCATED, TAG, WORKTREE
from resume_hooks.transcripts.raw_edit import add_field, encode_record, set_field, set_session_id
from resume_hooks.transcripts.records import Record, get_kind, get_string, parse_record
from resume_hooks.transcripts.transcript import Transcript
from resume_hooks.transcripts.write_scan import Snapshot, WriteObserver

_SEPARATORS = re.compile(r"[/\\]+")


def plan_relocation(old_home: str, new_home: str) -> Relocation:
    """Return the move from one home to another. If ``old_home`` is ``""``, no path changes."""
    real_path = canonical_path(old_home) if os.path.isabs(old_home) else old_home
    roots = tuple(dict.fromkeys(root for root in (old_home, real_path) if root not in {"", os.sep}))
    return Relocation(
        old_home, new_home, roots, real_path == new_home or not os.path.isdir(real_path)
    )


class Relocation(NamedTuple):
    """A move from the ``old`` home, which may be gone or from another system, to the ``new`` one, a real path.

    ``old_home_names`` are the names of the old home: as recorded, and with links resolved. ``moves_files``
    means that the old home is gone, so its files are assumed to be in the new one. If it still
    exists, its backups belong to its files and must not overwrite files of the same names in the
    new home.
    """

    old: str
    new: str
    old_home_names: tuple[str, ...]
    moves_files: bool

    def move_path(self, path: str) -> str:
        """Return a path in the old home as a path in the new home, and any other path unchanged."""
        for root in self.old_home_names:
            if path == root:
                return self.new
            if path.startswith(root) and path[len(root)] in "/\\":
                return os.path.join(
                    self.new, *(part for part in _SEPARATORS.split(path[len(root) :]) if part)
                )
        return path

    def move_line(self, body: bytes, *, first: bool = False) -> bytes:
        """Return a record's line with its working directory moved.

        The ``first`` record always gets the new home.
        """
        record = parse_record(body) or {}
        old_folder = get_string(record, "cwd")
        new_folder = self.move_path(old_folder)
        if first and new_folder == old_folder:
            new_folder = self.new
        if new_folder == old_folder:
            return body
        if "cwd" not in record:
            return add_field(body, "cwd", new_folder)
        return set_field(body, record, "cwd", new_folder) or add_field(body, "cwd", new_folder)

    def move_snapshot(self, record: Record) -> Record:
        """Return a file-history snapshot or delta with the names that its files have in the new home.

        Tracked files in the home have relative names (measured on 2.1.329), and other files have
        absolute names. The client restores a backup only to the folder that the backup names.
        """
        changed_record = dict(record)
        if isinstance(record.get("trackingPath"), str):
            changed_record["trackingPath"] = self._move_tracked_name(record["trackingPath"])
        if "backup" in record:
            changed_record["backup"] = self._move_backup(record["backup"])
        snapshot = record.get("snapshot")
        if isinstance(snapshot, dict) and isinstance(
            files := snapshot.get("trackedFileBackups"), dict
        ):
            moved_backups = {}
            for path, backup in files.items():
                moved_backups[self._move_tracked_name(path)] = self._move_backup(backup)
            changed_record["snapshot"] = {**snapshot, "trackedFileBackups": moved_backups}
        return changed_record

    def _move_tracked_name(self, name: str) -> str:
        """Return a tracked file's name after the move.

        A file outside the old home (``..``) did not move and gets its absolute path.
        """
        if name.startswith(("../", "..\\")):
            return os.path.normpath(os.path.join(self.old, name))
        return self.move_path(name)

    def _move_backup(self, backup: Any) -> Any:
        if isinstance(backup, dict):
            folder = backup.get("realParentDir")
        else:
            folder = None
        if isinstance(folder, str):
            return {**backup, "realParentDir": self.move_path(folder)}
        return backup


FOLDER_KINDS = (
    WORKTREE,
    RELOCATED,
)  # the kinds of record that contain a session's folder, which clients' pickers use
# the kinds of record of which a child takes over the last one
COPIED_KINDS = (TAG, PR_LINK, MODE, *FOLDER_KINDS)


def copy_metadata_lines(
    ends: HeadTail,
    session_id: str,
    *,
    leaves_folder: bool = False,
    redactor: Redactor | None = None,
) -> list[bytes]:
    """Return the parent's last tag, pull request and mode, as lines with the child's id.

    Unless the child ``leaves_folder``, the record of the last folder is added. With a ``redactor``,
    only folders keep their secrets.
    """
    last_bodies: dict[str, bytes] = {}
    for tail_line in ends.tail.split(b"\n"):
        body = tail_line.removesuffix(b"\r")
        record = parse_record(body) if body.startswith(b'{"type":"') else None
        if (
            record is not None
            and get_kind(record) in COPIED_KINDS
            and not (leaves_folder and get_kind(record) in FOLDER_KINDS)
        ):
            if redactor and get_kind(record) not in FOLDER_KINDS:
                body = redactor.redact_line(body)[0]
            last_bodies[get_kind(record)] = body
    return [
        set_session_id(body, session_id)
        for body in last_bodies.values()
        if get_string(parse_record(body) or {}, "sessionId")
    ]


def copy_lines_after_chain(
    transcript: Transcript,
    survey: WriteObserver,
    ends: HeadTail,
    session_id: str,
    move: Relocation | None = None,
) -> list[bytes]:
    """Return the lines after the chain: file snapshots, unless ``move`` drops them, and the metadata."""
    if move is None or move.moves_files:
        snapshots = select_snapshots(transcript, survey)
    else:
        snapshots = []
    rows = _copy_lines(
        transcript, [(snapshot.offset, snapshot.length) for snapshot in snapshots], session_id
    )
    if move is not None:
        rows = [_move_paths(row, move) for row in rows]
    return [*rows, *copy_metadata_lines(ends, session_id, leaves_folder=move is not None)]


def select_snapshots(transcript: Transcript, survey: WriteObserver) -> list[Snapshot]:
    """Return the file snapshots that belong to the messages of a conversation."""
    message_ids = {node.uuid for node in transcript.chain}
    return [snapshot for snapshot in survey.snapshots if snapshot.message in message_ids]


def copy_shortened_result_lines(
    transcript: Transcript, survey: WriteObserver, session_id: str
) -> list[bytes]:
    """Return the records of the tool results that the client shortens when it sends them.

    These records are valid only in a child that changes none of these results.
    """
    return _copy_lines(transcript, survey.shortened_result_lines, session_id)


def _copy_lines(
    transcript: Transcript, extents: list[tuple[int, int]], session_id: str
) -> list[bytes]:
    """Return the lines with these offsets and lengths, with the session's id replaced by the child's.

    Raises SessionNotFound if the file is gone.
    """
    with open_transcript(transcript.file) as stream:
        lines = (
            Line(-1, offset, read_exactly(stream, offset, length)) for offset, length in extents
        )
        return [set_session_id(line.body, session_id) for line in lines]


def _move_paths(body: bytes, move: Relocation) -> bytes:
    record = parse_record(body) or {}
    moved_record = move.move_snapshot(record)
    if moved_record == record:
        return body
    return encode_record(moved_record)
