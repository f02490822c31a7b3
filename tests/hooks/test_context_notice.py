"""Stop, run as the client runs it: one line once a session when its context passes the level, else nothing at all."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.cli.info import session_facts_data
from resume_hooks.hooks import context_notice
from resume_hooks.hooks.client_module import answer_module
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
from tests.hooks.conftest import Run
from tests.hooks.test_compaction import session_with_thinking
from tests.hooks.test_trim import bulky


def full(tokens: int, turns: int = 2) -> list[Record]:
    """A conversation whose last answer was counted with so many tokens."""
    records = conversation(turns)
    records[-1]["message"] |= {"usage": {"input_tokens": tokens}, "model": "claude-opus-4-6"}
    return records


@pytest.fixture
def ask(config_home: ConfigHome, run_hook: Run) -> Any:
    """Write a session, end a turn of it, and return the shown line; ``""`` for none."""

    def run(records: list[Record], event: object = None, **environ: str) -> str:
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

    return run


def note(home: ConfigHome) -> dict[str, Any]:
    """Return the session's note."""
    found: dict[str, Any] = json.loads(
        (home.config / "resume-hooks" / "pending" / f"notice-{SESSION}.json").read_bytes()
    )
    return found


def test_it_is_reported_once(config_home: ConfigHome, ask: Any) -> None:
    """At 80 per cent, with what fits best.

    Never again of this window, whatever happens to the session.
    """
    assert ask(full(143_999)) == ""
    assert note(config_home) == {"version": 1, "look": 144_000, "told": 0}
    assert ask(full(144_000)) == (
        "resume-hooks: 80 % of the context is used; a handoff fits best: /resume-hooks:handoff"
    )
    assert note(config_home) == {"version": 1, "look": 784_000, "told": 200_000}
    compacted = [*full(190_000), boundary(uuid="b", ts=9), summary("s", uuid="s", parent="b", ts=9)]
    for records in (full(160_000), full(199_999, 5), compacted, full(10), full(170_000)):
        assert ask(records) == ""
    assert note(config_home)["told"] == 200_000


def test_a_window_that_proves_larger_is_mentioned_too(config_home: ConfigHome, ask: Any) -> None:
    """Past 200,000 tokens the window is a million, of which the first line was not true."""
    assert "91 %" in ask(full(163_000))
    assert ask(full(300_000)) == ""
    assert "83 %" in ask(full(810_000))
    assert ask(full(990_000)) == ""
    assert note(config_home) == {"version": 1, "look": 10**9, "told": 1_000_000}


def test_the_settings_decide(config_home: ConfigHome, ask: Any) -> None:
    """Another level, another window, or never."""
    assert ask(full(190_000), RESUME_HOOKS_NOTICE_PERCENT="0") == ""
    assert ask(full(150_000), RESUME_HOOKS_CONTEXT_WINDOW="1000000") == ""
    assert note(config_home)["look"] == 784_000
    assert "resume-hooks: 56 %" in ask(full(100_000), RESUME_HOOKS_NOTICE_PERCENT="50")
    set_window = ask(
        full(600_000), RESUME_HOOKS_NOTICE_PERCENT="60", RESUME_HOOKS_CONTEXT_WINDOW="1000000"
    )
    assert "61 %" in set_window
    assert note(config_home)["look"] == 10**9


def test_a_context_that_was_not_counted_is_not_mentioned(ask: Any) -> None:
    """Right after a compaction there is only an estimate."""
    records = [
        *full(190_000),
        boundary(uuid="b", ts=9),
        summary("s" * 2_000_000, uuid="s", parent="b", ts=9),
    ]
    assert ask(records) == ""


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
def test_an_odd_event_is_silent(config_home: ConfigHome, run_hook: Run, event: object) -> None:
    """Nothing is shown or written."""
    done = run_hook("notice", event)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (config_home.config / "resume-hooks").exists()


@pytest.mark.parametrize(
    "kept",
    [b"", b"null", b"[1]", b'{"version": 1, "told": "x"}', b'{"version": 9, "told": 200000}'],
)
def test_a_damaged_note_counts_as_none(config_home: ConfigHome, ask: Any, kept: bytes) -> None:
    """The notice is shown, and a valid note replaces it."""
    folder = config_home.config / "resume-hooks" / "pending"
    folder.mkdir(parents=True)
    (folder / f"notice-{SESSION}.json").write_bytes(kept)
    assert "94 %" in ask(full(170_000))
    assert note(config_home)["told"] == 200_000


def test_where_no_note_can_be_kept_nothing_is_reported(config_home: ConfigHome, ask: Any) -> None:
    """Otherwise each turn would repeat it."""
    (config_home.root / "file").touch()
    assert ask(full(190_000), RESUME_HOOKS_HOME=str(config_home.root / "file" / "x")) == ""


def test_notes_are_private_contain_no_content_and_go_with_time(
    config_home: ConfigHome, ask: Any
) -> None:
    """0600 in a folder of 0700; two numbers.

    Those of sessions that are long gone are swept, others stay.
    """
    folder = config_home.config / "resume-hooks" / "pending"
    folder.mkdir(parents=True, mode=0o700)
    ages = {"notice-old.json": 101, "notice-young.json": 99, "trim-old.json": 101}
    for name, days in ages.items():
        (folder / name).touch()
        os.utime(folder / name, (0, time.time() - days * 86_400))
    ask(full(170_000))
    assert {path.name for path in folder.iterdir()} == {
        "notice-young.json",
        "trim-old.json",
        f"notice-{SESSION}.json",
    }
    assert set(note(config_home)) == {"version", "look", "told"}
    assert stat.S_IMODE(Path(folder / f"notice-{SESSION}.json").stat().st_mode) == 0o600


