"""Tests of a session that the API refuses.

One key opens a repaired copy, in which prompts are answered again.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi, Refusal, Request
from tests.e2e.plugin import (
    PARENT_ID,
    SOURCE_SESSION,
    children_of_session,
    text_of_request,
    wait_for_child,
)
from tests.e2e.test_inside import ASK_FIRST_OPTIONS, QUIET_ENV, engine_environment
from tests.e2e.test_trim_corpus import count_block_values
from tests.maintenance.fsck.cases import CASES, VALID_CONTENT
from tests.maintenance.fsck.test_in_client import outline_request
from tests.needs import corpus, one_in

UNSIGNED_THINKING_ERROR = "messages.{}.content.{}: Invalid `signature` in `thinking` block"
BLANK_TEXT_ERROR = "messages.{}: text content blocks must be non-empty"
UNPAIRED_CALL_ERROR = (
    "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block "
    "must have a corresponding `tool_result` block in the next message."
)
CHANGED_THINKING_ERROR = (
    "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
    "modified. These blocks must remain as they were in the original response."
)
ERRORS_BY_DEFECT_CODE = {
    "thinking-unsigned": CHANGED_THINKING_ERROR,
    "tool-call-unanswered": UNPAIRED_CALL_ERROR.format(1, "toolu_1"),
}
CASES_BY_DEFECT_CODE = {case.defect_code: case for case in CASES}
UNSIGNED_SESSION = CASES_BY_DEFECT_CODE["thinking-unsigned"].content
OVERLOADED_ERROR = "Overloaded"
REPAIR_QUESTION = "2. Open the repaired copy"
HANDOFF_HINT_PATTERN = r"/handoff\s+opens a new session"
QUIET_ENV_WITHOUT_RETRIES = QUIET_ENV | {
    "RESUME_HOOKS_VAULT": "off",
    "CLAUDE_CODE_MAX_RETRIES": "0",
}
"""Environment variables that turn off the plugin's unrelated messages and the client's retries."""


def error_of_invalid_request(request: Request) -> str:
    """Return the error that the API would send for a request, or "" if its messages are valid."""
    waiting: list[str] = []
    for at, message in enumerate(each for each in request["messages"] if each["role"] != "system"):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for place, block in enumerate(blocks):
            if block["type"] == "thinking" and not block.get("signature"):
                return UNSIGNED_THINKING_ERROR.format(at, place)
            if block["type"] == "text" and not block["text"].strip():
                return BLANK_TEXT_ERROR.format(at)
        if sorted(waiting) != sorted(
            block["tool_use_id"] for block in blocks if block["type"] == "tool_result"
        ):
            return UNPAIRED_CALL_ERROR.format(at - 1, ", ".join(waiting))
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
    return ""


def open_refused_session(
    tui: Tui, plugin: Path, content: bytes, error_message: str, env: dict[str, str] | None = None
) -> Path:
    """Open a damaged session and send a prompt, which the API refuses with the error ``error_message``."""
    parent = tui.home.install_session(content, PARENT_ID, set_cwd=True)
    status = 529 if error_message == OVERLOADED_ERROR else 400
    tui.api.script = lambda _: Refusal(status, error_message)
    tui.start(
        ASK_FIRST_OPTIONS,
        resume=PARENT_ID,
        plugin_dir=plugin,
        extra_env=QUIET_ENV_WITHOUT_RETRIES | (env or {}),
    )
    tui.submit("hello ALPHA")
    tui.wait_for("API Error")
    return parent


def check_no_question_appears(tui: Tui) -> None:
    """Check that no question appears, no copy is written, and the next prompt is answered."""
    tui.wait_until_idle(2)
    assert REPAIR_QUESTION not in tui.text()
    assert "The API refuses this session" not in tui.text()
    assert len(tui.home.sessions()) == 1
    tui.api.script = ()
    tui.submit("still here GAMMA")
    tui.wait_for("Mock reply")


@pytest.mark.parametrize("defect_code", one_in(2, ERRORS_BY_DEFECT_CODE))
def test_one_key_opens_a_repaired_copy(modern_tui: Tui, plugin: Path, defect_code: str) -> None:
    """If the user answers the question with one key, a repaired copy opens, without a request.

    The next request is valid for the API and contains the whole conversation. While the API is only
    overloaded, no question appears.
    """
    parent = open_refused_session(
        modern_tui, plugin, CASES_BY_DEFECT_CODE[defect_code].content, OVERLOADED_ERROR
    )
    check_no_question_appears(modern_tui)
    modern_tui.api.script = lambda _: Refusal(400, ERRORS_BY_DEFECT_CODE[defect_code])
    modern_tui.submit("hello again DELTA")
    modern_tui.wait_for(REPAIR_QUESTION)
    modern_tui.wait_until_idle(2)
    before = parent.read_bytes()
    assert children_of_session(modern_tui.home, parent) == []
    modern_tui.api.clear_requests()
    modern_tui.key("2")
    modern_tui.wait_until_gone(REPAIR_QUESTION)
    modern_tui.wait_until_idle()
    child = wait_for_child(modern_tui.home, parent)
    modern_tui.wait_until_idle()
    assert not modern_tui.api.requests
    assert parent.read_bytes().startswith(before)
    modern_tui.api.script = lambda request: (
        Refusal(400, error_of_invalid_request(request))
        if error_of_invalid_request(request)
        else None
    )
    modern_tui.submit("now go on BETA")
    modern_tui.wait_for(r"BETA\s+● Mock reply")
    (request,) = modern_tui.api.main_requests()
    assert error_of_invalid_request(request) == ""
    said = [message for message in request["messages"] if message["role"] != "system"]
    assert " ".join(filter(None, outline_request(said))).startswith(
        CASES_BY_DEFECT_CODE[defect_code].repaired_outline
    )
    assert "hello ALPHA" in text_of_request(request)
    modern_tui.wait_until_idle()
    assert "now go on BETA" in child.read_text()


@pytest.mark.wide
def test_a_real_session_is_repaired(tui: Tui, plugin: Path) -> None:
    """A real session whose thinking lost its signatures is repaired.

    The copy's request is valid for the API and contains every call and result.
    """
    source = re.sub(
        rb'"signature":"[^"]+"', b'"signature":""', (corpus() / SOURCE_SESSION).read_bytes()
    )
    parent = open_refused_session(tui, plugin, source, CHANGED_THINKING_ERROR)
    tui.wait_for(REPAIR_QUESTION)
    tui.wait_until_idle(2)
    first, asked = tui.api.main_requests()[0], len(tui.api.requests)
    assert "signature" in error_of_invalid_request(first)
    tui.key("2")
    tui.wait_until_gone(REPAIR_QUESTION)
    tui.wait_until_idle()
    assert len(children_of_session(tui.home, parent)) == 1
    assert len(tui.api.requests) == asked
    tui.api.script = ()
    tui.submit("now go on BETA")
    tui.wait_for("Mock reply")
    (request,) = tui.api.main_requests()[asked:]
    assert error_of_invalid_request(request) == ""
    assert count_block_values(request, "tool_use", "id") == count_block_values(
        first, "tool_use", "id"
    )
    assert count_block_values(request, "tool_result", "tool_use_id") == count_block_values(
        first, "tool_result", "tool_use_id"
    )


@pytest.mark.wide
def test_a_declined_repair_changes_nothing_and_is_not_offered_again(tui: Tui, plugin: Path) -> None:
    """If the user declines the repair, the session stays unchanged, and one line on the screen says so.

    The line is not sent to the model. If the same error occurs again, the question does not appear
    again.
    """
    parent = open_refused_session(tui, plugin, UNSIGNED_SESSION, CHANGED_THINKING_ERROR)
    tui.wait_for(REPAIR_QUESTION)
    tui.wait_until_idle(2)
    tui.key("Enter")
    tui.wait_for("The session was not changed")
    tui.submit("hello again DELTA")
    tui.wait_for("DELTA[^─]*API Error")
    tui.wait_until_idle(2)
    assert REPAIR_QUESTION not in tui.text()
    assert children_of_session(tui.home, parent) == []
    tui.api.script = ()
    tui.submit("still here GAMMA")
    tui.wait_for("Mock reply")
    assert "was not changed" not in text_of_request(tui.api.main_requests()[-1])


@pytest.mark.wide
def test_a_handoff_is_suggested_once_if_no_repair_helps(tui: Tui, plugin: Path) -> None:
    """If the session's file is not damaged, one line suggests ``/handoff``, but only once.

    In this case, only the client's memory contains the content that the API refuses.
    """
    open_refused_session(tui, plugin, VALID_CONTENT, CHANGED_THINKING_ERROR)
    tui.wait_for(HANDOFF_HINT_PATTERN)
    tui.submit("hello again DELTA")
    tui.wait_for("DELTA[^─]*API Error")
    tui.wait_until_idle(2)
    assert len(re.findall(HANDOFF_HINT_PATTERN, tui.text())) == 1
    assert len(tui.home.sessions()) == 1


@pytest.mark.wide
def test_an_error_with_another_cause_offers_no_repair(tui: Tui, plugin: Path) -> None:
    """If the API error does not come from the session's damage, no repair is offered."""
    open_refused_session(tui, plugin, UNSIGNED_SESSION, "max_tokens: 99999 > 64000")
    check_no_question_appears(tui)


@pytest.mark.wide
def test_a_failing_engine_leaves_the_session_unchanged(
    tui: Tui, plugin: Path, tmp_path: Path
) -> None:
    """If the engine fails, neither a question nor an error message appears, and the session continues."""
    open_refused_session(
        tui,
        plugin,
        UNSIGNED_SESSION,
        CHANGED_THINKING_ERROR,
        engine_environment(tmp_path, "sys.exit('the engine is ill')"),
    )
    check_no_question_appears(tui)
    assert "the engine is ill" not in tui.text()


def test_print_mode_offers_no_repair(
    client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path
) -> None:
    """``claude -p`` reports the API's error and offers no repair, because no user could answer."""
    parent = home.install_session(UNSIGNED_SESSION, PARENT_ID, set_cwd=True)
    api.script = lambda _: Refusal(400, CHANGED_THINKING_ERROR)
    done = run_print(
        client,
        home,
        api,
        "hello",
        resume=PARENT_ID,
        plugin_dir=plugin,
        extra_env=QUIET_ENV_WITHOUT_RETRIES,
    )
    assert "cannot be modified" in done.text
    assert "The API refuses this session" not in done.text
    assert children_of_session(home, parent) == []
