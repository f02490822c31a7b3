"""A session as an untrim reads it: which records of its live chain lack contents."""

from __future__ import annotations

from dataclasses import dataclass

from resume_hooks.derive.originals import is_marked, origins_in
from resume_hooks.derive.trim.calibration import Scale, weigh
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.transcripts.content import Pieces
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.tokens import ContextUse
from resume_hooks.transcripts.transcript import Transcript, scan
from resume_hooks.transcripts.write_scan import WriteScan


@dataclass(frozen=True, slots=True)
class TrimmedSession:
    """What one scan tells; ``trimmed`` are the records of the live chain that lack contents."""

    session: SessionFile
    transcript: Transcript
    pieces: Pieces
    survey: WriteScan
    context: ContextUse
    scale: Scale
    trimmed: tuple[Node, ...]


def read_trimmed(session: SessionFile, window: int = 0) -> TrimmedSession:
    """Scan a session for what is trimmed in it."""
    pieces, survey, marked = Pieces(), WriteScan(), _Marked()
    transcript = scan(session.path, observers=(pieces, survey, marked))
    chain = transcript.chain
    context, scale = weigh(session.path, chain, pieces, window)
    trimmed = tuple(node for node in chain if node.number in marked.numbers)
    return TrimmedSession(session, transcript, pieces, survey, context, scale, trimmed)


class _Marked:
    """An observer of ``transcript.scan``: the numbers of records that lack contents by their own words."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Take in one record."""
        if node is None or not (b'"truncated"' in line.raw or b"See line " in line.raw):
            return
        if is_marked(record) or origins_in(record):
            self.numbers.add(node.number)
