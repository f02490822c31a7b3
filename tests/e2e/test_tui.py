"""Tests of the plugin on the client's screen, with typed prompts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.fresh_child import ChildContents
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.sessions import locate
from resume_hooks.sessions.link_log import read_links
from resume_hooks.transcripts.metadata_records import DIGEST_BEGINNING
from tests.e2e.harness.client import ClientHome, ClientVersion, TmuxTui, Tui, find_client, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.processes import wait_until
from tests.e2e.harness.xvfb import XServer
from tests.e2e.plugin import (
    ENGINE_ENV,
    LINEAGE_MARKER,
    children_of_session,
    data_of_verb,
    remove_module,
    text_of_request,
)


def start_session(tui: Tui | TmuxTui, plugin: Path, env: dict[str, str]) -> Path:
    """Start a session with the plugin, send one prompt, and return the session's file."""
    tui.start(plugin_dir=plugin, extra_env=ENGINE_ENV | env)
    tui.submit("remember the word ALPHA")
    tui.wait_for("Mock reply 1")
    tui.wait_until_idle()
    (session,) = tui.home.sessions()
    tui.api.clear_requests()
    return session


def continue_in_child(
    tui: Tui | TmuxTui, command: str, card_pattern: str = "Handed off from"
) -> str:
    """Paste a command that opens a child, send a prompt, and return the text of its request."""
    tui.submit_paste(command)
    tui.wait_for(card_pattern)
    tui.wait_until_idle()
    tui.api.clear_requests()
    tui.submit("now go on BETA")
    tui.wait_for("Mock reply 2")
    return text_of_request(tui.api.main_requests()[-1])


def assert_request_opens_handoff(request_text: str, parent: Path, next_step: str) -> None:
    """Check that a request contains the lineage, the digest, the step and the new prompt.

    Of the parent's conversation, the request contains only the last words, which the digest quotes.
    """
    assert LINEAGE_MARKER in request_text
    assert parent.stem in request_text
    assert next_step in request_text
    assert "now go on BETA" in request_text
    assert request_text.count("Mock reply 1") == 1, "the digest quotes the last words"
    assert DIGEST_BEGINNING in request_text
    assert "No response requested" not in request_text


def check_id_is_copied_and_next_session_is_linked(tui: Tui, session: Path) -> None:
    """Check that ``>session`` copies the id with an OSC 52 sequence.

    Also check that ``/clear`` links the next session to this session.
    """
    data_of_verb(tui.home, "config", "clipboard", "osc52")
    tui.wait_until_idle()
    tui.submit(">session")
    tui.wait_for(r"sent to the clipboard")
    assert tui.clipboard_writes()[-1] == session.stem
    tui.clear_restored_prompt()
    tui.submit("/clear")
    tui.wait_until_gone("Mock reply 2")
    tui.wait_until_idle()
    tui.submit("after clear GAMMA")
    tui.wait_for("Mock reply 3")
    tui.wait_until_idle()
    link = read_links(tui.home.where)[-1]
    assert (link.kind, link.parent_id) == ("clear", session.stem)


def test_resume_and_handoff_work_despite_other_keys(
    tui: Tui, plugin: Path, xserver: XServer
) -> None:
    """``>resume`` shows its card and copies the session's id; ``>handoff`` makes a child.

    ``>handoff`` copies the command that opens the child. The client restores the blocked
    ``>handoff`` to its input box. If the user presses Enter on it, the same child is shown again.
    If the command is pasted after it, the command does not run. After Ctrl+C, the pasted command
    opens the child.
    """
    parent = start_session(tui, plugin, {"DISPLAY": xserver.display})
    before = parent.read_bytes()
    tui.submit(">resume")
    tui.wait_for(r"context \d")
    tui.wait_for("Nothing needed")
    assert xserver.read_clipboard() == parent.stem
    tui.clear_restored_prompt()
    tui.submit(">handoff fix the tests")
    tui.wait_for("handed off")
    (child,) = children_of_session(tui.home, parent)
    command = xserver.read_clipboard()
    assert command == f"/resume {child.stem}"
    tui.wait_until_idle()
    assert "handoff" in tui.input_text(), "this client puts a blocked prompt back into its box"
    tui.key("Enter")
    tui.wait_for("already handed off")
    assert children_of_session(tui.home, parent) == [child]
    assert xserver.read_clipboard() == command
    tui.wait_until_idle()
    tui.submit_paste(command)
    tui.wait_for("nothing was done")
    assert not tui.api.main_requests()
    tui.clear_restored_prompt()
    assert_request_opens_handoff(continue_in_child(tui, command), parent, "fix the tests")
    assert parent.read_bytes().startswith(before)
    assert children_of_session(tui.home, parent) == [child]
    check_id_is_copied_and_next_session_is_linked(tui, child)


