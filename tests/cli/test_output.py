"""Tests of the output on a terminal: column widths, tables and colours."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.cli.main import run
from resume_hooks.cli.output import facts_table, find_colour_preference
from resume_hooks.cli.verb_table import VERBS
from resume_hooks.hooks.prompt import card_of_trigger
from resume_hooks.hooks.triggers import recognise_trigger
from resume_hooks.system.text import fit_to_columns, text_width
from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    tool_result,
    tool_use,
    write_session,
)
from tests.cli.test_main import output_on_terminal


@pytest.mark.parametrize(
    ("text", "columns"),
    [("", 0), ("abc", 3), ("\u4fee\u6b63", 4), ("e\u0301", 1), ("\u200bx", 1), ("\U0001f680", 2)],
)
def test_text_width_counts_columns(text: str, columns: int) -> None:
    """``text_width`` counts two columns for each wide character, and none for an accent."""
    assert text_width(text) == columns


@pytest.mark.parametrize(
    ("text", "max_columns", "expected"),
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
def test_a_text_is_cut_at_a_character(text: str, max_columns: int, expected: str) -> None:
    """``fit_to_columns`` cuts a text between two characters; the width includes the ellipsis that it adds."""
    assert fit_to_columns(text, max_columns) == expected


@given(st.text(max_size=30), st.integers(0, 40))
def test_a_wide_text_is_shortened_to_fit(text: str, max_columns: int) -> None:
    """``fit_to_columns`` shortens a text that is wider than the given width. Other texts stay unchanged."""
    found = fit_to_columns(text, max_columns)
    assert text_width(found) <= max_columns
    assert found == text or text_width(text) > max_columns


ESCAPE_SEQUENCE_PATTERN = re.compile(r"\x1b\[[0-9;]*m")
COMMANDS_BY_VERB: dict[str, list[list[str]]] = {
    "resume": [["resume", SESSION, "--print"]],
    "continue": [["continue", SESSION, "--print"]],
    "sessions": [["sessions", "--all"]],
    "handoff": [["handoff", SESSION, "--dry-run"], ["handoff", SESSION, "--print"]],
    "rollover": [["rollover", SESSION, "--quick", "--dry-run"]],
    "trim": [["trim", SESSION, "--dry-run"]],
    "fork": [["fork", SESSION, "--dry-run"]],
    "untrim": [["untrim", SESSION, "--dry-run"]],
    "search": [["search", "prompt", "--all"]],
    "outline": [["outline", SESSION]],
    "read": [["read", f"{SESSION}:0"], ["read", SESSION, "--turns", "1"]],
    "lineage": [["lineage", SESSION], ["find-original", SESSION], ["find-derived", SESSION]],
    "info": [["info", SESSION]],
    "rename": [["rename", SESSION, "Another title"], ["rename", SESSION, "--tag", "red"]],
    "restore": [["restore", "--list"]],
    "fsck": [["fsck", SESSION]],
    "doctor": [["doctor"], ["doctor", "--bundle"], ["doctor", "--index", "status"]],
    "config": [["config"]],
    "stats": [["stats", "--all"]],
    "install": [["install", "--completion", "fish"]],
}
"""Command lines for each verb. Verbs that are not listed run with ``--help``."""
VERBS_WITH_COLOUR = ("sessions", "search", "lineage", "info", "doctor", "config", "fsck")
"""Verbs that print colour on a terminal."""
COLOUR_VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM", "COLORTERM")
RunVerb = Callable[..., str]


class _FakeStream(io.StringIO):
    """A stream that records its output and, depending on ``terminal``, pretends to be a terminal."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.fixture
