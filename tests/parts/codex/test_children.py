"""Tests of children of Codex sessions without the client: their items, parents and refusals."""

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
from tests.crashes import kill_before_each_change
from tests.parts.codex import rollouts
from tests.parts.codex.rollouts import (
    OTHER_THREAD_ID,
    THREAD_ID,
    every_rollout,
    find_rollout_in_corpus,
    items_for_model,
)

LONG_OUTPUT = "word " * 2_000


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Where:
    """Return the paths of a temporary home with an empty CODEX_HOME."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    (tmp_path / ".codex").mkdir()
    return Where()


def codex_home_of(where: Where) -> Path:
    """Return the CODEX_HOME of a test."""
    return Path(where.environ["HOME"]) / ".codex"


def thread_file(where: Where, session_id: str = THREAD_ID) -> SessionFile:
    """Find the session file of a thread by the thread's id, as a verb does."""
    return resolve_locator(session_id, "/", where, allow_other_agents=True)


def items_on_resume(path: str | Path) -> list[Record]:
    """Return the items that Codex would send if it resumed a rollout."""
    return [item.payload for item in items_for_model(read_thread_lines(str(path), lambda _: None))]


def lines_of_rollout(path: str) -> list[dict[str, Any]]:
    """Return the lines of a rollout."""
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


@every_rollout
def test_children_of_a_real_rollout_have_its_items(rollout: Path, where: Where) -> None:
    """A fork of a real rollout has the parent's items.

    A trimmed child is shorter, but its call ids and encrypted contents are unchanged.
    """
    folder = codex_home_of(where) / "sessions" / "2026" / "01" / "01"
    folder.mkdir(parents=True)
    for near in rollout.parent.glob("rollout-*.jsonl"):
        shutil.copyfile(near, folder / near.name)
    named = parse_rollout_name(str(rollout))
    assert named is not None
    parent = thread_file(where, named.thread_id)
    items = [
        item.payload
        for item in items_for_model(read_thread_lines(str(rollout), find_rollout_in_corpus))
    ]
    fork = write_child(plan_fork(parent, where), where)
    assert items_on_resume(fork.file) == items
    decided = plan_trim(parent, where, Options(keep_recent=1))
    if decided.is_child_unneeded:
        return
    trim = write_child(decided, where)
    after = items_on_resume(trim.file)
    assert [item.get("encrypted_content") for item in after] == [
        item.get("encrypted_content") for item in items
    ]
    assert [item.get("call_id") for item in after] == [item.get("call_id") for item in items]
    assert len(json.dumps(after)) < len(json.dumps(items))
    reading = scan_trimmed_session(thread_file(where, trim.session_id))
    assert (
        items_on_resume(write_child(plan_untrim(reading, where, strict=True), where).file) == items
    )


