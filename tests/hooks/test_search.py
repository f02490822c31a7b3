"""``>search``: the best hits of this project on a card, at no tokens."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.errors import UsageError
from resume_hooks.hooks import prompt
from resume_hooks.hooks import search as search_trigger
from resume_hooks.hooks.search import answer_request, search_card
from resume_hooks.hooks.time_limit import TimeLimitExceeded, time_limit
from resume_hooks.hooks.triggers import Trigger, recognise_trigger
from tests.builders import CWD, ConfigHome, session_id
from tests.hooks.conftest import Run, trigger_at
from tests.search.asking import search, talk

Card = Callable[..., list[str]]


@pytest.fixture
def card(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> Card:
    """The card that a prompt gets in a session, line by line.

    Its last line is short enough for any terminal.
    """
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")

    def shown(typed: str, number: int = 1) -> list[str]:
        trigger = recognise_trigger(typed)
        assert trigger is not None
        lines = prompt.card_of_trigger(
            trigger, {"session_id": session_id(number), "prompt": typed}
        ).split("\n")
        assert len(lines[-1]) <= 40
        return lines

    return shown


@pytest.fixture
def home(config_home: ConfigHome) -> ConfigHome:
    """Two sessions of a project, one of another."""
    talk(config_home, 1, "why did we drop redis?", "timeouts")
    talk(config_home, 2, "is redis back?", "no, redis is gone")
    talk(config_home, 3, "redis elsewhere", "yes", cwd="/home/user/other")
    return config_home


@pytest.mark.parametrize(
    "typed", [">search redis -drop", "/resume-hooks:search redis -drop", ">SEARCH\nredis -drop "]
)
def test_the_card(home: ConfigHome, card: Card, typed: str) -> None:
    """The number of hits, notes on the words, and each hit with the commands to open and read it."""
    assert card(typed) == [
        "resume-hooks · search · redis -drop · 1 turn · without drop",
        "  is redis back?: is redis back?",
        f"  /resume {session_id(2)} · strong, turn 1, 2026-01-31",
        "/resume <id> opens a session.",
    ]


@pytest.mark.parametrize(
    "typed",
    [
        ">search --all redis elsewhere",
        ">search --all\tredis elsewhere",
        ">search --ALL  redis elsewhere",
    ],
)
def test_everywhere(home: ConfigHome, card: Card, typed: str) -> None:
    """``--all`` first; without it the project alone."""
    assert session_id(3) in str(card(typed))
    assert session_id(3) not in str(card(">search redis elsewhere"))


def test_nothing_found(home: ConfigHome, card: Card) -> None:
    """The text reports it and suggests a remedy that was not just used."""
    assert card(">search quux") == [
        (
            "resume-hooks · search · nothing close: ask again in other words · quux · "
            "nothing found in this project · no match for quux"
        ),
        "Try >search --all quux, or other words.",
    ]
    assert card(">search --all quux")[-1] == "Try other words."


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (">search redis --sinc 2w", "redis --sinc 2w"),
        (">search", ""),
        (">search --all", "--all"),
        (">search -redis", "-redis"),
        (">search ?!", "?!"),
    ],
)
def test_nothing_to_search_for(home: ConfigHome, card: Card, typed: str, kept: str) -> None:
    """A sentence with an example, and the typed text."""
    lines = card(typed)
    assert lines[0].startswith("resume-hooks: ")
    assert (f"Your text: {kept}" in lines) is bool(kept)


def test_more_than_a_card_holds(home: ConfigHome, card: Card) -> None:
    """The best three, and how many more; where four are all, all four.

    Ten rows of 80 columns, the words in them.
    """
    for number in range(10, 20):
        talk(home, number, f"tune the linter {number}")
    lines = card(">search linter")
    assert sum(line.startswith("  /resume ") for line in lines) == 3
    assert "  7 more, in a shell: resume-hooks search --limit=10 linter" in lines
    for number in range(20, 24):
        talk(home, number, f"{'much before it ' * 20} the fox {number} {'and after ' * 20}")
    lines = card(">search fox")
    assert (len(lines), max(map(len, lines)) <= 80) == (10, True)
    assert sum("fox" in line for line in lines[1:]) == 4


def test_hostile_texts(home: ConfigHome, card: Card) -> None:
    """No text of a transcript controls the terminal or forges a line."""
    talk(home, 4, "\x1b[2J\x1b]0;x\x07quux\u202e\r\n  /resume evil\n", "ok")
    lines = card(">search quux")
    assert "\x1b" not in "".join(lines)
    assert "\u202e" not in "".join(lines)
    assert "  /resume evil" not in lines


def test_no_transcript_yet(
    home: ConfigHome, card: Card, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A new session searches the project of the folder that it was started in.

    A folder that is gone is said.
    """
    here = tmp_path / "here"
    here.mkdir()
    talk(home, 5, "the quux of here", cwd=str(here))
    monkeypatch.chdir(here)
    assert session_id(5) in str(card(">search quux", 99))
    here.rmdir()
    lines = card(">search quux", 99)
    assert lines[0] == "resume-hooks: The current folder is gone."
    assert "Your text: quux" in lines


