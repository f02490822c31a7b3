"""Check the invariants of a session file that was just written (docs/transcripts.md).

The checks read the file back from disk.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from resume_hooks.errors import CheckFailed
from resume_hooks.transcripts import records
from resume_hooks.transcripts.linearize import LinearChain
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.transcript import RecordObserver, Transcript, scan_transcript
from resume_hooks.transcripts.trimmable_pieces import hash_thinking_block
from resume_hooks.transcripts.write_scan import needs_repair


class Check(NamedTuple):
    """The result of a check. ``name`` describes the invariant, and ``ok`` is true if it holds."""

    name: str
    ok: bool


def check_session(
    path: str, session_id: str, observers: Sequence[RecordObserver] = ()
) -> list[Check]:
    """Check the invariants that every session has, and return the checks.

    Each of the ``observers`` is called with each record that is read.
    """
    contents = _ContentObserver(session_id)
    transcript = scan_transcript(path, observers=(contents, *observers))
    nodes = transcript.nodes
    is_json = not (transcript.damaged_lines or transcript.is_torn)
    uuids: list[str] = []
    times: list[int] = []
    calls: list[str] = []
    results: list[str] = []
    for node in nodes:
        is_json = is_json and node.line_number not in transcript.lenient_lines
        uuids.append(node.uuid)
        if node.time_ms is not None:
            times.append(node.time_ms)
        calls += node.call_ids
        results += node.answered_call_ids
    is_in_order = len(times) == len(nodes) and times == sorted(times) and times[-1:] != times[-2:-1]
    first_message = next((node for node in nodes if node.is_message), None)
    starts_with_user = (
        first_message is not None
        and first_message.kind == records.USER
        and not first_message.answered_call_ids
    )
    are_paired = sorted(calls) == sorted(results) and len(set(calls)) == len(calls)
    is_one_chain = [node.uuid for node in transcript.chain] == uuids
    return [
        Check("every line is a whole JSON object", is_json),
        Check("there is one root, and every parent precedes its child", _is_single_tree(nodes)),
        Check(
            "the live chain contains every record of the file, in the file's order", is_one_chain
        ),
        Check("record ids are unique", len(set(uuids)) == len(uuids)),
        Check("timestamps are in order, and the last one is unique", is_in_order),
        Check("the conversation starts with a user's message", starts_with_user),
        Check("every message has an accepted form", contents.has_accepted_messages),
        Check("every tool call has one result", are_paired),
        Check("every record has the session's id", contents.has_own_ids),
        Check("the file is private", os.stat(path).st_mode & 0o077 == 0),
    ]


class _ContentObserver:
    def __init__(self, session_id: str) -> None:
        self.has_accepted_messages = True
        self.has_own_ids = True
        self._session_id = session_id

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        self.has_own_ids = (
            self.has_own_ids and record.get("sessionId", self._session_id) == self._session_id
        )
        self.has_accepted_messages = self.has_accepted_messages and not (
            node is not None and node.is_message and needs_repair(record)
        )


def require_all_checks(checks: list[Check], path: str) -> None:
    """Raise CheckFailed with the names of the failed checks, if there are any."""
    failed_names = [check.name for check in checks if not check.ok]
    if failed_names:
        raise CheckFailed(
            f"The new session {os.path.basename(path)} was not kept: {'; '.join(failed_names)}",
            "Nothing was changed. Please report this with the output of: resume-hooks doctor",
        )


def _is_single_tree(nodes: list[Node]) -> bool:
    seen_ids: set[str] = set()
    for index, node in enumerate(nodes):
        has_root = node.parent_uuid is None
        if has_root != (index == 0) or not (has_root or node.parent_uuid in seen_ids):
            return False
        seen_ids.add(node.uuid)
    return bool(nodes)


class ChildObserver:
    """An observer that collects the tool calls and the thinking of a child.

    ``thinking_hashes`` contains hashes of the thinking, to be compared with those of the parent.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.thinking_hashes: set[int] = set()

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        """Collect the calls and the thinking of one record."""
        if node is None or node.kind != records.ASSISTANT:
            return
        self.calls.update(node.call_ids)
        for block in records.list_blocks(record):
            if block.get("type") == records.THINKING:
                self.thinking_hashes.add(hash_thinking_block(block))

    def run_checks(
        self, planned_chain: LinearChain, parent_thinking_hashes: AbstractSet[int]
    ) -> list[Check]:
        """Check that the child has the planned chain's tool calls, and no thinking that the parent lacks."""
        calls: Counter[str] = Counter()
        for node in planned_chain.nodes:
            calls.update(
                set(node.call_ids)
                - planned_chain.dropped_call_ids.get(node.line_number, frozenset())
            )
        return [
            Check("no tool call was lost or added", self.calls == calls),
            Check(
                "thinking is unchanged or removed", self.thinking_hashes <= parent_thinking_hashes
            ),
        ]


def check_same_structure(old_transcript: Transcript, written_transcript: Transcript) -> list[Check]:
    """Check that two versions of a transcript differ only in the texts of records."""
    return [
        Check(
            "the lines have not moved",
            _describe_line_layout(written_transcript) == _describe_line_layout(old_transcript),
        ),
        Check(
            "ids, links, timestamps and token counts are unchanged",
            _list_node_links(written_transcript) == _list_node_links(old_transcript),
        ),
        Check(
            "the live chain is unchanged",
            [node.uuid for node in written_transcript.chain]
            == [node.uuid for node in old_transcript.chain],
        ),
        Check(
            "no tool call or result was lost or added",
            _list_call_pairs(written_transcript) == _list_call_pairs(old_transcript),
        ),
    ]


def _describe_line_layout(transcript: Transcript) -> tuple[object, ...]:
    return (
        transcript.line_count,
        transcript.damaged_lines,
        transcript.is_torn,
        transcript.metadata_counts,
    )


def _list_node_links(transcript: Transcript) -> list[tuple[object, ...]]:
    links: list[tuple[object, ...]] = []
    for node in transcript.nodes:
        links.append(
            (
                node.line_number,
                node.uuid,
                node.parent_uuid,
                node.kind,
                node.subtype,
                node.is_sidechain,
                node.session_id,
                node.time_ms,
                node.message_id,
                node.is_prompt,
                node.context_tokens,
                node.input_tokens,
            )
        )
    return links


def _list_call_pairs(transcript: Transcript) -> list[tuple[object, ...]]:
    return [(node.line_number, node.call_ids, node.answered_call_ids) for node in transcript.nodes]
