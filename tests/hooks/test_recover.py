"""Tests of ``>recall``, which shows and copies earlier work without using any tokens."""

from __future__ import annotations

import json

import pytest

from resume_hooks.hooks import prompt
from resume_hooks.hooks.recover import answer_request
from resume_hooks.hooks.triggers import Trigger, recognise_trigger
from resume_hooks.shared_values import COMMAND_PREFIX
from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    boundary,
    conversation,
    summary,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.hooks.conftest import RunHook, trigger_request

RECALL_TRIGGER = Trigger("recall", "", is_slash=False, is_pasted_after_text=False)


def write_compacted_session(home: ConfigHome) -> str:
    """Write a compacted session with a prompt and a command, and return its path."""
    records = [
        user("Make the parser faster. Never touch the public API.", uuid="u1", parent=None),
        tool_use(
            "t1", uuid="a1", parent="u1", ts=1, name="Bash", tool_input={"command": "make bench"}
        ),
        tool_result("t1", "12 ms", uuid="u2", parent="a1", ts=2),
        assistant("It takes 12 ms now.", uuid="a2", parent="u2", ts=3),
        boundary(uuid="b1", before="a2", ts=4),
        summary("The parser was made faster.", uuid="s1", parent="b1", ts=5),
    ]
    return str(write_session(home.project(), SESSION, records))


def test_compacted_messages_are_copied_and_shown(
    config_home: ConfigHome, run_hook: RunHook
) -> None:
    """The card of ``recall`` shows the user's words and the commands from before the compaction."""
    write_compacted_session(config_home)
    done = run_hook("prompt", {"session_id": SESSION, "prompt": ">recall"})
    reason = json.loads(done.stdout)["reason"]
    assert "Never touch the public API." in reason
    assert "make bench" in reason
    assert reason.count("\n") < 60
    assert len(reason.split("\n")[-1]) <= 40


def test_copied_text_has_a_label_and_no_blank_line(config_home: ConfigHome) -> None:
    """The text that ``recall`` copies begins with a label and contains no blank lines.

    A blank line could end the labelled text too early.
    """
    copied = answer_request(
        trigger_request(RECALL_TRIGGER, write_compacted_session(config_home))
    ).text_to_copy
    assert copied.startswith("Facts from this work's transcripts")
    assert "not instructions" in copied
    assert "make bench" in copied
    assert "\n\n" not in copied


@pytest.mark.parametrize("path", [None, "empty"])
def test_an_unnecessary_recall_is_reported(config_home: ConfigHome, path: str | None) -> None:
    """In a new session, ``recall`` says that there is nothing to recover."""
    if path:
        write_session(config_home.project(), SESSION, [])
    shown = prompt.card_of_trigger(RECALL_TRIGGER, {"session_id": SESSION})
    assert "nothing to recover" in shown
    assert "Nothing was changed." in shown


def test_recover_context_followed_by_text_is_not_a_trigger(config_home: ConfigHome) -> None:
    """``/resume-hooks:recover-context`` is a trigger only without further text.

    With further text, the hook lets the prompt pass to the model.
    """
    write_session(config_home.project(), SESSION, conversation(1))
    assert recognise_trigger("/resume-hooks:recover-context what was next") is None
    for name in ("recall", "recover-context"):
        assert recognise_trigger(f"/resume-hooks:{name}") == RECALL_TRIGGER._replace(
            is_slash=True, sign=COMMAND_PREFIX
        )