@pytest.mark.wide
def test_a_paste_after_slash_handoff_opens_the_child(
    tui: Tui, plugin: Path, xserver: XServer
) -> None:
    """After ``/resume-hooks:handoff``, the input box is empty, and a pasted command opens the child."""
    parent = start_session(tui, remove_module(plugin), {"DISPLAY": xserver.display})
    tui.submit("/resume-hooks:handoff fix the tests")
    tui.wait_for("handed off")
    tui.wait_until_idle()
    assert not tui.input_text()
    assert_request_opens_handoff(
        continue_in_child(tui, xserver.read_clipboard()), parent, "fix the tests"
    )


@pytest.mark.wide
def test_a_queued_slash_handoff_is_answered_after_the_turn(
    tui: Tui, plugin: Path, xserver: XServer
) -> None:
    """If the user types ``/resume-hooks:handoff`` while the model is working, it runs after the turn.

    It makes one child and copies the command that opens the child.
    """
    parent = start_session(tui, remove_module(plugin), {"DISPLAY": xserver.display})
    tui.api.script = [(120.0, "Slow reply done.")]
    tui.submit("take your time")
    tui.wait_for(r"esc to interrupt|…")
    tui.submit("/resume-hooks:handoff fix the tests")
    tui.api.release_delayed_replies()
    tui.wait_for("Slow reply done")
    tui.wait_for("handed off")
    tui.wait_until_idle()
    (child,) = children_of_session(tui.home, parent)
    assert xserver.read_clipboard() == f"/resume {child.stem}"


def test_a_busy_client_shows_the_last_line_of_an_answer(
    tui: Tui, plugin: Path, xserver: XServer
) -> None:
    """If the user types ``>handoff`` while the model is working, it runs immediately.

    The turn continues. The client shows only the last line of the answer, which says when to paste
    the command.
    """
    parent = start_session(tui, plugin, {"DISPLAY": xserver.display})
    tui.api.script = [(120.0, "Slow reply done.")]
    tui.submit("take your time")
    tui.wait_for(r"esc to interrupt|…")
    assert wait_until(lambda: bool(tui.api.main_requests()))
    tui.submit(">handoff fix the tests")
    tui.wait_for("paste it once the answer ends")
    assert "Ctrl+C" not in tui.text()
    tui.api.release_delayed_replies()
    tui.wait_for("Slow reply done")
    assert len(children_of_session(tui.home, parent)) == 1


def test_the_tmux_buffer_contains_the_id(tmux_tui: TmuxTui, plugin: Path) -> None:
    """Inside tmux, ``/resume-hooks:session`` copies the id to tmux's buffer, directly or with OSC 52."""
    parent = start_session(tmux_tui, plugin, {})
    tmux_tui.submit("/resume-hooks:session")
    tmux_tui.wait_for(r"copied \(only in tmux")
    assert tmux_tui.paste_buffer() == parent.stem
    tmux_tui.delete_buffer()
    data_of_verb(tmux_tui.home, "config", "clipboard", "osc52")
    tmux_tui.submit("/resume-hooks:session")
    tmux_tui.wait_for("sent to the clipboard")
    assert wait_until(lambda: tmux_tui.paste_buffer() == parent.stem)


def test_every_client_shows_the_child_s_card(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """``claude --resume <child>`` shows the child's card and not its lineage.

    The next request contains the lineage and the step.
    """
    done = run_print(every_client, home, api, "remember the word ALPHA")
    assert done.returncode == 0, done.stderr
    (parent,) = home.sessions()
    source = locate.session_file(str(parent))
    contents = ChildContents(build_digest(source, home.where))
    plan = agents.plan_fresh_child(
        source, home.where, kind="handoff", next_step="fix the tests", contents=contents
    )
    child = write_child(plan, home.where)
    with Tui(every_client, home, api) as tui:
        tui.start(resume=child.session_id)
        tui.wait_for("Handed off from")
        tui.wait_for("Next step: fix the tests")
        assert LINEAGE_MARKER not in tui.text()
        api.clear_requests()
        tui.submit("now go on BETA")
        tui.wait_for("Mock reply 2")
        assert_request_opens_handoff(
            text_of_request(api.main_requests()[-1]), parent, "fix the tests"
        )


def test_the_picker_shows_the_child_s_title(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """The client's picker lists a child under the child's own title."""
    run_print(client, home, api, "remember the word ALPHA")
    (parent,) = home.sessions()
    child = write_child(
        agents.plan_fresh_child(locate.session_file(str(parent)), home.where, kind="handoff"),
        home.where,
    )
    with Tui(client, home, api) as tui:
        tui.start(["--resume"], must_be_ready=False)
        tui.wait_for(re.escape(child.title))


@pytest.mark.wide
def test_a_paste_opens_the_child_in_client_2_1_112(
    home: ClientHome, api: MockApi, plugin: Path, xserver: XServer
) -> None:
    """In client 2.1.112, the input box is empty after ``>handoff``, and a pasted command opens the child."""
    with Tui(find_client("2.1.112"), home, api) as tui:
        parent = start_session(tui, plugin, {"DISPLAY": xserver.display})
        tui.submit(">handoff fix the tests")
        tui.wait_for("handed off")
        tui.wait_until_idle()
        assert not tui.input_text()
        assert_request_opens_handoff(
            continue_in_child(tui, xserver.read_clipboard()), parent, "fix the tests"
        )
