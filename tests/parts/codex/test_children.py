"""Children of Codex sessions without the client: what they would send, what they never touch, what is refused."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.existing_child import find_existing_child
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.cut_point import CutAtTurn
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.derive.verbs.fork import ForkSpec, plan_fork
from resume_hooks.derive.verbs.trim import plan_trim
from resume_hooks.derive.verbs.untrim import plan_untrim
from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.hooks import prompt
from resume_hooks.hooks.triggers import recognise_trigger
from resume_hooks.parts.codex.rollout import GOAL_WARNING
from resume_hooks.parts.codex.thread import OUTPUT_LIMIT_KEY
from resume_hooks.parts.codex.transcripts.as_records import ENCRYPTED_SUMMARY_TEXT
from resume_hooks.parts.codex.transcripts.meta import parse_rollout_name, read_meta
from resume_hooks.parts.codex.transcripts.segments import read_thread_lines
from resume_hooks.paths import Where
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.prose import MAX_SENTENCE_CHARACTERS
from resume_hooks.sessions.agents import registry
from resume_hooks.sessions.locate import SessionFile, resolve_locator
from resume_hooks.sessions.session import Session
from resume_hooks.transcripts.records import Record
from tests.crashes import crashes
from tests.parts.codex import rollouts
from tests.parts.codex.rollouts import OTHER, THREAD, effective, every_rollout, find_in_corpus

BIG = "word " * 2_000


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Where:
    """A home of a test's own, with room for threads."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    (tmp_path / ".codex").mkdir()
    return Where()


def codex_of(where: Where) -> Path:
    """The CODEX_HOME of a test."""
    return Path(where.environ["HOME"]) / ".codex"


def thread(where: Where, session_id: str = THREAD) -> SessionFile:
    """A thread as verbs take it."""
    return resolve_locator(session_id, "/", where, foreign=True)


def sent_of(path: str | Path) -> list[Record]:
    """The items that resuming a rollout of ours sends."""
    return [item.payload for item in effective(read_thread_lines(str(path), lambda _: None))]


def lines_of(path: str) -> list[dict[str, Any]]:
    """The lines of a rollout."""
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


@every_rollout
def test_children_of_a_real_rollout(rollout: Path, where: Where) -> None:
    """A fork says what its parent does, an untrim of a trim too; nothing encrypted is touched.

    Each stands alone.
    """
    folder = codex_of(where) / "sessions" / "2026" / "01" / "01"
    folder.mkdir(parents=True)
    for near in rollout.parent.glob("rollout-*.jsonl"):
        shutil.copyfile(near, folder / near.name)
    named = parse_rollout_name(str(rollout))
    assert named is not None
    parent = thread(where, named.thread_id)
    items = [item.payload for item in effective(read_thread_lines(str(rollout), find_in_corpus))]
    fork = write_child(plan_fork(parent, where), where)
    assert sent_of(fork.file) == items
    decided = plan_trim(parent, where, Options(keep_recent=1))
    if decided.is_pointless:
        return
    trim = write_child(decided, where)
    after = sent_of(trim.file)
    assert [item.get("encrypted_content") for item in after] == [
        item.get("encrypted_content") for item in items
    ]
    assert [item.get("call_id") for item in after] == [item.get("call_id") for item in items]
    assert len(json.dumps(after)) < len(json.dumps(items))
    reading = scan_trimmed_session(thread(where, trim.session_id))
    assert sent_of(write_child(plan_untrim(reading, where, strict=True), where).file) == items


