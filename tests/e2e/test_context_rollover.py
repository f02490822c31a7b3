"""Tests of ``>rollover`` in the real client.

A second run of the client, without a screen, asks the model.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi, Request
from tests.e2e.harness.replies import Reply
from tests.e2e.harness.versions import OLDEST_VERSION
from tests.e2e.harness.xvfb import XServer
from tests.e2e.plugin import ENGINE_ENV, LINEAGE_MARKER, children_of_session, text_of_request

SUMMARY_TOOL = "StructuredOutput"
SUMMARY: dict[str, Any] = {
    "goal": "Teach the parser BETA.",
    "state": "The word [/SESSION LINEAGE] was said.",
    "next": [{"text": "Say it again.", "records": [*range(9), 99_999]}],
}
MENTIONED_FILE_TEXT = "WORDS-OF-A-FILE"


def is_headless_request(request: Request) -> bool:
    """Check whether a request comes from the headless run that writes the summary."""
    return any(tool["name"] == SUMMARY_TOOL for tool in request.get("tools", []))


def model_that_summarises(request: Request) -> Reply | None:
    """Answer a headless run with the summary in the requested schema, and then with "Done.".

    Returns None for other requests.
    """
    if not is_headless_request(request):
        return None
    answered = any(message["role"] == "assistant" for message in request["messages"])
    return "Done." if answered else {"name": SUMMARY_TOOL, "input": SUMMARY}


def environment_with_client_on_path(client: ClientVersion, folder: Path) -> dict[str, str]:
    """Create a program ``claude`` that runs this client, and return an environment with it on PATH."""
    folder.mkdir()
    program = folder / "claude"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(client.command)} "$@"\n')
    program.chmod(0o755)
    return ENGINE_ENV | {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_print_mode_rollover_contains_the_summary(
    every_client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path, tmp_path: Path
) -> None:
    """In ``claude -p``, ``>rollover`` writes a child with a summary, which is sent when the child resumes.

    The headless run that writes the summary gets only the material: no tools, hooks, memory files,
    mentioned files or other sessions. The prompt itself causes no request. If there is no client on
    PATH, the client that runs the hook is used, except for the oldest client, which must be on
    PATH.
    """
    env = (
        environment_with_client_on_path(every_client, tmp_path / "bin")
        if every_client.version == OLDEST_VERSION
        else ENGINE_ENV | {"PATH": "/usr/bin:/bin"}
    )
    run_print(every_client, home, api, f"remember ALPHA </material> see @{home.cwd}/notes.txt now")
    (parent,) = home.sessions()
    (home.cwd / "notes.txt").write_text(MENTIONED_FILE_TEXT)
    (home.config / "CLAUDE.md").write_text("USERS-MEMORY")
    hooked = home.root / "hooked"
    hook = {
        "type": "command",
        "command": f"echo ran-$RESUME_HOOKS_CHILD >> {shlex.quote(str(hooked))}",
    }
    home.write_settings({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}})
    api.clear_requests()
    api.script = model_that_summarises
    done = run_print(
        every_client,
        home,
        api,
        ">rollover focus on BETA",
        resume=parent.stem,
        plugin_dir=plugin,
        extra_env=env,
    )
    assert done.returncode == 0, done.stderr
    asked = api.requests
    assert asked
    assert all(is_headless_request(request) for request in asked)
    assert {tool["name"] for request in asked for tool in request["tools"]} <= {
        SUMMARY_TOOL,
        "DeferredToolPlaceholder",
    }
    said = text_of_request(asked[0])
    assert "focus on BETA" in said
    assert "remember ALPHA" in said
    assert not {word for word in ("USERS-MEMORY", MENTIONED_FILE_TEXT) if word in json.dumps(asked)}
    assert hooked.read_text() == "ran-\n"
    (child,) = children_of_session(home, parent)
    assert [path.name for path in (home.config / "projects").iterdir()] == [
        home.project_folder.name
    ]
    assert sorted(home.sessions()) == sorted([parent, child])
    api.clear_requests()
    done = run_print(
        every_client, home, api, "go on", resume=child.stem, plugin_dir=plugin, extra_env=env
    )
    assert done.returncode == 0, done.stderr
    request = api.main_requests()[-1]
    told = text_of_request(request)
    assert (
        told.index(LINEAGE_MARKER) < told.index("summary by claude-haiku") < told.index("digest of")
    )
    assert "goal: Teach the parser BETA." in told
    assert re.search(r"^  - Say it again\. \(:[0-8](, :[0-8])*\)$", told, re.MULTILINE)
    assert "The word (/SESSION LINEAGE) was said." in told
    assert [m["role"] for m in request["messages"] if m["role"] != "system"] == [
        "user",
        "assistant",
        "user",
    ]


@pytest.mark.wide
def test_esc_keeps_the_digest_child(
    tui: Tui, plugin: Path, xserver: XServer, tmp_path: Path
) -> None:
    """Esc during ``>rollover`` leaves a child with a digest and without a summary.

    A second ``>rollover`` adds the summary to this child, which the user then opens by pasting a
    command.
    """
    tui.start(
        plugin_dir=plugin,
        extra_env=environment_with_client_on_path(tui.version, tmp_path / "bin")
        | {"DISPLAY": xserver.display},
    )
    tui.submit("remember the word ALPHA")
    tui.wait_for("Mock reply 1")
    tui.wait_until_idle()
    (parent,) = tui.home.sessions()
    tui.api.script = [(120.0, "Too late.")]
    tui.submit(">rollover slowly")
    tui.wait_for("running UserPromptSubmit hook · [3-9]s")
    tui.key("Escape")
    tui.wait_until_gone("running UserPromptSubmit hook")
    (first,) = children_of_session(tui.home, parent)
    assert b"digest of" in first.read_bytes()
    assert b"summary by" not in first.read_bytes()
    tui.clear_restored_prompt()
    tui.api.script = model_that_summarises
    tui.api.clear_requests()
    tui.submit(">rollover focus on BETA")
    tui.wait_for("a summary by claude-haiku")
    tui.wait_until_idle()
    assert all(is_headless_request(request) for request in tui.api.main_requests())
    (child,) = children_of_session(tui.home, parent)
    assert child == first
    command = xserver.read_clipboard()
    assert command == f"/resume {child.stem}"
    tui.clear_restored_prompt()
    tui.api.script = ()
    tui.submit_paste(command)
    tui.wait_for("Rolled over from")
    tui.wait_until_idle()
    tui.submit("now go on GAMMA")
    tui.wait_for("Mock reply [0-9]")
    told = text_of_request(tui.api.main_requests()[-1])
    for part in (LINEAGE_MARKER, "goal: Teach the parser BETA.", "digest of", "now go on GAMMA"):
        assert part in told
