"""Tests of the engine's plans for a compaction of the conversation in the client.

A plan either trims the conversation or leaves it unchanged and gives a reason.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from resume_hooks import settings
from resume_hooks.hooks import compaction, hook_state
from resume_hooks.hooks.client_module import (
    COMPACTION_PLAN_QUESTION,
    FULL_CONTEXT_QUESTION,
    answer_module_request,
)
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    boundary,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.hooks.test_trim import LARGE_OUTPUT, turns_with_large_files


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """Write a session that is worth trimming, with a rule in its first prompt, and return its path."""
    records = turns_with_large_files()
    records[0]["message"]["content"] = "Never use tabs in this project."
    return Path(write_session(config_home.project(), SESSION, records))


def module_messages(path: Path) -> list[dict[str, Any]]:
    """Return the messages of a session in the form in which the client's module sends them."""
    nodes = (node for node in scan_transcript(str(path)).chain if node.is_message)
    return [
        {
            "handle": n.uuid,
            "role": n.kind,
            "calls": [*n.call_ids],
            "results": [*n.answered_call_ids],
        }
        for n in nodes
    ]


def session_with_thinking() -> list[Record]:
    """Return a session that is worth trimming, with 20,000 tokens of thinking in its last turn."""
    thought = {"type": "thinking", "thinking": "hm " * 27_000, "signature": "S"}
    return [
        *turns_with_large_files(),
        user("go on", uuid="u9", parent="a5", ts=90),
        assistant([thought], uuid="t9", message_id="m9", parent="u9", ts=91, tokens=17_600),
        tool_use("x9", uuid="x9", message_id="m9", parent="t9", ts=92, tokens=17_600),
        tool_result("x9", "short", uuid="y9", parent="x9", ts=93),
        assistant("done", uuid="z9", parent="y9", ts=94, tokens=37_800),
    ]


def ask_for_trim_in_place(messages: object, **fields: object) -> dict[str, Any]:
    """Return the engine's plan for trimming these messages in place."""
    event = {
        "session_id": SESSION,
        "screen": True,
        "trigger": "manual",
        "options": "",
        "messages": messages,
    }
    reply = answer_module_request(COMPACTION_PLAN_QUESTION, {**event, **fields})
    return dict(json.loads(json.dumps(reply)))


def test_a_trim_in_place_rebuilds_answers_and_results(parent: Path) -> None:
    """A trim in place keeps the prompts and rebuilds the answers and the tool results.

    Tool results from before the last turns become placeholders, which name the original results.
    The hook stores a note for the session start that follows the compaction. The note can be read
    only once.
    """
    rows = module_messages(parent)
    plan = ask_for_trim_in_place(rows)
    assert plan["messages"] == [
        place if row["handle"][0] == "u" else [place] for place, row in enumerate(rows)
    ]
    assert set(plan["results"]) == {f"c{n}" for n in range(6)}
    assert [f"c{n}" for n in range(6) if LARGE_OUTPUT in plan["results"][f"c{n}"]] == ["c4", "c5"]
    assert plan["results"]["c0"].endswith(f"original: {SESSION[:8]}:2]")
    assert plan["gone"] == []
    assert plan["before"] > plan["after"] > 0
    assert hook_state.consume_fresh_note(hook_state.compaction_note_name(SESSION), 60)
    assert not hook_state.consume_fresh_note(hook_state.compaction_note_name(SESSION), 60)