def test_every_form_of_output_and_input_is_trimmed(where: Where) -> None:
    """Strings, lists with pictures, free text, objects in JSON.

    The first line tells whose child it is.
    """
    patch = rollouts.item(
        "custom_tool_call", name="apply_patch", input=f"*** {BIG}", call_id="c2", status="completed"
    )
    given = json.dumps({"path": "a", "text": BIG})
    parts = [
        {"type": "input_text", "text": BIG},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
    ]
    secret = {"type": "reasoning", "summary": [], "encrypted_content": "x" * 9_000}
    sized = rollouts.output("c1", BIG) | {
        "ordinal": 3,
        "metadata": {OUTPUT_LIMIT_KEY: 12_000, "history_sequence": 7},
    }
    lines = [
        rollouts.meta(
            base_instructions={"text": "be good"}, session_id=THREAD, history_mode="paginated"
        ),
        rollouts.message_line("user", "go"),
        rollouts.line("response_item", secret),
        rollouts.call("c1", "ls"),
        sized,
        patch,
        rollouts.output("c2", parts, kind="custom_tool_call_output"),
        rollouts.item("function_call", name="write", arguments=given, call_id="c3"),
        rollouts.output("c3", "ok"),
        rollouts.token_count_line(200_000),
        *rollouts.LATER,
    ]
    path = rollouts.write(codex_of(where), lines)
    before = path.read_bytes()
    trim = write_child(plan_trim(thread(where), where, Options()), where)
    assert path.read_bytes() == before
    sent = sent_of(trim.file)
    assert len(sent) == len(sent_of(path))
    assert BIG not in json.dumps(sent)
    assert sent[1] == secret
    assert set(json.loads(sent[6]["arguments"])) == {"path", "text"}
    assert [part["type"] for part in sent[5]["output"]] == ["input_text", "input_text"]
    first, *rest = lines_of(trim.file)
    assert first["payload"]["forked_from_id"] == THREAD
    assert first["payload"]["session_id"] == first["payload"]["id"] == trim.session_id
    assert first["payload"]["base_instructions"] == {"text": "be good"}
    assert "history_mode" not in first["payload"]
    assert first["trim_metadata"]["stats"]["tools_trimmed"] == 2
    assert not any("ordinal" in line for line in rest)
    assert [line["metadata"] for line in rest if "metadata" in line] == [{OUTPUT_LIMIT_KEY: 12_000}]
    assert not any(line["payload"].get("type") == "token_count" for line in rest)
    assert parse_rollout_name(trim.file) is not None
    assert Path(trim.file).stat().st_mode & 0o077 == 0


def test_a_new_child_is_not_open_and_names_no_agent(where: Where) -> None:
    """It is not open until a line is added; Codex has none of the plugin's agents."""
    lines = [
        rollouts.meta(),
        rollouts.message_line("user", "Fix the test", 1),
        rollouts.message_line("assistant", "Fixed", 2),
    ]
    rollouts.write(codex_of(where), lines)
    (agent,) = registry.list_other_agents(where)
    for made in (
        plan_fork(thread(where), where),
        agents.plan_fresh(thread(where), where, kind="handoff"),
    ):
        child = write_child(made, where)
        assert agent.describe_open_state(agent.open_session(child.file)) == ""
        assert "session-searcher" not in Path(child.file).read_text()
    later = time.time() + 10
    os.utime(child.file, (later, later))
    assert "seconds ago" in agent.describe_open_state(agent.open_session(child.file))


@pytest.mark.parametrize("status", ["paused", "complete"])
def test_a_goal_is_reported_like_other_words_and_stays_behind(status: str, where: Where) -> None:
    """Without secrets, within its room.

    A fork says that Codex does not pursue it there, unless it was reached.
    """
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    objective = f"use {secret} " + "and all of this " * 300
    lines = [
        rollouts.meta(),
        rollouts.message_line("user", "Fix it", 1),
        rollouts.message_line("assistant", "Fixed", 2),
    ]
    rollouts.write(codex_of(where), [*lines, rollouts.goal_is(objective, status, 3)])
    parent = thread(where)
    (told,) = [
        row.text for row in build_digest(parent, where).section_entries("now") if "goal" in row.text
    ]
    assert told.startswith(f"the session's goal, {status}: \"use ")
    assert secret not in told
    assert len(told) <= MAX_SENTENCE_CHARACTERS
    assert (GOAL_WARNING in write_child(plan_fork(parent, where), where).warnings) == (
        status == "paused"
    )


def test_a_refused_sub_agent_is_told_whose_it_is(where: Where) -> None:
    """The user has its id from a file's name, and nothing that leads from there."""
    lines = [
        rollouts.meta(parent_thread_id=OTHER),
        rollouts.message_line("user", "look"),
        rollouts.message_line("assistant", "so"),
    ]
    rollouts.write(codex_of(where), lines)
    with pytest.raises(UsageError, match="sub-agent") as refused:
        plan_fork(thread(where), where)
    assert OTHER in refused.value.remedy


def test_a_cut_ends_with_the_turn(where: Where) -> None:
    """Later items are left out, and the client describes its environment again."""
    talk = [
        rollouts.message_line(role, f"{role} {n}", n)
        for n in range(3)
        for role in ("user", "assistant")
    ]
    context = rollouts.line("turn_context", {"cwd": "/", "model": "gpt-5"})
    rollouts.write(codex_of(where), [rollouts.meta(), *talk[:2], context, *talk[2:]])
    fork = write_child(plan_fork(thread(where), where, ForkSpec(CutAtTurn(2))), where)
    assert [item["content"][0]["text"] for item in sent_of(fork.file)][-1] == "assistant 1"
    assert len(sent_of(fork.file)) == 4
    assert not any(line["type"] == "turn_context" for line in lines_of(fork.file))
    whole = write_child(plan_fork(thread(where), where), where)
    assert [line["type"] for line in lines_of(whole.file)].count("turn_context") == 1


