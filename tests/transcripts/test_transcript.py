"""Tests of ``scan_transcript``.

Defects of real files are tolerated and counted. Only the turns and calls of the live chain count.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.transcripts.lines import BOM
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import (
    SESSION,
    Record,
    assistant,
    call,
    conversation,
    custom_title,
    last_prompt,
    line,
    result,
    session_bytes,
    tool_result,
    tool_use,
    user,
    write_session,
)

RECORDS_OF_TWO_TURNS = conversation(2)
CODEX_RECORD = {
    "timestamp": "2026-01-01T00:00:00Z",
    "type": "session_meta",
    "payload": {"id": "x", "cwd": "/x"},
}


def live_ids(content: bytes, folder: Path) -> list[str]:
    """Write a file with these bytes and return the uuids of its live chain."""
    path = folder / "x.jsonl"
    path.write_bytes(content)
    return [node.uuid for node in scan_transcript(str(path)).chain]


@pytest.mark.parametrize(
    ("content", "damaged_lines", "is_torn"),
    [
        (session_bytes(RECORDS_OF_TWO_TURNS), [], False),
        (session_bytes(RECORDS_OF_TWO_TURNS)[:-1], [], True),
        (session_bytes(RECORDS_OF_TWO_TURNS) + b'{"type":"user","uuid":"to', [4], True),
        (BOM + session_bytes(RECORDS_OF_TWO_TURNS), [], False),
        (session_bytes(RECORDS_OF_TWO_TURNS).replace(b"\n", b"\r\n"), [], False),
        (b"\n \n" + session_bytes(RECORDS_OF_TWO_TURNS).replace(b"\n", b"\n\n"), [], False),
        (b"garbage\n" + session_bytes(RECORDS_OF_TWO_TURNS) + b"[1,2]\nnull\n", [0, 5, 6], False),
        (session_bytes(RECORDS_OF_TWO_TURNS).replace(b"prompt 2", b"prompt \xff\xfe 2"), [], False),
        (session_bytes(RECORDS_OF_TWO_TURNS).replace(b"prompt 2", b"prompt \\ud800 2"), [], False),
        (session_bytes(RECORDS_OF_TWO_TURNS).replace(b"prompt 2", "\u2028\u2029\x85".encode()), [], False),
        (
            session_bytes(
                [
                    {"type": "never-seen", "uuid": "n", "parentUuid": "r0"},
                    *RECORDS_OF_TWO_TURNS,
                    {"no": "type"},
                ]
            ),
            [],
            False,
        ),
        (session_bytes([*RECORDS_OF_TWO_TURNS, {"type": ["odd"], "uuid": {}}, {"type": "user", "uuid": 7}]), [], False),
    ],
    ids=[
        "sound", "no final newline", "torn last line", "byte order mark", "CRLF", "blank lines", "garbage lines",
        "invalid UTF-8", "lone surrogate", "raw line separators", "unknown kinds", "odd types",
    ],
)  # fmt: skip
def test_defects_do_not_shorten_the_conversation(
    content: bytes, damaged_lines: list[int], is_torn: bool, tmp_path: Path
) -> None:
    """A defect does not shorten the conversation, and invalid lines are counted."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    transcript = scan_transcript(str(path))
    assert [node.uuid for node in transcript.chain] == ["r0", "r1", "r2", "r3"]
    assert (transcript.damaged_lines, transcript.is_torn) == (damaged_lines, is_torn)
    assert transcript.size == len(content)
    assert transcript.line_count == content.count(b"\n") + is_torn


def test_a_line_of_60_megabytes_is_one_record(tmp_path: Path) -> None:
    """A tool result of 60 megabytes is one record like any other."""
    huge = tool_result("c", "x" * 60_000_000, uuid="r", parent="c")
    content = session_bytes([user("u", uuid="u"), tool_use("c", uuid="c", parent="u"), huge])
    assert live_ids(content, tmp_path) == ["u", "c", "r"]


def test_a_node_reads_its_record_again(tmp_path: Path) -> None:
    """``read_record`` returns the record of a node, even if the record contains invalid bytes."""
    queued: Record = {**user("later", uuid="own", parent="r3", ts=9), "sentAsUuid": "sent"}
    odd = line(user("x", uuid="odd", parent="sent", ts=10)).replace(b'"x"', b'"\xff\\ud800"')
    path = write_session(tmp_path, SESSION, [BOM, *RECORDS_OF_TWO_TURNS, queued, odd])
    transcript = scan_transcript(path)
    assert [transcript.read_record(node)["type"] for node in transcript.nodes] == [
        "user",
        "assistant",
    ] * 2 + ["user"] * 2
    assert transcript.read_record(transcript.chain[-1])["message"]["content"] == "\ufffd\ufffd"


def test_a_changed_file_raises_session_not_found(tmp_path: Path) -> None:
    """``read_record`` raises ``SessionNotFound`` if the file was changed or deleted."""
    path = write_session(tmp_path, SESSION, RECORDS_OF_TWO_TURNS)
    transcript = scan_transcript(path)
    write_session(tmp_path, SESSION, RECORDS_OF_TWO_TURNS[1:])
    with pytest.raises(SessionNotFound, match="changed"):
        transcript.read_record(transcript.nodes[0])
    os.unlink(path)
    with pytest.raises(SessionNotFound, match="can't be read"):
        transcript.read_record(transcript.nodes[0])
    with pytest.raises(SessionNotFound, match="can't be read"):
        scan_transcript(path)


def test_codex_rollouts_are_refused(tmp_path: Path) -> None:
    """A Codex rollout raises ``NotATranscript`` with one sentence."""
    path = write_session(
        tmp_path, SESSION, [CODEX_RECORD, {"type": "response_item", "payload": {}}]
    )
    with pytest.raises(
        NotATranscript,
        match=r"^[^.]*\.jsonl is a Codex rollout file, not a Claude Code transcript$",
    ):
        scan_transcript(path)