def test_parallel_calls_become_one_message(
    config_home: ConfigHome,
) -> None:
    """The records of parallel tool calls become one message.

    Thinking and calls without results are left out. A picture becomes a placeholder, and a short
    result is kept.
    """
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "A" * 4_000},
    }
    path = write_session(config_home.project(), SESSION, [
        *turns_with_large_files(),
        user("look", uuid="u9", parent="a5", ts=90),
        assistant([{"type": "thinking", "thinking": "hm", "signature": "S"}], uuid="t9", parent="u9", ts=91),
        tool_use("x1", uuid="x1", message_id="m", parent="t9", ts=92, tool_input={"file_path": "/a"}),
        tool_use("x2", uuid="x2", message_id="m", parent="x1", ts=93, tool_input={"file_path": "/b"}),
        tool_use("x3", uuid="x3", message_id="m", parent="x2", ts=94, tool_input={"file_path": "/c"}),
        tool_result("x1", [{"type": "text", "text": "seen"}, picture], uuid="y1", parent="x1", ts=95),
        tool_result("x2", "short", uuid="y2", parent="x2", ts=96),
        assistant("done", uuid="z9", parent="y2", ts=97, tokens=30_000),
    ])  # fmt: skip
    rows = module_messages(Path(path))
    plan = ask_for_trim_in_place(rows)
    handles = [row["handle"] for row in rows]
    built = [
        [handles[at] for at in each] if isinstance(each, list) else handles[each]
        for each in plan["messages"]
    ]
    assert built[-4:] == ["u9", ["x1", "x2", "x3"], ["y1", "y2"], ["z9"]]
    assert plan["gone"] == ["x3"]
    assert plan["results"]["x1"].startswith("seen\n[Image or document suppressed")
    assert plan["results"]["x2"] == "short"


@pytest.mark.parametrize(
    ("messages", "fields", "reason"),
    [
        ("gone", {}, "differs from the session's file"),
        ("other calls", {}, "differs from the session's file"),
        ("all", {"options": "--nonsense"}, "is not an option"),
        ("all", {"options": "--tools Nothing"}, "too few"),
        ("all", {"session_id": "x"}, "no transcript"),
        ([], {}, "no messages"),
        ([5, {"handle": 5, "calls": [5], "results": 5}], {}, "differs from the session's file"),
        (None, {}, "no messages"),
    ],
)
def test_an_impossible_compaction_is_reported(
    parent: Path, messages: object, fields: dict[str, object], reason: str
) -> None:
    """If the user requests a compaction that is impossible, it is skipped with a one-line reason.

    The hook stores no note for the session start that would follow the compaction.
    """
    if isinstance(messages, str):
        rows = module_messages(parent)
        changes: dict[str, dict[str, Any]] = {
            "gone": {"handle": "nobody"},
            "other calls": {"results": ["c7"]},
        }
        rows[2] |= changes.get(messages, {})
        messages = rows
    reply = ask_for_trim_in_place(messages, **fields)
    assert set(reply) == {"skip"}
    assert reason in reply["skip"]
    assert "\n" not in reply["skip"]
    assert not hook_state.consume_fresh_note(hook_state.compaction_note_name(SESSION), 60)


def test_trim_here_runs_the_clients_compaction(parent: Path) -> None:
    """``trim here`` starts the client's compaction with the options that the user typed.

    If an option is invalid, the reply refuses it and no compaction starts.
    """
    reply = answer_module_request(
        "trim", {"session_id": SESSION, "screen": True, "args": "here --tools Read"}
    )
    assert reply["options"] == "--tools Read"
    assert "trimmed in place" in reply["compact"]
    choices = answer_module_request(
        "trim", {"session_id": SESSION, "screen": True, "args": "--keep-recent 1"}
    )["choices"]
    assert choices[1][1] == "here --keep-recent 1"
    refused = answer_module_request(
        "trim", {"session_id": SESSION, "screen": True, "args": "here --nonsense"}
    )
    assert "is not an option" in refused["text"]


@pytest.mark.usefixtures("parent")
def test_a_trim_with_a_small_saving_asks_no_question() -> None:
    """If the saving is too small, ``trim`` replies with a card and asks no question."""
    saying = answer_module_request(
        "trim", {"session_id": SESSION, "screen": True, "args": "--min-savings 900000"}
    )
    assert saying.keys() == {"text"}
    assert saying["text"].startswith("trim · not worth a new session")


