"""Tests of the Stop hook, run as the client runs it.

The hook prints one line for each session when the context becomes nearly full.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.cli.info import collect_session_facts
from resume_hooks.hooks import context_notice
from resume_hooks.hooks.client_module import answer_module_request
from resume_hooks.paths import Where
from resume_hooks.search.listing import SessionLister
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import session_file
from resume_hooks.transcripts.transcript import scan_transcript
from resume_hooks.transcripts.trimmable_pieces import PieceCollector
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    boundary,
    conversation,
    session_id,
    summary,
    write_session,
)
from tests.hooks.conftest import RunHook
from tests.hooks.test_compaction import session_with_thinking
from tests.hooks.test_trim import turns_with_large_files


def full_conversation(token_count: int, turn_count: int = 2) -> list[Record]:
    """Return a conversation whose last answer reports ``token_count`` input tokens."""
    records = conversation(turn_count)
    records[-1]["message"] |= {"usage": {"input_tokens": token_count}, "model": "claude-opus-4-6"}
    return records


@pytest.fixture
def end_turn(config_home: ConfigHome, run_hook: RunHook) -> Any:
    """Return a function that ends a turn and returns the line that the Stop hook shows.

    The function first writes the given records to the session's file. It returns ``""`` if the hook
    shows no line.
    """

    def end_turn_with_records(records: list[Record], event: object = None, **environ: str) -> str:
        path = write_session(config_home.project(), SESSION, records)
        given = event or {"session_id": SESSION, "transcript_path": path, "hook_event_name": "Stop"}
        done = run_hook("notice", given, environ=environ)
        assert (done.returncode, done.stderr) == (0, b"")
        if not done.stdout:
            return ""
        document = json.loads(done.stdout)
        assert set(document) == {"systemMessage"}
        assert "\n" not in document["systemMessage"]
        return str(document["systemMessage"])

    return end_turn_with_records


def read_note(home: ConfigHome) -> dict[str, Any]:
    """Return the content of the session's note file."""
    found: dict[str, Any] = json.loads(
        (home.config / "resume-hooks" / "pending" / f"notice-{SESSION}.json").read_bytes()
    )
    return found


def test_a_full_context_is_reported_once(config_home: ConfigHome, end_turn: Any) -> None:
    """The hook prints its line when 80 percent of the context is used.

    The line appears only once for each size of the context window.
    """
    assert end_turn(full_conversation(143_999)) == ""
    assert read_note(config_home) == {"version": 1, "look": 144_000, "told": 0}
    assert end_turn(full_conversation(144_000)) == (
        "resume-hooks: 80 % of the context is used; a handoff fits best: /resume-hooks:handoff"
    )
    assert read_note(config_home) == {"version": 1, "look": 784_000, "told": 200_000}
    compacted = [
        *full_conversation(190_000),
        boundary(uuid="b", ts=9),
        summary("s", uuid="s", parent="b", ts=9),
    ]
    for records in (
        full_conversation(160_000),
        full_conversation(199_999, 5),
        compacted,
        full_conversation(10),
        full_conversation(170_000),
    ):
        assert end_turn(records) == ""
    assert read_note(config_home)["told"] == 200_000


def test_a_full_context_is_reported_again_for_a_larger_window(
    config_home: ConfigHome, end_turn: Any
) -> None:
    """The hook prints its line again if the context window turns out to be a million tokens.

    A context of more than 200,000 tokens proves that the window is larger than usual.
    """
    assert "91 %" in end_turn(full_conversation(163_000))
    assert end_turn(full_conversation(300_000)) == ""
    assert "83 %" in end_turn(full_conversation(810_000))
    assert end_turn(full_conversation(990_000)) == ""
    assert read_note(config_home) == {"version": 1, "look": 10**9, "told": 1_000_000}


def test_settings_change_the_notice(config_home: ConfigHome, end_turn: Any) -> None:
    """The settings for the percentage and for the window decide when the hook prints its line.

    If the percentage is 0, the hook never prints the line.
    """
    assert end_turn(full_conversation(190_000), RESUME_HOOKS_NOTICE_PERCENT="0") == ""
    assert end_turn(full_conversation(150_000), RESUME_HOOKS_CONTEXT_WINDOW="1000000") == ""
    assert read_note(config_home)["look"] == 784_000
    assert "resume-hooks: 56 %" in end_turn(
        full_conversation(100_000), RESUME_HOOKS_NOTICE_PERCENT="50"
    )
    set_window = end_turn(
        full_conversation(600_000),
        RESUME_HOOKS_NOTICE_PERCENT="60",
        RESUME_HOOKS_CONTEXT_WINDOW="1000000",
    )
    assert "61 %" in set_window
    assert read_note(config_home)["look"] == 10**9