def test_every_form_of_output_and_input_is_trimmed(where: Where) -> None:
    """A trim replaces outputs (strings or lists with pictures) and inputs (plain text or JSON)."""
    patch = rollouts.item_line(
        "custom_tool_call",
        name="apply_patch",
        input=f"*** {LONG_OUTPUT}",
        call_id="c2",
        status="completed",
    )
    given = json.dumps({"path": "a", "text": LONG_OUTPUT})
    parts = [
        {"type": "input_text", "text": LONG_OUTPUT},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
    ]
    secret = {"type": "reasoning", "summary": [], "encrypted_content": "x" * 9_000}
    sized = rollouts.output_line("c1", LONG_OUTPUT) | {
        "ordinal": 3,
        "metadata": {OUTPUT_LIMIT_KEY: 12_000, "history_sequence": 7},
    }
    lines = [
        rollouts.meta_line(
            base_instructions={"text": "be good"}, session_id=THREAD_ID, history_mode="paginated"
        ),
        rollouts.message_line("user", "go"),
        rollouts.rollout_line("response_item", secret),
        rollouts.call_line("c1", "ls"),
        sized,
        patch,
        rollouts.output_line("c2", parts, kind="custom_tool_call_output"),
        rollouts.item_line("function_call", name="write", arguments=given, call_id="c3"),
        rollouts.output_line("c3", "ok"),
        rollouts.token_count_line(200_000),
        *rollouts.LATER_TURN_LINES,
    ]
    path = rollouts.write_rollout(codex_home_of(where), lines)
    before = path.read_bytes()
    trim = write_child(plan_trim(thread_file(where), where, Options()), where)
    assert path.read_bytes() == before
    sent = items_on_resume(trim.file)
    assert len(sent) == len(items_on_resume(path))
    assert LONG_OUTPUT not in json.dumps(sent)
    assert sent[1] == secret
    assert set(json.loads(sent[6]["arguments"])) == {"path", "text"}
    assert [part["type"] for part in sent[5]["output"]] == ["input_text", "input_text"]
    first, *rest = lines_of_rollout(trim.file)
    assert first["payload"]["forked_from_id"] == THREAD_ID
    assert first["payload"]["session_id"] == first["payload"]["id"] == trim.session_id
    assert first["payload"]["base_instructions"] == {"text": "be good"}
    assert "history_mode" not in first["payload"]
    assert first["trim_metadata"]["stats"]["tools_trimmed"] == 2
    assert not any("ordinal" in line for line in rest)
    assert [line["metadata"] for line in rest if "metadata" in line] == [{OUTPUT_LIMIT_KEY: 12_000}]
    assert not any(line["payload"].get("type") == "token_count" for line in rest)
    assert parse_rollout_name(trim.file) is not None
    assert Path(trim.file).stat().st_mode & 0o077 == 0


def test_a_new_child_is_not_open_and_mentions_no_plugin_agent(where: Where) -> None:
    """A new child is not treated as open until a line is added, and does not mention the plugin's agent."""
    lines = [
        rollouts.meta_line(),
        rollouts.message_line("user", "Fix the test", 1),
        rollouts.message_line("assistant", "Fixed", 2),
    ]
    rollouts.write_rollout(codex_home_of(where), lines)
    (agent,) = registry.list_other_agents(where)
    for made in (
        plan_fork(thread_file(where), where),
        agents.plan_fresh_child(thread_file(where), where, kind="handoff"),
    ):
        child = write_child(made, where)
        assert agent.describe_open_state(agent.open_session(child.file)) == ""
        assert "session-searcher" not in Path(child.file).read_text()
    later = time.time() + 10
    os.utime(child.file, (later, later))
    assert "seconds ago" in agent.describe_open_state(agent.open_session(child.file))


@pytest.mark.parametrize("status", ["paused", "complete"])
def test_a_digest_shortens_a_goal_and_a_fork_warns_about_it(status: str, where: Where) -> None:
    """A goal in a digest is shortened and contains no secret.

    A fork warns that Codex does not pursue the goal in the fork, unless the goal is complete.
    """
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    objective = f"use {secret} " + "and all of this " * 300
    lines = [
        rollouts.meta_line(),
        rollouts.message_line("user", "Fix it", 1),
        rollouts.message_line("assistant", "Fixed", 2),
    ]
    rollouts.write_rollout(
        codex_home_of(where), [*lines, rollouts.goal_event_line(objective, status, 3)]
    )
    parent = thread_file(where)
    (told,) = [
        row.text for row in build_digest(parent, where).section_entries("now") if "goal" in row.text
    ]
    assert told.startswith(f"the session's goal, {status}: \"use ")
    assert secret not in told
    assert len(told) <= MAX_SENTENCE_CHARACTERS
    assert (GOAL_WARNING in write_child(plan_fork(parent, where), where).warnings) == (
        status == "paused"
    )


def test_the_refusal_of_a_sub_agent_names_its_thread(where: Where) -> None:
    """The error for a sub-agent's session names the thread that started the sub-agent."""
    lines = [
        rollouts.meta_line(parent_thread_id=OTHER_THREAD_ID),
        rollouts.message_line("user", "look"),
        rollouts.message_line("assistant", "so"),
    ]
    rollouts.write_rollout(codex_home_of(where), lines)
    with pytest.raises(UsageError, match="sub-agent") as refused:
        plan_fork(thread_file(where), where)
    assert OTHER_THREAD_ID in refused.value.remedy


