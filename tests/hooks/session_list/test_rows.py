"""Tests of the rows of the picker: they are as wide as the space, for any content."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.hooks.session_list.rows import (
    cut_title,
    cut_to_columns,
    hit_line,
    session_line,
    shorten_home,
    wrap_to_columns,
)
from resume_hooks.hooks.session_list.state import TurnHit
from resume_hooks.system.text import text_width
from tests.hooks.session_list.rows import NOW, make_listed_session


@given(st.text(max_size=120), st.integers(2, 160))
def test_a_row_fills_its_columns(title: str, columns: int) -> None:
    """It is never wider, so that it does not wrap.

    It is never narrower, so that the bar of the chosen row is complete.
    """
    assert (
        text_width(
            session_line(make_listed_session(title=title, tag="t"), columns, NOW, is_chosen=True)
        )
        == columns
    )


@given(st.text(max_size=60), st.integers(0, 70))
def test_a_row_has_no_control_characters(title: str, columns: int) -> None:
    """A hostile title has no second line either."""
    assert not any(
        unicodedata.category(letter) in {"Cc", "Zl", "Zp"}
        for letter in cut_to_columns(title, columns)
    )
    assert text_width(cut_to_columns(title, columns)) <= columns


def test_a_narrow_row_drops_columns() -> None:
    """Unknown turn counts are dropped too. The title is dropped next to last, and the age last."""
    one = make_listed_session(
        title="Fix the parser",
        tag="urgent",
        parent_id="x",
        kind="trim",
        turns=None,
        turns_at_least=12,
    )
    assert session_line(one, 20, NOW, is_chosen=False) == "  #urgent Fix the pa"[:19] + "…"
    wide = session_line(one, 130, NOW, is_chosen=True)
    assert wide.startswith("> #urgent Fix the parser ")
    for fact in ("main", "trim", "11 %", "60 min"):
        assert fact in wide
    assert "turns" not in wide  # which its preview counts
    assert "open" in session_line(one._replace(is_open=True), 40, NOW, is_chosen=False)


@given(st.text(max_size=60), st.text(max_size=300), st.integers(0, 300), st.integers(10, 160))
def test_a_row_of_a_message_fills_its_columns(
    title: str, snippet: str, place: int, columns: int
) -> None:
    """It is formatted like any other row."""
    said = TurnHit(("x",), "strong", "prompt", snippet, place)
    assert (
        text_width(hit_line(make_listed_session(title=title), said, columns, is_chosen=True))
        == columns
    )


def test_a_row_shows_the_found_words() -> None:
    """They may be anywhere in the message, and have a little text before them."""
    words = f"{'far ' * 40}the pool was drained {'away ' * 40}"
    said = TurnHit(("x",), "fair", "prompt · turn 3", words, words.index("drained"))
    line = hit_line(make_listed_session(title="Fix the parser"), said, 100, is_chosen=False)
    assert line.startswith("  Fix the parser ")
    assert "   fair  … " in line
    assert "the pool was drained away" in line
    assert (
        hit_line(make_listed_session(title="Fix the parser"), said, 30, is_chosen=True)
        == "> Fix the parser          fair"
    )


@given(st.text("ab 字\u0301", max_size=200), st.integers(2, 40), st.integers(1, 6))
def test_wrapped_text_fits(text: str, columns: int, most: int) -> None:
    """It fits in lines and columns; a long word is cut."""
    lines = wrap_to_columns(text, columns, most)
    assert len(lines) <= most
    assert all(text_width(line) <= columns for line in lines)
    assert wrap_to_columns("one two three", 7, 3) == ["one two", "three"]
    assert wrap_to_columns("one two three", 7, 1) == ["one tw…"]


def test_the_home_folder_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the same beginning is not below it."""
    monkeypatch.setenv("HOME", "/home/me")
    assert shorten_home("/home/me/x") == "~/x"
    assert shorten_home("/home/me") == "~"
    assert shorten_home("/home/meow") == "/home/meow"


def test_a_short_title_keeps_its_kind_and_number() -> None:
    """They distinguish children. Other titles, and titles without space, keep their beginning."""
    assert (
        cut_title("Sequencing option C and the builder · handoff 2", 32)
        == "Sequencing option C… · handoff 2"
    )
    assert cut_title("Sequencing option C · handoff 2", 40) == "Sequencing option C · handoff 2"
    assert cut_title("Sequencing option C · what we decided about it", 20) == "Sequencing option C…"
    assert cut_title("Sequencing option C · handoff 2", 16) == "Sequencing opti…"
