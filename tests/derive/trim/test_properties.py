"""Tests of properties that every trim must have, with generated transcripts."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.errors import NothingToTrim
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import session_file
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record, list_blocks, parse_record
from resume_hooks.transcripts.transcript import Transcript, scan_transcript
from resume_hooks.transcripts.trimmable_pieces import ATTACHMENT_PIECE, MEDIA_PIECE, THINKING_PIECE
from tests.builders import SESSION
from tests.derive.trim.odd_transcripts import generate_transcript, generate_trim_options
from tests.derive.trim.sessions import get_chain_rewrite, get_value_at

CHANGEABLE_FIELD_PATTERN = re.compile(
    rb'"(?:sessionId":(?:"[^"]*"|null)|parentUuid":(?:"[^"]*"|null)|timestamp":"[^"]*"|\w+_tokens":\d+)'
)
"""Matches fields whose values may differ between parent and child even if the record was not
edited."""


class TrimmedCase:
    """A trim of a generated transcript: the parent's file, the plan, and the child's file."""

    def __init__(self, folder: str, data: bytes, options: Options) -> None:
        project = Path(folder) / "projects" / "-home-user-proj"
        project.mkdir(parents=True)
        self.parent = project / f"{SESSION}.jsonl"
        self.parent.write_bytes(data)
        self.where = {"HOME": folder, "CLAUDE_CONFIG_DIR": folder}
        self.plan = self.plan_trim(self.parent, options)
        if not any(node.is_message for node in list_kept_nodes(self.plan)):
            raise NothingToTrim("blank")
        # If the child is invalid, an error is raised when it is checked.
        write_child(self.plan, Where(self.where))
        self.child = Path(self.plan.draft.path)

    def plan_trim(self, path: Path, options: Options) -> TrimPlan:
        """Plan a trim of a file."""
        return plan.plan_trim(
            plan.scan_session(session_file(str(path))), Where(self.where), options
        )


def list_kept_nodes(trim_plan: TrimPlan) -> list[Node]:
    """Return the parent's records that the child contains."""
    uuids = {(parse_record(line) or {}).get("uuid") for line in trim_plan.body.lines()}
    return [node for node in get_chain_rewrite(trim_plan).linear_chain.nodes if node.uuid in uuids]


def read_record_line(path: Path, node: Node) -> bytes:
    """Return the bytes of a record's line in a file."""
    return Line(0, node.offset, path.read_bytes()[node.offset :][: node.line_length]).body