def test_a_fork_has_the_last_settings_of_its_thread(where: Where) -> None:
    """The event names its thread; 0.144 named no thread."""
    older, newest = (
        rollouts.event("thread_settings_applied", thread_id=THREAD, thread_settings={"n": n})
        for n in "12"
    )
    talk = [
        older,
        rollouts.message_line("user", "begin"),
        newest,
        rollouts.message_line("assistant", "done"),
    ]
    rollouts.write(codex_of(where), [rollouts.meta(), *talk])
    fork = write_child(plan_fork(thread(where), where), where)
    told = [line["payload"] for line in lines_of(fork.file) if "thread_settings" in line["payload"]]
    assert [(each["thread_id"], each["thread_settings"]) for each in told] == [
        (fork.session_id, {"n": "2"})
    ]


def test_an_unreadable_summary_is_reported(where: Where) -> None:
    """In the other agent a sentence replaces it."""
    left = [
        rollouts.message_line("user", "begin"),
        rollouts.item("compaction", encrypted_content="x" * 99),
    ]
    talk = [rollouts.message_line("user", "go on"), rollouts.message_line("assistant", "done")]
    rollouts.write(
        codex_of(where),
        [rollouts.meta(), rollouts.message_line("user", "begin"), rollouts.compacted(left), *talk],
    )
    fork = write_child(plan_fork(thread(where), where, ForkSpec(to="claude")), where)
    text = Path(fork.file).read_text("utf-8")
    assert fork.tokens_after > fork.tokens_before, (
        "what every request begins with is in it, and what is told"
    )
    assert ENCRYPTED_SUMMARY_TEXT in text
    assert "session ran in Codex" in text
    assert "xxx" not in text


def test_refused_children(where: Where) -> None:
    """A sub-agent's thread, a cut for another agent, another home, a record that is not trimmed."""
    talk = [rollouts.message_line("user", "go"), rollouts.message_line("assistant", "done")]
    rollouts.write(codex_of(where), [rollouts.meta(), *talk])
    other = THREAD.replace("0001", "0002", 1)[:-1] + "2"
    rollouts.write(codex_of(where), [rollouts.meta(other, parent_thread_id=THREAD), *talk], other)
    with pytest.raises(UsageError, match="sub-agent"):
        plan_fork(thread(where, other), where)
    with pytest.raises(UsageError, match="both a cut and another agent"):
        plan_fork(thread(where), where, ForkSpec(CutAtTurn(1), to="claude"))
    with pytest.raises(UsageError, match="home"):
        plan_fork(thread(where), where, ForkSpec(home="/"))
    with pytest.raises(UsageError, match="is not trimmed"):
        plan_untrim(scan_trimmed_session(thread(where)), where, (1,))


def test_one_trimmed_item_comes_back_alone(where: Where) -> None:
    """By its line, as references name it.

    The others are placeholders still, and come back the next time.
    """
    lines = [
        rollouts.meta(),
        rollouts.message_line("user", "go"),
        *rollouts.work(3, BIG),
        *rollouts.LATER,
    ]
    path = rollouts.write(codex_of(where), lines)
    trim = write_child(plan_trim(thread(where), where, Options()), where)
    reading = scan_trimmed_session(thread(where, trim.session_id))
    assert len(reading.trimmed_nodes) == 3
    one = write_child(plan_untrim(reading, where, (reading.trimmed_nodes[1].number,)), where)
    back = [item == was for item, was in zip(sent_of(one.file), sent_of(path), strict=True)]
    assert [place for place, same in enumerate(back) if not same] == [2, 6]
    rest = write_child(
        plan_untrim(scan_trimmed_session(thread(where, one.session_id)), where), where
    )
    assert sent_of(rest.file) == sent_of(path)


