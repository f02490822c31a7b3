"""The live chain: what a client would send on resume, rule by rule, and on every real session."""

from __future__ import annotations

import random
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from claude_agent_sdk import get_session_messages
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_hooks.transcripts import records
from resume_hooks.transcripts.chain import live_chain
from resume_hooks.transcripts.nodes import Checkpoint, Node, Segment
from resume_hooks.transcripts.transcript import Transcript, scan
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
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
from tests.needs import corpus, corpus_folder, corpus_sessions
from tests.transcripts.chain_cases import CASES, Case

LISTED = re.compile(r"\| (\S+\.jsonl) \|.* ok n=(\d+) use=(\d+) \|$")
SPLICED = {"_cli_generated/2.1.329/-home-user-gen-2-1-329-proj/759d0644-d434-4a88-94fb-d7821cb06853.jsonl",
           "gmeligio__flutter-docker-image/5e12a303-c989-4291-a42d-bc1eb620afea.jsonl"}  # fmt: skip
SAME_INSTANT = {"entireio__cli/bc3bf53b-19fe-4209-b30a-a1acffaf6703.jsonl"}
HAND_MADE = {"daaain__claude-code-log/edge_cases.jsonl"}


def told(transcript: Transcript) -> str:
    """What the live chain tells, in the words of chain_cases.py."""
    words: list[str] = []
    for node in transcript.chain:
        for block in records.blocks(transcript.read(node)) if node.spoken else ():
            shown = {"tool_use": f"call:{block.get('id')}", "tool_result": f"result:{block.get('tool_use_id')}"}
            words.append(shown.get(block["type"]) or block["text"])
    return " ".join(words)


def chain_ids(path: str) -> list[str]:
    """The uuids of a file's live chain."""
    return [node.uuid for node in scan(path).chain]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rule(case: Case, tmp_path: Path) -> None:
    """The chain of each small transcript is what client 2.1.329 sent of it."""
    assert told(scan(write_session(tmp_path, SESSION, case.records))) == (case.chain or case.told)


def test_asides_below_the_leaf_come_along(tmp_path: Path) -> None:
    """Attachments and notes that hang below the last message are part of the chain, in order of time."""
    turn = conversation(1)
    below = [
        attachment("late", uuid="t1", parent="r1", ts=9),
        system("turn_duration", uuid="t2", parent="r1", ts=5),
        attachment("last", uuid="t3", parent="t1", ts=10),
    ]
    assert chain_ids(write_session(tmp_path, SESSION, [*turn, *below])) == ["r0", "r1", "t2", "t1", "t3"]


def test_asides_of_recovered_results_come_along(tmp_path: Path) -> None:
    """A hook's attachment that hangs on a result of another parallel branch comes back with it."""
    case = next(case for case in CASES if case.name == "parallel calls come back with their results")
    note = attachment("hook", uuid="t1", parent="r1", ts=3.5)
    at = next(place for place, record in enumerate(case.records) if record["uuid"] == "r2")
    path = write_session(tmp_path, SESSION, [*case.records[:at], note, *case.records[at:]])
    assert chain_ids(path) == ["u1", "c1", "c2", "r1", "t1", "r2", "a1"]


def test_the_chain_starts_at_the_boundary(tmp_path: Path) -> None:
    """After a compaction the boundary itself opens the chain, so that its marks can be read from it."""
    path = write_session(
        tmp_path, SESSION, [*conversation(2), boundary(uuid="b", before="r3"), summary("s", uuid="s", parent="b")]
    )
    assert chain_ids(path) == ["b", "s"]


def test_only_bookkeeping_is_no_chain(tmp_path: Path) -> None:
    """A file without linked records, an empty one too, has an empty chain and no turns."""
    for content in ([], [last_prompt("x")], [progress(uuid="p", parent=None)], [b"garbage", b""]):
        transcript = scan(write_session(tmp_path, SESSION, content))
        assert (transcript.chain, transcript.turns, transcript.pairs) == ([], [], {})


@given(st.randoms(use_true_random=False), st.integers(min_value=1, max_value=40))
@settings(max_examples=300, deadline=None)
def test_any_links_end(chance: random.Random, size: int) -> None:
    """Random links, cycles, duplicates and marks never hang or crash; nothing comes twice; the order is total."""
    names = [f"n{number}" for number in range(size)]
    nodes = []
    checkpoint = Checkpoint()
    for number in range(size):
        node = Node(chance.choice(names), chance.choice([*names, None, "gone"]), chance.choice([*records.CHAIN_KINDS]))
        node.number = number
        node.time_ms = chance.choice([None, chance.randrange(20_000)])
        node.sidechain = chance.random() < 0.1
        node.broken = chance.random() < 0.1
        if node.kind == "system" and chance.random() < 0.5:
            node.subtype = "compact_boundary"
            node.segment = chance.choice([None, *_segments(chance, names)])
        if node.kind == "assistant":
            node.message_id = chance.choice(["", "m1", "m2"])
            node.calls = chance.choice([(), ("c1",), ("c1", "c2")])
        elif node.kind == "user":
            node.results = chance.choice([(), ("c1",), ("c2",)])
        nodes.append(node)
        if not node.broken and node.kind != "progress":
            checkpoint.pass_record(node)
        if chance.random() < 0.1:
            checkpoint.point(chance.choice([*names, None]), explicit=chance.random() < 0.3)
    for size_bytes in (0, 6_000_000):
        for bridging in (True, False):
            chain = live_chain(nodes, checkpoint, size_bytes, bridging=bridging)
            ids = [node.uuid for node in chain]
            assert len(ids) == len(set(ids))
            assert not any(node.boundary for node in chain[1:])
            assert not any(node.broken or node.kind == "progress" for node in chain)


