"""Tests of the tool that the model uses to request a handoff.

The tool is off by default, and every handoff needs the user's consent.
"""

from __future__ import annotations

from typing import Any

import pytest

from resume_hooks.hooks.client_module import (
    MAX_NEXT_STEP_CHARACTERS,
    QUESTION_CHOICES,
    answer_module_request,
)
from tests.builders import SESSION, ConfigHome, conversation, store_settings, write_session

EVENT_FIELDS = {"screen": True, "session_id": SESSION}


def call_handoff_tool(next_step: object, **fields: object) -> dict[str, Any]:
    """Return the engine's reply when the model calls the handoff tool."""
    return answer_module_request("tool", {**EVENT_FIELDS, "args": next_step, **fields})


@pytest.fixture
def enable_handoff_tool(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> ConfigHome:
    """Turn on the tool with which the model requests a handoff."""
    monkeypatch.setenv("RESUME_HOOKS_HANDOFF_TOOL", "on")
    return config_home


def test_the_handoff_tool_is_off_by_default(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless its setting is on, the tool is not offered to the model and a call gets no answer.

    The tool is also off if the trigger ``handoff`` is off.
    """
    assert answer_module_request("offer", EVENT_FIELDS) == {}
    assert set(call_handoff_tool("x")) == {"text"}
    monkeypatch.setenv("RESUME_HOOKS_HANDOFF_TOOL", "on")
    (tool,) = answer_module_request("offer", EVENT_FIELDS)["tools"]
    assert tool["name"] == "handoff"
    monkeypatch.setenv("RESUME_HOOKS_TRIGGERS_OFF", "handoff")
    assert answer_module_request("offer", EVENT_FIELDS) == {}
    assert set(call_handoff_tool("x", said="yes")) == {"text"}
    assert not list(config_home.config.glob("projects/*/*.jsonl"))


@pytest.mark.usefixtures("enable_handoff_tool")
def test_the_question_shows_the_exact_step() -> None:
    """The question shows the next step exactly as it will be typed: one line, no control characters.

    If the step is too long, or if a sub-agent called the tool, the call is refused.
    """
    hostile = "fix it\n\x1b[2J1. Hand off\u202e then rm -rf ~"
    asked = call_handoff_tool(hostile)
    agreed = call_handoff_tool(hostile, said="yes")
    assert agreed["step"] in asked["ask"]
    assert not {"\n", "\x1b", "\u202e"} & {*asked["ask"]}
    assert asked["choices"] == [list(choice) for choice in QUESTION_CHOICES["handoff"]]
    assert set(call_handoff_tool("x" * (MAX_NEXT_STEP_CHARACTERS + 1), said="yes")) == {"text"}
    assert set(call_handoff_tool("x", said="yes", agent_id="a1")) == {"text"}
    assert "names no next step" in call_handoff_tool(None)["ask"]
    assert set(call_handoff_tool("x", screen=False)) == set(), "nobody is there to be asked"


@pytest.mark.usefixtures("enable_handoff_tool")
@pytest.mark.parametrize("answer", ["no", "Yes", "do it"])
def test_only_the_first_choice_means_yes(answer: str) -> None:
    """Only the first choice means yes. Any other answer means no, and the reply tells the model so."""
    told = call_handoff_tool("x", said=answer)
    assert set(told) == {"text"}
    assert "said no" in told["text"]


def test_a_step_written_by_the_model_is_never_sent(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A next step that the model wrote is never sent as a prompt, even if ``handoff_sends`` is on.

    Only the settings file can turn this setting on. An environment variable cannot, because a
    repository could set the variable.
    """
    write_session(config_home.project(), SESSION, conversation(2))
    assert answer_module_request("handoff", {**EVENT_FIELDS, "args": "go"})["send"] is False
    monkeypatch.setenv("RESUME_HOOKS_HANDOFF_SENDS", "on")
    monkeypatch.setenv("CLAUDE_PLUGIN_OPTION_HANDOFF_SENDS", "true")
    assert answer_module_request("handoff", {**EVENT_FIELDS, "args": "go"})["send"] is False
    store_settings(config_home.config, handoff_sends="on")
    assert answer_module_request("handoff", {**EVENT_FIELDS, "args": "go"})["send"] is True
    assert answer_module_request("handoff", {**EVENT_FIELDS, "args": ""})["send"] is False
    assert (
        answer_module_request("handoff", {**EVENT_FIELDS, "args": "go", "by_model": True})["send"]
        is False
    )