@pytest.mark.part("smart_trim")
def test_a_smart_trim_drops_the_models_choices(where: Where) -> None:
    """Shown by its ends, with what was said between.

    Only what it names goes, and comes back by an untrim.
    """
    from resume_hooks.parts.smart_trim import plan as smart
    from resume_hooks.parts.smart_trim.ask_model import split_offer
    from resume_hooks.parts.smart_trim.offered_contents import (
        CERTAIN_RULES,
        build_offer,
        build_smart_options,
    )

    path = rollouts.write(
        codex_of(where), [rollouts.meta(), *rollouts.work(3, BIG, asks=True), *rollouts.LATER]
    )
    scanned = agents.scan_for_trim(thread(where), where)
    offered = build_offer(scanned, build_smart_options(None, CERTAIN_RULES), where)
    assert [(one.target, one.turn) for one in offered.candidates] == [
        (f"make {n}", n + 1) for n in range(3)
    ]
    (part,) = split_offer(offered)
    for said in (
        "question 1",
        "answer 1",
        "output of exec_command make 1",
        "HOW IT ENDS",
        "later",
        "1 word",
    ):
        assert said in part.text, said
    planned = smart.plan_smart_trim(
        offered, [smart.build_model_verdict(offered, 2, "a build", "done")], where
    )
    with path.open("ab") as stream:
        stream.write(json.dumps(rollouts.message_line("user", "meanwhile")).encode() + b"\n")
    receipt = smart.write_smart_trim(planned, where)
    assert receipt.warnings == (smart.NEW_TURNS_WARNING,)
    sent = sent_of(receipt.file)
    assert [
        place
        for place, (one, was) in enumerate(zip(sent, sent_of(path), strict=True))
        if one != was
    ] == [6]
    assert '"a build"' in sent[6]["output"][0]["text"]
    assert b'"method":"smart"' in Path(receipt.file).read_bytes().splitlines()[0]
    back = write_child(
        plan_untrim(scan_trimmed_session(thread(where, receipt.session_id)), where), where
    )
    assert sent_of(back.file) == sent_of(path)


@pytest.mark.part("marks")
def test_a_rewind_is_at_the_mark_again(where: Where) -> None:
    """What came later is in no item, the report follows what stays.

    Of a mark that is gone it stands alone.
    """
    from resume_hooks.parts.marks import plan_back
    from resume_hooks.parts.marks import state as marks

    path = rollouts.write(codex_of(where), [rollouts.meta(), *rollouts.work(1, "a", asks=True)])
    mark = marks.place_mark(thread(where), "try").mark
    kept = sent_of(path)
    with path.open("ab") as stream:
        for one in (
            rollouts.message_line("user", "the other way"),
            rollouts.call("c2", "rm"),
            rollouts.message_line("assistant", "no"),
        ):
            stream.write(json.dumps(one).encode() + b"\n")
    for at, stays in ((mark, kept), (mark._replace(uuid="gone"), [])):
        decided = plan_back.plan_back(thread(where), at, "it was slower", where)
        sent = sent_of(write_child(decided.child, where).file)
        assert sent[: len(stays)] == stays
        assert [one["role"] for one in sent[len(stays) :]] == ["user", "assistant"]
        assert "it was slower" in sent[-2]["content"][0]["text"]
        assert bool(decided.loss_reason) is not bool(stays)


@pytest.mark.part("marks")
@pytest.mark.parametrize("by", ["us", "an old Codex", "Codex"])
def test_a_fork_comes_back_to_where_it_left(where: Where, by: str) -> None:
    """By the items that its parent has, too.

    What it found is reported, with references, behind them.
    """
    from resume_hooks.parts.marks import fork_point, plan_back

    talk = [rollouts.message_line("user", "go"), rollouts.message_line("assistant", "gone", 1)]
    path = rollouts.write(codex_of(where), [rollouts.meta(), *talk])
    kept = sent_of(path)
    if by == "us":
        fork = Path(write_child(plan_fork(thread(where), where), where).file)
    else:
        base = {"thread_id": THREAD, "end_byte_offset": path.stat().st_size}
        said = rollouts.meta(
            rollouts.OTHER,
            forked_from_id=THREAD,
            **({"history_base": base} if by == "Codex" else {}),
        )
        copied = [] if by == "Codex" else [rollouts.meta(), *talk]
        fork = rollouts.write(codex_of(where), [said, *copied], rollouts.OTHER)
    own = [
        rollouts.message_line("user", "EXPLORE", 5),
        rollouts.call("c", "pytest -q", 6),
        rollouts.output("c", "3 passed", 7),
    ]
    with fork.open("ab") as stream:
        for one in (*own, rollouts.message_line("assistant", "We decided to use the lexer.", 8)):
            stream.write(
                json.dumps(one | {"timestamp": f"2999-{one['timestamp'][5:]}"}).encode() + b"\n"
            )
    name = parse_rollout_name(str(fork))
    assert name is not None
    session = thread(where, name.thread_id)
    mark = fork_point.find_fork_point(session, where)
    assert mark is not None
    assert mark.left == THREAD
    decided = plan_back.plan_back(session, mark, "", where)
    sent = sent_of(write_child(decided.child, where).file)
    assert (sent[: len(kept)], decided.loss_reason) == (kept, "")
    told = sent[len(kept)]["content"][0]["text"]
    assert "- pytest -q (:" in told
    assert "ASSISTANT :6\n  We decided to use the lexer." in told
    assert decided.child.remarks == ()