def test_metadata_records_and_answers_are_counted(tmp_path: Path) -> None:
    """Metadata records are counted by type, and answers are counted by model."""
    synthetic = assistant("x", uuid="s", parent="r3", ts=9, model="<synthetic>", tokens=50)
    path = write_session(
        tmp_path,
        SESSION,
        [*RECORDS_OF_TWO_TURNS, synthetic, custom_title("t"), last_prompt("r3"), last_prompt("s")],
    )
    transcript = scan_transcript(path)
    assert transcript.metadata_counts == {"custom-title": 1, "last-prompt": 2}
    assert transcript.models == {"claude-opus-4-5": 2}


def test_turns_start_at_prompts(tmp_path: Path) -> None:
    """A turn starts at a prompt, not at a result or a remark of the client."""
    records = [
        user("summary", uuid="s", isCompactSummary=True),
        user("one", uuid="u1", parent="s", ts=1),
        tool_use("c1", uuid="a1", parent="u1", ts=2),
        tool_result("c1", uuid="r1", parent="a1", ts=3),
        user("caveat", uuid="m1", parent="r1", ts=4, isMeta=True),
        user("two", uuid="u2", parent="m1", ts=5),
    ]
    turns = scan_transcript(write_session(tmp_path, SESSION, records)).turns
    assert [(turn.number, [node.uuid for node in turn.nodes]) for turn in turns] == [
        (1, ["u1", "a1", "r1", "m1"]),
        (2, ["u2"]),
    ]


def test_each_call_is_joined_with_its_result(tmp_path: Path) -> None:
    """``nodes_by_call_id`` maps each call to the record that contains its result, or to None."""
    records = [
        user("one", uuid="u1"),
        assistant([call("c1"), call("c2"), call("c3")], uuid="a1", parent="u1", ts=1),
        user([result("c2"), result("c1")], uuid="r1", parent="a1", ts=2),
    ]
    pairs = scan_transcript(write_session(tmp_path, SESSION, records)).nodes_by_call_id
    assert {
        key: (asked.uuid, answer and answer.uuid) for key, (asked, answer) in pairs.items()
    } == {
        "c1": ("a1", "r1"),
        "c2": ("a1", "r1"),
        "c3": ("a1", None),
    }


def test_a_shorter_chain_has_its_own_turns_and_calls(tmp_path: Path) -> None:
    """``with_chain`` returns a transcript with the turns and calls of a shorter chain."""
    records = [
        user("one", uuid="u1"),
        assistant([call("c1")], uuid="a1", parent="u1", ts=1),
        user([result("c1")], uuid="r1", parent="a1", ts=2),
        user("two", uuid="u2", parent="r1", ts=3),
    ]
    transcript = scan_transcript(write_session(tmp_path, SESSION, records))
    assert (len(transcript.turns), transcript.nodes_by_call_id["c1"][1] is None) == (2, False)
    shortened = transcript.with_chain(transcript.chain[:2])
    assert (len(shortened.turns), shortened.nodes_by_call_id["c1"][1]) == (1, None)
    assert (len(transcript.turns), transcript.nodes_by_call_id["c1"][1] is None) == (2, False)


@pytest.mark.parametrize("was_enabled", [True, False])
def test_a_scan_restores_the_garbage_collector(tmp_path: Path, was_enabled: bool) -> None:
    """After a scan, even after a failed one, the garbage collector is in its former state."""
    path = write_session(tmp_path, SESSION, [CODEX_RECORD])
    was = gc.isenabled()
    (gc.enable if was_enabled else gc.disable)()
    try:
        with pytest.raises(NotATranscript):
            scan_transcript(path)
        assert gc.isenabled() is was_enabled
    finally:
        (gc.enable if was else gc.disable)()


def test_a_limited_scan_reads_the_end(tmp_path: Path) -> None:
    """A scan with a limit reads only complete lines at the end of the file."""
    path = write_session(tmp_path, SESSION, RECORDS_OF_TWO_TURNS)
    size = os.path.getsize(path)
    last = len(line(RECORDS_OF_TWO_TURNS[-1])) + 1
    assert [node.uuid for node in scan_transcript(path, last).nodes] == ["r3"]
    assert scan_transcript(path, last - 1).nodes == []
    assert (
        scan_transcript(path, size).is_whole,
        scan_transcript(path, size - 1).is_whole,
        scan_transcript(path).is_whole,
    ) == (
        True,
        False,
        True,
    )
    assert scan_transcript(path, last).size == size


def test_queued_prompts_have_the_id_of_their_message(tmp_path: Path) -> None:
    """A queued prompt has the uuid with which it was sent, unless an earlier record has that uuid.

    Twenty thousand queued prompts are scanned quickly.
    """
    records: list[Record] = [
        {
            **user(str(n), uuid=f"own{n}", parent=f"sent{n - 1}" if n else None, ts=n),
            "sentAsUuid": f"sent{n}",
        }
        for n in range(20_000)
    ]
    taken: Record = {
        **user("again", uuid="own", parent="sent19999", ts=20_000),
        "sentAsUuid": "sent7",
    }
    first: Record = {**user("own id", uuid="x", parent="own", ts=20_001), "sentAsUuid": "x"}
    transcript = scan_transcript(write_session(tmp_path, SESSION, [*records, taken, first]))
    assert [node.uuid for node in transcript.nodes] == [
        *(f"sent{n}" for n in range(20_000)),
        "own",
        "x",
    ]
    assert [transcript.contains_record(uuid) for uuid in ("sent0", "own0", "own")] == [
        True,
        False,
        True,
    ]
