"""Metadata that a child takes over from its parent: tag, pull request, mode, folder, file snapshots.

Invariant: in each line only the session's id changes and, if the session moves, folders below its
old home. Messages never change.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from resume_hooks.paths import canonical
from resume_hooks.transcripts.bookkeeping import MODE, PR_LINK, RELOCATED, TAG, WORKTREE
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import Line, open_transcript, read_at
from resume_hooks.transcripts.raw_edit import encode, with_field, with_own, with_session_id
from resume_hooks.transcripts.records import Record, kind, parse, string
from resume_hooks.transcripts.transcript import Transcript
from resume_hooks.transcripts.write_scan import Snapshot, WriteScan

_SEPARATORS = re.compile(r"[/\\]+")


def relocation(old: str, new: str) -> Relocation:
    """Return the move from one home to another. If ``old`` is ``""``, no path changes."""
    real = canonical(old) if os.path.isabs(old) else old
    roots = tuple(dict.fromkeys(root for root in (old, real) if root not in {"", os.sep}))
    return Relocation(old, new, roots, real == new or not os.path.isdir(real))


class Relocation(NamedTuple):
    """The ``old`` home, which may be gone or from another system, and the ``new`` one, a real path.

    ``roots`` are the names of the old home: as recorded, and with links resolved. ``with_files``
    means that the old home is gone, so its files are assumed to be in the new one. If it still
    exists, its backups belong to its files and must not overwrite files of the same names in the
    new home.
    """

    old: str
    new: str
    roots: tuple[str, ...]
    with_files: bool

    def path(self, path: str) -> str:
        """Return a path below the old home as one below the new home, and any other path unchanged."""
        for root in self.roots:
            if path == root:
                return self.new
            if path.startswith(root) and path[len(root)] in "/\\":
                return os.path.join(
                    self.new, *(part for part in _SEPARATORS.split(path[len(root) :]) if part)
                )
        return path

    def line(self, body: bytes, *, first: bool = False) -> bytes:
        """Return a record's line with its working directory moved.

        The ``first`` record always gets the new home.
        """
        record = parse(body) or {}
        folder = string(record, "cwd")
        moved = self.path(folder)
        if first and moved == folder:
            moved = self.new
        if moved == folder:
            return body
        if "cwd" not in record:
            return with_own(body, "cwd", moved)
        return with_field(body, record, "cwd", moved) or with_own(body, "cwd", moved)

    def snapshot(self, record: Record) -> Record:
        """Return a file-history snapshot or delta for the same files below the new home.

        Tracked files in the home have relative names (measured on 2.1.329), others have absolute
        ones. The client does not restore into a folder other than the one that a backup names.
        """
        changed = dict(record)
        if isinstance(record.get("trackingPath"), str):
            changed["trackingPath"] = self._tracked(record["trackingPath"])
        if "backup" in record:
            changed["backup"] = self._backup(record["backup"])
        snapshot = record.get("snapshot")
        if isinstance(snapshot, dict) and isinstance(
            files := snapshot.get("trackedFileBackups"), dict
        ):
            moved = {}
            for path, backup in files.items():
                moved[self._tracked(path)] = self._backup(backup)
            changed["snapshot"] = {**snapshot, "trackedFileBackups": moved}
        return changed

    def _tracked(self, path: str) -> str:
        """Return a tracked file's name.

        A file outside the old home (``..``) did not move and gets its absolute path.
        """
        if path.startswith(("../", "..\\")):
            return os.path.normpath(os.path.join(self.old, path))
        return self.path(path)

    def _backup(self, backup: Any) -> Any:
        if isinstance(backup, dict):
            folder = backup.get("realParentDir")
        else:
            folder = None
        if isinstance(folder, str):
            return {**backup, "realParentDir": self.path(folder)}
        return backup


PLACES = (
    WORKTREE,
    RELOCATED,
)  # the kinds of record with a session's folder, which clients' pickers use
CARRIED = (TAG, PR_LINK, MODE, *PLACES)  # the kinds whose last record a child takes over


def carried_lines(ends: HeadTail, session_id: str, *, moved: bool = False) -> list[bytes]:
    """Return the parent's last tag, pull request, mode and (unless ``moved``) folder, as lines with the child's id."""
    last: dict[str, bytes] = {}
    for row in ends.tail.split(b"\n"):
        body = row.removesuffix(b"\r")
        record = parse(body) if body.startswith(b'{"type":"') else None
        if (
            record is not None
            and kind(record) in CARRIED
            and not (moved and kind(record) in PLACES)
        ):
            last[kind(record)] = body
    return [
        with_session_id(body, session_id)
        for body in last.values()
        if string(parse(body) or {}, "sessionId")
    ]


def books_of(
    transcript: Transcript,
    survey: WriteScan,
    ends: HeadTail,
    session_id: str,
    moving: Relocation | None = None,
) -> list[bytes]:
    """Return the lines after the chain: snapshots of files, unless ``moving`` drops them, and ``carried_lines``."""
    if moving is None or moving.with_files:
        wanted = snapshots_of(transcript, survey)
    else:
        wanted = []
    rows = _lines_at(transcript, [(one.offset, one.length) for one in wanted], session_id)
    if moving is not None:
        rows = [_move_paths(row, moving) for row in rows]
    return [*rows, *carried_lines(ends, session_id, moved=moving is not None)]


def snapshots_of(transcript: Transcript, survey: WriteScan) -> list[Snapshot]:
    """Return the file snapshots at the messages of a conversation."""
    messages = {node.uuid for node in transcript.chain}
    return [snapshot for snapshot in survey.snapshots if snapshot.message in messages]


def replaced_of(transcript: Transcript, survey: WriteScan, session_id: str) -> list[bytes]:
    """Return the lines about results that the client sends shortened.

    They apply to a child that changes none of these results.
    """
    return _lines_at(transcript, survey.replaced, session_id)


def _lines_at(
    transcript: Transcript, places: list[tuple[int, int]], session_id: str
) -> list[bytes]:
    """Return the lines at these offsets and of these lengths, with the child's id.

    Raises SessionNotFound if the file is gone.
    """
    with open_transcript(transcript.file) as stream:
        lines = (Line(-1, offset, read_at(stream, offset, length)) for offset, length in places)
        return [with_session_id(line.body, session_id) for line in lines]


def _move_paths(body: bytes, moving: Relocation) -> bytes:
    record = parse(body) or {}
    changed = moving.snapshot(record)
    if changed == record:
        return body
    return encode(changed)
