"""The content of the pictures: an invented session about a flaky test, and a few other sessions."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.builders import assistant, custom_title, tool_result, tool_use, user, write_session

SESSION_ID = "5e12a303-4c1d-4f0a-9b57-1f0e6a2c9d10"
ROOT_SESSION_ID = "c0ffee00-3b2a-4d19-8e77-2a90b4c6d811"
SESSION_TITLE = "Flaky upload test"
NEXT_STEP = "write the regression test"
ANSWER_TEXT = "I read tests/test_upload.py first: it has the rule about the lock from docs/pool.md."
SEARCH_ARGUMENTS = ("rule", "--or", "suite", "--role", "user")
SESSION_AGE = timedelta(hours=3)
"""The age of the session in the pictures. At this age the API's cache has expired."""

OTHER_SESSIONS = (
    ("8d41f6aa", "Move the settings page to the new router", 2, 41),
    ("31b7c09e", "Why does the nightly build leak file handles", 5, 138),
    ("e9a25d70", "Release notes for 4.2", 9, 12),
    ("b4406c1f", "Add --since to the export command", 14, 77),
)
"""The other sessions: the start of the id, the title, the age in days, and the number of tokens in
thousands."""

_TURNS = (
    (
        "The upload test fails about one time in five on CI. Never raise the timeout: find out why.",
        "src/pool.py",
        16,
    ),
    ("Show me where the pool hands out sockets that are closed already.", "src/sockets.py", 22),
    ("Write a stress script that makes it fail every time.", "tools/stress_upload.py", 27),
    ("Right. Take the lock before the liveness check, not after it.", "src/pool.py", 20),
    ("Run the whole suite, and the stress script two hundred times.", "tests/test_upload.py", 34),
    ("Document the rule about the lock where the next person will see it.", "docs/pool.md", 14),
)
"""The turns of the session: the prompt, the file that is read and edited, and the number of tokens
that the turn adds, in thousands."""


def write_sessions(folder: Path, cwd: str) -> None:
    """Write the sessions that the pictures show into the project folder ``folder``."""
    begun = datetime.now(UTC) - SESSION_AGE - timedelta(hours=2)
    before = {"session_id": ROOT_SESSION_ID, "cwd": cwd, "gitBranch": "fix/upload-retry"}
    first = _build_conversation(begun - timedelta(days=1), before, _TURNS[:2])
    write_session(
        folder,
        ROOT_SESSION_ID,
        [*first, custom_title(SESSION_TITLE, ROOT_SESSION_ID)],
        mtime=time.time() - 100_000,
    )
    link = {
        "parent_session_id": ROOT_SESSION_ID,
        "parent_file": str(folder / f"{ROOT_SESSION_ID}.jsonl"),
    }
    link |= {
        "continuation_type": "handoff",
        "continued_at": _format_timestamp(begun - timedelta(minutes=1)),
    }
    own = {"session_id": SESSION_ID, "cwd": cwd, "gitBranch": "fix/upload-retry"}
    records = [{"continue_metadata": link}, *_build_conversation(begun, own, _TURNS)]
    write_session(
        folder,
        SESSION_ID,
        [*records, custom_title(f"handoff 1 · {SESSION_TITLE}", SESSION_ID)],
        mtime=time.time() - 10_000,
    )
    for head, title, days, tokens in OTHER_SESSIONS:
        number = f"{head}-1111-4111-8111-111111111111"
        said = {"session_id": number, "cwd": cwd, "gitBranch": "main"}
        turn = ((title, "src/app.py", tokens - 30),)
        at = datetime.now(UTC) - timedelta(days=days)
        write_session(
            folder,
            number,
            [*_build_conversation(at, said, turn), custom_title(title, number)],
            mtime=at.timestamp(),
        )


def _format_timestamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _build_conversation(
    start_time: datetime, shared_fields: dict[str, Any], turns: tuple[tuple[str, str, int], ...]
) -> list[dict[str, Any]]:
    """Return the records of a conversation. Each turn is a prompt, a read, an edit and a command.

    ``turns`` contains the turns in the form of ``_TURNS``.
    """
    records: list[dict[str, Any]] = []
    used, parent, at = 30_000, None, start_time

    def append_record(record: dict[str, Any]) -> None:
        nonlocal parent, at
        parent, at = record["uuid"], at + timedelta(seconds=50)
        records.append(record)

    for turn, (prompt, path, thousands) in enumerate(turns):
        file = os.path.join(str(shared_fields["cwd"]), path)
        name = f"{str(shared_fields['session_id'])[:8]}-{turn}"
        append_record(
            user(prompt, uuid=f"{name}-p", parent=parent, ts=_format_timestamp(at), **shared_fields)
        )
        for part, (tool, given, size) in enumerate(_list_tool_calls(file, thousands)):
            used += thousands * 250
            call, more = f"{name}-c{part}", {**shared_fields, "ts": _format_timestamp(at)}
            append_record(
                tool_use(
                    call,
                    uuid=f"{call}-a",
                    parent=parent,
                    name=tool,
                    tool_input=given,
                    tokens=used,
                    **more,
                )
            )
            append_record(
                tool_result(
                    call,
                    _build_tool_output(path, size),
                    uuid=f"{call}-r",
                    parent=parent,
                    **{**shared_fields, "ts": _format_timestamp(at)},
                )
            )
        used += thousands * 250
        append_record(
            assistant(
                _build_answer_text(path),
                uuid=f"{name}-z",
                parent=parent,
                ts=_format_timestamp(at),
                tokens=used,
                **shared_fields,
            )
        )
    return records


def _list_tool_calls(file: str, output_scale: int) -> tuple[tuple[str, dict[str, Any], int], ...]:
    edit = {
        "file_path": file,
        "old_string": "if alive(sock):\n",
        "new_string": "with self.lock:\n    check(sock)\n",
    }
    return (
        ("Read", {"file_path": file}, output_scale * 1_700),
        ("Edit", edit, 200),
        ("Bash", {"command": "python -m pytest tests/test_upload.py -q"}, output_scale * 1_200),
    )


def _build_tool_output(path: str, min_characters: int) -> str:
    lines = (
        f"{number:5}  {path}: the pool keeps a socket that the other side has closed"
        for number in range(9_999)
    )
    text = ""
    for line in lines:
        text += line + "\n"
        if len(text) > min_characters:
            return text
    return text


def _build_answer_text(path: str) -> str:
    return (
        f"In {path} the socket is checked before the lock is taken, so another thread can close it.\n"
        "I decided to take the lock first: retries stay as they are, the timeout is untouched."
    )