def iterate_strings(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from iterate_strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from iterate_strings(inner)


def count_sent_strings(record: Record) -> Counter[str]:
    """Return how often each string occurs in the part of the record that is sent to the API."""
    return Counter(
        [*iterate_strings(record.get("message")), *iterate_strings(record.get("rendered"))]
    )


def assert_calls_have_results(child: Transcript) -> None:
    """Check that each call has one result in the user's next message, as the API requires."""
    turns: list[tuple[str, Counter[str]]] = []
    for node in child.chain:
        if node.is_message and (node.kind == "user" or node.call_ids or node.character_count):
            if not turns or turns[-1][0] != node.kind:
                turns.append((node.kind, Counter()))
            turns[-1][1].update(node.call_ids or node.answered_call_ids)
    waiting: Counter[str] = Counter()
    for kind, ids in turns:
        if kind == "user":
            assert ids == waiting
            waiting = Counter()
        else:
            waiting = ids
    assert not waiting


def assert_other_lines_are_unchanged(case: TrimmedCase, child: Transcript) -> None:
    """Check that each unedited record has the same bytes in parent and child, except in changeable fields."""
    there = {node.uuid: read_record_line(case.child, node) for node in child.nodes}
    for node in get_chain_rewrite(case.plan).linear_chain.nodes:
        raw = read_record_line(case.parent, node)
        if (
            node.line_number in get_chain_rewrite(case.plan).edits
            or node.has_uuid_sent_to_api
            or b'": ' in raw
        ):
            continue
        if CHANGEABLE_FIELD_PATTERN.sub(b"", raw) != CHANGEABLE_FIELD_PATTERN.sub(
            b"", there[node.uuid]
        ):
            old, new = parse_record(raw) or {}, parse_record(there[node.uuid]) or {}
            # The parent's record lacks a field that every client needs, so the child's record gets
            # it.
            assert {
                "timestamp",
                "parentUuid",
            } - old.keys()
            changed = {"sessionId", "parentUuid", "timestamp", "message"}
            assert {k: v for k, v in new.items() if k not in changed} == {
                k: v for k, v in old.items() if k not in changed
            }


def assert_trimmed_contents_are_not_sent(case: TrimmedCase, child: Transcript) -> None:
    """Check that trimmed contents are not sent, and that no placeholder is longer than its original."""
    scanned = plan.scan_session(session_file(str(case.parent)))
    nodes = {node.line_number: node for node in scanned.transcript.chain}
    there = {node.uuid: child.read_record(node) for node in child.nodes}
    for choice in case.plan.choices:
        piece = choice.piece
        assert (
            len(choice.placeholder) + choice.kept_character_count
            < piece.character_count + 4 * piece.tokens
        )
        node = nodes[piece.line_number]
        record = scanned.transcript.read_record(node)
        after = there.get(node.uuid, {})
        if piece.kind in {MEDIA_PIECE, THINKING_PIECE}:
            block = get_value_at(record, piece.address)
            assert (
                list_blocks(after).count(block) < max(1, list_blocks(record).count(block))
                or piece.kind == MEDIA_PIECE
            )
        elif piece.kind != ATTACHMENT_PIECE or "rendered" in record:
            text = get_value_at(record, piece.address)
            assert count_sent_strings(after)[text] < count_sent_strings(record)[text]


def assert_thinking_unchanged(case: TrimmedCase, child: Transcript) -> None:
    """Check that every thinking block of the child is one of the parent's."""
    parent = scan_transcript(str(case.parent))

    def list_thinking_blocks(transcript: Transcript) -> list[Record]:
        return [
            block
            for node in transcript.chain
            for block in list_blocks(transcript.read_record(node))
            if block.get("type") in {"thinking", "redacted_thinking"}
        ]

    known = list_thinking_blocks(parent)
    assert all(thought in known for thought in list_thinking_blocks(child))


@settings(
    max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(data=generate_transcript(), options=generate_trim_options())
def test_every_trim_is_valid_and_repeatable(data: bytes, options: Options) -> None:
    """A trim of any transcript changes only the chosen contents, and a second trim changes nothing."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            case = TrimmedCase(folder, data, options)
        except NothingToTrim:
            return
        child = scan_transcript(str(case.child))
        assert case.parent.read_bytes() == data
        assert_calls_have_results(child)
        assert_other_lines_are_unchanged(case, child)
        assert_trimmed_contents_are_not_sent(case, child)
        assert_thinking_unchanged(case, child)
        # If a result was dropped, a second trim may apply a different rule to its call.
        if not get_chain_rewrite(case.plan).linear_chain.dropped_call_ids:
            assert case.plan_trim(case.child, options).choices == ()
        assert sorted(os.listdir(case.parent.parent)) == sorted([case.parent.name, case.child.name])


@settings(max_examples=40)
@given(before=st.binary(max_size=60), data=generate_transcript(), after=st.binary(max_size=60))
def test_any_bytes_are_trimmed_or_refused(before: bytes, data: bytes, after: bytes) -> None:
    """Any bytes are either trimmed to a valid child or refused because they contain no messages."""
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(NothingToTrim):
        # If the child is invalid, ``TrimmedCase`` raises an error.
        TrimmedCase(
            folder, before + b"\n" + data + b"\n" + after, Options(keep_recent=0, threshold=0)
        )