def _segments(chance: random.Random, names: list[str]) -> Iterator[Segment]:
    yield Segment(chance.choice(names), chance.choice(names), chance.choice(names), None)
    yield Segment(chance.choice(names), "", "", tuple(chance.sample(names, min(3, len(names)))))
    yield Segment("", "", "", ())


def test_tool_calls_are_those_that_the_client_sent() -> None:
    """Of each session, answered calls and those open at the end are as many as client 2.1.329 sent on resume."""
    rows = [found for line in (corpus() / "README.md").read_text().split("\n") if (found := LISTED.match(line))]
    assert len(rows) == 77
    wrong = []
    for name, _sent_messages, sent in (row.groups() for row in rows):
        transcript = scan(str(corpus_folder() / name))
        answered = sum(answer is not None for _, answer in transcript.pairs.values())
        if answered + _open_at_the_end(transcript) != int(sent):
            wrong.append(name)
    assert wrong == []


def _open_at_the_end(transcript: Transcript) -> int:
    """Unanswered calls of the last answer: the client mends those and drops all others."""
    count = 0
    for node in reversed(transcript.chain):
        if node.kind == "user":
            break
        count += sum(transcript.pairs[call][1] is None for call in node.calls)
    return count


@pytest.mark.parametrize("path", corpus_sessions(), ids=lambda path: str(path.relative_to(corpus_folder())))
def test_agrees_with_the_official_sdk(path: Path, config_home: ConfigHome) -> None:
    """Messages and their order are the SDK's, but for what it is documented to leave out (see the tests below)."""
    ours, theirs = _visible(scan(str(path)).chain), _by_sdk(path, config_home)
    name = str(path.relative_to(corpus_folder()))
    if name in SPLICED | HAND_MADE:
        assert ours != theirs
    elif name in SAME_INSTANT:
        assert ours != theirs
        assert sorted(ours) == sorted(theirs)
    else:
        assert ours == theirs


def test_agrees_with_the_official_sdk_on_sub_agents(config_home: ConfigHome) -> None:
    """In sub-agents' files, where every record is a sidechain's, neither shows a message."""
    files = [path for path in corpus().rglob("agent-*.jsonl") if path.stat().st_size]
    assert len(files) > 20
    for path in files:
        assert _visible(scan(str(path)).chain) == _by_sdk(path, config_home)


def _visible(chain: list[Node]) -> list[str]:
    return [node.uuid for node in chain if node.spoken and not node.meta and not node.sidechain]


def _by_sdk(source: Path, home: ConfigHome) -> list[str]:
    name = str(uuid.uuid4())
    shutil.copyfile(source, home.project() / f"{name}.jsonl")
    return [message.uuid for message in get_session_messages(name)]


OTHER_BRANCH = [user("x", uuid="x0", parent="r1", ts=10), assistant("y", uuid="x1", parent="x0", ts=11)]
TWO_BRANCHES = [*conversation(2), *OTHER_BRANCH]
KEPT = {"anchorUuid": "s", "headUuid": "r2", "tailUuid": "r3"}
WITHOUT_MESSAGE: Record = {**user("", uuid="r2", parent="r1", ts=2), "message": None}
DIFFERENCES = {
    "the SDK takes the last branch, whatever the last-prompt says": (
        [*TWO_BRANCHES, last_prompt("r3")],
        ["r0", "r1", "r2", "r3"],
        ["r0", "r1", "x0", "x1"],
    ),
    "the SDK does not splice kept messages in": (
        [*conversation(2), boundary(uuid="b", segment=KEPT, ts=9), summary("s", uuid="s", parent="b", ts=9)],
        ["s", "r2", "r3"],
        ["s"],
    ),
    "the SDK ends at a dangling parent": (
        [*conversation(1), user("x", uuid="x0", parent="gone", ts=5)],
        ["r0", "r1", "x0"],
        ["x0"],
    ),
    "the SDK keeps a record without a message": (
        [*conversation(1), WITHOUT_MESSAGE, assistant("y", uuid="r3", parent="r2", ts=3)],
        ["r0", "r1", "r3"],
        ["r0", "r1", "r2", "r3"],
    ),
    "the SDK knows no rewind to the start": (
        [*conversation(1), {**last_prompt(""), "leafUuid": None, "explicit": True}],
        [],
        ["r0", "r1"],
    ),
    "the SDK takes the last record, parents after their children or not": (
        conversation(2)[::-1],
        ["r0", "r1", "r2", "r3"],
        ["r0", "r1", "r2", "r3"],
    ),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_known_difference_from_the_sdk(name: str, config_home: ConfigHome) -> None:
    """Where the two are known to differ the client decides; each difference on its own."""
    content, ours, theirs = DIFFERENCES[name]
    path = write_session(config_home.project(), SESSION, content)
    assert _visible(scan(path).chain) == ours
    assert [message.uuid for message in get_session_messages(SESSION)] == theirs


def test_results_of_one_instant_stand_in_file_order() -> None:
    """Recovered results with the same instant: the client orders by place in the file, the SDK by call."""
    path = corpus() / next(iter(SAME_INSTANT))
    chain = scan(str(path)).chain
    results = [node.number for node in chain if node.results]
    assert results == sorted(results)
