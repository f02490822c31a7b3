"""Tests of a handoff's size, which the user can type before the next step."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive.verbs.handoff import HandoffSpec
from resume_hooks.errors import UsageError
from resume_hooks.hooks.client_module import answer_module_request
from resume_hooks.hooks.handoff import parse_handoff_words
from tests.builders import SESSION, ConfigHome, Record, assistant, user, write_session
from tests.hooks.conftest import RunHook, list_children


def long_conversation(turn_count: int = 12) -> list[Record]:
    """Return the records of a session whose turns have about 1,000 tokens of messages each."""
    rows: list[Record] = []
    for number in range(turn_count):
        words = " ".join(
            f"Word{number}x{at} is what part {at} of step {number} does." for at in range(40)
        )
        rows.append(user(f"Do step {number}. {words}", uuid=f"u{number}", ts=2 * number))
        rows.append(
            assistant(
                f"Did step {number}. {words}",
                uuid=f"a{number}",
                parent=f"u{number}",
                ts=2 * number + 1,
            )
        )
    return rows


@pytest.fixture
def parent(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a session whose messages fit a handoff of size 24k but not one of 4k, and return its path."""
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")
    return Path(write_session(config_home.project(), SESSION, long_conversation()))


def request_handoff(args: str, **fields: object) -> dict[str, Any]:
    """Return the engine's reply to ``/handoff`` with these arguments."""
    return answer_module_request(
        "handoff", {"session_id": SESSION, "screen": True, "args": args, **fields}
    )


def read_metadata(child: Path) -> dict[str, Any]:
    """Return the metadata that a child's first line stores about its origin."""
    return dict(json.loads(child.read_bytes().split(b"\n")[0])["continue_metadata"])


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("", HandoffSpec("")),
        ("fix the tests", HandoffSpec("fix the tests")),
        ("4k", HandoffSpec("", "4k")),
        ("24K fix the tests", HandoffSpec("fix the tests", "24k")),
        ("1k\nfix\nthis", HandoffSpec("fix\nthis", "1k")),
        ("4k --new-task write notes", HandoffSpec("write notes", "4k", starts_new_task=True)),
        ("--new-task 4k videos stutter", HandoffSpec("4k videos stutter", starts_new_task=True)),
        ("12k 4k videos stutter", HandoffSpec("4k videos stutter", "12k")),
        ("all", HandoffSpec("", "all")),
        ("all tests have to pass", HandoffSpec("all tests have to pass")),
        ("allow 4k", HandoffSpec("allow 4k")),
        ("4k-videos stutter", HandoffSpec("4k-videos stutter")),
        ("fix 4k", HandoffSpec("fix 4k")),
    ],
)
def test_the_first_word_may_be_a_size(text: str, spec: HandoffSpec) -> None:
    """The first word after ``handoff`` is a size if it looks like ``4k``.

    The word ``all`` is a size only if no words follow it, because many sentences begin with "all".
    """
    assert parse_handoff_words(text) == spec


@pytest.mark.parametrize("text", ["0k", "49k fix it", "99k", "999999k"])
def test_a_size_out_of_bounds_is_refused(parent: Path, text: str) -> None:
    """A size below 1k or above 48k is refused, the reply names the valid sizes, and no child is made."""
    with pytest.raises(UsageError, match="is not a valid size"):
        parse_handoff_words(text)
    for screen in (True, False):
        said = request_handoff(text, screen=screen)
        assert set(said) == {"text"}
        assert "Give a size from 1k to 48k, such as 4k or 24k, or all." in said["text"]
    assert list_children(parent) == []


def test_the_input_box_contains_the_step_without_the_size(parent: Path) -> None:
    """The input box is filled with the next step but not the size, and the child records the size."""
    reply = request_handoff("24k fix the tests")
    (child,) = list_children(parent)
    assert (reply["open"], reply["fill"]) == (child.stem, "fix the tests")
    assert read_metadata(child)["opening_tokens"] == 24_000
    assert "24k" not in read_metadata(child)


def test_a_different_size_makes_a_new_child(parent: Path) -> None:
    """A handoff with the same size and step opens the existing child; a different size makes a new one.

    If the user types a size that equals the size in the settings, no new child is made.
    """
    first = request_handoff("4k go on")["open"]
    assert request_handoff("4k go on")["open"] == first
    second = request_handoff("go on")["open"]
    assert second != first
    assert request_handoff("12k go on")["open"] == second
    assert len(list_children(parent)) == 2


def test_the_handoff_size_all_makes_a_fork(parent: Path) -> None:
    """The size ``all`` makes a fork of the whole conversation, without a next step."""
    reply = request_handoff("all")
    (child,) = list_children(parent)
    assert (reply["open"], reply["fill"]) == (child.stem, "")
    assert read_metadata(child)["continuation_type"] == "fork"
    assert "forked" in reply["by_hand"]
    assert "contains the whole conversation" in reply["by_hand"]
    assert "next step" not in reply["by_hand"]


def test_the_card_counts_included_and_omitted_messages(parent: Path) -> None:
    """The card shows how many messages the handoff includes and how many it omits, if any."""
    small = request_handoff("1k", screen=False)["text"]
    found = re.search(
        r"contains (\d+) messages\n  leaves out (\d+) messages; a larger size includes more", small
    )
    assert found is not None
    assert int(found[1]) + int(found[2]) == 24
    whole = request_handoff("24k", screen=False)["text"]
    assert "contains 24 messages" in whole
    assert "leaves out" not in whole


@pytest.mark.parametrize("name", [">handoff", "/resume-hooks:handoff"])
def test_a_prompt_trigger_accepts_a_size(parent: Path, run_hook: RunHook, name: str) -> None:
    """In clients without the module, ``>handoff 4k ...`` makes a handoff of that size."""
    event = {
        "session_id": SESSION,
        "transcript_path": str(parent),
        "prompt": f"{name} 4k fix the tests",
    }
    said = json.loads(run_hook("prompt", event).stdout)["reason"]
    (child,) = list_children(parent)
    assert read_metadata(child)["opening_tokens"] == 4_000
    assert child.stem in said
    opening = json.loads(child.read_bytes().split(b"\n")[2])["message"]["content"]
    assert opening.endswith("fix the tests")
    assert "4k fix" not in opening


def test_the_handoff_tool_accepts_no_size(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's handoff tool refuses a next step that begins with a size or an option.

    The plugin would take this first word for an option, so that the next step would no longer be
    the one that the user confirmed.
    """
    monkeypatch.setenv("RESUME_HOOKS_HANDOFF_TOOL", "on")
    for step in ("4k videos stutter", "99k users wait", "all", "--new-task write notes"):
        for said in ("", "Hand off"):
            told = answer_module_request(
                "tool", {"session_id": SESSION, "screen": True, "args": step, "said": said}
            )
            assert set(told) == {"text"}
            assert "begin with another word" in told["text"]
    assert "ask" in answer_module_request(
        "tool", {"session_id": SESSION, "screen": True, "args": "all tests have to pass"}
    )