def test_a_cut_fork_ends_after_the_turn(where: Where) -> None:
    """A fork that was cut after a turn has no later items and no ``turn_context``. A whole fork has both."""
    talk = [
        rollouts.message_line(role, f"{role} {n}", n)
        for n in range(3)
        for role in ("user", "assistant")
    ]
    context = rollouts.rollout_line("turn_context", {"cwd": "/", "model": "gpt-5"})
    rollouts.write_rollout(
        codex_home_of(where), [rollouts.meta_line(), *talk[:2], context, *talk[2:]]
    )
    fork = write_child(plan_fork(thread_file(where), where, ForkSpec(CutAtTurn(2))), where)
    assert [item["content"][0]["text"] for item in items_on_resume(fork.file)][-1] == "assistant 1"
    assert len(items_on_resume(fork.file)) == 4
    assert not any(line["type"] == "turn_context" for line in lines_of_rollout(fork.file))
    whole = write_child(plan_fork(thread_file(where), where), where)
    assert [line["type"] for line in lines_of_rollout(whole.file)].count("turn_context") == 1


def test_a_fork_has_the_last_settings_of_its_thread(where: Where) -> None:
    """A fork has its parent's last settings event, in which the fork's own id is used."""
    older, newest = (
        rollouts.event_line(
            "thread_settings_applied", thread_id=THREAD_ID, thread_settings={"n": n}
        )
        for n in "12"
    )
    talk = [
        older,
        rollouts.message_line("user", "begin"),
        newest,
        rollouts.message_line("assistant", "done"),
    ]
    rollouts.write_rollout(codex_home_of(where), [rollouts.meta_line(), *talk])
    fork = write_child(plan_fork(thread_file(where), where), where)
    told = [
        line["payload"]
        for line in lines_of_rollout(fork.file)
        if "thread_settings" in line["payload"]
    ]
    assert [(each["thread_id"], each["thread_settings"]) for each in told] == [
        (fork.session_id, {"n": "2"})
    ]


def test_an_encrypted_summary_is_reported(where: Where) -> None:
    """In a child for Claude Code, an encrypted summary is replaced with a sentence."""
    left = [
        rollouts.message_line("user", "begin"),
        rollouts.item_line("compaction", encrypted_content="x" * 99),
    ]
    talk = [rollouts.message_line("user", "go on"), rollouts.message_line("assistant", "done")]
    rollouts.write_rollout(
        codex_home_of(where),
        [
            rollouts.meta_line(),
            rollouts.message_line("user", "begin"),
            rollouts.compaction_line(left),
            *talk,
        ],
    )
    fork = write_child(plan_fork(thread_file(where), where, ForkSpec(target_agent="claude")), where)
    text = Path(fork.file).read_text("utf-8")
    assert fork.tokens_after > fork.tokens_before, (
        "what every request begins with is in it, and what is told"
    )
    assert ENCRYPTED_SUMMARY_TEXT in text
    assert "session ran in Codex" in text
    assert "xxx" not in text


def test_unsupported_children_are_refused(where: Where) -> None:
    """Codex children that are not supported are refused with an error.

    Examples are a child of a sub-agent, a cut fork for another agent, a fork with another home, and
    an untrim of an item that is not trimmed.
    """
    talk = [rollouts.message_line("user", "go"), rollouts.message_line("assistant", "done")]
    rollouts.write_rollout(codex_home_of(where), [rollouts.meta_line(), *talk])
    other = THREAD_ID.replace("0001", "0002", 1)[:-1] + "2"
    rollouts.write_rollout(
        codex_home_of(where), [rollouts.meta_line(other, parent_thread_id=THREAD_ID), *talk], other
    )
    with pytest.raises(UsageError, match="sub-agent"):
        plan_fork(thread_file(where, other), where)
    with pytest.raises(UsageError, match="both a cut and another agent"):
        plan_fork(thread_file(where), where, ForkSpec(CutAtTurn(1), target_agent="claude"))
    with pytest.raises(UsageError, match="home"):
        plan_fork(thread_file(where), where, ForkSpec(home="/"))
    with pytest.raises(UsageError, match="has not been trimmed"):
        plan_untrim(scan_trimmed_session(thread_file(where)), where, (1,))


