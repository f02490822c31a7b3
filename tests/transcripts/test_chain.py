"""Tests of the live chain, which has the messages that the client sends on resume."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from resume_hooks.transcripts import records
from resume_hooks.transcripts.transcript import Transcript, scan_transcript
from tests.builders import (
    SESSION,
    attachment,
    boundary,
    conversation,
    last_prompt,
    progress,
    summary,
    system,
    user,
    write_session,
)
from tests.needs import corpus, corpus_folder
from tests.transcripts.chain_cases import CHAIN_CASES, Case

LISTED_FILE_PATTERN = re.compile(r"\| (\S+\.jsonl) \|.* ok n=(\d+) use=(\d+) \|$")
SAME_TIME_TRANSCRIPT = "entireio__cli/bc3bf53b-19fe-4209-b30a-a1acffaf6703.jsonl"


def outline_live_chain(transcript: Transcript) -> str:
    """Return the live chain as words in the format of chain_cases.py."""
    words: list[str] = []
    for node in transcript.chain:
        for block in records.list_blocks(transcript.read_record(node)) if node.is_message else ():
            shown = {
                "tool_use": f"call:{block.get('id')}",
                "tool_result": f"result:{block.get('tool_use_id')}",
            }
            words.append(shown.get(block["type"]) or block["text"])
    return " ".join(words)


def chain_ids(path: str) -> list[str]:
    """Return the uuids of a file's live chain."""
    return [node.uuid for node in scan_transcript(path).chain]


@pytest.mark.parametrize("case", CHAIN_CASES, ids=lambda case: case.name)
def test_the_chain_has_what_the_client_sends(case: Case, tmp_path: Path) -> None:
    """The chain of each case has the messages that client 2.1.329 sends."""
    assert outline_live_chain(scan_transcript(write_session(tmp_path, SESSION, case.records))) == (
        case.expected_chain_messages or case.expected_messages
    )


def test_attachments_after_the_leaf_are_in_the_chain(tmp_path: Path) -> None:
    """Attachments and notes after the last message are in the chain, ordered by time."""
    turn = conversation(1)
    below = [
        attachment("late", uuid="t1", parent="r1", ts=9),
        system("turn_duration", uuid="t2", parent="r1", ts=5),
        attachment("last", uuid="t3", parent="t1", ts=10),
    ]
    assert chain_ids(write_session(tmp_path, SESSION, [*turn, *below])) == [
        "r0",
        "r1",
        "t2",
        "t1",
        "t3",
    ]


def test_attachments_of_recovered_results_are_in_the_chain(tmp_path: Path) -> None:
    """If the result of a parallel call is recovered, a hook's attachment to it is in the chain, too."""
    case = next(
        case for case in CHAIN_CASES if case.name == "parallel calls come back with their results"
    )
    note = attachment("hook", uuid="t1", parent="r1", ts=3.5)
    at = next(place for place, record in enumerate(case.records) if record["uuid"] == "r2")
    path = write_session(tmp_path, SESSION, [*case.records[:at], note, *case.records[at:]])
    assert chain_ids(path) == ["u1", "c1", "c2", "r1", "t1", "r2", "a1"]


def test_the_chain_starts_at_the_boundary(tmp_path: Path) -> None:
    """After a compaction, the boundary is the first record of the chain."""
    path = write_session(
        tmp_path,
        SESSION,
        [*conversation(2), boundary(uuid="b", before="r3"), summary("s", uuid="s", parent="b")],
    )
    assert chain_ids(path) == ["b", "s"]


def test_a_conversation_does_not_end_at_a_sub_agent(tmp_path: Path) -> None:
    """The chain does not end at a sub-agent's record, even if a last-prompt record names that record."""
    aside = [user("of a sub-agent", uuid="s", parent="r3", isSidechain=True), last_prompt("s")]
    assert chain_ids(write_session(tmp_path, SESSION, [*conversation(2), *aside])) == [
        "r0",
        "r1",
        "r2",
        "r3",
    ]


def test_a_file_with_only_metadata_has_no_chain(tmp_path: Path) -> None:
    """If a file has no linked records, for example if it is empty, it has an empty chain and no turns."""
    for content in ([], [last_prompt("x")], [progress(uuid="p", parent=None)], [b"garbage", b""]):
        transcript = scan_transcript(write_session(tmp_path, SESSION, content))
        assert (transcript.chain, transcript.turns, transcript.nodes_by_call_id) == ([], [], {})


def test_real_sessions_have_as_many_calls_as_the_client_sends() -> None:
    """The chains of real sessions have as many calls as client 2.1.329 sends on resume.

    A call without a result is counted only at the end of a chain.
    """
    rows = [
        found
        for line in (corpus() / "README.md").read_text().split("\n")
        if (found := LISTED_FILE_PATTERN.match(line))
    ]
    assert len(rows) == 77
    wrong = []
    for name, _sent_messages, sent in (row.groups() for row in rows):
        transcript = scan_transcript(str(corpus_folder() / name))
        answered = sum(answer is not None for _, answer in transcript.nodes_by_call_id.values())
        if answered + _count_open_calls_at_end(transcript) != int(sent):
            wrong.append(name)
    assert wrong == []


def _count_open_calls_at_end(transcript: Transcript) -> int:
    """Return the number of calls in the last answer that have no result.

    The client repairs these calls and drops all other calls without a result.
    """
    count = 0
    for node in reversed(transcript.chain):
        if node.kind == "user":
            break
        count += sum(transcript.nodes_by_call_id[call][1] is None for call in node.call_ids)
    return count


def test_results_of_the_same_time_are_in_file_order() -> None:
    """Results of parallel calls with equal timestamps are in the order of the file, as in the client.

    The SDK orders such results by call.
    """
    path = corpus() / SAME_TIME_TRANSCRIPT
    chain = scan_transcript(str(path)).chain
    results = [node.line_number for node in chain if node.answered_call_ids]
    assert results == sorted(results)
