"""Copy the metadata that a child inherits: tag, pull request, mode, folder and file snapshots.

Invariant: in each copied line, only the session's id changes. If the child belongs to a different
folder, the paths inside the old home folder change too. In a fresh child, secrets are removed from
the tag. Messages never change.
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
from resume_hooks.transcripts.write_scan import CopyPreparationObserver, Snapshot

_PATH_SEPARATORS_PATTERN = re.compile(r"[/\\]+")


def plan_relocation(old_home_folder: str, new_home: str) -> Relocation:
    """Return the ``Relocation`` from one home folder to another.

    If ``old_home_folder`` is ``""``, the relocation changes no path.
    """
    real_path = (
        canonical_path(old_home_folder) if os.path.isabs(old_home_folder) else old_home_folder
    )
    roots = tuple(
        dict.fromkeys(root for root in (old_home_folder, real_path) if root not in {"", os.sep})
    )
    return Relocation(
        old_home_folder, new_home, roots, real_path == new_home or not os.path.isdir(real_path)
    )


class Relocation(NamedTuple):
    """A change of a session's home folder from ``old_home_folder`` to ``new_home``.

    Here, a home folder is the folder of a session's project, not the user's home directory. ``old_home_folder`` may no
    longer exist, or may be a folder on a different computer. ``new_home`` is a path without
    symbolic links. ``old_home_paths`` contains two paths of the old home folder: as recorded, and
    with symbolic links resolved.

    ``moves_files`` is true if the old home folder no longer exists. Its files are then assumed to
    be in the new one. Otherwise, the file backups still belong to the files in the old home folder,
    and restoring them must not overwrite files with the same names in the new one.
    """

    old_home_folder: str
    new_home: str
    old_home_paths: tuple[str, ...]
    moves_files: bool

    def relocate_path(self, path: str) -> str:
        """Return a path inside the old home folder as a path inside the new one, and any other path unchanged."""
        for root in self.old_home_paths:
            if path == root:
                return self.new_home
            if path.startswith(root) and path[len(root)] in "/\\":
                return os.path.join(
                    self.new_home,
                    *(part for part in _PATH_SEPARATORS_PATTERN.split(path[len(root) :]) if part),
                )
        return path

    def relocate_folder_in_line(self, body: bytes, *, is_first: bool = False) -> bytes:
        """Return a record's line with its working directory moved to the session's new home folder.

        If ``is_first`` is true, the working directory becomes the new home folder itself.
        Otherwise, a working directory outside the old home folder is unchanged.
        """
        record = parse_record(body) or {}
        old_folder = get_string(record, "cwd")
        new_folder = self.relocate_path(old_folder)
        if is_first and new_folder == old_folder:
            new_folder = self.new_home
        if new_folder == old_folder:
            return body
        if "cwd" not in record:
            return add_field(body, "cwd", new_folder)
        return set_field(body, record, "cwd", new_folder) or add_field(body, "cwd", new_folder)

    def relocate_snapshot(self, record: Record) -> Record:
        """Return a record of file backups in which the file names fit the session's new home folder.

        The record is a file snapshot or an update of one. Client 2.1.329 records files in the
        session's home folder by relative names, and other files by absolute names. It restores a
        backup only to the folder that is named in the record of the backup.
        """
        changed_record = dict(record)
        if isinstance(record.get("trackingPath"), str):
            changed_record["trackingPath"] = self._relocate_tracked_name(record["trackingPath"])
        if "backup" in record:
            changed_record["backup"] = self._relocate_backup(record["backup"])
        snapshot = record.get("snapshot")
        if isinstance(snapshot, dict) and isinstance(
            files := snapshot.get("trackedFileBackups"), dict
        ):
            moved_backups = {}
            for path, backup in files.items():
                moved_backups[self._relocate_tracked_name(path)] = self._relocate_backup(backup)
            changed_record["snapshot"] = {**snapshot, "trackedFileBackups": moved_backups}
        return changed_record

    def _relocate_tracked_name(self, name: str) -> str:
        """Return a tracked file's name after the move.

        A name that starts with ``..`` belongs to a file outside the old home folder. Such a file
        did not move, so its absolute path is returned.
        """
        if name.startswith(("../", "..\\")):
            return os.path.normpath(os.path.join(self.old_home_folder, name))
        return self.relocate_path(name)

    def _relocate_backup(self, backup: Any) -> Any:
        if isinstance(backup, dict):
            folder = backup.get("realParentDir")
        else:
            folder = None
        if isinstance(folder, str):
            return {**backup, "realParentDir": self.relocate_path(folder)}
        return backup


# Records of these kinds contain a session's folder, which clients use to list sessions.
FOLDER_RECORD_KINDS = (
    WORKTREE,
    RELOCATED,
)
# A child takes over its parent's last record of each of these kinds.
COPIED_RECORD_KINDS = (TAG, PR_LINK, MODE, *FOLDER_RECORD_KINDS)


def copy_metadata_lines(
    head_tail: HeadTail,
    session_id: str,
    *,
    leaves_folder: bool = False,
    redactor: Redactor | None = None,
) -> list[bytes]:
    """Return the parent's last tag, pull request, mode and folder, as lines with the child's id.

    If ``leaves_folder`` is true, the folder is omitted. If a ``redactor`` is given, it removes
    secrets from all lines except the folder.
    """
    last_bodies: dict[str, bytes] = {}
    for tail_line in head_tail.tail.split(b"\n"):
        body = tail_line.removesuffix(b"\r")
        record = parse_record(body) if body.startswith(b'{"type":"') else None
        if (
            record is not None
            and get_kind(record) in COPIED_RECORD_KINDS
            and not (leaves_folder and get_kind(record) in FOLDER_RECORD_KINDS)
        ):
            if redactor and get_kind(record) not in FOLDER_RECORD_KINDS:
                body = redactor.redact_line(body)[0]
            last_bodies[get_kind(record)] = body
    return [
        set_session_id(body, session_id)
        for body in last_bodies.values()
        if get_string(parse_record(body) or {}, "sessionId")
    ]


def copy_lines_after_chain(
    transcript: Transcript,
    preparation_observer: CopyPreparationObserver,
    head_tail: HeadTail,
    session_id: str,
    relocation: Relocation | None = None,
) -> list[bytes]:
    """Return the lines that follow the chain in a child: the file snapshots and the metadata.

    If ``relocation`` is given but does not move files, the snapshots are omitted.
    """
    if relocation is None or relocation.moves_files:
        snapshots = select_snapshots(transcript, preparation_observer)
    else:
        snapshots = []
    rows = _copy_lines_with_child_id(
        transcript, [(snapshot.offset, snapshot.length) for snapshot in snapshots], session_id
    )
    if relocation is not None:
        rows = [_relocate_paths(row, relocation) for row in rows]
    return [
        *rows,
        *copy_metadata_lines(head_tail, session_id, leaves_folder=relocation is not None),
    ]


def select_snapshots(
    transcript: Transcript, preparation_observer: CopyPreparationObserver
) -> list[Snapshot]:
    """Return the file snapshots that belong to the messages of the live chain."""
    message_ids = {node.uuid for node in transcript.chain}
    return [
        snapshot
        for snapshot in preparation_observer.snapshots
        if snapshot.message_uuid in message_ids
    ]


def copy_lines_about_replaced_results(
    transcript: Transcript, preparation_observer: CopyPreparationObserver, session_id: str
) -> list[bytes]:
    """Return the lines of records about shortened tool results, with the child's id.

    The client shortens some tool results in its requests, and lists these results in such records.
    The records are valid only if the child contains all of these results unchanged.
    """
    return _copy_lines_with_child_id(
        transcript, preparation_observer.shortened_result_lines, session_id
    )


def _copy_lines_with_child_id(
    transcript: Transcript, extents: list[tuple[int, int]], session_id: str
) -> list[bytes]:
    """Return the lines at the given offsets and lengths, with the child's id instead of the parent's.

    Raises SessionNotFound if the transcript no longer exists.
    """
    with open_transcript(transcript.file) as stream:
        lines = (
            Line(-1, offset, read_exactly(stream, offset, length)) for offset, length in extents
        )
        return [set_session_id(line.body, session_id) for line in lines]


def _relocate_paths(body: bytes, relocation: Relocation) -> bytes:
    record = parse_record(body) or {}
    moved_record = relocation.relocate_snapshot(record)
    if moved_record == record:
        return body
    return encode_record(moved_record)
