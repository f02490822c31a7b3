"""Tests of text that the user types directly after a command that opens another session.

When the client opens the session, it empties the input box, even in the middle of a word.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.e2e.harness.client import Tui
from tests.e2e.harness.mock_api import last_user_text
from tests.e2e.plugin import children_of_session
from tests.e2e.test_inside import open_real_session

TYPED_WORDS = "now fix the parser bug"
NEXT_STEP = "step one"
COMMANDS_WITH_TYPING_TIMES = [
    (f"/handoff {NEXT_STEP}", 0.25, 0.04),
    ("/handoff", 0.05, 0.06),
    ("/back it is slower", 0.15, 0.1),
    ("/handoff", 0.35, 0.07),
]
"""Commands, each with two times in seconds: from Enter to the next key, and between keys."""


def type_after_command(
    tui: Tui, command: str, delay_seconds: float, key_interval_seconds: float, words: str
) -> None:
    """Type a command and Enter, wait ``delay_seconds`` seconds, then type ``words`` and Enter."""
    tui.submit(command)
    time.sleep(delay_seconds)
    for letter in words:
        tui.type(letter)
        time.sleep(key_interval_seconds)
    tui.key("Enter")


def sent_prompts(tui: Tui) -> list[str]:
    """Return the prompts that the client sent, without the tags that the client adds before them."""
    prompts = [last_user_text(request) for request in tui.api.main_requests()]
    return [prompt.rpartition(">")[2].strip() for prompt in prompts]


@pytest.mark.parametrize(
    "command_count", [2, pytest.param(len(COMMANDS_WITH_TYPING_TIMES), marks=pytest.mark.wide)]
)
def test_words_typed_after_a_command_arrive_completely(
    tui: Tui, plugin: Path, parent: Path, command_count: int
) -> None:
    """Words typed after a command are sent to the new session or stay complete in its input box."""
    open_real_session(tui, plugin, {"RESUME_HOOKS_VAULT": "20G"})
    for command, delay, pace in COMMANDS_WITH_TYPING_TIMES[:command_count]:
        tui.api.clear_requests()
        type_after_command(tui, command, delay, pace, TYPED_WORDS)
        tui.wait_for("This is the new session|Handed off from|Back to 20")
        tui.wait_until_idle(2)
        whole = f"{NEXT_STEP} {TYPED_WORDS}" if NEXT_STEP in command else TYPED_WORDS
        texts = [text for text in [*sent_prompts(tui), tui.input_text()] if text]
        assert ["".join(text.split()) for text in texts] == ["".join(whole.split())]
        if tui.input_text():
            tui.clear_restored_prompt()


def test_a_second_handoff_waits_for_the_first(tui: Tui, plugin: Path, parent: Path) -> None:
    """A second ``/handoff`` that is typed during the first one runs in the first handoff's child.

    The second child opens with its next step in the input box.
    """
    open_real_session(tui, plugin)
    tui.submit("/handoff write the docs")
    tui.submit("/handoff fix the parser")
    tui.wait_for("Next step: fix the parser")
    tui.wait_until_idle(2)
    assert tui.input_text() == "fix the parser"
    assert len(children_of_session(tui.home, parent)) == 2
    tui.key("Enter")
    tui.wait_for("Mock reply 1")
    assert sent_prompts(tui) == ["fix the parser"]
