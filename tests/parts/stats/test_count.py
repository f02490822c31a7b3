"""What one transcript counts: every answer once, nothing that it copied, the hooks that the client timed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, settings

from benchmarks.going_on.bounds import Candidate, Room, Session, best, oracle, session_of, weights
from benchmarks.going_on.judge import Row, core
from benchmarks.going_on.measure import HEADS, Sums, own, place, row, table
from benchmarks.going_on.truth import SAMPLE, Item, items, source_of
from benchmarks.going_on.ways import MODEL, Left, Went, gone, laid
from resume_hooks.parts.stats.count import NO_EDIT, Counts, Day, count, from_row, rounded, to_row
from resume_hooks.parts.stats.totals import Stretch
from resume_hooks.reading.digest.entries import DigestEntry
from tests.builders import SESSION, assistant, call, conversation, session_id, system, user, write_session
from tests.derive.test_orders import Client, of_any_order

DAY = "2026-01-31"
NOTICE = "trap 'exit 0' EXIT; . \"$CLAUDE_PLUGIN_ROOT/hooks/notice\" 2>/dev/null"


def counted(folder: Path, *records: Any) -> Counts:
    """The counts of a session with these records."""
    return count(write_session(folder, SESSION, records))


def stop(*infos: dict[str, object], ts: float = 5) -> dict[str, Any]:
    """What the client writes after the hooks of a turn's end."""
    return system("stop_hook_summary", uuid=f"s{ts}", ts=ts, hookCount=len(infos), hookInfos=list(infos))


def attached(event: str, duration: object, **more: object) -> dict[str, Any]:
    """What the client writes of a hook that said something."""
    body = {"type": "hook_success", "hookEvent": event, "hookName": event, "command": "x", "durationMs": duration}
    return {"type": "attachment", "uuid": "h", "parentUuid": None, "timestamp": f"{DAY}T10:00:00.000Z"} | {
        "attachment": body | more
    }


def test_turns_and_tokens_by_day(tmp_path: Path) -> None:
    """Prompts, answers, and what the API counted of them."""
    found = counted(tmp_path, *conversation(2))
    assert found.days == {DAY: Day(turns=2, requests=2, sent=1_090 + 1_290, cached=1_085 + 1_285, answered=20)}
    assert found.folders == ("/home/user/proj",)
    assert found.child is None


def test_an_answer_in_several_records_counts_once(tmp_path: Path) -> None:
    """The client repeats its usage in each; of growing counts the last one is right."""
    first = {"input_tokens": 100, "output_tokens": 1}
    whole = {"input_tokens": 100, "output_tokens": 50}
    records = [
        user("go", uuid="u"),
        assistant("a", uuid="a1", parent="u", ts=1, message_id="m", tokens=first),
        assistant("b", uuid="a2", parent="a1", ts=2, message_id="m", tokens=whole),
        assistant("b", uuid="a3", parent="a2", ts=3, message_id="m", tokens=whole),
    ]
    assert counted(tmp_path, *records).days[DAY] == Day(1, 1, 100, 0, 50)


def test_what_a_child_copied_counts_at_its_parent(tmp_path: Path) -> None:
    """A fork's marked records, and those of a child that are older than itself."""
    copied = [{**record, "forkedFrom": {"sessionId": session_id(2), "messageUuid": "x"}} for record in conversation(2)]
    own = [user("new", uuid="n1", parent="r3", ts=9), assistant("yes", uuid="n2", parent="n1", ts=10, tokens=500)]
    assert counted(tmp_path, *copied, *own).days[DAY] == Day(1, 1, 490, 485, 10)
    line = {"continue_metadata": {"parent_session_id": session_id(2), "continuation_type": "trim"}}
    line["continue_metadata"]["continued_at"] = "2026-01-31T09:30:05.000Z"
    line["trim_metadata"] = {"stats": {"original_tokens": 9_000, "trimmed_tokens": 800}}  # type: ignore[dict-item]
    found = counted(tmp_path, line, *conversation(2), *own)
    assert found.days[DAY] == Day(1, 1, 490, 485, 10)
    assert found.child is not None
    assert (found.child.kind, found.child.before, found.child.after) == ("trim", 9_000, 490)


def test_a_subagent_has_no_turns_of_a_person(tmp_path: Path) -> None:
    """Its prompts are the model's; its tokens count."""
    path = write_session(tmp_path, SESSION, conversation(2))
    assert count(path, agent=True).days[DAY] == Day(0, 2, 2_380, 2_370, 20)


