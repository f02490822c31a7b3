"""Properties that hold of every trim, whatever the transcript: hypothesis makes them up, plausible and nasty."""

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
from tests.derive.trim.nasty import options, transcripts
from tests.derive.trim.sessions import chain_of, value_at

VARIABLE = re.compile(
    rb'"(?:sessionId":(?:"[^"]*"|null)|parentUuid":(?:"[^"]*"|null)|timestamp":"[^"]*"|\w+_tokens":\d+)'
)
"""What may differ in a line that no edit names."""


class Case:
    """One transcript, trimmed: the plan, the parent and the child as they are on disk."""

    def __init__(self, folder: str, data: bytes, how: Options) -> None:
        project = Path(folder) / "projects" / "-home-user-proj"
        project.mkdir(parents=True)
        self.parent = project / f"{SESSION}.jsonl"
        self.parent.write_bytes(data)
        self.where = {"HOME": folder, "CLAUDE_CONFIG_DIR": folder}
        self.plan = self.planned(self.parent, how)
        if not any(node.is_message for node in staying(self.plan)):
            raise NothingToTrim("blank")
        write_child(self.plan, Where(self.where))  # its checks raise
        self.child = Path(self.plan.draft.path)

    def planned(self, path: Path, how: Options) -> TrimPlan:
        """The plan of a trim of a file."""
        return plan.plan_trim(plan.scan_session(session_file(str(path))), Where(self.where), how)


def staying(decided: TrimPlan) -> list[Node]:
    """The records of the parent that a child has."""
    uuids = {(parse_record(line) or {}).get("uuid") for line in decided.body.lines()}
    return [node for node in chain_of(decided).linear.nodes if node.uuid in uuids]


def body(path: Path, node: Node) -> bytes:
    """A record's line."""
    return Line(0, node.offset, path.read_bytes()[node.offset :][: node.length]).body


def strings(value: Any) -> Iterator[str]:
    """Every string within a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def sent_strings(record: Record) -> Counter[str]:
    """Return the strings of a record that reach the API."""
    return Counter([*strings(record.get("message")), *strings(record.get("rendered"))])


def assert_answered_in_turn(child: Transcript) -> None:
    """Check that every call of an answer has one result, in the user's next turn, as the API requires."""
    turns: list[tuple[str, Counter[str]]] = []
    for node in child.chain:
        if node.is_message and (node.kind == "user" or node.calls or node.characters):
            if not turns or turns[-1][0] != node.kind:
                turns.append((node.kind, Counter()))
            turns[-1][1].update(node.calls or node.results)
    waiting: Counter[str] = Counter()
    for kind, ids in turns:
        if kind == "user":
            assert ids == waiting
            waiting = Counter()
        else:
            waiting = ids
    assert not waiting


def assert_lines_stay(case: Case, child: Transcript) -> None:
    """Check that a record without an edit is unchanged, byte for byte, except for required changes."""
    there = {node.uuid: body(case.child, node) for node in child.nodes}
    for node in chain_of(case.plan).linear.nodes:
        raw = body(case.parent, node)
        if node.number in chain_of(case.plan).edits or node.has_sent_uuid or b'": ' in raw:
            continue
        if VARIABLE.sub(b"", raw) != VARIABLE.sub(b"", there[node.uuid]):
            old, new = parse_record(raw) or {}, parse_record(there[node.uuid]) or {}
            assert {
                "timestamp",
                "parentUuid",
            } - old.keys()  # which a client needs, and which are put in
            changed = {"sessionId", "parentUuid", "timestamp", "message"}
            assert {k: v for k, v in new.items() if k not in changed} == {
                k: v for k, v in old.items() if k not in changed
            }


def assert_contents_gone(case: Case, child: Transcript) -> None:
    """Check that trimmed contents are not sent, and that no placeholder is longer."""
    scanned = plan.scan_session(session_file(str(case.parent)))
    nodes = {node.number: node for node in scanned.transcript.chain}
    there = {node.uuid: child.read_record(node) for node in child.nodes}
    for choice in case.plan.choices:
        piece = choice.piece
        assert (
            len(choice.placeholder) + choice.kept_characters < piece.characters + 4 * piece.tokens
        )
        node = nodes[piece.number]
        record = scanned.transcript.read_record(node)
        after = there.get(node.uuid, {})
        if piece.kind in {MEDIA_PIECE, THINKING_PIECE}:
            block = value_at(record, piece.address)
            assert (
                list_blocks(after).count(block) < max(1, list_blocks(record).count(block))
                or piece.kind == MEDIA_PIECE
            )
        elif piece.kind != ATTACHMENT_PIECE or "rendered" in record:
            text = value_at(record, piece.address)
            assert sent_strings(after)[text] < sent_strings(record)[text]


def assert_thoughts_whole(case: Case, child: Transcript) -> None:
    """Every thought in the child is one of the parent's, unchanged."""
    parent = scan_transcript(str(case.parent))

    def thoughts(transcript: Transcript) -> list[Record]:
        return [
            block
            for node in transcript.chain
            for block in list_blocks(transcript.read_record(node))
            if block.get("type") in {"thinking", "redacted_thinking"}
        ]

    known = thoughts(parent)
    assert all(thought in known for thought in thoughts(child))


@settings(
    max_examples=120, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(data=transcripts(), how=options())
def test_every_trim_holds(data: bytes, how: Options) -> None:
    """A planned child passes its checks; nothing but what was chosen changed.

    Trimming it again changes nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            case = Case(folder, data, how)
        except NothingToTrim:
            return
        child = scan_transcript(str(case.child))
        assert case.parent.read_bytes() == data
        assert_answered_in_turn(child)
        assert_lines_stay(case, child)
        assert_contents_gone(case, child)
        assert_thoughts_whole(case, child)
        if not chain_of(
            case.plan
        ).linear.dropped_calls:  # a stray result may have changed what its call looked like
            assert case.planned(case.child, how).choices == ()
        assert sorted(os.listdir(case.parent.parent)) == sorted([case.parent.name, case.child.name])


@settings(max_examples=40)
@given(before=st.binary(max_size=60), data=transcripts(), after=st.binary(max_size=60))
def test_anything_is_read_or_refused(before: bytes, data: bytes, after: bytes) -> None:
    """Bytes of any kind lead to a valid child, or to the error that there are no messages."""
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(NothingToTrim):
        Case(
            folder, before + b"\n" + data + b"\n" + after, Options(keep_recent=0, threshold=0)
        )  # its checks raise
