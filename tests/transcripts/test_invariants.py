"""Tests of the checks of a written session. In each test case, one check fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.errors import CheckFailed
from resume_hooks.transcripts.invariants import Check, check_session, require_all_checks
from tests.builders import SESSION, assistant, line, session_bytes, tool_result, tool_use, user

VALID_RECORDS: list[Any] = [
    {"continue_metadata": {"parent_session_id": SESSION}},
    user("hi", uuid="a"),
    tool_use("t1", uuid="b", parent="a", ts=1),
    tool_result("t1", uuid="c", parent="b", ts=2),
    assistant("done", uuid="d", parent="c", ts=3),
]


def failed_checks(data: bytes, folder: Path, mode: int = 0o600) -> set[str]:
    """Return the names of the checks that fail for a file with these bytes."""
    path = folder / "x.tmp"
    path.write_bytes(data)
    path.chmod(mode)
    return {check.name for check in check_session(str(path), SESSION) if not check.ok}


def test_a_valid_session_passes_all_checks(tmp_path: Path) -> None:
    """A session with metadata, a prompt, a tool call with its result and an answer passes all checks."""
    assert failed_checks(session_bytes(VALID_RECORDS), tmp_path) == set()


TREE_CHECK_NAME = "there is one root, and every parent precedes its child"
LIVE_CHAIN_CHECK_NAME = "the live chain contains every record of the file, in the file's order"
TIMESTAMP_CHECK_NAME = "timestamps are in order, and the last one is unique"
FORM_CHECK_NAME = "every message has an accepted form"
PAIRS_CHECK_NAME = "every tool call has one result"
ANSWER_WITH_STRING_CONTENT = {
    **assistant("x", uuid="b", parent="a"),
    "message": {"role": "assistant", "content": "x"},
}


def prompt_after(
    uuid: str, parent: str | None = "d", ts: float | str = 4, **extra_fields: Any
) -> dict[str, Any]:
    """Return a prompt that follows the last record of a valid session."""
    return user("x", uuid=uuid, parent=parent, ts=ts, **extra_fields)


BROKEN_FILES: dict[str, tuple[list[Any], str]] = {
    "garbage line": ([*VALID_RECORDS, b"{torn"], "every line is a whole JSON object"),
    "second root": ([*VALID_RECORDS, prompt_after("e", None)], TREE_CHECK_NAME),
    "dangling parent": ([*VALID_RECORDS, prompt_after("e", "?")], TREE_CHECK_NAME),
    "no chain at all": ([VALID_RECORDS[0]], TREE_CHECK_NAME),
    "parent after child": (
        [VALID_RECORDS[0], VALID_RECORDS[1], VALID_RECORDS[3], VALID_RECORDS[2], VALID_RECORDS[4]],
        TREE_CHECK_NAME,
    ),
    "two branches": (
        [*VALID_RECORDS, assistant("x", uuid="e", parent="c", ts=4)],
        LIVE_CHAIN_CHECK_NAME,
    ),
    "sidechain leaf": (
        [*VALID_RECORDS, prompt_after("e", isSidechain=True)],
        LIVE_CHAIN_CHECK_NAME,
    ),
    "id twice": ([*VALID_RECORDS, prompt_after("a")], "record ids are unique"),
    "time runs back": ([*VALID_RECORDS, prompt_after("e", ts=1)], TIMESTAMP_CHECK_NAME),
    "two are latest": ([*VALID_RECORDS, prompt_after("e", ts=3)], TIMESTAMP_CHECK_NAME),
    "no time": ([*VALID_RECORDS, prompt_after("e", ts="soon")], TIMESTAMP_CHECK_NAME),
    "assistant first": (
        [assistant("x", uuid="a")],
        "the conversation starts with a user's message",
    ),
    "result first": (
        [tool_result("t9", uuid="a", parent=None)],
        "the conversation starts with a user's message",
    ),
    "string content": ([user("hi", uuid="a"), ANSWER_WITH_STRING_CONTENT], FORM_CHECK_NAME),
    "empty text": ([user("", uuid="a")], FORM_CHECK_NAME),
    "blank block": (
        [user("hi", uuid="a"), assistant(" \n", uuid="b", parent="a")],
        FORM_CHECK_NAME,
    ),
    "unanswered call": (VALID_RECORDS[:3], PAIRS_CHECK_NAME),
    "answered twice": (
        [*VALID_RECORDS, tool_result("t1", uuid="e", parent="d", ts=4)],
        PAIRS_CHECK_NAME,
    ),
    "foreign session id": (
        [*VALID_RECORDS, prompt_after("e", session_id="else")],
        "every record has the session's id",
    ),
}


@pytest.mark.parametrize("case", BROKEN_FILES)
def test_each_broken_rule_fails_its_check(tmp_path: Path, case: str) -> None:
    """A file that breaks a rule fails the check of this rule."""
    records, name = BROKEN_FILES[case]
    assert name in failed_checks(session_bytes(records), tmp_path)


def test_an_incomplete_last_line_fails_the_check(tmp_path: Path) -> None:
    """A last line without a line feed fails the check, because the line may be incomplete."""
    assert "every line is a whole JSON object" in failed_checks(
        session_bytes(VALID_RECORDS)[:-1], tmp_path
    )


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604])
def test_a_file_that_other_users_can_read_fails_the_check(tmp_path: Path, mode: int) -> None:
    """A file that other users can read fails the check "the file is private"."""
    assert failed_checks(session_bytes(VALID_RECORDS), tmp_path, mode) == {"the file is private"}


def test_one_error_names_all_failed_checks(tmp_path: Path) -> None:
    """``require_all_checks`` names all failed checks and the file in one error."""
    require_all_checks([Check("a", ok=True)], "/x/file.jsonl")
    with pytest.raises(CheckFailed, match=r"file\.jsonl was not kept: b; c"):
        require_all_checks(
            [
                Check("a", ok=True),
                Check("b", ok=False),
                Check("c", ok=False),
            ],
            "/x/file.jsonl",
        )


def test_checks_do_not_change_the_file(tmp_path: Path) -> None:
    """The checks do not change the file."""
    path = tmp_path / "x.tmp"
    path.write_bytes(b"".join(line(record) + b"\n" for record in VALID_RECORDS))
    before = path.read_bytes(), os.stat(path).st_mtime_ns
    check_session(str(path), SESSION)
    assert (path.read_bytes(), os.stat(path).st_mtime_ns) == before
