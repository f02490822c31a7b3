"""Tests of the hooks that run when a session starts, in the real client.

The sessions start after ``/clear``, a compaction or a handoff.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.lineage_block import LINEAGE_END_MARKER
from resume_hooks.sessions.link_log import read_links
from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi, conversation_of_request
from tests.e2e.plugin import ENGINE_ENV, children_of_session, remove_module, text_of_request

QUIET_ENV = ENGINE_ENV | {"RESUME_HOOKS_CLIPBOARD": "none"}
EMPTY_SUMMARY = "<analysis>none</analysis><summary>A summary that names nobody.</summary>"


@pytest.fixture
def plugin(plugin: Path) -> Path:
    """Return the plugin without its module, so that a handoff waits until the user types ``/clear``."""
    return remove_module(plugin)


def wait_until_true(condition: Callable[[], bool]) -> None:
    """Wait until ``condition`` is true. Raises AssertionError after 20 seconds."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "the condition is still false"
        time.sleep(0.05)


def waiting_handoffs(home: ClientHome) -> list[str]:
    """Return the names of the files in which waiting handoffs are stored."""
    return sorted(
        path.name for path in (home.config / "resume-hooks" / "pending").glob("handoff-*")
    )


def kinds_of_recorded_links(home: ClientHome) -> list[str]:
    """Return the kinds of all recorded links between sessions, oldest first."""
    return [link.kind for link in read_links(home.where)]


def start_session(tui: Tui, plugin: Path) -> Path:
    """Start a session with the plugin, send one prompt, and return the session's file."""
    tui.start(plugin_dir=plugin, extra_env=QUIET_ENV)
    send_prompt_and_read_request(tui, "remember the word ALPHA")
    (session,) = tui.home.sessions()
    return session


def hand_off(tui: Tui, parent: Path) -> Path:
    """Send ``/resume-hooks:handoff fix the tests``, and return the child's file."""
    tui.submit("/resume-hooks:handoff fix the tests")
    tui.wait_for("handed off")
    tui.wait_until_idle()
    (child,) = children_of_session(tui.home, parent)
    return child


def clear_session(tui: Tui) -> None:
    """Send ``/clear``, and wait until the link to the new session is recorded.

    On a busy machine, an old client's menu swallows the first Enter, so Enter may be pressed twice.
    """
    before = len(kinds_of_recorded_links(tui.home))
    tui.submit("/clear")
    try:
        wait_until_true(lambda: len(kinds_of_recorded_links(tui.home)) > before)
    except AssertionError:
        tui.key("Enter")
        wait_until_true(lambda: len(kinds_of_recorded_links(tui.home)) > before)
    tui.wait_until_idle()


def send_prompt_and_read_request(tui: Tui, prompt: str) -> str:
    """Send a prompt, wait for its answer, and return the text of its request."""
    tui.api.clear_requests()
    tui.submit(prompt)
    wait_until_true(lambda: bool(tui.api.main_requests()))
    tui.wait_until_idle()
    return text_of_request(tui.api.main_requests()[-1])


def compact_session(tui: Tui) -> None:
    """Send ``/compact``. The summary that the mock returns contains nothing from the session."""
    tui.api.script = [EMPTY_SUMMARY]
    tui.type("/compact")
    wait_until_true(lambda: tui.input_text().strip().endswith("/compact"))
    tui.key("Enter")
    tui.wait_for("[Cc]ompacted")
    tui.wait_until_idle()


def test_the_start_of_a_session_adds_each_text_once(
    every_client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path
) -> None:
    """After ``/clear``, the request contains the handoff's opening exactly once.

    After a compaction, and again after a later resume, the request contains the lineage exactly
    once.
    """
    with Tui(every_client, home, api) as tui:
        parent = start_session(tui, plugin)
        child = hand_off(tui, parent)
        raw = child.read_bytes()
        assert len(waiting_handoffs(home)) == 1
        clear_session(tui)
        said = send_prompt_and_read_request(tui, "go on BETA")
        assert said.count(LINEAGE_END_MARKER) == 1
        assert all(words in said for words in (parent.stem, "fix the tests", "started by /clear"))
        assert [role for role, _ in conversation_of_request(api.main_requests()[-1])].count(
            "assistant"
        ) == 0
        assert waiting_handoffs(home) == []
        assert kinds_of_recorded_links(home) == ["handoff", "handoff"]
        fresh = read_links(home.where)[-1].child_id
        rows = LineageFinder(home.where).find_lineage(str(home.project_folder / f"{fresh}.jsonl"))
        assert [(row.session_id, row.kind) for row in rows] == [
            (parent.stem, "original"),
            (fresh, "handoff"),
        ]
        assert LineageFinder(home.where).is_superseded(str(child))
        compact_session(tui)
        said = send_prompt_and_read_request(tui, "go on GAMMA")
        assert (said.count(LINEAGE_END_MARKER), said.count("before it was compacted")) == (1, 1)
        assert parent.stem in said
        compact_session(tui)
        assert send_prompt_and_read_request(tui, "go on DELTA").count(LINEAGE_END_MARKER) == 1
    api.clear_requests()
    done = run_print(
        every_client,
        home,
        api,
        "go on EPSILON",
        resume=fresh,
        plugin_dir=plugin,
        extra_env=QUIET_ENV,
    )
    assert done.returncode == 0, done.stderr
    assert text_of_request(api.main_requests()[-1]).count(LINEAGE_END_MARKER) == 1
    assert child.read_bytes() == raw


@pytest.mark.wide
def test_opening_the_child_consumes_the_handoff(tui: Tui, plugin: Path) -> None:
    """If the user opens the child of ``>handoff`` with its command, the opening is sent once.

    A later ``/clear`` adds nothing, because the handoff is no longer waiting.
    """
    parent = start_session(tui, plugin)
    tui.submit(">handoff fix the tests")
    tui.wait_for("handed off")
    tui.clear_restored_prompt()
    (child,) = children_of_session(tui.home, parent)
    tui.wait_until_idle()
    tui.submit_paste(f"/resume {child.stem}")
    tui.wait_for("Handed off from")
    wait_until_true(lambda: waiting_handoffs(tui.home) == [])
    tui.wait_until_idle()
    said = send_prompt_and_read_request(tui, "go on BETA")
    assert (said.count(LINEAGE_END_MARKER), said.count("started by /clear")) == (1, 0)
    clear_session(tui)
    assert LINEAGE_END_MARKER not in send_prompt_and_read_request(tui, "something else GAMMA")
    assert kinds_of_recorded_links(tui.home) == ["handoff", "clear"]
    assert read_links(tui.home.where)[-1].parent_id == child.stem


def test_a_handoff_is_mentioned_once_and_can_be_resumed_after_a_clear(
    tui: Tui, plugin: Path
) -> None:
    """The next client in the folder mentions a waiting handoff, and later clients do not.

    After ``/clear`` has used the handoff, its child can still be resumed.
    """
    parent = start_session(tui, plugin)
    child = hand_off(tui, parent)
    for heard in (True, False):
        with Tui(tui.version, tui.home, tui.api) as other:
            other.start(plugin_dir=plugin, extra_env=QUIET_ENV)
            if heard:
                other.wait_for(f"a handoff waits here: /resume {child.stem}")
            assert ("a handoff waits" in other.text()) is heard
            assert LINEAGE_END_MARKER not in send_prompt_and_read_request(other, "hello")
    clear_session(tui)
    assert "fix the tests" in send_prompt_and_read_request(tui, "go on BETA")
    tui.submit_paste(f"/resume {child.stem}")
    tui.wait_for("Handed off from")