def test_a_handoff_that_stands_is_named_again(where: Where) -> None:
    """For the same words, until the child or its parent is continued."""
    path = rollouts.write(codex_of(where), [rollouts.meta(), rollouts.message_line("user", "go")])
    first = write_child(
        agents.plan_fresh(thread(where), where, kind="handoff", next_step="test it"), where
    )
    again = find_existing_child(
        Session.from_file(thread(where), where), "handoff", where, "test it"
    )
    assert again is not None
    assert (again.session_id, again.file, again.agent) == (first.session_id, first.file, "codex")
    assert (again.parent_file, again.commands, again.written) == (str(path), first.commands, False)
    assert (
        find_existing_child(Session.from_file(thread(where), where), "handoff", where, "mend it")
        is None
    )
    later = json.dumps(
        rollouts.message_line("user", "more") | {"timestamp": "2999-01-01T00:00:00.000Z"}
    ).encode()
    for file in (Path(first.file), path):
        before = file.read_bytes()
        file.write_bytes(before + later + b"\n")
        assert (
            find_existing_child(
                Session.from_file(thread(where), where), "handoff", where, "test it"
            )
            is None
        )
        file.write_bytes(before)
    assert (
        find_existing_child(Session.from_file(thread(where), where), "handoff", where, "test it")
        is not None
    )


@pytest.mark.parametrize(
    ("words", "tokens", "kind"), [("4k test it", 4_000, "handoff"), ("all", None, "fork")]
)
def test_a_size_before_the_step(
    where: Where, monkeypatch: pytest.MonkeyPatch, words: str, tokens: int | None, kind: str
) -> None:
    """The same words as in Claude Code; the same size again names the existing child."""
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")
    path = rollouts.write(
        codex_of(where),
        [
            rollouts.meta(),
            rollouts.message_line("user", "go"),
            rollouts.message_line("assistant", "ok"),
        ],
    )
    event = {"session_id": THREAD, "transcript_path": str(path), "prompt": f">handoff {words}"}
    trigger = recognise_trigger(event["prompt"])
    assert trigger is not None
    prompt.card_of_trigger(trigger, event)
    made = [file for file in (codex_of(where) / "sessions").rglob("*.jsonl") if file != path]
    (child,) = made
    head = lines_of(str(child))[0]["continue_metadata"]
    assert (head["continuation_type"], head.get("opening_tokens")) == (kind, tokens)
    if kind == "handoff":
        assert "already handed off" in prompt.card_of_trigger(trigger, event)


def test_a_crash_leaves_nothing_or_the_whole(where: Where) -> None:
    """At each step of a write; the next write removes left-over files."""
    path = rollouts.write(codex_of(where), [rollouts.meta(), *rollouts.work(12, BIG, asks=True)])
    before, decided, born = path.read_bytes(), plan_trim(thread(where), where, Options()), []
    for _ in crashes(lambda: lambda: write_child(decided, where)):
        child = Path(decided.draft.path)
        born.append(child.exists())
        assert not born[-1] or child.stat().st_size == sum(map(len, decided.body.lines()))
        child.unlink(missing_ok=True)
        write_child(plan_trim(thread(where), where, Options()), where)
        assert [
            one for one in codex_of(where).rglob("*") if one.is_file() and one.suffix != ".jsonl"
        ] == []
    assert path.read_bytes() == before
    assert born == sorted(born)
    assert (born[0], born[-1]) == (False, True)


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_rollout_gives_a_sound_child_or_an_error_in_words(
    seed: int, where: Where
) -> None:
    """Whatever is broken in it, what is written passes its checks, and the first line is ours."""
    chance = random.Random(seed)
    talk = rollouts.work(8, BIG, asks=True)
    for _ in range(4):
        raw = [
            json.dumps(line).encode()
            for line in [*talk[:9], rollouts.compacted(talk[:4]), *talk[9:]]
        ]
        path = rollouts.write(codex_of(where), [rollouts.meta(), *rollouts.mutated(raw, chance)])
        before = path.read_bytes()
        for plan in (plan_fork, lambda one, there: plan_trim(one, there, Options())):
            try:
                decided = plan(thread(where), where)
                receipt = None if decided.is_pointless else write_child(decided, where)
            except ResumeHooksError:
                continue
            if receipt is not None:
                assert all(check.ok for check in receipt.checks)
                assert read_meta(receipt.file).thread_id == receipt.session_id
        assert path.read_bytes() == before