def test_calls_before_the_first_edit(tmp_path: Path) -> None:
    """After a start and each compaction; without an edit they are told apart, and a sub-agent has none."""

    def calls(*names: str, at: int) -> list[dict[str, Any]]:
        return [
            assistant([call(f"t{ts}", name)], uuid=f"a{ts}", ts=ts, tokens=100) for ts, name in enumerate(names, at)
        ]

    def compacted(at: int) -> dict[str, Any]:
        return system("compact_boundary", uuid=f"c{at}", ts=at, compactMetadata={"trigger": "auto"})

    after = [compacted(10), *calls("Read", "Bash", at=11), compacted(20), compacted(30), *calls("Write", at=31)]
    rows = [user("go", uuid="u"), *calls("Read", "Grep", "Edit", "Read", "Edit", at=1), *after]
    assert counted(tmp_path, *rows).stretches == {"start": {DAY: {2: 1}}, "compaction": {DAY: {NO_EDIT: 1, 0: 1}}}
    path = write_session(tmp_path, SESSION, rows)
    assert count(path, agent=True).stretches == {}


def test_hook_times_ours_and_others(tmp_path: Path) -> None:
    """Of each hook of a turn's end, and of what hooks said elsewhere; ours are told by their command."""
    found = counted(
        tmp_path,
        stop({"command": NOTICE, "durationMs": 12}, {"command": "lint", "durationMs": 1_234}, {"command": "silent"}),
        stop({"command": NOTICE, "durationMs": 12}, ts=6),
        attached("SessionStart", 47.6),
    )
    assert found.hooks == {
        "Stop|ours": {DAY: {12: 2}},
        "Stop|others": {DAY: {1_200: 1}},
        "SessionStart|others": {DAY: {48: 1}},
    }


@pytest.mark.parametrize(
    ("event", "duration"),
    [
        ("Stop", -1), ("Stop", True), ("Stop", "12"), ("Stop", None), ("Stop", 1e18), ("Stop", []), ("Stop", {"a": 1}),
        ("", 5), ("a b", 5), ("x" * 41, 5), ("\x1b[31mStop", 5), ("S|op", 5),
    ],
)  # fmt: skip
def test_what_is_no_time_of_a_hook(tmp_path: Path, event: str, duration: object) -> None:
    """Only a number of milliseconds within a day counts, of an event that is a plain word."""
    rows = [stop({"command": "x", "durationMs": duration})] if event == "Stop" else []
    assert counted(tmp_path, attached(event, duration), *rows).hooks == {}


def test_odd_files_count_what_they_tell(tmp_path: Path) -> None:
    """No instant, no number, no object: passed over."""
    odd = [
        b"not json",
        user("x", uuid="h", ts="2026-\x1b[31mT10:00:00.000Z"),
        b"[1]",
        {"type": "user", "message": 5, "timestamp": 7},
        {"type": "assistant", "timestamp": "2026", "message": {"usage": {"input_tokens": 5}}},
        {"type": "assistant", "timestamp": f"{DAY}T10:00:00Z", "message": {"usage": {"input_tokens": "5"}}},
        b'{"type":"assistant","timestamp":"2026-01-31T10:00:00Z","message":{"usage":{"output_tokens":1%s}}}'
        % (b"0" * 30),
    ]
    found = counted(tmp_path, *odd)
    assert set(found.days) <= {DAY}
    assert all(number <= 10**8 for day in found.days.values() for number in day)


def test_a_row_gives_the_counts_back(tmp_path: Path) -> None:
    """What is kept is what was counted."""
    found = counted(tmp_path, *conversation(1), stop({"command": NOTICE, "durationMs": 12}))
    assert from_row(to_row(found)) == found


@pytest.mark.parametrize(("duration", "kept"), [(0.4, 0), (99.4, 99), (104, 100), (149, 150), (4_267, 4_300)])
def test_durations_are_few(duration: float, kept: int) -> None:
    """Exact below 100 ms, two digits above."""
    assert rounded(duration) == kept


def turns(path: str) -> int:
    """The turns that statistics count."""
    return sum(day.turns for day in count(path).days.values())


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@example(None, ["trim here", "prompt", "trim"])
@of_any_order
def test_each_turn_counts_once(begun: Path | None, steps: list[str]) -> None:
    """Over all sessions that came of it."""
    with tempfile.TemporaryDirectory() as home:
        client = Client(home, begun)
        said = turns(str(client.path))
        client.play(steps)
        assert sum(turns(path) for path in client.sessions()) == said + len(client.typed)


FILE = Item("s", "file", 7, "src/pool.py", in_summary=None)
DECISION = Item("s", "decision", 9, "take the lock   first", in_summary=None)


