"""The records of a session that a document shows, and their order: found in one scan, before anything is written.

These are the records that led to the session's end, compacted ones included; or only those that a
resume would send; or all. Records stay on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from resume_hooks.reading.outline import BRANCH, COMPACTED, LIVE, OutlineScan, TurnScan
from resume_hooks.reading.passages import says_something
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.transcripts import records
from resume_hooks.transcripts.chain import chain_to
from resume_hooks.transcripts.linearize import linearize
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.transcript import Observer, Transcript, scan

WHOLE, LIVE_ONLY, EVERYTHING = "whole", "live", "all"
"""What a document shows: the conversation with its compacted records, only what a resume would send, every branch."""

MAX_COMPACTIONS = (
    200  # compactions that are followed back; more can only be a forgery, and each costs a walk
)


class ExportConversation(NamedTuple):
    """The records of a session in the order of the document; those that are not linked have no id.

    ``turns`` and ``places`` go by the line of the prompt; ``taken_over`` counts the records that
    were ``known`` before.
    """

    path: str
    rows: tuple[Node, ...]
    turns: dict[int, TurnScan]
    places: dict[int, str]
    tokens: int
    models: tuple[str, ...]
    damaged: int
    taken_over: int


def select_conversation(
    session: SessionFile, what: str, known: set[str], watching: Sequence[Observer] = ()
) -> ExportConversation:
    """The conversation of a session, without the records whose uuids are ``known``.

    Those of all others are added.

    SessionNotFound if the file can't be read; NotATranscript for one of another program.
    """
    observer = OutlineScan(subagent=subagent_name(session.path) is not None)
    scout = _Scout()
    transcript = scan(session.path, observers=[observer, scout, *watching])
    live = linearize(transcript.chain).nodes
    earlier: list[Node] = []
    for part in reversed(list(_before_compactions(transcript))):
        earlier.extend(part)
    if not transcript.nodes:
        rows = scout.loose
    else:
        nodes: Iterable[Node] = live if what == LIVE_ONLY else [*earlier, *live]
        if (
            not live or what == EVERYTHING
        ):  # a sub-agent's own file is one chain, marked as a side chain throughout
            nodes = (node for node in transcript.nodes if not live or not node.sidechain)
        rows = list(
            {node.number: node for node in nodes if not node.copied or what == LIVE_ONLY}.values()
        )
    sent, past = {node.number for node in live}, {node.number for node in earlier}
    fresh = [row for row in rows if not known & scout.ids_of(row.number)]
    known.update(*(scout.ids_of(row.number) for row in fresh))
    return ExportConversation(
        path=session.path,
        rows=tuple(fresh),
        turns={turn.line: turn for turn in observer.turns if turn.number},
        places={  # what has no links, or one chain of its own, is live
            row.number: LIVE
            if row.number in sent or not sent
            else COMPACTED
            if row.number in past
            else BRANCH
            for row in fresh
        },
        tokens=next((turn.tokens for turn in reversed(observer.turns) if turn.tokens), 0),
        models=tuple(transcript.models),
        damaged=len(transcript.bad_lines),
        taken_over=len(rows) - len(fresh),
    )


class _Scout:
    """An observer that collects the records that say something without being linked, and the ids of every record."""

    def __init__(self) -> None:
        self.loose: list[Node] = []
        self._ids: dict[int, frozenset[str]] = {}

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        if node is None:
            if says_something(record):
                loose = Node(
                    "", None, records.kind(record), line.number, line.offset, len(line.raw)
                )
                loose.calls = tuple(
                    call for block in records.calls(record) if (call := records.call_id(block))
                )
                loose.results = tuple(records.answered_calls(record))
                self.loose.append(loose)
            return
        self._ids[line.number] = frozenset(filter(None, (node.uuid, records.copied_from(record))))

    def ids_of(self, number: int) -> frozenset[str]:
        """The uuids of the record in a line: its own, and that of the record that it is a copy of."""
        return self._ids.get(number, frozenset())


def _before_compactions(transcript: Transcript) -> Iterator[tuple[Node, ...]]:
    """The records that each compaction dropped, the last compaction first.

    Each in the order of the conversation.
    """
    chain: Sequence[Node] = transcript.chain
    for _ in range(MAX_COMPACTIONS):
        first = chain[0] if chain else None
        if first is None or first.parent is not None or not (first.boundary or first.summary):
            return
        last = transcript.before(first)
        if last is None or last.number >= first.number:
            return
        chain = chain_to(transcript.nodes, last)
        yield linearize(chain).nodes