def test_untrim_can_restore_one_item(where: Where) -> None:
    """If one item is named by its line, an untrim restores only this item and keeps other placeholders.

    A later untrim restores the contents of these placeholders.
    """
    lines = [
        rollouts.meta_line(),
        rollouts.message_line("user", "go"),
        *rollouts.work_lines(3, LONG_OUTPUT),
        *rollouts.LATER_TURN_LINES,
    ]
    path = rollouts.write_rollout(codex_home_of(where), lines)
    trim = write_child(plan_trim(thread_file(where), where, Options()), where)
    reading = scan_trimmed_session(thread_file(where, trim.session_id))
    assert len(reading.trimmed_nodes) == 3
    one = write_child(plan_untrim(reading, where, (reading.trimmed_nodes[1].line_number,)), where)
    back = [
        item == was
        for item, was in zip(items_on_resume(one.file), items_on_resume(path), strict=True)
    ]
    assert [place for place, same in enumerate(back) if not same] == [2, 6]
    rest = write_child(
        plan_untrim(scan_trimmed_session(thread_file(where, one.session_id)), where), where
    )
    assert items_on_resume(rest.file) == items_on_resume(path)


@pytest.mark.part("smart_trim")
def test_a_smart_trim_drops_the_chosen_items(where: Where) -> None:
    """For a smart trim, the model gets the ends of each item and the talk between the items.

    Only the chosen items are replaced, and an untrim restores them.
    """
    from resume_hooks.parts.smart_trim import plan as smart
    from resume_hooks.parts.smart_trim.ask_model import build_call_prompts
    from resume_hooks.parts.smart_trim.offered_contents import (
        DEFAULT_RULE_NAMES,
        build_offer,
        build_smart_options,
    )

    path = rollouts.write_rollout(
        codex_home_of(where),
        [
            rollouts.meta_line(),
            *rollouts.work_lines(3, LONG_OUTPUT, has_prompts=True),
            *rollouts.LATER_TURN_LINES,
        ],
    )
    scanned = agents.read_trimmable_session(thread_file(where), where)
    offered = build_offer(scanned, build_smart_options(None, DEFAULT_RULE_NAMES), where)
    assert [(one.target, one.turn_number) for one in offered.candidates] == [
        (f"make {n}", n + 1) for n in range(3)
    ]
    (part,) = build_call_prompts(offered)
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
    sent = items_on_resume(receipt.file)
    assert [
        place
        for place, (one, was) in enumerate(zip(sent, items_on_resume(path), strict=True))
        if one != was
    ] == [6]
    assert '"a build"' in sent[6]["output"][0]["text"]
    assert b'"method":"smart"' in Path(receipt.file).read_bytes().splitlines()[0]
    back = write_child(
        plan_untrim(scan_trimmed_session(thread_file(where, receipt.session_id)), where), where
    )
    assert items_on_resume(back.file) == items_on_resume(path)