def test_an_estimated_context_is_not_reported(end_turn: Any) -> None:
    """The hook prints no line right after a compaction, when the number of tokens is only an estimate."""
    records = [
        *full_conversation(190_000),
        boundary(uuid="b", ts=9),
        summary("s" * 2_000_000, uuid="s", parent="b", ts=9),
    ]
    assert end_turn(records) == ""


@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"[]",
        b'{"session_id"',
        {"hook_event_name": "Stop"},
        {"session_id": "../../etc/passwd"},
        {"session_id": session_id(7)},
        {"session_id": 7, "transcript_path": ["x"]},
    ],
    ids=range(7),
)
def test_a_malformed_event_is_ignored(
    config_home: ConfigHome, run_hook: RunHook, event: object
) -> None:
    """If an event is malformed, the hook prints no line and writes no file."""
    done = run_hook("notice", event)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (config_home.config / "resume-hooks").exists()


@pytest.mark.parametrize(
    "note_content",
    [b"", b"null", b"[1]", b'{"version": 1, "told": "x"}', b'{"version": 9, "told": 200000}'],
)
def test_a_damaged_note_is_replaced(
    config_home: ConfigHome, end_turn: Any, note_content: bytes
) -> None:
    """The hook replaces a damaged note file and prints its line again."""
    folder = config_home.config / "resume-hooks" / "pending"
    folder.mkdir(parents=True)
    (folder / f"notice-{SESSION}.json").write_bytes(note_content)
    assert "94 %" in end_turn(full_conversation(170_000))
    assert read_note(config_home)["told"] == 200_000


def test_without_a_writable_note_nothing_is_reported(
    config_home: ConfigHome, end_turn: Any
) -> None:
    """If the hook cannot write a note file, it prints no line.

    Without the note, the hook would print the line again after each turn.
    """
    (config_home.root / "file").touch()
    assert (
        end_turn(full_conversation(190_000), RESUME_HOOKS_HOME=str(config_home.root / "file" / "x"))
        == ""
    )


def test_notes_are_private_and_expire(config_home: ConfigHome, end_turn: Any) -> None:
    """A note file has mode 0600 and contains its version and two token counts.

    Note files of old sessions are deleted.
    """
    folder = config_home.config / "resume-hooks" / "pending"
    folder.mkdir(parents=True, mode=0o700)
    ages = {"notice-old.json": 101, "notice-young.json": 99, "trim-old.json": 101}
    for name, days in ages.items():
        (folder / name).touch()
        os.utime(folder / name, (0, time.time() - days * 86_400))
    end_turn(full_conversation(170_000))
    assert {path.name for path in folder.iterdir()} == {
        "notice-young.json",
        "trim-old.json",
        f"notice-{SESSION}.json",
    }
    assert set(read_note(config_home)) == {"version", "look", "told"}
    assert stat.S_IMODE(Path(folder / f"notice-{SESSION}.json").stat().st_mode) == 0o600


