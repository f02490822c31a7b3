"""Tests of ``>search``, which shows the best hits of this project without using tokens."""

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
from tests.hooks.conftest import RunHook, trigger_request
from tests.search.asking import search_home, write_talk

CardLines = Callable[..., list[str]]


@pytest.fixture
def card_lines(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> CardLines:
    """Return a function that returns the lines with which the hook answers a prompt.

    The function checks that the last line has at most 40 characters.
    """
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")

    def lines_of_card(prompt_text: str, session_number: int = 1) -> list[str]:
        trigger = recognise_trigger(prompt_text)
        assert trigger is not None
        lines = prompt.card_of_trigger(
            trigger, {"session_id": session_id(session_number), "prompt": prompt_text}
        ).split("\n")
        assert len(lines[-1]) <= 40
        return lines

    return lines_of_card


@pytest.fixture
def home_with_two_projects(config_home: ConfigHome) -> ConfigHome:
    """Write two sessions in one project and one session in another project."""
    write_talk(config_home, 1, "why did we drop redis?", "timeouts")
    write_talk(config_home, 2, "is redis back?", "no, redis is gone")
    write_talk(config_home, 3, "redis elsewhere", "yes", cwd="/home/user/other")
    return config_home


@pytest.mark.parametrize(
    "prompt", [">search redis -drop", "/resume-hooks:search redis -drop", ">SEARCH\nredis -drop "]
)
def test_the_card_of_a_search_lists_the_hits(
    home_with_two_projects: ConfigHome, card_lines: CardLines, prompt: str
) -> None:
    """The card of a search shows the number of hits, and for each hit the command that opens it."""
    assert card_lines(prompt) == [
        "resume-hooks · search · redis -drop · 1 turn · without drop",
        "  is redis back?: is redis back?",
        f"  /resume {session_id(2)} · strong, turn 1, 2026-01-31",
        "/resume <id> opens a session.",
    ]


@pytest.mark.parametrize(
    "prompt",
    [
        ">search --all redis elsewhere",
        ">search --all\tredis elsewhere",
        ">search --ALL  redis elsewhere",
    ],
)
def test_the_option_all_searches_every_project(
    home_with_two_projects: ConfigHome, card_lines: CardLines, prompt: str
) -> None:
    """``>search --all`` searches every project; without ``--all``, only the current one is searched."""
    assert session_id(3) in str(card_lines(prompt))
    assert session_id(3) not in str(card_lines(">search redis elsewhere"))


def test_a_search_without_hits_suggests_other_words(
    home_with_two_projects: ConfigHome, card_lines: CardLines
) -> None:
    """If a search finds nothing, the card suggests ``--all``, or other words if ``--all`` was used."""
    assert card_lines(">search quux") == [
        (
            "resume-hooks · search · nothing close: ask again in other words · quux · "
            "nothing found in this project · no match for quux"
        ),
        "Try >search --all quux, or other words.",
    ]
    assert card_lines(">search --all quux")[-1] == "Try other words."


@pytest.mark.parametrize(
    ("prompt", "repeated_text"),
    [
        (">search redis --sinc 2w", "redis --sinc 2w"),
        (">search", ""),
        (">search --all", "--all"),
        (">search -redis", "-redis"),
        (">search ?!", "?!"),
    ],
)
def test_a_search_without_words_is_refused(
    home_with_two_projects: ConfigHome, card_lines: CardLines, prompt: str, repeated_text: str
) -> None:
    """A search without words is refused, and the card repeats the typed text."""
    lines = card_lines(prompt)
    assert lines[0].startswith("resume-hooks: ")
    assert (f"Your text: {repeated_text}" in lines) is bool(repeated_text)


def test_the_card_shows_the_best_hits(
    home_with_two_projects: ConfigHome, card_lines: CardLines
) -> None:
    """The card shows up to four hits. If there are more, it shows three and the number of further hits.

    The card fits ten rows of 80 columns and shows the words that were found.
    """
    for number in range(10, 20):
        write_talk(home_with_two_projects, number, f"tune the linter {number}")
    lines = card_lines(">search linter")
    assert sum(line.startswith("  /resume ") for line in lines) == 3
    assert "  7 more, in a shell: resume-hooks search --limit=10 linter" in lines
    for number in range(20, 24):
        write_talk(
            home_with_two_projects,
            number,
            f"{'much before it ' * 20} the fox {number} {'and after ' * 20}",
        )
    lines = card_lines(">search fox")
    assert (len(lines), max(map(len, lines)) <= 80) == (10, True)
    assert sum("fox" in line for line in lines[1:]) == 4


def test_hostile_hits_do_not_change_the_card(
    home_with_two_projects: ConfigHome, card_lines: CardLines
) -> None:
    """The text of a hit cannot control the terminal and cannot look like a line of the card."""
    write_talk(home_with_two_projects, 4, "\x1b[2J\x1b]0;x\x07quux\u202e\r\n  /resume evil\n", "ok")
    lines = card_lines(">search quux")
    assert "\x1b" not in "".join(lines)
    assert "\u202e" not in "".join(lines)
    assert "  /resume evil" not in lines


def test_a_search_in_a_new_session_covers_its_project(
    home_with_two_projects: ConfigHome,
    card_lines: CardLines,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """In a session without a transcript, the search covers the project of the current folder.

    If that folder is missing, the card says so.
    """
    here = tmp_path / "here"
    here.mkdir()
    write_talk(home_with_two_projects, 5, "the quux of here", cwd=str(here))
    monkeypatch.chdir(here)
    assert session_id(5) in str(card_lines(">search quux", 99))
    here.rmdir()
    lines = card_lines(">search quux", 99)
    assert lines[0] == "resume-hooks: The current folder is gone."
    assert "Your text: quux" in lines


def test_a_search_in_a_moved_session_covers_both_projects(
    config_home: ConfigHome, card_lines: CardLines
) -> None:
    """If the session's file was moved to another project, the search covers the old and the new project."""
    moved = write_talk(config_home, 1, "the quux one", cwd="/home/user/old")
    write_talk(config_home, 2, "the quux two", cwd=CWD)
    moved.rename(config_home.project(CWD) / moved.name)
    assert sum(line.startswith("  /resume ") for line in card_lines(">search quux")) == 2


def test_an_incomplete_index_is_reported(
    home_with_two_projects: ConfigHome, card_lines: CardLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there was not enough time to index all files, the card shows how many are not indexed yet.

    It also shows the hits that were found so far.
    """
    monkeypatch.setattr(search_trigger, "MAX_INDEX_UPDATE_SECONDS", 0.0)
    shown = "\n".join(card_lines(">search redis"))
    note = r"  note: Not indexed yet: 2 files \([0-9.]+ KB\)\. "
    assert re.search(f"{note}To index all: resume-hooks doctor --index update", shown)
    assert card_lines(">search redis")[-1] != ""


def test_a_slow_search_suggests_the_shell(
    home_with_two_projects: ConfigHome, card_lines: CardLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a search takes too long, it is stopped, and the card shows the shell command for the search.

    The user's words are quoted for the shell.
    """

    def block_forever(*_: object, **__: object) -> None:
        while True:
            os.getpid()

    monkeypatch.setattr(search_trigger, "search_index", block_forever)
    monkeypatch.setattr("resume_hooks.hooks.time_limit.MAX_READING_SECONDS", 0.05)
    lines = card_lines(">search --all it's; rm -rf x")
    assert (
        """In a shell there is no limit: resume-hooks search --all 'it'"'"'s; rm -rf x'""" in lines
    )
    assert "Your text: --all it's; rm -rf x" in lines


def test_a_bug_in_a_search_is_reported(
    home_with_two_projects: ConfigHome, card_lines: CardLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a search raises an unexpected error, the card contains the error and the user's text."""

    def raise_error(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(search_trigger, "search_index", raise_error)
    lines = card_lines(">search redis")
    assert "ZeroDivisionError" in lines[0]
    assert "Your text: redis" in lines


def test_the_number_of_further_hits_has_its_own_line(home_with_two_projects: ConfigHome) -> None:
    """The number of further hits is on a separate line. A search copies nothing to the clipboard."""
    found = search_home(home_with_two_projects, "redis", max_hits=1)
    assert "  2 more, in a shell: resume-hooks search --limit=3 redis" in search_card(
        found, ">search"
    ).split("\n")
    assert (
        answer_request(
            trigger_request(
                Trigger("search", "redis", is_slash=False, is_pasted_after_text=False), None
            )
        ).text_to_copy
        == ""
    )
    with pytest.raises(UsageError):
        answer_request(
            trigger_request(Trigger("search", "", is_slash=False, is_pasted_after_text=False), None)
        )


def test_the_hook_blocks_a_search_prompt(
    home_with_two_projects: ConfigHome, run_hook: RunHook
) -> None:
    """The hook blocks ``>search`` and shows the hits as the reason."""
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


def test_a_search_has_more_time_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit of a search counts only processor time; a separate limit covers waiting time.

    On a busy machine, a search therefore has more time to finish.
    """
    monkeypatch.setattr("resume_hooks.hooks.time_limit.MAX_READING_SECONDS", 0.05)
    with time_limit():
        time.sleep(0.2)
    monkeypatch.setattr("resume_hooks.hooks.time_limit.EXTRA_SECONDS_IF_BUSY", 0.05)
    with pytest.raises(TimeLimitExceeded), time_limit():
        time.sleep(10)