@pytest.mark.part("marks")
def test_a_rewind_continues_at_the_mark(where: Where) -> None:
    """A rewind contains the items up to the mark, followed by the report.

    If the mark is gone, the rewind contains only the report.
    """
    from resume_hooks.parts.marks import plan_back
    from resume_hooks.parts.marks import state as marks

    path = rollouts.write_rollout(
        codex_home_of(where), [rollouts.meta_line(), *rollouts.work_lines(1, "a", has_prompts=True)]
    )
    mark = marks.make_mark_at_end(thread_file(where), "try").mark
    kept = items_on_resume(path)
    with path.open("ab") as stream:
        for one in (
            rollouts.message_line("user", "the other way"),
            rollouts.call_line("c2", "rm"),
            rollouts.message_line("assistant", "no"),
        ):
            stream.write(json.dumps(one).encode() + b"\n")
    for at, stays in ((mark, kept), (mark._replace(uuid="gone"), [])):
        decided = plan_back.plan_back(thread_file(where), at, "it was slower", where)
        sent = items_on_resume(write_child(decided.child, where).file)
        assert sent[: len(stays)] == stays
        assert [one["role"] for one in sent[len(stays) :]] == ["user", "assistant"]
        assert "it was slower" in sent[-2]["content"][0]["text"]
        assert bool(decided.missing_mark_reason) is not bool(stays)


@pytest.mark.part("marks")
@pytest.mark.parametrize("fork_maker", ["us", "an old Codex", "Codex"])
def test_a_rewound_fork_continues_where_it_left_its_parent(where: Where, fork_maker: str) -> None:
    """A rewound fork contains the items that it shares with its parent, and a report on the fork's work."""
    from resume_hooks.parts.marks import fork_point, plan_back

    talk = [rollouts.message_line("user", "go"), rollouts.message_line("assistant", "gone", 1)]
    path = rollouts.write_rollout(codex_home_of(where), [rollouts.meta_line(), *talk])
    kept = items_on_resume(path)
    if fork_maker == "us":
        fork = Path(write_child(plan_fork(thread_file(where), where), where).file)
    else:
        base = {"thread_id": THREAD_ID, "end_byte_offset": path.stat().st_size}
        said = rollouts.meta_line(
            rollouts.OTHER_THREAD_ID,
            forked_from_id=THREAD_ID,
            **({"history_base": base} if fork_maker == "Codex" else {}),
        )
        copied = [] if fork_maker == "Codex" else [rollouts.meta_line(), *talk]
        fork = rollouts.write_rollout(
            codex_home_of(where), [said, *copied], rollouts.OTHER_THREAD_ID
        )
    own = [
        rollouts.message_line("user", "EXPLORE", 5),
        rollouts.call_line("c", "pytest -q", 6),
        rollouts.output_line("c", "3 passed", 7),
    ]
    with fork.open("ab") as stream:
        for one in (*own, rollouts.message_line("assistant", "We decided to use the lexer.", 8)):
            stream.write(
                json.dumps(one | {"timestamp": f"2999-{one['timestamp'][5:]}"}).encode() + b"\n"
            )
    name = parse_rollout_name(str(fork))
    assert name is not None
    session = thread_file(where, name.thread_id)
    mark = fork_point.find_fork_point(session, where)
    assert mark is not None
    assert mark.left_parent_id == THREAD_ID
    decided = plan_back.plan_back(session, mark, "", where)
    sent = items_on_resume(write_child(decided.child, where).file)
    assert (sent[: len(kept)], decided.missing_mark_reason) == (kept, "")
    told = sent[len(kept)]["content"][0]["text"]
    assert "- pytest -q (:" in told
    assert "ASSISTANT :6\n  We decided to use the lexer." in told
    assert decided.child.remarks == ()


def test_a_repeated_handoff_returns_the_existing_child(where: Where) -> None:
    """A second handoff with the same next step returns the existing child.

    If the child or its parent was continued, the existing child is not returned.
    """
    path = rollouts.write_rollout(
        codex_home_of(where), [rollouts.meta_line(), rollouts.message_line("user", "go")]
    )
    first = write_child(
        agents.plan_fresh_child(thread_file(where), where, kind="handoff", next_step="test it"),
        where,
    )
    again = find_existing_child(
        Session.from_file(thread_file(where), where), "handoff", where, "test it"
    )
    assert again is not None
    assert (again.session_id, again.file, again.agent) == (first.session_id, first.file, "codex")
    assert (again.parent_file, again.commands, again.written) == (str(path), first.commands, False)
    assert (
        find_existing_child(
            Session.from_file(thread_file(where), where), "handoff", where, "mend it"
        )
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
                Session.from_file(thread_file(where), where), "handoff", where, "test it"
            )
            is None
        )
        file.write_bytes(before)
    assert (
        find_existing_child(
            Session.from_file(thread_file(where), where), "handoff", where, "test it"
        )
        is not None
    )