def test_word_for_word_or_by_a_line_of_the_digest() -> None:
    """White space aside; a digest's files by their section, a command of several lines as it was."""
    assert place(DECISION, Left(1, "we take the lock first, then")) == "in"
    assert place(DECISION, Left(1, "the lock is taken first")) == "out"
    assert place(FILE, Left(1, rows=[Row("files changed (1)", "src/pool.py")])) == "in"
    assert place(FILE, Left(1)) == "out"
    assert core(r"eval $'cat <<\'E\'\nx\\y\nE'") == r"cat <<'E' x\y E'"


def test_one_read_away() -> None:
    """A placeholder names the very record, or the full digest has it."""
    assert place(FILE, Left(1, named=frozenset({7}))) == "near"
    assert place(FILE, Left(1, named=frozenset({8}))) == "out"
    assert place(FILE, Left(1, more=[Row("files changed (1)", "src/pool.py")])) == "near"


def test_a_row_of_the_table() -> None:
    """Medians, counts of items, sentences, calls; empty where nobody ran the way or labelled a kind."""
    sums = Sums()
    left = Left(50, "take the lock first", frozenset({7}), lies=(1, 9))
    sums.add(Went("trim", left, 0.5, 60), [FILE, DECISION], 100)
    sums.add(Went("trim", None), [FILE], 100)
    assert row("trim", sums, Stretch("trim", 5, 4, 2, 8)) == (
        "| trim | 1 | 50 % | 60 | 0.50 | 1/0/0 |  |  |  | 0/1/0 | 1 of 9 | 2 (75 %: 8) of 4 |"
    )
    assert row("rollover", Sums(), None).count("|") == len(HEADS) + 3


def test_on_the_sample() -> None:
    """The session that we give away: a handoff has all that a reader labelled; the rest of a row needs no labels."""
    handoff = next(line for line in table(SAMPLE) if line.startswith("| handoff "))
    assert handoff.count("1/0/0") == 5
    assert "/" not in next(line for line in own([source_of(SAMPLE)]) if line.startswith("| handoff "))


def test_a_model_that_somebody_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is read, and looked up; without one the way has no figures."""
    (tmp_path / MODEL[0]).mkdir()
    (tmp_path / MODEL[0] / "sample.md").write_text("The fix is in `src/nowhere.py`.\n")
    for folder, lies in ((tmp_path, (1, 1)), (tmp_path / "none", None)):
        monkeypatch.setenv("BENCH_SUMMARIES", str(folder))
        with laid(source_of(SAMPLE)) as path:
            left = next(went.left for went in gone(path, source_of(SAMPLE)) if went.way == MODEL[0])
        assert (left.lies if left else None) == lies


def test_the_best_choice_of_sentences() -> None:
    """The labels take what adds most for its length; weights that were fit elsewhere take what looks like it, once."""
    short, long = DigestEntry("take the lock first"), DigestEntry("take the lock first, then read all of the file")
    said = [Candidate(long, frozenset({0}), (1, 1)), Candidate(short, frozenset({0}), (1, 1))]
    said.append(Candidate(DigestEntry("all tests pass"), frozenset(), (1, 0)))
    assert oracle(said) == [short]
    by = weights([Session("s", [], said * 50)])
    assert sum(by) == pytest.approx(0.8, abs=0.1)
    assert by[0] == pytest.approx(0.2, abs=0.1)
    chosen = best(Session("s", [], said), by, [Row("goal", "all tests pass")])
    assert chosen == [long]


def test_what_an_opening_could_keep() -> None:
    """On the sample: nothing without decisions, what was labelled with the best of them."""
    session = session_of(SAMPLE, items(SAMPLE))
    assert session.kept([], Room(shared=False)) == {}
    assert session.kept(oracle(session.said), Room(shared=False)) == {"decision": 1}


def test_on_a_real_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trim takes tokens and keeps words; a handoff takes more and keeps files; the home is as it was before."""
    monkeypatch.delenv("BENCH_PEER", raising=False)
    found = items("tune")
    source = source_of(found[0].session)
    before = dict(os.environ)
    with laid(source) as path:
        ways = {went.way: went.left for went in gone(path, source) if went.left}
    assert dict(os.environ) == before
    assert ways["go on"].tokens >= ways["trim"].tokens >= ways["trim, all it can"].tokens
    rows = [item for item in found if item.session == found[0].session]
    kept = {way: sum(place(item, left) == "in" for item in rows) for way, left in ways.items()}
    assert kept["fork"] == kept["go on"] >= kept["trim"]
    assert kept["rollover --quick"] <= kept["handoff"]
    assert all(place(item, ways["handoff"]) != "out" for item in rows if item.kind == "file")
