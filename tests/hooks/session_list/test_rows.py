"""Tests of the rows of the session list: each is exactly as wide as the list, whatever it contains."""

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
def test_a_row_is_as_wide_as_the_list(title: str, columns: int) -> None:
    """A row is exactly as wide as the list, for any title.

    A wider row would wrap. With a narrower row, the bar of the chosen row would be incomplete.
    """
    assert (
        text_width(
            session_line(make_listed_session(title=title, tag="t"), columns, NOW, is_chosen=True)
        )
        == columns
    )


@given(st.text(max_size=60), st.integers(0, 70))
def test_a_cut_title_has_no_control_characters(title: str, columns: int) -> None:
    """A title that is cut to a number of columns has no control characters and no line breaks."""
    assert not any(
        unicodedata.category(letter) in {"Cc", "Zl", "Zp"}
        for letter in cut_to_columns(title, columns)
    )
    assert text_width(cut_to_columns(title, columns)) <= columns


def test_a_narrow_list_shows_fewer_columns() -> None:
    """A row of 20 columns shows only the tag and the title.

    A row of 130 columns also shows the branch, the kind, the percentage of the context and the age.
    The turn count is left out because it is unknown.
    """
    one = make_listed_session(
        title="Fix the parser",
        tag="urgent",
        parent_id="x",
        kind="trim",
        turn_count=None,
        min_turn_count=12,
    )
    assert session_line(one, 20, NOW, is_chosen=False) == "  #urgent Fix the pa"[:19] + "…"
    wide = session_line(one, 130, NOW, is_chosen=True)
    assert wide.startswith("> #urgent Fix the parser ")
    for fact in ("main", "trim", "11 %", "60 min"):
        assert fact in wide
    assert "turns" not in wide  # This session's turn count is unknown.
    assert "open" in session_line(one._replace(is_open=True), 40, NOW, is_chosen=False)


@given(st.text(max_size=60), st.text(max_size=300), st.integers(0, 300), st.integers(10, 160))
def test_the_row_of_a_message_is_as_wide_as_the_list(
    title: str, snippet: str, match_start: int, columns: int
) -> None:
    """The row of a matching message is exactly as wide as the list, like every other row."""
    said = TurnHit(("x",), "strong", "prompt", snippet, match_start)
    assert (
        text_width(hit_line(make_listed_session(title=title), said, columns, is_chosen=True))
        == columns
    )


def test_a_row_shows_the_found_words() -> None:
    """The row of a hit shows the words that were found, wherever they are in the message.

    A little of the text before them is shown too.
    """
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
def test_wrapped_text_fits(text: str, columns: int, max_lines: int) -> None:
    """Wrapped text has at most ``max_lines`` lines, none wider than ``columns``. A longer word is cut."""
    lines = wrap_to_columns(text, columns, max_lines)
    assert len(lines) <= max_lines
    assert all(text_width(line) <= columns for line in lines)
    assert wrap_to_columns("one two three", 7, 3) == ["one two", "three"]
    assert wrap_to_columns("one two three", 7, 1) == ["one tw…"]


def test_the_home_folder_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    """``shorten_home`` replaces the home folder with ``~``.

    If the home folder is ``/home/me``, the path ``/home/meow`` stays unchanged.
    """
    monkeypatch.setenv("HOME", "/home/me")
    assert shorten_home("/home/me/x") == "~/x"
    assert shorten_home("/home/me") == "~"
    assert shorten_home("/home/meow") == "/home/meow"


def test_a_shortened_title_keeps_its_kind_and_number() -> None:
    """If ``Sequencing option C · handoff 2`` is too long, only the text before ``· handoff 2`` is cut.

    The kind and the number distinguish the children of a session. Other titles are cut at the end,
    and so is every title if the row is too narrow for the kind and the number.
    """
    assert (
        cut_title("Sequencing option C and the builder · handoff 2", 32)
        == "Sequencing option C… · handoff 2"
    )
    assert cut_title("Sequencing option C · handoff 2", 40) == "Sequencing option C · handoff 2"
    assert cut_title("Sequencing option C · what we decided about it", 20) == "Sequencing option C…"
    assert cut_title("Sequencing option C · handoff 2", 16) == "Sequencing opti…"
