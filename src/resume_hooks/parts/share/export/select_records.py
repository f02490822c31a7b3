"""Select and order the records of a session for a document, in one scan before the first write.

By default, all records that led to the session's end are selected, including compacted ones. The
alternatives are the records that a resume would send, or all records. Their content is read later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resume_hooks.reading.outline import BRANCH, COMPACTED, LIVE, OutlineScan, TurnScan
from resume_hooks.reading.passages import has_content
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.transcripts import records
from resume_hooks.transcripts.chain import chain_ending_at
from resume_hooks.transcripts.linearize import linearize_chain
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.transcript import Observer, Transcript, scan_transcript

CONVERSATION, LIVE_ONLY, ALL_RECORDS = "whole", "live", "all"
"""The records in a document: including compacted ones, only those that a resume would send, or all branches."""

MAX_COMPACTIONS = (
    # the maximum number of compactions to trace back; only a forged file has more, and each needs a
    # walk
    200
)


class ExportConversation(NamedTuple):
    """A session's records in the document's order. Unlinked records have no id.

    ``turns`` and ``places`` are keyed by the prompt's line. ``taken_over`` is the number of records
    that were already ``known``.
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
    session: SessionFile, record_range: str, known_ids: set[str], observers: Sequence[Observer] = ()
) -> ExportConversation:
    """Return a session's conversation without the records whose uuids are ``known``.

    The uuids of the returned records are added to ``known``.

    Raise SessionNotFound if the file cannot be read, and NotATranscript if it belongs to another
    program.
    """
    observer = OutlineScan(subagent=subagent_name(session.path) is not None)
    record_scan = _RecordScan()
    transcript = scan_transcript(session.path, observers=[observer, record_scan, *observers])
    live = linearize_chain(transcript.chain).nodes
    earlier: list[Node] = []
    for part in reversed(list(_before_compactions(transcript))):
        earlier.extend(part)
    if transcript.nodes:
        nodes_to_show = _nodes_in_range(transcript, live, earlier, record_range)
    else:
        nodes_to_show = record_scan.loose
    live_lines = {node.number for node in live}
    earlier_lines = {node.number for node in earlier}
    fresh: list[Node] = []
    places: dict[int, str] = {}
    for node in nodes_to_show:
        if known_ids & record_scan.ids_of(node.number):
            continue
        fresh.append(node)
        # records without links, or with a separate chain, are live
        if node.number in live_lines or not live_lines:
            places[node.number] = LIVE
        elif node.number in earlier_lines:
            places[node.number] = COMPACTED
        else:
            places[node.number] = BRANCH
    for node in fresh:
        known_ids |= record_scan.ids_of(node.number)
    return ExportConversation(
        path=session.path,
        rows=tuple(fresh),
        turns={turn.line: turn for turn in observer.turns if turn.number},
        places=places,
        tokens=next((turn.tokens for turn in reversed(observer.turns) if turn.tokens), 0),
        models=tuple(transcript.models),
        damaged=len(transcript.bad_lines),
        taken_over=len(nodes_to_show) - len(fresh),
    )


def _nodes_in_range(
    transcript: Transcript, live: Sequence[Node], earlier: Sequence[Node], record_range: str
) -> list[Node]:
    """Return the linked records in a range, each line once.

    ``earlier`` are the records before the compactions.
    """
    if not live:
        # a sub-agent's own file is a single chain, in which all records are marked as a side chain
        nodes = transcript.nodes
    elif record_range == ALL_RECORDS:
        nodes = [node for node in transcript.nodes if not node.sidechain]
    elif record_range == LIVE_ONLY:
        nodes = list(live)
    else:
        nodes = [*earlier, *live]
    shown: dict[int, Node] = {}
    for node in nodes:
        if not node.copied or record_range == LIVE_ONLY:
            shown[node.number] = node
    return list(shown.values())


class _RecordScan:
    """An observer that collects the unlinked records with content, and the ids of all records."""

    def __init__(self) -> None:
        self.loose: list[Node] = []
        self._ids: dict[int, frozenset[str]] = {}

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        if node is None:
            if has_content(record):
                loose = Node(
                    "", None, records.kind(record), line.number, line.offset, len(line.raw)
                )
                loose.calls = tuple(filter(None, map(records.call_id, records.calls(record))))
                loose.results = tuple(records.answered_calls(record))
                self.loose.append(loose)
            return
        self._ids[line.number] = frozenset(filter(None, (node.uuid, records.copied_from(record))))

    def ids_of(self, number: int) -> frozenset[str]:
        """Return the uuids of the record in a line: its own uuid, and the uuid of the record that it copies."""
        return self._ids.get(number, frozenset())


def _before_compactions(transcript: Transcript) -> Iterator[tuple[Node, ...]]:
    """Yield the records that each compaction dropped, from the last compaction to the first.

    Each tuple is in the order of the conversation.
    """
    chain: Sequence[Node] = transcript.chain
    for _ in range(MAX_COMPACTIONS):
        first = chain[0] if chain else None
        if first is None or first.parent is not None or not (first.boundary or first.summary):
            return
        last = transcript.before(first)
        if last is None or last.number >= first.number:
            return
        chain = chain_ending_at(transcript.nodes, last)
        yield linearize_chain(chain).nodes
