"""Tests of a question that waits for the user's answer in a session, such as the one before a trim.

The question is stored in a private file, stays open for ten minutes, and can be answered once.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.hooks import confirmations, hook_state
from resume_hooks.hooks.confirmations import StoredQuestion
from tests.builders import SESSION, ConfigHome, session_id

OTHER_ID = session_id(2)


def question_path(home: ConfigHome, session_id: str = SESSION) -> Path:
    """Return the path of the file of a session's question."""
    return home.config / "resume-hooks" / "pending" / f"trim-{session_id}.json"


def recent_question(age_seconds: float = 0, child_id: str = "") -> StoredQuestion:
    """Return a question that was asked ``age_seconds`` ago."""
    return StoredQuestion(SESSION, "--tools Read", time.time() - age_seconds, child_id)


def write_question_file(home: ConfigHome, content: bytes | dict[str, Any]) -> Path:
    """Write ``content`` to the question's file, with mode 0600."""
    path = question_path(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    path.chmod(0o600)
    return path


def valid_question_fields(**fields: object) -> dict[str, Any]:
    """Return the content of a valid question's file, with some fields replaced by ``fields``."""
    return {"version": 1, **recent_question()._asdict(), **fields}


@pytest.mark.parametrize(
    ("age_seconds", "is_open"),
    [(0, True), (599, True), (601, False), (1e9, False), (-3, True), (-60, False), (-1e9, False)],
)
def test_a_question_is_open_for_ten_minutes(
    config_home: ConfigHome, age_seconds: float, is_open: bool
) -> None:
    """A question is open for ten minutes after it was asked.

    If the clock was set back, the question's time may be in the future. The question is still open
    if this time is at most a few seconds ahead.
    """
    confirmations.store_question(recent_question(age_seconds))
    found = confirmations.find_question(SESSION)
    assert found is not None
    assert found.is_open is is_open


def test_an_answered_question_is_not_open(config_home: ConfigHome) -> None:
    """A question that has been answered is no longer open, but it keeps the id of its child."""
    confirmations.store_question(recent_question(child_id=OTHER_ID))
    found = confirmations.find_question(SESSION)
    assert found is not None
    assert (found.child, found.is_open) == (OTHER_ID, False)


def test_a_question_can_be_claimed_once(config_home: ConfigHome) -> None:
    """If two callers claim a question, only the first one succeeds.

    The question stays claimed until the first caller releases it, or until the claim is so old that
    the process that made it must have ended.
    """
    assert not confirmations.is_question_claimed(SESSION)
    question = recent_question(300)
    assert not confirmations.claim_question(question)
    confirmations.store_question(question)
    assert [confirmations.claim_question(question), confirmations.claim_question(question)] == [
        True,
        False,
    ]
    assert confirmations.find_question(SESSION) is None
    assert confirmations.is_question_claimed(SESSION)
    os.utime(
        f"{question_path(config_home)}.begun",
        (time.time() - hook_state.CLAIM_LIFETIME_SECONDS - 1,) * 2,
    )
    assert not confirmations.is_question_claimed(SESSION)
    confirmations.store_question(question)
    assert confirmations.claim_question(question), "whoever began was ended"
    confirmations.release_question_claim(SESSION)
    confirmations.release_question_claim(SESSION)
    assert list(question_path(config_home).parent.iterdir()) == []


def test_an_answered_question_cannot_be_claimed(config_home: ConfigHome) -> None:
    """A question that has been answered cannot be claimed, so no second child is made."""
    question = recent_question()
    confirmations.store_question(question._replace(child=OTHER_ID))
    assert not confirmations.claim_question(question)
    assert not confirmations.is_question_claimed(SESSION)
    assert confirmations.find_question(SESSION) == question._replace(child=OTHER_ID)


def test_a_question_is_found_only_in_its_session(config_home: ConfigHome) -> None:
    """A question is found only in its own session, not in a session whose file has a copy of it."""
    confirmations.store_question(recent_question())
    assert confirmations.find_question(OTHER_ID) is None
    question_path(config_home).rename(question_path(config_home, OTHER_ID))
    assert confirmations.find_question(OTHER_ID) is None


INVALID_QUESTION_FILES: dict[str, dict[str, Any]] = {
    "options of another type": valid_question_fields(options=["--tools"]),
    "no instant": valid_question_fields(asked="now"),
    "no instant at all": valid_question_fields(asked=None),
    "a child that is no id": valid_question_fields(child="../x"),
    "a child of another type": valid_question_fields(child=7),
}


@pytest.mark.parametrize("name", INVALID_QUESTION_FILES)
def test_an_invalid_file_is_not_a_question(config_home: ConfigHome, name: str) -> None:
    """If a question's file has invalid fields, it is ignored without an error."""
    write_question_file(config_home, INVALID_QUESTION_FILES[name])
    assert confirmations.find_question(SESSION) is None


@pytest.mark.parametrize(
    "time_text", ["NaN", "Infinity", "-Infinity", "1e999", "true", "9" * 400, "-1"]
)
def test_a_question_with_an_invalid_time_is_not_open(
    config_home: ConfigHome, time_text: str
) -> None:
    """If the time of a question is not a valid number, for example ``NaN``, the question is not open."""
    write_question_file(
        config_home, json.dumps(valid_question_fields(asked="X")).replace('"X"', time_text).encode()
    )
    found = confirmations.find_question(SESSION)
    assert found is None or not found.is_open