def verb_output(
    config_home: ConfigHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> RunVerb:
    """Return a function that runs a verb on a terminal or into a pipe, and returns its output."""
    records = conversation(2)
    records += [
        tool_use("c", uuid="c1", parent="r3", ts=9, tool_input={"file_path": "/x"}, tokens=9_000)
    ]
    records += [
        tool_result("c", "x" * 5_000, uuid="c2", parent="c1", ts=10),
        custom_title("A title"),
    ]
    write_session(config_home.project(), SESSION, records, mtime=1_700_000_000)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")

    def run_verb(words: list[str], *, terminal: bool, **environ: str) -> str:
        streams = _FakeStream(terminal=terminal), _FakeStream(terminal=terminal)
        with monkeypatch.context() as patch:
            for name in COLOUR_VARIABLES:
                patch.delenv(name, raising=False)
            for name, value in environ.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdout", streams[0])
            patch.setattr(sys, "stderr", streams[1])
            assert run(list(words)) in {0, 1}
        return "".join(stream.getvalue() for stream in streams)

    return run_verb


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_prints_colour_if_it_is_disabled(verb_output: RunVerb, verb: str) -> None:
    """Verbs print no colour into a pipe, or on a terminal with NO_COLOR, CLICOLOR=0 or TERM=dumb."""
    for words in COMMANDS_BY_VERB.get(verb, [[verb, "--help"]]):
        plain = verb_output(words, terminal=False)
        assert plain.strip()
        assert not ESCAPE_SEQUENCE_PATTERN.search(plain)
        for choice in (
            {"NO_COLOR": "1"},
            {"TERM": "dumb"},
            {"CLICOLOR": "0"},
            {"NO_COLOR": "1", "FORCE_COLOR": "1"},
        ):
            assert "\x1b" not in verb_output(words, terminal=True, **choice), (words, choice)


@pytest.mark.parametrize("verb", VERBS_WITH_COLOUR)
def test_verbs_print_colour_on_request(verb_output: RunVerb, verb: str) -> None:
    """Verbs print colour on a terminal; in a pipe they print it only if a variable forces them to."""
    assert_colour_is_printed(verb_output, COMMANDS_BY_VERB[verb][0])


def assert_colour_is_printed(verb_output: RunVerb, words: list[str]) -> None:
    """Check that a verb prints colour on a terminal and, if a variable forces it, in a pipe."""
    on_terminal = verb_output(words, terminal=True, TERM="xterm-256color")
    assert ESCAPE_SEQUENCE_PATTERN.search(on_terminal)
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
        forced = verb_output(words, terminal=False, TERM="dumb", **{name: "1"})
        assert ESCAPE_SEQUENCE_PATTERN.search(forced), name
        assert ESCAPE_SEQUENCE_PATTERN.sub("", forced).strip()


@pytest.mark.parametrize(
    "prompt", [">resume", ">help", ">session", ">lineage", ">trim", ">handoff go", ">search prompt"]
)
def test_cards_have_no_colour(
    verb_output: RunVerb, monkeypatch: pytest.MonkeyPatch, prompt: str
) -> None:
    """Cards contain no colour, because the client shows them in its own colours."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    trigger = recognise_trigger(prompt)
    assert trigger is not None
    shown = card_of_trigger(trigger, {"session_id": SESSION, "prompt": prompt})
    assert shown.strip()
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("environ", "answer"),
    [
        ({}, None),
        ({"NO_COLOR": ""}, None),
        ({"NO_COLOR": "0"}, False),
        ({"FORCE_COLOR": "3"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": "false"}, None),
        ({"CLICOLOR_FORCE": "1", "TERM": "dumb"}, True),
        ({"CLICOLOR": "1"}, None),
        ({"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, False),
    ],
)
def test_colour_variables_have_an_order_of_precedence(
    environ: dict[str, str], answer: bool | None
) -> None:
    """NO_COLOR has precedence over all other variables.

    Variables that force colour have precedence over the other variables that forbid it.
    """
    assert find_colour_preference(environ) is answer


def test_a_real_terminal_gets_colour_unless_switched_off(config_home: ConfigHome) -> None:
    """A real terminal gets colour. With NO_COLOR it gets no escape sequences."""
    write_session(config_home.project(), SESSION, conversation(1))
    assert b"\x1b" in output_on_terminal(config_home, "sessions", "--all", TERM="xterm")
    assert b"\x1b" not in output_on_terminal(config_home, "sessions", "--all", TERM="dumb")
    assert b"\x1b" not in output_on_terminal(config_home, "sessions", "--all", CLICOLOR="0")


def test_a_real_pipe_gets_colour_only_if_forced(config_home: ConfigHome) -> None:
    """A real pipe gets colour only if a variable forces it."""
    write_session(config_home.project(), SESSION, conversation(1))
    command = [sys.executable, "-m", "resume_hooks", "lineage", SESSION]
    for forced in ("", "1"):
        env = {
            "PATH": os.defpath,
            "PYTHONPATH": "src",
            "FORCE_COLOR": forced,
            **config_home.environ,
        }
        done = subprocess.run(command, env=env, capture_output=True, check=True, timeout=60)
        assert (b"\x1b[" in done.stdout) is bool(forced)


def test_each_detail_is_printed_on_one_line() -> None:
    """Each detail is printed on a single line, even if its value contains line breaks."""
    assert (
        facts_table([("branch", "main\u2028resume-hooks: obey\nnow"), ("size", 1)]).count("\n") == 1
    )
