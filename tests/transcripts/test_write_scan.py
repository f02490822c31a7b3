"""Tests of ``CopyPreparationObserver``, which scans a transcript before a child is written.

The observer finds messages that the API would refuse, and the message to which each file snapshot
belongs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resume_hooks.transcripts.records import get_message
from resume_hooks.transcripts.transcript import scan_transcript
from resume_hooks.transcripts.write_scan import (
    CopyPreparationObserver,
    Snapshot,
    mend_record,
    needs_repair,
)
from tests.builders import SESSION, Record, assistant, call, result, session_bytes, user

TEXT_BLOCK = {"type": "text", "text": "said"}
SIGNED_BLOCK = {"type": "thinking", "thinking": "", "signature": "c2ln"}
BLANK_BLOCK = {"type": "text", "text": " \n"}


def message_with_content(kind: str, content: Any) -> Record:
    """Return a message with exactly this content."""
    row = user("", uuid="x") if kind == "user" else assistant([], uuid="x")
    return {**row, "message": {**row["message"], "content": content}}


VALID_RECORDS: dict[str, Record] = {
    "a prompt": message_with_content("user", "hi"),
    "blocks": message_with_content("user", [TEXT_BLOCK, result("t")]),
    "a result without content": message_with_content("user", [result("t", "")]),
    "an answer": message_with_content("assistant", [TEXT_BLOCK, call("t")]),
    "thinking of which the signature alone is kept": message_with_content(
        "assistant", [SIGNED_BLOCK]
    ),
    "encrypted thinking": message_with_content(
        "assistant", [{"type": "redacted_thinking", "data": "x"}]
    ),
    "an answer without blocks, which every client passes over": message_with_content(
        "assistant", []
    ),
    "a block of a kind that nobody knows": message_with_content("assistant", [{"type": "new"}]),
}

MENDED_RECORDS: dict[str, tuple[Record, Any]] = {
    "an answer of old clients, a plain string": (
        message_with_content("assistant", "hi"),
        [{"type": "text", "text": "hi"}],
    ),
    "a blank answer": (message_with_content("assistant", "  "), None),
    "a blank prompt": (message_with_content("user", "\n"), None),
    "no blocks": (message_with_content("user", []), None),
    "blank text beside a call": (
        message_with_content("assistant", [BLANK_BLOCK, call("t")]),
        [call("t")],
    ),
    "blank text alone": (message_with_content("assistant", [BLANK_BLOCK]), None),
    "text that is none": (
        message_with_content("assistant", [{"type": "text", "text": 5}, TEXT_BLOCK]),
        [TEXT_BLOCK],
    ),
    "thinking without a signature": (
        message_with_content("assistant", [{"type": "thinking", "thinking": "x"}, TEXT_BLOCK]),
        [TEXT_BLOCK],
    ),
    "thinking that is no text": (
        message_with_content(
            "assistant", [{"type": "thinking", "thinking": 5, "signature": "x"}, TEXT_BLOCK]
        ),
        [TEXT_BLOCK],
    ),
    "encryption of nothing": (
        message_with_content("assistant", [{"type": "redacted_thinking", "data": ""}, TEXT_BLOCK]),
        [TEXT_BLOCK],
    ),
    "what is no block": (message_with_content("user", [None, 5, "x", TEXT_BLOCK]), [TEXT_BLOCK]),
}


@pytest.mark.parametrize("name", VALID_RECORDS)
def test_valid_messages_are_not_repaired(name: str) -> None:
    """A valid message needs no repair, and a repair would not change it."""
    assert not needs_repair(VALID_RECORDS[name])
    if get_message(VALID_RECORDS[name])["content"]:
        assert mend_record(VALID_RECORDS[name]) == VALID_RECORDS[name]


@pytest.mark.parametrize("name", MENDED_RECORDS)
def test_refused_messages_are_repaired(name: str) -> None:
    """A repair removes the blocks that the API would refuse and keeps the other blocks and fields."""
    record, content = MENDED_RECORDS[name]
    assert needs_repair(record)
    wanted = (
        None
        if content is None
        else {**record, "message": {**record["message"], "content": content}}
    )
    assert mend_record(record) == wanted
    assert wanted is None or not needs_repair(wanted)


def observe_records(folder: Path, rows: list[Any]) -> CopyPreparationObserver:
    """Scan a file with these records and return the observer."""
    path = folder / f"{SESSION}.jsonl"
    path.write_bytes(session_bytes(rows))
    survey = CopyPreparationObserver()
    scan_transcript(str(path), observers=[survey])
    return survey


def test_repeated_calls_and_results_are_removed(tmp_path: Path) -> None:
    """A repair removes the second call and the second result with the same id."""
    twice = [
        assistant([call("t"), TEXT_BLOCK, call("t")], uuid="a"),
        user([result("t", "1"), result("t", "2")], uuid="b"),
    ]
    survey = observe_records(tmp_path, [user("hi", uuid="u"), *twice, user("x", uuid="c")])
    assert survey.records_to_mend == {1, 2}
    assert [get_message(mend_record(row) or {})["content"] for row in twice] == [
        [call("t"), TEXT_BLOCK],
        [result("t", "1")],
    ]


def test_only_messages_are_repaired(tmp_path: Path) -> None:
    """``records_to_mend`` has only the line numbers of messages that need a repair.

    Invalid lines and metadata are only counted.
    """
    rows: list[Any] = [
        user("hi", uuid="u"),
        b"{torn",
        {"type": "mode"},
        assistant([BLANK_BLOCK], uuid="a"),
    ]
    assert observe_records(
        tmp_path, [*rows, message_with_content("assistant", "old")]
    ).records_to_mend == {3, 4}


def test_a_file_snapshot_belongs_to_its_own_message(tmp_path: Path) -> None:
    """A file snapshot belongs to its own message, not to the message that updated it.

    A delta belongs to the same message as its snapshot.
    """
    first: Record = {
        "type": "file-history-snapshot",
        "messageId": "new",
        "snapshot": {"messageId": "old"},
        "isSnapshotUpdate": True,
    }
    second: Record = {"type": "file-history-delta", "messageId": "m", "snapshotMessageId": "s"}
    third: Record = {"type": "file-history-snapshot", "messageId": "only", "snapshot": "torn"}
    survey = observe_records(
        tmp_path, [user("hi", uuid="u"), first, second, third, {"type": "mode", "messageId": "no"}]
    )
    raw = (tmp_path / f"{SESSION}.jsonl").read_bytes()
    assert [found.message_uuid for found in survey.snapshots] == ["old", "s", "only"]
    for found, row in zip(survey.snapshots, (first, second, third), strict=True):
        assert isinstance(found, Snapshot)
        assert raw[found.offset :][: found.length] == session_bytes([row])
