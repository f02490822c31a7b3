"""Tests that the real client continues the session that the user finds and chooses in the chooser."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from tests.builders import (
    assistant,
    boundary,
    conversation,
    custom_title,
    session_bytes,
    session_id,
    summary,
)
from tests.e2e.harness.api_requests import conversation_of_request
from tests.e2e.harness.client import ClientHome, ClientVersion
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.processes import wait_until
from tests.e2e.harness.terminal import PROMPT_SIGN
from tests.needs import one_in
from tests.screens import Screen

INPUT_BOX_TOP_PATTERN = f"^─{{20,}}.*\n{PROMPT_SIGN}"


@pytest.fixture
def project_with_sessions(home: ClientHome, client: ClientVersion) -> Path:
    """Create a project with two sessions, and a program ``claude`` that starts the client.

    Return the project's folder.
    """
    for number, title in ((1, "Fix the parser"), (2, "Write the docs")):
        rows = [
            *conversation(2, session_id=session_id(number), prefix=f"s{number}-"),
            custom_title(title, session_id(number)),
        ]
        path = home.install_session(session_bytes(rows), session_id(number), set_cwd=True)
        os.utime(path, (time.time() - 3_600 * number,) * 2)
    (home.root / "bin").mkdir()
    start = home.root / "bin" / "claude"
    start.write_text(f'#!/bin/sh\nexec {shlex.join(client.command)} "$@"\n')
    start.chmod(0o755)
    return home.cwd


def start_screen(
    home: ClientHome, api: MockApi, *arguments: str, cwd: Path | None = None, **screen_size: int
) -> Screen:
    """Run ``resume-hooks`` with these arguments in the client's home, and return its screen."""
    path = f"{home.root}/bin:{os.environ.get('PATH', os.defpath)}"
    environ = home.env(api.client_env() | {"PATH": path, "PYTHON": sys.executable})
    return Screen(
        arguments, folder=cwd or home.cwd, environ=environ, notes=home.root / "notes", **screen_size
    )


def last_request_conversation(api: MockApi) -> list[tuple[str, str]]:
    """Return the conversation in the client's last main request."""
    return conversation_of_request(api.main_requests()[-1])


@pytest.mark.parametrize("size", one_in(2, [(60, 16), (120, 50)]))
def test_the_client_continues_the_chosen_session(
    home: ClientHome, api: MockApi, project_with_sessions: Path, size: tuple[int, int]
) -> None:
    """The client starts in the chosen session's folder and sends the session's messages.

    The user starts the chooser in a different folder and chooses from the list of all projects.
    """
    elsewhere = home.root / "elsewhere"
    elsewhere.mkdir()
    columns, rows = size
    with start_screen(
        home, api, "resume", "--all", cwd=elsewhere, columns=columns, rows=rows
    ) as screen:
        screen.wait_for("^> Fix the parser")
        screen.type("docs")
        screen.wait_for("^> Write the docs")
        screen.key("Enter")
        screen.wait_for(r"q to leave \[1\]")
        screen.key("Enter")
        screen.wait_for(INPUT_BOX_TOP_PATTERN, 60)
        screen.wait_for("answer 3")
        screen.type("and now")
        screen.wait_for("and now")
        screen.key("Enter")
        wait_for_sent_turn(api, screen)
    messages = last_request_conversation(api)
    assert [text for _, text in messages[:4]] == ["prompt 0", "answer 1", "prompt 2", "answer 3"]
    assert "and now" in messages[-1][1]
    assert [path.stem for path in home.sessions()][-1] == session_id(2)


def test_the_client_continues_in_a_fork(
    home: ClientHome, api: MockApi, project_with_sessions: Path
) -> None:
    """``resume --fork`` continues in a new session and does not change the session that it forks."""
    before = {path: path.read_bytes() for path in home.sessions()}
    with start_screen(home, api, "resume", "Fix the parser", "--fork") as screen:
        screen.wait_for(INPUT_BOX_TOP_PATTERN, 60)
        screen.type("and now")
        screen.wait_for("and now")
        screen.key("Enter")
        wait_for_sent_turn(api, screen)
    assert [text for _, text in last_request_conversation(api)[:4]] == [
        "prompt 0",
        "answer 1",
        "prompt 2",
        "answer 3",
    ]
    assert {path: path.read_bytes() for path in before} == before
    assert len(home.sessions()) == 3


