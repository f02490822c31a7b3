"""What a session starts with: context for the model, a line for the user, within 4,000 characters together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from resume_hooks.hooks.reply import start


def said(context: str, message: str) -> dict[str, Any]:
    """The reply, as the client reads it."""
    found = json.loads(start(context, message))
    assert isinstance(found, dict)
    return found


def test_nothing_to_say_is_no_reply() -> None:
    """Not even an empty object."""
    assert start("", "") == start(" \n", "") == b""


def test_each_half_stands_alone() -> None:
    """A line without context, a context without a line."""
    assert said("", "hello") == {"systemMessage": "hello"}
    context = {"hookEventName": "SessionStart", "additionalContext": "facts"}
    assert said("facts", "") == {"hookSpecificOutput": context}


@pytest.mark.parametrize("context", ["x" * 100_000, "é" * 5_000, "a\n" * 5_000])
def test_both_fit_together(context: str) -> None:
    """The line stays whole."""
    found = said(context, "m" * 90)
    assert len(found["systemMessage"]) == 90
    assert len(found["hookSpecificOutput"]["additionalContext"]) + 90 <= 4_000


def test_nothing_drives_the_terminal() -> None:
    """Neither half; the line is one."""
    found = said("a\x1b[2J\ud800b\x00", "one\ntwo\x1b]0;x\x07")
    assert found["systemMessage"] == "one two"
    assert found["hookSpecificOutput"]["additionalContext"] == "a\ufffdb"
