"""How wide text is on a terminal, and text brought to a width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.cli.output import fitted, width


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("abc", 3), ("\u4fee\u6b63", 4), ("e\u0301", 1), ("\u200bx", 1), ("\U0001f680", 2)]
)
def test_width(text: str, columns: int) -> None:
    """Wide letters take two columns, accents and what can't be seen none."""
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab\u2026"),
        ("ab cd", 4, "ab\u2026"),
        ("\u4fee\u6b63\u89e3", 4, "\u4fee\u2026"),
        ("\u4fee\u6b63", 1, "\u2026"),
        ("abc", 0, ""),
        ("", 0, ""),
    ],
)
def test_fitted(text: str, most: int, expected: str) -> None:
    """Cut at a letter, never within one; the ellipsis counts."""
    assert fitted(text, most) == expected


@given(st.text(max_size=30), st.integers(0, 40))
def test_what_was_fitted_fits(text: str, most: int) -> None:
    """Whatever the letters, and what fits already is left alone."""
    found = fitted(text, most)
    assert width(found) <= most
    assert found == text or width(text) > most
