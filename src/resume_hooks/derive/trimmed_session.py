"""A session as an untrim reads it: which records of its live chain lack contents."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import dropwhile

from resume_hooks.derive.originals import is_marked, origins_in
from resume_hooks.derive.rebuilt_records import lacking
from resume_hooks.derive.trim.calibration import Scale, weigh
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.transcripts.chain import chain_to
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import ASSISTANT, Record
from resume_hooks.transcripts.tokens import ContextUse
from resume_hooks.transcripts.transcript import Transcript, scan
from resume_hooks.transcripts.trimmable_pieces import Pieces
from resume_hooks.transcripts.write_scan import WriteScan


@dataclass(frozen=True, slots=True)
class TrimmedSession:
    """What one scan tells; ``trimmed`` are the records of the live chain that lack contents.

    Where the running client was trimmed in place the chain is what it would be without that: ``undone`` times, which
    brings ``back`` so many characters, and makes of the context ``whole_tokens`` (0 where nothing is undone).
    """

    session: SessionFile
    transcript: Transcript
    pieces: Pieces
    survey: WriteScan
    context: ContextUse
    scale: Scale
    trimmed: tuple[Node, ...]
    undone: int = 0
    back: int = 0
    whole_tokens: int = 0


def read_trimmed(session: SessionFile, window: int = 0) -> TrimmedSession:
    """Scan a session for what is trimmed in it."""
    pieces, survey, marked = Pieces(), WriteScan(), _Marked()
    transcript = scan(session.path, observers=(pieces, survey, marked))
    live = transcript.chain
    context, scale = weigh(session.path, live, pieces, window)
    before, since, undone = _untrimmed(transcript)
    chain = [*before, *since]
    trimmed = tuple(node for node in chain if node.number in marked.numbers)
    if not undone:
        return TrimmedSession(session, transcript, pieces, survey, context, scale, trimmed)
    # Counts that the client wrote since are of what the trim left.
    counted, scale = weigh(session.path, before, pieces, window)
    added = sum(node.characters for node in since)
    return TrimmedSession(
        session, transcript.ending(chain), pieces, survey, context, scale, trimmed, undone,
        back=added + sum(node.characters for node in before) - sum(node.characters for node in live),
        whole_tokens=counted.tokens + round(added / scale.ratio),
    )  # fmt: skip


def _untrimmed(transcript: Transcript) -> tuple[list[Node], list[Node], int]:
    """What stood before the trims of the running client, what was said since, and how many these were."""
    chain: list[Node] = transcript.chain
    later: list[Node] = []
    undone = 0
    said = [node for node in transcript.nodes if node.spoken and not node.sidechain]
    while chain and chain[0].boundary and any(node.copied for node in chain):
        number = chain[0].number
        before = next((node for node in reversed(said) if node.number < number), None)
        if before is None:
            break
        since = (node for node in chain[1:] if not node.copied)
        own = dropwhile(lambda node: not (node.prompt or node.kind == ASSISTANT), since)
        chain, later, undone = chain_to(transcript.nodes, before), [*own, *later], undone + 1
    return chain, later, undone


_WORDS = (b'"truncated"', b"See line ", b"; original: ")
"""One of which stands in every record that lacks contents."""


class _Marked:
    """An observer of ``transcript.scan``: the numbers of records that lack contents by their own words."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Take in one record."""
        if node is None or not any(word in line.raw for word in _WORDS):
            return
        if is_marked(record) or origins_in(record) or lacking(record):
            self.numbers.add(node.number)