@pytest.mark.parametrize(
    ("words", "tokens", "kind"), [("4k test it", 4_000, "handoff"), ("all", None, "fork")]
)
def test_a_trigger_accepts_a_size_before_the_next_step(
    where: Where, monkeypatch: pytest.MonkeyPatch, words: str, tokens: int | None, kind: str
) -> None:
    """``>handoff 4k`` makes a handoff of that size, and ``>handoff all`` makes a fork.

    A second ``>handoff 4k`` only says that the session was already handed off.
    """
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")
    path = rollouts.write_rollout(
        codex_home_of(where),
        [
            rollouts.meta_line(),
            rollouts.message_line("user", "go"),
            rollouts.message_line("assistant", "ok"),
        ],
    )
    event = {"session_id": THREAD_ID, "transcript_path": str(path), "prompt": f">handoff {words}"}
    trigger = recognise_trigger(event["prompt"])
    assert trigger is not None
    prompt.card_of_trigger(trigger, event)
    made = [file for file in (codex_home_of(where) / "sessions").rglob("*.jsonl") if file != path]
    (child,) = made
    head = lines_of_rollout(str(child))[0]["continue_metadata"]
    assert (head["continuation_type"], head.get("opening_tokens")) == (kind, tokens)
    if kind == "handoff":
        assert "already handed off" in prompt.card_of_trigger(trigger, event)


def test_a_crash_leaves_a_complete_child_or_none(where: Where) -> None:
    """After a crash at any step of a write, the child is complete or missing.

    The next write removes leftover files.
    """
    path = rollouts.write_rollout(
        codex_home_of(where),
        [rollouts.meta_line(), *rollouts.work_lines(12, LONG_OUTPUT, has_prompts=True)],
    )
    before, decided, born = path.read_bytes(), plan_trim(thread_file(where), where, Options()), []
    for _ in kill_before_each_change(lambda: lambda: write_child(decided, where)):
        child = Path(decided.draft.path)
        born.append(child.exists())
        assert not born[-1] or child.stat().st_size == sum(map(len, decided.body.lines()))
        child.unlink(missing_ok=True)
        write_child(plan_trim(thread_file(where), where, Options()), where)
        assert [
            one
            for one in codex_home_of(where).rglob("*")
            if one.is_file() and one.suffix != ".jsonl"
        ] == []
    assert path.read_bytes() == before
    assert born == sorted(born)
    assert (born[0], born[-1]) == (False, True)


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_rollout_gives_a_valid_child_or_a_clear_error(seed: int, where: Where) -> None:
    """If a rollout is damaged, either the child passes its checks or an error is raised.

    The rollout is unchanged.
    """
    chance = random.Random(seed)
    talk = rollouts.work_lines(8, LONG_OUTPUT, has_prompts=True)
    for _ in range(4):
        raw = [
            json.dumps(line).encode()
            for line in [*talk[:9], rollouts.compaction_line(talk[:4]), *talk[9:]]
        ]
        path = rollouts.write_rollout(
            codex_home_of(where), [rollouts.meta_line(), *rollouts.damage_lines(raw, chance)]
        )
        before = path.read_bytes()
        for plan in (plan_fork, lambda one, there: plan_trim(one, there, Options())):
            try:
                decided = plan(thread_file(where), where)
                receipt = None if decided.is_child_unneeded else write_child(decided, where)
            except ResumeHooksError:
                continue
            if receipt is not None:
                assert all(check.ok for check in receipt.checks)
                assert read_meta(receipt.file).thread_id == receipt.session_id
        assert path.read_bytes() == before
