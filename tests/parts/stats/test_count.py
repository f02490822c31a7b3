"""Tests of the counts of one transcript: turns, tokens, children and hook times."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, settings

from resume_hooks.parts.stats.count import (
    CALL_COUNT_WITHOUT_EDIT,
    DayCounts,
    TranscriptTotals,
    count_transcript,
    parse_totals,
    round_duration,
    serialise_totals,
)
from tests.builders import (
    SESSION,
    assistant,
    call,
    conversation,
    session_id,
    system,
    user,
    write_session,
)
from tests.derive.test_orders import SimulatedClient, given_session_and_steps

TESTED_DATE = "2026-01-31"
NOTICE_COMMAND = "trap 'exit 0' EXIT; . \"$CLAUDE_PLUGIN_ROOT/hooks/notice\" 2>/dev/null"


def count_records(folder: Path, *records: Any) -> TranscriptTotals:
    """Write a session with these records and return its counts."""
    return count_transcript(write_session(folder, SESSION, records))


def stop_hooks_record(*hooks: dict[str, object], ts: float = 5) -> dict[str, Any]:
    """Return the client's record of the hooks at a turn's end."""
    return system(
        "stop_hook_summary", uuid=f"s{ts}", ts=ts, hookCount=len(hooks), hookInfos=list(hooks)
    )


def hook_output_record(event: str, duration: object, **more: object) -> dict[str, Any]:
    """Return the client's record of a hook with output."""
    body = {
        "type": "hook_success",
        "hookEvent": event,
        "hookName": event,
        "command": "x",
        "durationMs": duration,
    }
    return {
        "type": "attachment",
        "uuid": "h",
        "parentUuid": None,
        "timestamp": f"{TESTED_DATE}T10:00:00.000Z",
    } | {"attachment": body | more}


def test_turns_and_tokens_are_counted_by_day(tmp_path: Path) -> None:
    """Turns, requests and tokens are counted by day."""
    found = count_records(tmp_path, *conversation(2))
    assert found.days == {
        TESTED_DATE: DayCounts(
            turn_count=2,
            request_count=2,
            sent_tokens=1_090 + 1_290,
            cached_tokens=1_085 + 1_285,
            answer_tokens=20,
        )
    }
    assert found.folders == ("/home/user/proj",)
    assert found.child is None


def test_an_answer_in_several_records_counts_once(tmp_path: Path) -> None:
    """An answer in several records is counted once, with the counts of its last record."""
    first = {"input_tokens": 100, "output_tokens": 1}
    whole = {"input_tokens": 100, "output_tokens": 50}
    records = [
        user("go", uuid="u"),
        assistant("a", uuid="a1", parent="u", ts=1, message_id="m", tokens=first),
        assistant("b", uuid="a2", parent="a1", ts=2, message_id="m", tokens=whole),
        assistant("b", uuid="a3", parent="a2", ts=3, message_id="m", tokens=whole),
    ]
    assert count_records(tmp_path, *records).days[TESTED_DATE] == DayCounts(1, 1, 100, 0, 50)


def test_copied_records_do_not_count(tmp_path: Path) -> None:
    """Records that a fork or another child copied are not counted."""
    copied = [
        {**record, "forkedFrom": {"sessionId": session_id(2), "messageUuid": "x"}}
        for record in conversation(2)
    ]
    own = [
        user("new", uuid="n1", parent="r3", ts=9),
        assistant("yes", uuid="n2", parent="n1", ts=10, tokens=500),
    ]
    assert count_records(tmp_path, *copied, *own).days[TESTED_DATE] == DayCounts(1, 1, 490, 485, 10)
    line = {"continue_metadata": {"parent_session_id": session_id(2), "continuation_type": "trim"}}
    line["continue_metadata"]["continued_at"] = "2026-01-31T09:30:05.000Z"
    line["trim_metadata"] = {"stats": {"original_tokens": 9_000, "trimmed_tokens": 800}}  # type: ignore[dict-item]
    found = count_records(tmp_path, line, *conversation(2), *own)
    assert found.days[TESTED_DATE] == DayCounts(1, 1, 490, 485, 10)
    assert found.child is not None
    assert (found.child.kind, found.child.parent_tokens, found.child.first_request_tokens) == (
        "trim",
        9_000,
        490,
    )


def test_a_subagent_has_no_turns(tmp_path: Path) -> None:
    """The tokens of a sub-agent are counted, but its prompts are not counted as turns."""
    path = write_session(tmp_path, SESSION, conversation(2))
    assert count_transcript(path, is_subagent=True).days[TESTED_DATE] == DayCounts(
        0, 2, 2_380, 2_370, 20
    )