def test_the_chooser_undoes_a_compaction(
    home: ClientHome, api: MockApi, project_with_sessions: Path
) -> None:
    """Ctrl+B opens a new session with the messages from before the last compaction.

    If the session was never compacted, Ctrl+B only says that there is no compaction.
    """
    own = session_id(3)
    rows = [
        *conversation(2, session_id=own, prefix="s3-"),
        boundary(uuid="cut", before="s3-3", ts=5, session_id=own),
        summary("SUMMED UP", uuid="sum", parent="cut", ts=6, session_id=own),
        assistant("AFTER", uuid="after", parent="sum", ts=7, session_id=own),
        custom_title("Mend the pool", own),
    ]
    path = home.install_session(session_bytes(rows), own, set_cwd=True)
    before = path.read_bytes()
    with start_screen(home, api, "resume") as screen:
        screen.wait_for("^> Mend the pool")
        screen.type("parser")
        screen.wait_for("^> Fix the parser")
        screen.key("C-b")
        screen.wait_for("The session has no compaction to undo")
        screen.key("Down")
        assert wait_until(lambda: "The session has no compaction to undo" not in screen.text())
        screen.key("C-u")
        screen.type("mend")
        screen.wait_for("^> Mend the pool")
        screen.key("C-b")
        screen.wait_for(r"Ctrl\+B again")
        screen.key("C-b")
        screen.wait_for(r"q to leave \[1\]")
        screen.key("Enter")
        screen.wait_for(INPUT_BOX_TOP_PATTERN, 60)
        screen.type("and now")
        screen.wait_for("and now")
        screen.key("Enter")
        wait_for_sent_turn(api, screen)
    assert [text for _, text in last_request_conversation(api)[:4]] == [
        "prompt 0",
        "answer 1",
        "prompt 2",
        "answer 3",
    ]
    assert not {"SUMMED UP", "AFTER"} & {text for _, text in last_request_conversation(api)}
    assert (path.read_bytes(), len(home.sessions())) == (before, 4)


def test_a_session_of_a_missing_folder_continues_in_the_current_folder(
    home: ClientHome, api: MockApi, project_with_sessions: Path
) -> None:
    """If a session's folder no longer exists, the session continues in the current folder."""
    gone = home.root / "gone"
    rows = [{**row, "cwd": str(gone)} for row in conversation(2, session_id=session_id(9))]
    folder = (
        home.config / "projects" / str(gone).replace("/", "-").replace(".", "-").replace("_", "-")
    )
    folder.mkdir(parents=True)
    (folder / f"{session_id(9)}.jsonl").write_bytes(session_bytes(rows))
    with start_screen(home, api, "continue", session_id(9)) as screen:
        screen.wait_for("no longer exists")
        screen.key("Enter")
        screen.wait_for(INPUT_BOX_TOP_PATTERN, 60)
        screen.type("and now")
        screen.wait_for("and now")
        screen.key("Enter")
        wait_for_sent_turn(api, screen)
    texts = [text for _, text in last_request_conversation(api)]
    assert "prompt 0" in texts[0]
    assert f"Its project was {gone}" in texts[0]
    assert texts[1:4] == ["answer 1", "prompt 2", "answer 3"]


def wait_for_sent_turn(api: MockApi, screen: Screen) -> None:
    """Wait until the client has sent a turn that contains the prompt "and now"."""
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        screen.text()
        if any(
            "and now" in conversation_of_request(request)[-1][1] for request in api.main_requests()
        ):
            return
    raise AssertionError(f"no turn was sent; the screen:\n{screen.text()}")