def compact_automatically(
    rows: list[dict[str, Any]], compaction_setting: str, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Return the plan for an automatic compaction while the setting ``compaction`` is ``compaction_setting``."""
    monkeypatch.setenv("RESUME_HOOKS_COMPACTION", compaction_setting)
    return ask_for_trim_in_place(rows, trigger="auto", options=None)


def test_a_full_session_is_compacted_as_the_user_chose(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An automatic compaction follows the setting ``compaction``: ``client``, ``trim`` or ``handoff``.

    The new conversation begins with restored facts and ends with the new prompt. By default, or if
    the chosen kind of compaction is impossible, the client compacts the conversation itself.
    """
    rows = [*module_messages(parent), {"handle": "new", "role": "user", "calls": [], "results": []}]
    assert compact_automatically(rows, "client", monkeypatch) == {}
    assert compact_automatically([*rows, *rows[:1], {"handle": "x"}], "trim", monkeypatch) == {}
    assert compact_automatically([], "trim", monkeypatch) == {}
    trimmed = compact_automatically(rows, "trim", monkeypatch)
    (facts,) = trimmed["opening"]
    assert facts.startswith("Facts about this session")
    assert trimmed["messages"][-1] == len(rows) - 1
    assert trimmed["messages"][0] == 0
    assert trimmed["after"] < trimmed["before"] * 0.8
    handed = compact_automatically(rows, "handoff", monkeypatch)
    assert len(handed["opening"][0]) >= len(facts)
    assert handed["messages"][0] in {16, 20}
    assert handed["messages"][-1] == len(rows) - 1


def compact_at_threshold(
    rows: list[dict[str, Any]], compaction_setting: str, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Return the plan for a compaction at the token limit.

    ``compaction_setting``, such as ``trim@60k``, contains the limit.
    """
    monkeypatch.setenv("RESUME_HOOKS_COMPACTION", compaction_setting)
    return ask_for_trim_in_place(rows, trigger=compaction.THRESHOLD_TRIGGER, options=None)


def test_at_the_threshold_the_last_answers_are_rebuilt_too(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction at the token limit also rebuilds the last answers, because no turn is running then.

    After a handoff, the conversation contains a digest and the last turns. For a trim, the remark
    states the sizes before and after.
    """
    rows = module_messages(parent)
    trimmed = compact_at_threshold(rows, "trim@60k", monkeypatch)
    assert trimmed["messages"][-1] == [len(rows) - 1]
    assert trimmed["messages"][0] == 0
    assert re.fullmatch(r"trim@60k: \d+k tokens, now about \d+k; back: /untrim", trimmed["remark"])
    assert trimmed["after"] < trimmed["before"] * 0.8
    handed = compact_at_threshold(rows, "12k@60k", monkeypatch)
    assert handed["messages"][0] in {16, 20}
    assert handed["messages"][-1] == [len(rows) - 1]


@pytest.mark.parametrize(
    ("compaction_setting", "reason"),
    [("client", "is client"), ("trim", "is trim"), ("trim@60k", "a fifth")],
)
def test_a_failed_compaction_at_the_threshold_is_reported(
    parent: Path, monkeypatch: pytest.MonkeyPatch, compaction_setting: str, reason: str
) -> None:
    """If a compaction at the token limit is impossible, it is skipped and the reply gives the reason.

    The client does not write a summary instead, because the user did not ask for one.
    """
    reply = compact_at_threshold(module_messages(parent)[:4], compaction_setting, monkeypatch)
    assert set(reply) == {"skip"}
    assert reason in reply["skip"]


@pytest.mark.parametrize(("typed_turn_count", "is_too_early"), [(4, True), (5, False)])
def test_compactions_at_the_threshold_are_five_turns_apart(
    config_home: ConfigHome,
    monkeypatch: pytest.MonkeyPatch,
    typed_turn_count: int,
    is_too_early: bool,
) -> None:
    """At the token limit, no compaction happens if the last one was fewer than five turns ago.

    The turns are counted in the session's file, so a restart of the client makes no difference. The
    opening that the compaction wrote is not counted as a turn.
    """
    start = boundary(uuid="b", ts=0)
    records = turns_with_large_files(1 + typed_turn_count)
    records[0]["parentUuid"] = "b"
    path = write_session(config_home.project(), SESSION, [start, *records])
    reply = compact_at_threshold(module_messages(Path(path)), "trim@60k", monkeypatch)
    assert (
        "fewer than 5 turns ago; a later turn tries again" in reply.get("skip", "")
    ) == is_too_early
    assert reply.get("rests", False) == is_too_early


@pytest.mark.parametrize(
    ("compaction_setting", "tokens"), [("24k@150k", 150_000), ("trim@1000k", 1_000_000)]
)
def test_the_band_reply_has_the_token_limit_for_compaction(
    parent: Path, monkeypatch: pytest.MonkeyPatch, compaction_setting: str, tokens: int
) -> None:
    """The reply to ``band`` contains the token limit from the setting ``compaction``.

    The limit is in the reply even if notices are off. If the setting has no limit, neither does the
    reply.
    """
    del parent
    event = {"session_id": SESSION, "screen": True, "tokens": 60_000, "window": 200_000}
    assert "line" not in answer_module_request("band", event)
    monkeypatch.setenv("RESUME_HOOKS_NOTICE_PERCENT", "0")
    monkeypatch.setenv("RESUME_HOOKS_COMPACTION", compaction_setting)
    line = answer_module_request("band", event)["line"]
    assert (line["from"], line["trigger"]) == (tokens, compaction.THRESHOLD_TRIGGER)
    assert compaction_setting in line["compact"]


def test_a_compaction_within_a_turn_keeps_its_messages(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction during a turn keeps the tool results and the answers of that turn unchanged."""
    turn = [
        {"handle": "new", "role": "user", "calls": [], "results": []},
        {"handle": "n1", "role": "assistant", "calls": ["k"], "results": []},
        {"handle": "n2", "role": "user", "calls": [], "results": ["k"]},
    ]
    rows = module_messages(parent)
    plan = compact_automatically([*rows, *turn], "trim", monkeypatch)
    assert plan["messages"][-3:] == [len(rows), len(rows) + 1, [len(rows) + 2]]
    assert "k" not in plan["results"]


def test_the_client_compacts_a_session_with_one_long_turn(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a session has only one long turn, the engine leaves its compaction to the client.

    Little of this session could be trimmed.
    """
    rows = module_messages(parent)
    left = compact_automatically(rows[:4], "trim", monkeypatch)
    assert left == {"remark": compaction.TOO_LITTLE_FREED_REMARK.format(chosen="trim")}


def test_the_alternatives_are_shown_once(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the context is fuller than ``notice_percent``, the module shows the alternatives once.

    The alternatives are those to the client's compaction. They are not shown if the setting
    ``compaction`` is set. Showing them does not change the setting.
    """
    del parent

    def ask_about_full_context(args: str, **fields: object) -> dict[str, Any]:
        return dict(
            answer_module_request(
                FULL_CONTEXT_QUESTION,
                {"session_id": SESSION, "screen": True, "args": args, **fields},
            )
        )

    def ask_for_band() -> dict[str, Any]:
        return dict(
            answer_module_request(
                "band", {"session_id": SESSION, "screen": True, "tokens": 60_000, "window": 200_000}
            )
        )

    assert ask_about_full_context("90", screen=False) == {}
    assert (
        ask_about_full_context("12")
        == ask_about_full_context("trim")
        == ask_about_full_context("")
        == {}
    )
    assert ask_for_band()["tells"] == 80
    monkeypatch.setenv("RESUME_HOOKS_COMPACTION", "client")
    assert ask_about_full_context("81") == {}
    assert "tells" not in ask_for_band()
    monkeypatch.delenv("RESUME_HOOKS_COMPACTION")
    told = ask_about_full_context("81")
    assert told.keys() == {"text"}
    assert "81 %" in told["text"]
    assert "config compaction trim (" in told["text"]
    assert ask_about_full_context("95") == {}
    assert "tells" not in ask_for_band()
    assert settings.load_settings()["compaction"].source == "default"
