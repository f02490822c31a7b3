"""Text that can't drive a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.plain import encodable_all, plain, plain_line


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("Fix the parser", "Fix the parser"),
        ("naïve · 日本語 · 👩‍👩‍👧", "naïve · 日本語 · 👩‍👩‍👧"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hgone", "gone"),
        ("\x9b31mred", "red"),
        ("\x1b]0;a new window title\x07rest", "rest"),
        ("\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never ended", "]0;never ended"),
        ("a\rb", "a\nb"),
        ("a\r\nb", "a\nb"),
        ("a\u2028b\u0085c", "a\nb\nc"),
        ("\u202egnp.exe\u2066", "gnp.exe"),
        ("bell\x07 nul\x00 del\x7f", "bell nul del"),
        ("lone \ud83d", "lone \ufffd"),
    ],
)
def test_controls_go_and_text_stays(foreign: str, shown: str) -> None:
    """Escape sequences, controls and what reorders text are taken out; any script and emoji stay."""
    assert plain(foreign) == shown


@given(st.text(st.characters(codec=None)))
def test_nothing_but_line_feeds_and_tabs_controls(foreign: str) -> None:
    """Whatever comes in, what goes out can be encoded and holds no other control; a second pass changes nothing."""
    shown = plain(foreign)
    shown.encode()
    assert {c for c in shown if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}} <= {"\n", "\t"}
    assert plain(shown) == shown
    assert "\n" not in plain_line(foreign)


def test_a_json_value_becomes_encodable() -> None:
    """Lone surrogates in keys and values, however deep, become question marks; nothing else changes."""
    value = {"a\ud800": ["b\udfff", 1, None, {"c": "ü"}]}
    assert encodable_all(value) == {"a?": ["b?", 1, None, {"c": "ü"}]}


def test_invisible_characters_go() -> None:
    """Text that no screen shows can spell instructions that a model reads."""
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "run this")
    assert plain(f"a{hidden}b\u00ad\u180e\u2062\ufff9c") == "abc"