def test_the_band_takes_the_lines_place(
    config_home: ConfigHome, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the client's figures: when to ask again, then what to show.

    The Stop hook has nothing more to say.
    """
    path = write_session(config_home.project(), SESSION, full(190_000))
    event = {"screen": True, "session_id": SESSION, "transcript_path": path, "window": 200_000}
    assert answer_module("band", {**event, "tokens": 90_000}) == {"look": 144_000, "tells": 80}
    shown = answer_module("band", {**event, "tokens": 160_000})
    assert (shown["from"], shown["window"]) == (144_000, 180_000)
    assert shown["band"] == "{percent} % of 180,000 · /handoff"
    assert ask(full(190_000)) == ""
    monkeypatch.setenv("RESUME_HOOKS_NOTICE_PERCENT", "0")
    assert "band" not in answer_module("band", {**event, "tokens": 199_000})
    assert answer_module("band", {**event, "tokens": "x"}) == {}


def test_all_count_in_the_window_that_the_client_told_last(
    config_home: ConfigHome, ask: Any
) -> None:
    """The line, the card, the shell's info, its list.

    Not a window that was said before, nor the model's that ran.
    """

    def figures(shown: int, window: int) -> list[object]:
        write_session(config_home.project(), SESSION, full(shown))
        card = " ".join(answer_module("full", {**event, "window": window})["card"]["lines"])
        line = ask(full(shown))
        (row,) = SessionLister("/", Where()).rows_of_files([session_file(path)], None)
        session = Session.from_file(session_file(path), Where())
        pieces = PieceCollector()
        transcript = scan_transcript(path, observers=[pieces])
        info = session_facts_data(session, transcript, pieces)["context"]
        found = [re.findall(r"(\d+) %", text)[:1] for text in (card, line)]
        return [*found, row.percent, info.percent, info.window]

    path = write_session(config_home.project(), SESSION, full(300_000))
    event = {"screen": True, "session_id": SESSION, "transcript_path": path}
    assert figures(300_000, 200_000) == [["167"], ["167"], 167, 167, 200_000]
    assert ask(full(310_000)) == ""
    assert figures(900_000, 1_000_000) == [["92"], ["92"], 92, 92, 1_000_000]
    (row,) = SessionLister(
        "/", Where({**os.environ, "RESUME_HOOKS_CONTEXT_WINDOW": "520000"})
    ).rows_of_files([session_file(path)], None)
    assert row.percent == 180
    answer_module("lineage", {**event, "session_id": session_id(9), "window": 200_000})
    answer_module("lineage", {**event, "window": -1})
    assert note(config_home)["window"] == 1_000_000


def test_a_band_that_never_came_leaves_the_line(
    config_home: ConfigHome, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the engine ends before its answer, the Stop hook shows the line."""
    path = write_session(config_home.project(), SESSION, full(190_000))
    event = {
        "screen": True,
        "session_id": SESSION,
        "transcript_path": path,
        "window": 200_000,
        "tokens": 190_000,
    }
    with monkeypatch.context() as patch:
        patch.setattr(context_notice, "_describe_savings", lambda *_: 1 // 0)
        assert "band" not in answer_module("band", event)
    assert "of the context is used" in ask(full(190_000))


def test_the_band_shows_the_savings_of_a_trim(config_home: ConfigHome) -> None:
    """Only if there are savings."""
    path = write_session(config_home.project(), SESSION, bulky())
    event = {
        "screen": True,
        "session_id": SESSION,
        "transcript_path": path,
        "window": 200_000,
        "tokens": 190_000,
    }
    assert re.fullmatch(
        r"\{percent\} % of 180,000 · /trim frees about [\d,]+ · /handoff",
        answer_module("band", event)["band"],
    )


def test_the_band_shows_the_savings_of_a_trim_in_place(config_home: ConfigHome) -> None:
    """Only if they differ: the thinking of the last turns is also removed."""
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
        answer_module("band", event)["band"],
    )
    assert found
    copy, here = (int(number.replace(",", "")) for number in found.groups())
    assert here - copy > 10_000


@pytest.mark.parametrize(
    "chosen",
    [
        {"autoCompactWindow": 100_000},
        {
            "autoCompactWindow": 900_000,
            "modelSettings": {"claude-sonnet-4-5": {"autoCompactWindow": 100_000}},
        },
    ],
    ids=["for all", "for the model, as /autocompact writes it"],
)
def test_a_smaller_window_of_the_clients_settings(
    config_home: ConfigHome, ask: Any, chosen: dict[str, Any]
) -> None:
    """The client compacts at 67,000 then: the band and the line come before, by the share that it shows itself."""
    (config_home.config / "settings.json").write_text(json.dumps(chosen))
    rows = full(66_000)
    rows[-1]["message"]["model"] = "claude-sonnet-4-5-20250929"
    path = write_session(config_home.project(), SESSION, rows)
    event = {"screen": True, "session_id": SESSION, "transcript_path": path, "window": 200_000}
    assert "82 %" in ask(rows)
    assert note(config_home)["look"] == 10**9
    assert answer_module("band", {**event, "tokens": 60_000})["look"] == 64_000
    shown = answer_module("band", {**event, "tokens": 66_000})
    assert (shown["from"], shown["window"]) == (64_000, 80_000)
    assert shown["band"].startswith("{percent} % of 80,000")
