"""Bookkeeping that a child takes over from its parent: tag, pull request, mode, place, snapshots of the user's files.

Invariant: nothing of a line changes but the session's id, and the folders in the snapshots of a session that moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from resume_hooks.transcripts.bookkeeping import MODE, PR_LINK, RELOCATED, TAG, WORKTREE
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import Line, open_transcript, read_at
from resume_hooks.transcripts.raw_edit import encode, with_session_id
from resume_hooks.transcripts.records import kind, parse, string
from resume_hooks.transcripts.transcript import Transcript
from resume_hooks.transcripts.write_scan import Snapshot, WriteScan

if TYPE_CHECKING:  # which a handoff does without
    from resume_hooks.derive.child.relocate import Relocation

PLACES = (WORKTREE, RELOCATED)  # the kinds that say where a session is, by which clients' pickers go
CARRIED = (TAG, PR_LINK, MODE, *PLACES)  # the kinds that are carried, the last of each


def carried_lines(ends: HeadTail, session_id: str, *, moved: bool = False) -> list[bytes]:
    """The parent's last tag, pull request, mode and, unless it ``moved``, place, as lines under the child's id."""
    last: dict[str, bytes] = {}
    for row in ends.tail.split(b"\n"):
        body = row.removesuffix(b"\r")
        record = parse(body) if body.startswith(b'{"type":"') else None
        if record is not None and kind(record) in CARRIED and not (moved and kind(record) in PLACES):
            last[kind(record)] = body
    return [with_session_id(body, session_id) for body in last.values() if string(parse(body) or {}, "sessionId")]


def books_of(
    transcript: Transcript, survey: WriteScan, ends: HeadTail, session_id: str, moving: Relocation | None = None
) -> list[bytes]:
    """The lines after the chain: snapshots of files, unless ``moving`` leaves those behind, and ``carried_lines``."""
    wanted = snapshots_of(transcript, survey) if moving is None or moving.with_files else []
    rows = _lines_at(transcript, [(one.offset, one.length) for one in wanted], session_id)
    if moving is not None:
        rows = [_moved(row, moving) for row in rows]
    return [*rows, *carried_lines(ends, session_id, moved=moving is not None)]


def snapshots_of(transcript: Transcript, survey: WriteScan) -> list[Snapshot]:
    """The lines about the user's files at the messages of a conversation."""
    messages = {node.uuid for node in transcript.chain}
    return [snapshot for snapshot in survey.snapshots if snapshot.message in messages]


def replaced_of(transcript: Transcript, survey: WriteScan, session_id: str) -> list[bytes]:
    """The lines about results that the client sends shorter than they were; for a child that changes none of them."""
    return _lines_at(transcript, survey.replaced, session_id)


def _lines_at(transcript: Transcript, places: list[tuple[int, int]], session_id: str) -> list[bytes]:
    """The lines at these offsets, of these lengths, under the child's id. SessionNotFound where the file is gone."""
    with open_transcript(transcript.path) as stream:
        lines = (Line(-1, offset, read_at(stream, offset, length)) for offset, length in places)
        return [with_session_id(line.body, session_id) for line in lines]


def _moved(body: bytes, moving: Relocation) -> bytes:
    record = parse(body) or {}
    changed = moving.snapshot(record)
    return body if changed == record else encode(changed)
