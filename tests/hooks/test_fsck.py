"""A request that the API refused: what the module is told to ask, and what each answer does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resume_hooks.hooks import fsck, prompt
from resume_hooks.hooks.client_module import QUESTION_CHOICES, answer_module
from resume_hooks.hooks.triggers import REPAIR_QUESTION
from tests.builders import SESSION, ConfigHome
from tests.hooks.conftest import children
from tests.maintenance.fsck.cases import BYTES, CASES, Case

UNSIGNED = "API Error: 400 messages.3.content.0: Invalid `signature` in `thinking` block"
UNPAIRED = (
    "API Error: 400 due to tool use concurrency issues. Run /rewind to recover the conversation."
)
OTHER = "API Error: 400 max_tokens: 99999 > 64000"
CASE = {case.code: case for case in CASES}


@pytest.fixture(autouse=True)
def no_clipboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the cards of these tests out of the clipboard."""
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")


def installed(case: Case | bytes, home: ConfigHome) -> Path:
    """A session in the project."""
    path = home.project() / f"{SESSION}.jsonl"
    path.write_bytes(case if isinstance(case, bytes) else case.content)
    return path


def ask(text: str, **fields: object) -> dict[str, Any]:
    """Return the module's reply."""
    return answer_module(
        REPAIR_QUESTION, {"session_id": SESSION, "screen": True, "args": text, **fields}
    )


@pytest.mark.parametrize(
    ("code", "message", "said"),
    [
        ("thinking-unsigned", UNSIGNED, "thinking without a signature (record 3)."),
        (
            "thinking-altered",
            UNSIGNED,
            "stands under another text in record 3 (record 1), and 1 more.",
        ),
        ("tool-call-unanswered", UNPAIRED, "the call 1 has no result (record 2)."),
    ],
)
def test_one_key_makes_the_copy(
    config_home: ConfigHome, code: str, message: str, said: str
) -> None:
    """The question tells what is wrong and what the copy has, or not.

    Nothing is there before the first label.
    """
    parent = installed(CASE[code], config_home)
    asked = ask(message)
    assert said in asked["ask"]
    assert ("Not kept: record 2: omitted, because its counterpart is missing" in asked["ask"]) is (
        message == UNPAIRED
    )
    assert "tokens here, about" in asked["ask"]
    assert asked["ask"].count("\n") == 2
    assert asked["choices"] == [list(choice) for choice in QUESTION_CHOICES[REPAIR_QUESTION]]
    assert children(parent) == []
    made = ask(QUESTION_CHOICES[REPAIR_QUESTION][0][1])
    (child,) = children(parent)
    assert (made["open"], made["fill"]) == (child.stem, "")
    assert f"/resume {child.stem}" in made["by_hand"]
    assert parent.read_bytes() == CASE[code].content
    assert "ask" not in ask(message, session_id=child.stem), "there is nothing left to repair"


@pytest.mark.parametrize("word", [QUESTION_CHOICES[REPAIR_QUESTION][-1][1], "what is that?"])
def test_not_now_leaves_everything(config_home: ConfigHome, word: str) -> None:
    """Typed text in place of a label has the same effect; the answer names a later remedy."""
    parent = installed(CASE["thinking-unsigned"], config_home)
    told = ask(word)["text"]
    assert "/handoff" in told
    assert f"fsck {SESSION} --repair" in told
    assert children(parent) == []


@pytest.mark.parametrize("code", ["history-cut", "tool-call-unanswered"])
def test_a_defect_without_a_repair_is_reported(config_home: ConfigHome, code: str) -> None:
    """The file is sound, or has other defects than the API's error. A fresh session helps."""
    parent = installed(CASE[code], config_home)
    assert "/handoff" in ask(UNSIGNED)["text"]
    installed(BYTES, config_home)
    assert "/handoff" in ask(UNPAIRED)["text"]
    assert children(parent) == []


def test_nothing_is_said_of_other_errors(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file is read for them.

    Nothing is asked without a screen, or where that is switched off.
    """
    installed(CASE["thinking-unsigned"], config_home)
    assert ask(UNSIGNED, screen=False) == {}
    with monkeypatch.context() as patched:
        patched.setenv("RESUME_HOOKS_TRIGGERS_OFF", "fsck")
        assert ask(UNSIGNED) == {}
    monkeypatch.delattr(fsck, "_plan_repair_of_request")
    assert ask(OTHER) == ask("API Error: 529 Overloaded (request 1400)") == {}


def test_failures_ask_nothing(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that can't be read leads to the handoff.

    A bug is silent until somebody pressed a key.
    """
    del config_home
    assert "could not be checked" in ask(UNSIGNED)["text"]
    assert "nothing to repair" in ask("yes")["text"].lower()

    def broken(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(prompt, "run_trigger_module", broken)
    assert ask(UNSIGNED) == {}
    assert "RuntimeError: boom" in ask("yes")["text"]
