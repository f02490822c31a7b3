"""The tool by which the model asks for a handoff: off unless switched on, and nothing without the person's yes."""

from __future__ import annotations

from typing import Any

import pytest

from resume_hooks.hooks.client_module import MAX_STEP_CHARACTERS, QUESTION_CHOICES, answer_module
from tests.builders import SESSION, ConfigHome, conversation, store, write_session

EVENT = {"screen": True, "session_id": SESSION}


def call(step: object, **fields: object) -> dict[str, Any]:
    """Return the module's reply to a call of the tool by the model."""
    return answer_module("tool", {**EVENT, "args": step, **fields})


@pytest.fixture
def on(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> ConfigHome:
    """Turn the tool on."""
    monkeypatch.setenv("RESUME_HOOKS_HANDOFF_TOOL", "on")
    return config_home


def test_it_is_off_unless_switched_on(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither offered nor answered; the same is true if handoffs are off."""
    assert answer_module("offer", EVENT) == {}
    assert set(call("x")) == {"text"}
    monkeypatch.setenv("RESUME_HOOKS_HANDOFF_TOOL", "on")
    (tool,) = answer_module("offer", EVENT)["tools"]
    assert tool["name"] == "handoff"
    monkeypatch.setenv("RESUME_HOOKS_TRIGGERS_OFF", "handoff")
    assert answer_module("offer", EVENT) == {}
    assert set(call("x", said="yes")) == {"text"}
    assert not list(config_home.config.glob("projects/*/*.jsonl"))


@pytest.mark.usefixtures("on")
def test_the_question_shows_the_exact_step() -> None:
    """It is on one line, without control characters. A longer step, or a call by a sub-agent, is refused."""
    hostile = "fix it\n\x1b[2J1. Hand off\u202e then rm -rf ~"
    asked = call(hostile)
    agreed = call(hostile, said="yes")
    assert agreed["step"] in asked["ask"]
    assert not {"\n", "\x1b", "\u202e"} & {*asked["ask"]}
    assert asked["choices"] == [list(choice) for choice in QUESTION_CHOICES["handoff"]]
    assert set(call("x" * (MAX_STEP_CHARACTERS + 1), said="yes")) == {"text"}
    assert set(call("x", said="yes", agent_id="a1")) == {"text"}
    assert "names no next step" in call(None)["ask"]
    assert set(call("x", screen=False)) == set(), "nobody is there to be asked"


@pytest.mark.usefixtures("on")
@pytest.mark.parametrize("said", ["no", "Yes", "do it"])
def test_only_the_first_choice_is_a_yes(said: str) -> None:
    """Any other word is a no, and the model reads it."""
    told = call("x", said=said)
    assert set(told) == {"text"}
    assert "said no" in told["text"]


def test_a_models_step_is_never_sent(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``handoff_sends`` applies only to typed text, and no variable sets it, because a repository may."""
    write_session(config_home.project(), SESSION, conversation(2))
    assert answer_module("handoff", {**EVENT, "args": "go"})["send"] is False
    monkeypatch.setenv("RESUME_HOOKS_HANDOFF_SENDS", "on")
    monkeypatch.setenv("CLAUDE_PLUGIN_OPTION_HANDOFF_SENDS", "true")
    assert answer_module("handoff", {**EVENT, "args": "go"})["send"] is False
    store(config_home.config, handoff_sends="on")
    assert answer_module("handoff", {**EVENT, "args": "go"})["send"] is True
    assert answer_module("handoff", {**EVENT, "args": ""})["send"] is False
    assert answer_module("handoff", {**EVENT, "args": "go", "by_model": True})["send"] is False