def test_with_a_band_the_line_is_not_shown(
    config_home: ConfigHome, end_turn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the client's module shows the band, the Stop hook prints no line.

    The reply to the module contains the number of tokens at which the band appears. It is computed
    from the client's window.
    """
    path = write_session(config_home.project(), SESSION, full_conversation(190_000))
    event = {"screen": True, "session_id": SESSION, "transcript_path": path, "window": 200_000}
    assert answer_module_request("band", {**event, "tokens": 90_000}) == {
        "look": 144_000,
        "tells": 80,
    }
    shown = answer_module_request("band", {**event, "tokens": 160_000})
    assert (shown["from"], shown["window"]) == (144_000, 180_000)
    assert shown["band"] == "{percent} % of 180,000 · /handoff"
    assert end_turn(full_conversation(190_000)) == ""
    monkeypatch.setenv("RESUME_HOOKS_NOTICE_PERCENT", "0")
    assert "band" not in answer_module_request("band", {**event, "tokens": 199_000})
    assert answer_module_request("band", {**event, "tokens": "x"}) == {}


def test_all_outputs_use_the_clients_last_window(config_home: ConfigHome, end_turn: Any) -> None:
    """All outputs use the context window that the client reported last.

    The outputs are the resume card, the Stop hook's line, ``info`` and lists of sessions. None of
    them uses an earlier window or the model's usual window.
    """

    def shown_percentages(context_tokens: int, window_tokens: int) -> list[object]:
        write_session(config_home.project(), SESSION, full_conversation(context_tokens))
        card = " ".join(
            answer_module_request("full", {**event, "window": window_tokens})["card"]["lines"]
        )
        line = end_turn(full_conversation(context_tokens))
        (row,) = SessionLister("/", Where()).rows_of_files([session_file(path)], None)
        session = Session.from_file(session_file(path), Where())
        pieces = PieceCollector()
        transcript = scan_transcript(path, observers=[pieces])
        info = collect_session_facts(session, transcript, pieces)["context"]
        found = [re.findall(r"(\d+) %", text)[:1] for text in (card, line)]
        return [*found, row.context_percent, info.percent, info.window]

    path = write_session(config_home.project(), SESSION, full_conversation(300_000))
    event = {"screen": True, "session_id": SESSION, "transcript_path": path}
    assert shown_percentages(300_000, 200_000) == [["167"], ["167"], 167, 167, 200_000]
    assert end_turn(full_conversation(310_000)) == ""
    assert shown_percentages(900_000, 1_000_000) == [["92"], ["92"], 92, 92, 1_000_000]
    (row,) = SessionLister(
        "/", Where({**os.environ, "RESUME_HOOKS_CONTEXT_WINDOW": "520000"})
    ).rows_of_files([session_file(path)], None)
    assert row.context_percent == 180
    answer_module_request("lineage", {**event, "session_id": session_id(9), "window": 200_000})
    answer_module_request("lineage", {**event, "window": -1})
    assert read_note(config_home)["window"] == 1_000_000


def test_without_a_band_the_stop_hook_prints_the_notice(
    config_home: ConfigHome, end_turn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the engine could not send a band to the module, the Stop hook prints its line."""
    path = write_session(config_home.project(), SESSION, full_conversation(190_000))
    event = {
        "screen": True,
        "session_id": SESSION,
        "transcript_path": path,
        "window": 200_000,
        "tokens": 190_000,
    }
    with monkeypatch.context() as patch:
        patch.setattr(context_notice, "_describe_savings", lambda *_: 1 // 0)
        assert "band" not in answer_module_request("band", event)
    assert "of the context is used" in end_turn(full_conversation(190_000))


def test_the_band_shows_the_savings_of_a_trim(config_home: ConfigHome) -> None:
    """The band shows how many tokens a trim would free."""
    path = write_session(config_home.project(), SESSION, turns_with_large_files())
    event = {
        "screen": True,
        "session_id": SESSION,
        "transcript_path": path,
        "window": 200_000,
        "tokens": 190_000,
    }
    assert re.fullmatch(
        r"\{percent\} % of 180,000 · /trim frees about [\d,]+ · /handoff",
        answer_module_request("band", event)["band"],
    )


def test_the_band_shows_the_savings_of_a_trim_in_place(config_home: ConfigHome) -> None:
    """If a trim in place would free more tokens than a trimmed copy, the band shows both numbers.

    A trim in place also removes the thinking of the last turns.
    """
    path = write_session(config_home.project(), SESSION, session_with_thinking())
    event = {
        "screen": True,
        "session_id": SESSION,
        "transcript_path": path,
        "window": 200_000,
        "tokens": 190_000,
    }
    found = re.search(
        r"/trim frees about ([\d,]+), here ([\d,]+) · /handoff",
        answer_module_request("band", event)["band"],
    )
    assert found
    copy, here = (int(number.replace(",", "")) for number in found.groups())
    assert here - copy > 10_000


@pytest.mark.parametrize(
    "client_settings",
    [
        {"autoCompactWindow": 100_000},
        {
            "autoCompactWindow": 900_000,
            "modelSettings": {"claude-sonnet-4-5": {"autoCompactWindow": 100_000}},
        },
    ],
    ids=["for all", "for the model, as /autocompact writes it"],
)
def test_the_notice_uses_the_window_of_the_clients_settings(
    config_home: ConfigHome, end_turn: Any, client_settings: dict[str, Any]
) -> None:
    """The band and the Stop hook's line use ``autoCompactWindow`` from the client's settings.

    With a window of 100,000 tokens, the client compacts the conversation at 67,000 tokens. The band
    and the line appear before that and show the same percentage as the client.
    """
    (config_home.config / "settings.json").write_text(json.dumps(client_settings))
    rows = full_conversation(66_000)
    rows[-1]["message"]["model"] = "claude-sonnet-4-5-20250929"
    path = write_session(config_home.project(), SESSION, rows)
    event = {"screen": True, "session_id": SESSION, "transcript_path": path, "window": 200_000}
    assert "82 %" in end_turn(rows)
    assert read_note(config_home)["look"] == 10**9
    assert answer_module_request("band", {**event, "tokens": 60_000})["look"] == 64_000
    shown = answer_module_request("band", {**event, "tokens": 66_000})
    assert (shown["from"], shown["window"]) == (64_000, 80_000)
    assert shown["band"].startswith("{percent} % of 80,000")
