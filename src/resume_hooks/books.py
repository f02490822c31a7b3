"""Bookkeeping that a child of many records takes over: what ``carried`` names, and the snapshots of kept messages."""

from __future__ import annotations

from resume_hooks.carried import carried_lines
from resume_hooks.fields import with_fields
from resume_hooks.glance import Glance
from resume_hooks.lines import Line
from resume_hooks.records import parse
from resume_hooks.survey import Survey
from resume_hooks.transcript import Transcript


def books_of(transcript: Transcript, survey: Survey, glance: Glance, session_id: str) -> list[bytes]:
    """The lines, without endings, that follow the chain. Snapshots stay byte for byte but for a session's id."""
    kept = {node.uuid for node in transcript.chain}
    wanted = [snapshot for snapshot in survey.snapshots if snapshot.message in kept]
    rows: list[bytes] = []
    if wanted:
        with open(transcript.path, "rb") as stream:
            for snapshot in wanted:
                stream.seek(snapshot.offset)
                rows.append(_renamed(Line(-1, snapshot.offset, stream.read(snapshot.length)).body, session_id))
    return [*rows, *carried_lines(glance, session_id)]


def _renamed(body: bytes, session_id: str) -> bytes:
    """A snapshot under the child's id, where it names a session at all; today's don't."""
    record = (parse(body) or {}) if b'"sessionId"' in body else {}
    return with_fields(body, record, {"sessionId": session_id}) if "sessionId" in record else body