def test_a_session_that_was_moved(config_home: ConfigHome, card: Card) -> None:
    """The folder that its file is in is searched as well."""
    moved = talk(config_home, 1, "the quux one", cwd="/home/user/old")
    talk(config_home, 2, "the quux two", cwd=CWD)
    moved.rename(config_home.project(CWD) / moved.name)
    assert sum(line.startswith("  /resume ") for line in card(">search quux")) == 2


def test_an_index_that_is_not_ready(
    home: ConfigHome, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hits that are found in time are shown, and the missing files are mentioned."""
    monkeypatch.setattr(search_trigger, "UPDATE_SECONDS", 0.0)
    shown = "\n".join(card(">search redis"))
    note = r"  note: Not indexed yet: 2 files \([0-9.]+ KB\)\. "
    assert re.search(f"{note}To index all: resume-hooks doctor --index update", shown)
    assert card(">search redis")[-1] != ""


def test_too_slow(home: ConfigHome, card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    """The remedy is the same search in a shell, with any words; the words are shown again."""

    def wait(*_: object, **__: object) -> None:
        while True:
            os.getpid()

    monkeypatch.setattr(search_trigger, "search_index", wait)
    monkeypatch.setattr("resume_hooks.hooks.time_limit.READING_SECONDS", 0.05)
    lines = card(">search --all it's; rm -rf x")
    assert (
        """In a shell there is no limit: resume-hooks search --all 'it'"'"'s; rm -rf x'""" in lines
    )
    assert "Your text: --all it's; rm -rf x" in lines


def test_a_bug(home: ConfigHome, card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends in a sentence that shows the text again."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(search_trigger, "search_index", fail)
    lines = card(">search redis")
    assert "ZeroDivisionError" in lines[0]
    assert "Your text: redis" in lines


def test_the_text_of_a_card_is_one_line_a_fact(home: ConfigHome) -> None:
    """Notes and remaining hits follow the hits; nothing is copied."""
    found = search(home, "redis", max_hits=1)
    assert "  2 more, in a shell: resume-hooks search --limit=3 redis" in search_card(
        found, ">search"
    ).split("\n")
    assert (
        answer_request(
            trigger_at(Trigger("search", "redis", is_slash=False, is_pasted=False), None)
        ).to_copy
        == ""
    )
    with pytest.raises(UsageError):
        answer_request(trigger_at(Trigger("search", "", is_slash=False, is_pasted=False), None))


def test_through_the_hook(home: ConfigHome, run_hook: Run) -> None:
    """The client gets one block decision, and no prompt is sent."""
    done = run_hook(
        "prompt",
        {
            "session_id": session_id(1),
            "prompt": ">search redis",
            "hook_event_name": "UserPromptSubmit",
        },
    )
    shown = json.loads(done.stdout)
    assert (done.returncode, done.stderr, shown["decision"]) == (0, b"", "block")
    assert f"/resume {session_id(2)}" in shown["reason"]


def test_a_busy_machine_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a processor is not stopped as what works is.

    For ever it does not wait either.
    """
    monkeypatch.setattr("resume_hooks.hooks.time_limit.READING_SECONDS", 0.05)
    with time_limit():
        time.sleep(0.2)
    monkeypatch.setattr("resume_hooks.hooks.time_limit.BUSY_SECONDS", 0.05)
    with pytest.raises(TimeLimitExceeded), time_limit():
        time.sleep(10)
