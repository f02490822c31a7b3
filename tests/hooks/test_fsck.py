"""Tests of the repair that the module offers after the API refused a request.

The tests cover the module's question and the effect of each answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resume_hooks.hooks import fsck, prompt
from resume_hooks.hooks.client_module import QUESTION_CHOICES, answer_module_request
from resume_hooks.hooks.triggers import REPAIR_QUESTION
from tests.builders import SESSION, ConfigHome
from tests.hooks.conftest import list_children
from tests.maintenance.fsck.cases import CASES, VALID_CONTENT, Case

SIGNATURE_ERROR = "API Error: 400 messages.3.content.0: Invalid `signature` in `thinking` block"
TOOL_USE_ERROR = (
    "API Error: 400 due to tool use concurrency issues. Run /rewind to recover the conversation."
)
UNRELATED_API_ERROR = "API Error: 400 max_tokens: 99999 > 64000"
CASES_BY_CODE = {case.defect_code: case for case in CASES}


@pytest.fixture(autouse=True)
def turn_clipboard_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn the clipboard off for these tests."""
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")


def write_broken_session(case: Case | bytes, home: ConfigHome) -> Path:
    """Write a session to the project: the session of the test case, or a file with these bytes."""
    path = home.project() / f"{SESSION}.jsonl"
    path.write_bytes(case if isinstance(case, bytes) else case.content)
    return path


def ask_engine(text: str, **fields: object) -> dict[str, Any]:
    """Return the engine's reply to the module, which reports an API error or the user's answer."""
    return answer_module_request(
        REPAIR_QUESTION, {"session_id": SESSION, "screen": True, "args": text, **fields}
    )


@pytest.mark.parametrize(
    ("code", "message", "question_part"),
    [
        ("thinking-unsigned", SIGNATURE_ERROR, "thinking without a signature (record 3)."),
        (
            "thinking-altered",
            SIGNATURE_ERROR,
            "the same signature as a different text in record 3 (record 1), and 1 more.",
        ),
        ("tool-call-unanswered", TOOL_USE_ERROR, "the call 1 has no result (record 2)."),
    ],
)
def test_the_first_choice_makes_a_repaired_copy(
    config_home: ConfigHome, code: str, message: str, question_part: str
) -> None:
    """The question's first choice makes a repaired copy of the session and leaves the session unchanged.

    Before the user answers, no copy exists. The question names the defect and the records that the
    copy will not contain.
    """
    parent = write_broken_session(CASES_BY_CODE[code], config_home)
    asked = ask_engine(message)
    assert question_part in asked["ask"]
    assert ("Not kept: record 2: omitted, because its counterpart is missing" in asked["ask"]) is (
        message == TOOL_USE_ERROR
    )
    assert "tokens here, about" in asked["ask"]
    assert asked["ask"].count("\n") == 2
    assert asked["choices"] == [list(choice) for choice in QUESTION_CHOICES[REPAIR_QUESTION]]
    assert list_children(parent) == []
    made = ask_engine(QUESTION_CHOICES[REPAIR_QUESTION][0][1])
    (child,) = list_children(parent)
    assert (made["open"], made["fill"]) == (child.stem, "")
    assert f"/resume {child.stem}" in made["by_hand"]
    assert parent.read_bytes() == CASES_BY_CODE[code].content
    assert "ask" not in ask_engine(message, session_id=child.stem), (
        "there is nothing left to repair"
    )


@pytest.mark.parametrize("word", [QUESTION_CHOICES[REPAIR_QUESTION][-1][1], "what is that?"])
def test_the_answer_not_now_changes_nothing(config_home: ConfigHome, word: str) -> None:
    """If the user answers "not now", no copy is made, and the reply names commands for a later repair.

    If the user types any other text as the answer, the effect is the same.
    """
    parent = write_broken_session(CASES_BY_CODE["thinking-unsigned"], config_home)
    told = ask_engine(word)["text"]
    assert "/handoff" in told
    assert f"fsck {SESSION} --repair" in told
    assert list_children(parent) == []


@pytest.mark.parametrize("code", ["history-cut", "tool-call-unanswered"])
def test_a_defect_without_a_repair_is_reported(config_home: ConfigHome, code: str) -> None:
    """If a defect cannot be repaired, the reply suggests ``/handoff``, and no copy is made.

    The same is true if the file is valid, or if it has a different defect from the one in the API's
    error.
    """
    parent = write_broken_session(CASES_BY_CODE[code], config_home)
    assert "/handoff" in ask_engine(SIGNATURE_ERROR)["text"]
    write_broken_session(VALID_CONTENT, config_home)
    assert "/handoff" in ask_engine(TOOL_USE_ERROR)["text"]
    assert list_children(parent) == []


def test_an_unrepairable_api_error_causes_no_question(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the API error does not come from the session's records, the reply is empty.

    In this case, the session's file is not even read. The reply is also empty if the client has no
    screen or if the feature is turned off.
    """
    write_broken_session(CASES_BY_CODE["thinking-unsigned"], config_home)
    assert ask_engine(SIGNATURE_ERROR, screen=False) == {}
    with monkeypatch.context() as patched:
        patched.setenv("RESUME_HOOKS_TRIGGERS_OFF", "fsck")
        assert ask_engine(SIGNATURE_ERROR) == {}
    monkeypatch.delattr(fsck, "_plan_repair_of_request")
    assert (
        ask_engine(UNRELATED_API_ERROR)
        == ask_engine("API Error: 529 Overloaded (request 1400)")
        == {}
    )


def test_a_failed_check_is_reported_without_a_question(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the session's file is missing, the reply says that the file could not be checked.

    If a bug raises an error in the engine, the reply to the API error is empty, and the reply to
    the user's answer is a sentence.
    """
    del config_home
    assert "could not be checked" in ask_engine(SIGNATURE_ERROR)["text"]
    assert "nothing to repair" in ask_engine("yes")["text"].lower()

    def raise_bug(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(prompt, "run_trigger_module", raise_bug)
    assert ask_engine(SIGNATURE_ERROR) == {}
    assert "RuntimeError: boom" in ask_engine("yes")["text"]