def test_calls_before_the_first_edit_are_counted(tmp_path: Path) -> None:
    """The calls between a start or a compaction and the first edit after it are counted.

    If no edit follows, ``CALL_COUNT_WITHOUT_EDIT`` is counted instead. For a sub-agent, these calls are not
    counted.
    """

    def calls_of_tools(*names: str, first_second: int) -> list[dict[str, Any]]:
        return [
            assistant([call(f"t{ts}", name)], uuid=f"a{ts}", ts=ts, tokens=100)
            for ts, name in enumerate(names, first_second)
        ]

    def compaction_record(second: int) -> dict[str, Any]:
        return system(
            "compact_boundary", uuid=f"c{second}", ts=second, compactMetadata={"trigger": "auto"}
        )

    after = [
        compaction_record(10),
        *calls_of_tools("Read", "Bash", first_second=11),
        compaction_record(20),
        compaction_record(30),
        *calls_of_tools("Write", first_second=31),
    ]
    rows = [
        user("go", uuid="u"),
        *calls_of_tools("Read", "Grep", "Edit", "Read", "Edit", first_second=1),
        *after,
    ]
    assert count_records(tmp_path, *rows).stretches == {
        "start": {TESTED_DATE: {2: 1}},
        "compaction": {TESTED_DATE: {CALL_COUNT_WITHOUT_EDIT: 1, 0: 1}},
    }
    path = write_session(tmp_path, SESSION, rows)
    assert count_transcript(path, is_subagent=True).stretches == {}


def test_our_hook_times_are_separate_from_those_of_other_hooks(tmp_path: Path) -> None:
    """The times of this plugin's hooks are separate from those of other hooks.

    A hook of this plugin is recognized by its command.
    """
    found = count_records(
        tmp_path,
        stop_hooks_record(
            {"command": NOTICE_COMMAND, "durationMs": 12},
            {"command": "lint", "durationMs": 1_234},
            {"command": "silent"},
        ),
        stop_hooks_record({"command": NOTICE_COMMAND, "durationMs": 12}, ts=6),
        hook_output_record("SessionStart", 47.6),
    )
    assert found.hooks == {
        "Stop|ours": {TESTED_DATE: {12: 2}},
        "Stop|others": {TESTED_DATE: {1_200: 1}},
        "SessionStart|others": {TESTED_DATE: {48: 1}},
    }


@pytest.mark.parametrize(
    ("event", "duration"),
    [
        ("Stop", -1), ("Stop", True), ("Stop", "12"), ("Stop", None), ("Stop", 1e18), ("Stop", []), ("Stop", {"a": 1}),
        ("", 5), ("a b", 5), ("x" * 41, 5), ("\x1b[31mStop", 5), ("S|op", 5),
    ],
)  # fmt: skip
def test_an_invalid_hook_duration_is_ignored(tmp_path: Path, event: str, duration: object) -> None:
    """A hook's duration is ignored if it is not a number of milliseconds within a day.

    The duration is also ignored if the name of the hook's event is not a plain word.
    """
    rows = [stop_hooks_record({"command": "x", "durationMs": duration})] if event == "Stop" else []
    assert count_records(tmp_path, hook_output_record(event, duration), *rows).hooks == {}


def test_malformed_values_are_skipped(tmp_path: Path) -> None:
    """Malformed times, numbers and records are skipped."""
    odd = [
        b"not json",
        user("x", uuid="h", ts="2026-\x1b[31mT10:00:00.000Z"),
        b"[1]",
        {"type": "user", "message": 5, "timestamp": 7},
        {"type": "assistant", "timestamp": "2026", "message": {"usage": {"input_tokens": 5}}},
        {
            "type": "assistant",
            "timestamp": f"{TESTED_DATE}T10:00:00Z",
            "message": {"usage": {"input_tokens": "5"}},
        },
        b'{"type":"assistant","timestamp":"2026-01-31T10:00:00Z","message":{"usage":{"output_tokens":1%s}}}'
        % (b"0" * 30),
    ]
    found = count_records(tmp_path, *odd)
    assert set(found.days) <= {TESTED_DATE}
    assert all(number <= 10**8 for day in found.days.values() for number in day)


def test_counts_survive_serialization(tmp_path: Path) -> None:
    """Counts that are stored and read again do not change."""
    found = count_records(
        tmp_path, *conversation(1), stop_hooks_record({"command": NOTICE_COMMAND, "durationMs": 12})
    )
    assert parse_totals(serialise_totals(found)) == found


@pytest.mark.parametrize(
    ("duration", "rounded_duration"), [(0.4, 0), (99.4, 99), (104, 100), (149, 150), (4_267, 4_300)]
)
def test_durations_are_rounded_to_two_significant_digits(
    duration: float, rounded_duration: int
) -> None:
    """A duration below 100 ms stays exact. A longer one is rounded to two significant digits."""
    assert round_duration(duration) == rounded_duration


def count_turns(path: str) -> int:
    """Return the number of turns in the counts of a transcript."""
    return sum(day.turn_count for day in count_transcript(path).days.values())


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@example(None, ["trim here", "prompt", "trim"])
@given_session_and_steps
def test_each_turn_counts_once_over_all_children(
    first_session: Path | None, steps: list[str]
) -> None:
    """Each turn of a session is counted once, although its children copy it."""
    with tempfile.TemporaryDirectory() as home:
        client = SimulatedClient(home, first_session)
        said = count_turns(str(client.path))
        client.append_steps(steps)
        assert sum(count_turns(path) for path in client.list_session_files()) == said + len(
            client.typed
        )
