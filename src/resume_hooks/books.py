"""Bookkeeping that a child of many records takes over: what ``carried`` names, and the snapshots of kept messages."""

from __future__ import annotations

from resume_hooks.carried import carried_lines
from resume_hooks.glance import Glance
from resume_hooks.lines import Line
from resume_hooks.survey import Survey
from resume_hooks.transcript import Transcript


def books_of(transcript: Transcript, survey: Survey, glance: Glance, session_id: str) -> list[bytes]:
    """The lines, without endings, that follow the chain. The snapshots name no session and stay byte for byte."""
    kept = {node.uuid for node in transcript.chain}
    wanted = [snapshot for snapshot in survey.snapshots if snapshot.message in kept]
    rows: list[bytes] = []
    if wanted:
        with open(transcript.path, "rb") as stream:
            for snapshot in wanted:
                stream.seek(snapshot.offset)
                rows.append(Line(-1, snapshot.offset, stream.read(snapshot.length)).body)
    return [*rows, *carried_lines(glance, session_id)]
