"""Select and sort the records of a session for a document, in one scan before the document is written.

By default, all records that led to the session's end are selected, including those before a
compaction. The user can instead choose the records that a resume would send, or the records of all
branches. The content of the records is read later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resume_hooks.reading.outline import BRANCH, COMPACTED, LIVE, OutlineScan, TurnScan
from resume_hooks.reading.passages import has_content
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.transcripts import records
from resume_hooks.transcripts.chain import build_chain_to
from resume_hooks.transcripts.linearize import linearize_chain
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.transcript import RecordObserver, Transcript, scan_transcript

CONVERSATION, LIVE_ONLY, ALL_RECORDS = "whole", "live", "all"
"""These values select the records of a document. ``CONVERSATION`` selects the records that led to
the session's end, ``LIVE_ONLY`` only those that a resume would send, and ``ALL_RECORDS`` the
records of all branches."""

# The maximum number of compactions of which the compacted records are shown. Finding these records
# takes time for each compaction. Only a forged file has more compactions than this.
MAX_SHOWN_COMPACTIONS = 200


class ExportConversation(NamedTuple):
    """The records of a session in the order of the document.

    ``turns_by_line`` maps the line number of a prompt to its turn. ``record_states_by_line_number`` maps the line
    number of a record to ``live``, ``compacted`` or ``branch``. ``repeated_record_count`` is the
    number of records that were omitted because the document already contains them. If a record has
    no uuid, its node has the uuid ``""``.
    """

    path: str
    nodes: tuple[Node, ...]
    turns_by_line: dict[int, TurnScan]
    record_states_by_line_number: dict[int, str]
    context_tokens: int
    models: tuple[str, ...]
    damaged_line_count: int
    repeated_record_count: int


def select_conversation(
    session: SessionFile,
    record_range: str,
    known_ids: set[str],
    observers: Sequence[RecordObserver] = (),
) -> ExportConversation:
    """Return the records of a session, except those whose uuids are in ``known_ids``.

    The uuids of the returned records are added to ``known_ids``. Raise SessionNotFound if the file
    cannot be read, and NotATranscript if it belongs to another program.
    """
    observer = OutlineScan(is_subagent=subagent_name(session.path) is not None)
    record_scan = _RecordIdCollector()
    transcript = scan_transcript(session.path, observers=[observer, record_scan, *observers])
    live_nodes = linearize_chain(transcript.chain).nodes
    earlier_nodes: list[Node] = []
    for part in reversed(list(_find_compacted_nodes(transcript))):
        earlier_nodes.extend(part)
    if transcript.nodes:
        nodes_to_show = _select_nodes(transcript, live_nodes, earlier_nodes, record_range)
    else:
        nodes_to_show = record_scan.unlinked_nodes
    live_lines = {node.line_number for node in live_nodes}
    earlier_lines = {node.line_number for node in earlier_nodes}
    new_nodes: list[Node] = []
    record_states_by_line_number: dict[int, str] = {}
    for node in nodes_to_show:
        if known_ids & record_scan.get_record_ids(node.line_number):
            continue
        new_nodes.append(node)
        # If there are no live lines, the records have no links or form a separate chain. In both
        # cases, all records count as live.
        if node.line_number in live_lines or not live_lines:
            record_states_by_line_number[node.line_number] = LIVE
        elif node.line_number in earlier_lines:
            record_states_by_line_number[node.line_number] = COMPACTED
        else:
            record_states_by_line_number[node.line_number] = BRANCH
    for node in new_nodes:
        known_ids |= record_scan.get_record_ids(node.line_number)
    return ExportConversation(
        path=session.path,
        nodes=tuple(new_nodes),
        turns_by_line={turn.line_number: turn for turn in observer.turns if turn.number},
        record_states_by_line_number=record_states_by_line_number,
        context_tokens=next(
            (turn.token_count for turn in reversed(observer.turns) if turn.token_count), 0
        ),
        models=tuple(transcript.models),
        damaged_line_count=len(transcript.damaged_lines),
        repeated_record_count=len(nodes_to_show) - len(new_nodes),
    )


def _select_nodes(
    transcript: Transcript,
    live_nodes: Sequence[Node],
    earlier_nodes: Sequence[Node],
    record_range: str,
) -> list[Node]:
    """Return the records that ``record_range`` selects, without duplicates.

    ``earlier_nodes`` are the records before the compactions.
    """
    if not live_nodes:
        # A sub-agent's file contains a single chain, whose records are all marked as a side chain.
        nodes = transcript.nodes
    elif record_range == ALL_RECORDS:
        nodes = [node for node in transcript.nodes if not node.is_sidechain]
    elif record_range == LIVE_ONLY:
        nodes = list(live_nodes)
    else:
        nodes = [*earlier_nodes, *live_nodes]
    selected_nodes: dict[int, Node] = {}
    for node in nodes:
        if not node.is_copied or record_range == LIVE_ONLY:
            selected_nodes[node.line_number] = node
    return list(selected_nodes.values())


class _RecordIdCollector:
    """Observes a transcript and collects the uuids of all records.

    It also collects records that have content but no uuid.
    """

    def __init__(self) -> None:
        self.unlinked_nodes: list[Node] = []
        self._ids: dict[int, frozenset[str]] = {}

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        if node is None:
            if has_content(record):
                unlinked_node = Node(
                    "", None, records.get_kind(record), line.number, line.offset, len(line.raw)
                )
                unlinked_node.call_ids = tuple(
                    filter(None, map(records.call_id, records.list_calls(record)))
                )
                unlinked_node.answered_call_ids = tuple(records.list_answered_call_ids(record))
                self.unlinked_nodes.append(unlinked_node)
            return
        self._ids[line.number] = frozenset(
            filter(None, (node.uuid, records.read_copied_uuid(record)))
        )

    def get_record_ids(self, line_number: int) -> frozenset[str]:
        """Return the uuid of the record in a line. For a copied record, also return the original's uuid."""
        return self._ids.get(line_number, frozenset())


def _find_compacted_nodes(transcript: Transcript) -> Iterator[tuple[Node, ...]]:
    """Yield the records before each compaction, starting with the last compaction.

    Each tuple contains the records between a compaction and the previous one, in the order of the
    conversation.
    """
    chain: Sequence[Node] = transcript.chain
    for _ in range(MAX_SHOWN_COMPACTIONS):
        first_node = chain[0] if chain else None
        if (
            first_node is None
            or first_node.parent_uuid is not None
            or not (first_node.is_boundary or first_node.is_summary)
        ):
            return
        last_node = transcript.node_before_boundary(first_node)
        if last_node is None or last_node.line_number >= first_node.line_number:
            return
        chain = build_chain_to(transcript.nodes, last_node)
        yield linearize_chain(chain).nodes
