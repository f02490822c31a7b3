"""Pages: a transcript from its end to its start, and what stands around a record."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_hooks.pages import around, page
from resume_hooks.passages import says
from resume_hooks.reference import Entries, Names
from tests.builders import (
    SESSION,
    Record,
    attachment,
    conversation,
    custom_title,
    last_prompt,
    tool_result,
    tool_use,
    write_session,
)
from tests.needs import corpus_sessions

NAMES = Names(SESSION, SESSION[:8])


def walked(entries: Entries, limit: int) -> list[int]:
    """The lines of every event, gathered page by page from the end."""
    lines: list[int] = []
    before = None
    while True:
        found = page(entries, NAMES, before, limit)
        numbers = [one.entry.number for one in found.passages]
        assert len(numbers) <= limit
        assert numbers == sorted(numbers)
        lines = [*numbers, *lines]
        if not found.more:
            return lines
        before = numbers[0]


def mixed(folder: Path) -> Entries:
    """A session with bookkeeping, garbage, a repeated uuid and attachments between what was said."""
    talk: list[Record | bytes] = list(conversation(6))
    talk[3:3] = [custom_title("x"), b"garbage", b"", conversation(1)[0], attachment("told", uuid="t", parent=None)]
    return Entries(write_session(folder, SESSION, [*talk, last_prompt("r1")]), SESSION)


MIXED: list[Entries] = []


@pytest.fixture(autouse=True)
def _one_session(tmp_path: Path) -> None:
    """A session that all limits are tried on."""
    if not MIXED:
        MIXED.append(mixed(tmp_path / "one"))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 20))
def test_every_event_once(limit: int) -> None:
    """Whatever a page holds, walking them gives each record that says something once, in order."""
    assert walked(MIXED[0], limit) == [0, 1, 2, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]


@pytest.mark.parametrize("file", corpus_sessions(), ids=lambda file: file.name[:40])
def test_every_real_session(file: Path) -> None:
    """The same of real sessions."""
    entries = Entries(str(file), SESSION)
    there = [number for number in range(len(entries)) if (e := entries.at(number)) and says(e.record() or {})]
    assert walked(entries, 250) == there


def test_an_empty_page(tmp_path: Path) -> None:
    """Nothing stands before the first record, and in a file of bookkeeping nothing at all."""
    entries = Entries(write_session(tmp_path, SESSION, [custom_title("x")]), SESSION)
    assert page(entries, NAMES, None, 5) == ([], False)
    assert page(MIXED[0], NAMES, 0, 5) == ([], False)


def test_around(tmp_path: Path) -> None:
    """So many before and after as say something; what the client added comes along, uncounted."""
    earlier, later = around(MIXED[0], NAMES, 8, 3, 2)
    assert [one.entry.number for one in earlier] == [1, 2, 6, 7]
    assert [one.entry.number for one in later] == [9, 10]
    assert [one.added for one in earlier] == [False, False, False, True]
    assert around(MIXED[0], NAMES, 0, 3, 0) == ([], [])


def test_the_call_of_a_result(tmp_path: Path) -> None:
    """Found though it stands on an earlier page."""
    lines: list[Record | bytes] = [
        tool_use("c", uuid="a", parent=None, name="Bash", tool_input={"command": "ls"}),
        tool_result("c", "x", uuid="u", parent="a"),
    ]
    entries = Entries(write_session(tmp_path, SESSION, lines), SESSION)
    (only,) = page(entries, NAMES, None, 1).passages
    assert only.speaker == "result of Bash ls"
