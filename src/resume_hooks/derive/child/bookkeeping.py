"""Bookkeeping that a child of many records takes over: what ``carried`` names, and the snapshots of kept messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from resume_hooks.derive.child.carried import carried_lines
from resume_hooks.derive.child.relocate import Moving
from resume_hooks.errors import SessionNotFound
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.raw_edit import encode, with_fields
from resume_hooks.transcripts.records import parse
from resume_hooks.transcripts.transcript import Transcript
from resume_hooks.transcripts.write_scan import Snapshot, WriteScan


def books_of(
    transcript: Transcript, survey: WriteScan, glance: HeadTail, session_id: str, moving: Moving | None = None
) -> list[bytes]:
    """The lines, without endings, that follow the chain. Snapshots stay byte for byte but for a session's id.

    Where the child is ``moving`` to another home they speak of the files there, if those moved, too; else none come.
    """
    wanted = snapshots_of(transcript, survey) if moving is None or moving.with_files else []
    rows = [_renamed(body, session_id) for body in _bodies(transcript, [(one.offset, one.length) for one in wanted])]
    if moving is not None:
        rows = [_moved(row, moving) for row in rows]
    return [*rows, *carried_lines(glance, session_id, moved=moving is not None)]


def snapshots_of(transcript: Transcript, survey: WriteScan) -> list[Snapshot]:
    """The lines about the user's files at the messages of a conversation."""
    kept = {node.uuid for node in transcript.chain}
    return [snapshot for snapshot in survey.snapshots if snapshot.message in kept]


def replaced_of(transcript: Transcript, survey: WriteScan, session_id: str) -> list[bytes]:
    """The lines about results that the client sends shorter than they were; for a child that changes none of them."""
    return [_renamed(body, session_id) for body in _bodies(transcript, survey.replaced)]


def _bodies(transcript: Transcript, places: Sequence[tuple[int, int]]) -> list[bytes]:
    """The lines at these offsets, of these lengths. SessionNotFound where the file is gone."""
    if not places:
        return []
    try:
        with open(transcript.path, "rb") as stream:
            return [_body(stream, *place) for place in places]
    except OSError as error:
        raise SessionNotFound(f"{transcript.path} can't be read: {error.strerror}", "Check the path.") from error


def _body(stream: BinaryIO, offset: int, length: int) -> bytes:
    stream.seek(offset)
    return Line(-1, offset, stream.read(length)).body


def _renamed(body: bytes, session_id: str) -> bytes:
    """A line under the child's id, where it names a session at all; today's snapshots don't."""
    record = (parse(body) or {}) if b'"sessionId"' in body else {}
    return with_fields(body, record, {"sessionId": session_id}) if "sessionId" in record else body


def _moved(body: bytes, moving: Moving) -> bytes:
    """A snapshot of the same files in the new home."""
    record = parse(body) or {}
    changed = moving.snapshot(record)
    return body if changed == record else encode(changed)
