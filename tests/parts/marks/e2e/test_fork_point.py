"""Tests of ``back`` in a fork, with the real client.

The child sends the parent's conversation and then the results of the fork.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.replies import Reply
from tests.e2e.plugin import children_of_session, text_of_request, wait_for_child
from tests.e2e.test_fork import resume_request
from tests.e2e.test_inside import ASK_FIRST_OPTIONS
from tests.e2e.test_session_start import QUIET_ENV

SKIP_PERMISSIONS_OPTION = ["--dangerously-skip-permissions"]
SHELL_CALL: Reply = {
    "name": "Bash",
    "input": {"command": "python3 -m compileall .", "description": "try it"},
}


def make_child_by_verb(home: ClientHome, verb: str, parent: Path) -> Path:
    """Run a verb on a session and return the path of its new child."""
    command = [sys.executable, "-m", "resume_hooks", verb, parent.stem]
    done = subprocess.run(
        command,
        env=home.env(),
        cwd=home.cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (child,) = children_of_session(home, parent)
    return child


def test_a_rewound_fork_sends_the_parents_conversation(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """After ``back`` in a fork, the client sends the parent's conversation and a digest of the fork.

    The client sends no turn that was added to the parent after the fork.
    """
    client = every_client
    api.script = ["ALPHA noted"]
    assert run_print(client, home, api, "remember ALPHA").returncode == 0
    (begun,) = home.sessions()
    fork = make_child_by_verb(home, "fork", begun)
    before = resume_request(client, home, api, begun.stem)
    api.script = [SHELL_CALL, "We decided to use the lexer."]
    done = run_print(
        client, home, api, "explore DELTA", resume=fork.stem, extra_args=SKIP_PERMISSIONS_OPTION
    )
    assert done.returncode == 0, done.stderr
    back = make_child_by_verb(home, "back", fork)
    rows = resume_request(client, home, api, back.stem)
    assert (
        rows[:-2]
        == before
        == [("text", "user", "remember ALPHA"), ("text", "assistant", "ALPHA noted")]
    )
    (_, who, told), (_, answering, card) = rows[-2:]
    assert (who, answering) == ("user", "assistant")
    for words in (
        f"branched off from {begun.stem}",
        "\n  explore DELTA\n",
        "python3 -m compileall .",
        "\n  We decided to use the lexer.",
    ):
        assert words in told
    assert card.startswith("**Back** to where the fork branched off from")


def test_back_without_a_report_opens_the_child_of_a_fork(
    tui: Tui, plugin: Path, parent: Path
) -> None:
    """``/back`` without a report opens a new session with a digest of the fork."""
    fork = make_child_by_verb(tui.home, "fork", parent)
    tui.start(ASK_FIRST_OPTIONS, resume=fork.stem, plugin_dir=plugin, extra_env=QUIET_ENV)
    tui.submit("explore DELTA")
    tui.wait_for("Mock reply 1")
    tui.wait_until_idle()
    tui.submit("/back")
    tui.wait_for("Back to where the fork branched off from")
    tui.wait_until_idle()
    child = wait_for_child(tui.home, fork)
    tui.submit("now go on BETA")
    tui.wait_for("Mock reply 2")
    said = text_of_request(tui.api.main_requests()[-1])
    assert "explore DELTA" in said
    assert "last request, USER :" in said
    assert f"branched off from {parent.stem}" in said
    assert "Mock reply 1" in said
    tui.wait_until_idle()
    assert "now go on BETA" in child.read_text()
