"""Tests of ``>mark`` and ``>back`` in the real client.

After ``>back``, the session continues at the mark, with only a report of the later work.
"""

from __future__ import annotations

import hashlib
import os
import random
import uuid
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive.child.write_child import write_child
from resume_hooks.parts.marks import plan_back
from resume_hooks.parts.marks.state import Mark
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from resume_hooks.transcripts.linearize import find_max_valid_record_count, linearize_chain
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.transcript import scan_transcript
from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi, Request, last_user_text
from tests.e2e.harness.xvfb import XServer
from tests.e2e.plugin import ENGINE_ENV, LINEAGE_MARKER, children_of_session, text_of_request
from tests.e2e.test_trim_corpus import ALL_SESSION_NAMES, SAMPLE_SESSIONS
from tests.needs import corpus, one_in

GOAL, REPORT = "try the other parser", "the other one is slower, so we stay"
SHORT_SAMPLE_NAMES = [SAMPLE_SESSIONS[place] for place in (0, 1, 3, 6, 7)]
"""Five sessions: one of an old client, one with a compaction, one with parallel calls, a large one,
and one that begins with an answer."""

SKIP_PERMISSIONS_OPTION = ["--dangerously-skip-permissions"]


def list_message_roles_and_blocks(request: Request) -> list[tuple[str, Any]]:
    """Return the roles and blocks of a request, without cache marks."""
    found = []
    for message in request["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        plain = [
            {key: value for key, value in block.items() if key != "cache_control"}
            for block in blocks
        ]
        found.append((message["role"], plain))
    # Client 2.1.329 sends empty messages after the first one.
    return [(role, blocks) for role, blocks in found if blocks]


def find_position_of_report(sent: list[tuple[str, Any]]) -> int:
    """Return the position of the message with the report. The card comes after this message."""
    ends = [blocks[0].get("text", "").endswith(f":\n{REPORT}") for _, blocks in sent]
    assert ends.count(True) == 1
    place = ends.index(True)
    (role, (told,)), (answering, (card,)) = sent[place : place + 2]
    assert (role, answering) == ("user", "assistant")
    assert told["text"].startswith(LINEAGE_MARKER)
    assert GOAL in told["text"]
    assert card["text"].startswith("**Back** to 20")
    return place


def assert_went_back(before: Request, after: Request, prompt: str) -> None:
    """Check that a request has the messages up to the mark, the report, the card and the prompt."""
    sent = list_message_roles_and_blocks(after)
    place = find_position_of_report(sent)
    assert sent[:place] == list_message_roles_and_blocks(before)[:place]
    assert [role for role, _ in sent[place + 2 :]] == ["user"]
    assert last_user_text(after).endswith(prompt)
    said = text_of_request(after)
    assert "EXPLORED" not in said
    assert "No response requested" not in said


def test_mark_and_back_work_in_one_client(tui: Tui, plugin: Path, xserver: XServer) -> None:
    """``>mark`` and ``>back`` send no request, and the child continues at the mark with the report.

    The screen shows the conversation up to the mark and the card. Only the transcript view shows
    the whole report.
    """
    (tui.home.cwd / "a.txt").write_text("EXPLORED a file\n")
    tui.start(
        plugin_dir=plugin,
        extra_env=ENGINE_ENV | {"DISPLAY": xserver.display, "RESUME_HOOKS_VAULT": "20G"},
    )
    tui.submit("remember ALPHA")
    tui.wait_for("Mock reply 1")
    tui.wait_until_idle()
    asked = len(tui.api.requests)
    tui.submit(f"/resume-hooks:mark {GOAL}")
    tui.wait_for("Go on")
    tui.wait_until_idle()
    assert not tui.input_text()
    assert len(tui.api.requests) == asked
    read = {"name": "Read", "input": {"file_path": str(tui.home.cwd / "a.txt")}}
    tui.api.script = [read, "EXPLORED it"]
    tui.submit("explore it")
    tui.wait_for("EXPLORED it")
    tui.wait_until_idle()
    before = tui.api.main_requests()[-1]
    asked = len(tui.api.requests)
    (parent,) = tui.home.sessions()
    raw = parent.read_bytes()
    tui.submit(f">back {REPORT}")
    tui.wait_for("^.*back · the /resume line copied")
    tui.wait_until_idle()
    (child,) = children_of_session(tui.home, parent)
    assert xserver.read_clipboard() == f"/resume {child.stem}"
    assert len(tui.api.requests) == asked
    assert parent.read_bytes().startswith(raw), "the client appends; nothing else may change"
    tui.key("Enter")
    tui.wait_for("already back")
    tui.wait_until_idle()
    assert children_of_session(tui.home, parent) == [child]
    tui.clear_restored_prompt()
    tui.submit_paste(f"/resume {child.stem}")
    tui.wait_until_gone("already back")
    tui.wait_until_idle()
    shown = "\n".join(tui.screen())
    assert "Back to 20" in shown
    assert "EXPLORED" not in shown
    assert "The goal at the mark" not in shown
    tui.key("C-o")
    tui.wait_for("The goal at the mark")
    tui.key("C-o")
    tui.wait_until_gone("The goal at the mark")
    tui.wait_until_idle()
    tui.submit("now go on BETA")
    tui.wait_for("Mock reply 4")
    assert_went_back(before, tui.api.main_requests()[-1], "now go on BETA")


@pytest.mark.wide
def test_a_mark_during_a_turn_is_after_the_last_complete_step(tui: Tui, plugin: Path) -> None:
    """A mark that is set during a turn is placed after the last complete step."""
    tui.start(plugin_dir=plugin, extra_env=ENGINE_ENV | {"RESUME_HOOKS_CLIPBOARD": "none"})
    tui.submit("remember ALPHA")
    tui.wait_for("Mock reply 1")
    tui.wait_until_idle()
    tui.api.script = [
        {"name": "Bash", "input": {"command": "sleep 3; echo EXPLORED"}},
        "EXPLORED it",
    ]
    tui.submit("explore it")
    tui.wait_for(r"esc to interrupt|…")
    (parent,) = tui.home.sessions()
    tui.submit(">mark")
    tui.wait_for("Go on once the ans")
    tui.wait_for("EXPLORED it")
    tui.clear_restored_prompt()
    tui.submit(f"/resume-hooks:back {REPORT}")
    tui.wait_for("Back to 20")
    (child,) = children_of_session(tui.home, parent)
    assert "EXPLORED" not in child.read_text()
    assert "remember ALPHA" in child.read_text()


@pytest.mark.wide
def test_mark_and_back_work_in_every_client(
    every_client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path
) -> None:
    """``/resume-hooks:mark`` and ``>back`` work in every client with ``-p`` and send no request."""
    (home.cwd / "a.txt").write_text("EXPLORED a file\n")
    env = ENGINE_ENV | {"RESUME_HOOKS_CLIPBOARD": "none"}

    def send_prompt(prompt: str, resume: str | None, script: list[Any]) -> str:
        api.script = script
        done = run_print(
            every_client,
            home,
            api,
            prompt,
            resume=resume,
            plugin_dir=plugin,
            extra_env=env,
            extra_args=SKIP_PERMISSIONS_OPTION,
        )
        assert done.returncode == 0, done.stderr
        return done.session_id

    read = {"name": "Read", "input": {"file_path": str(home.cwd / "a.txt")}}
    session_id = send_prompt("remember ALPHA", None, ["noted ALPHA"])
    parent = home.project_folder / f"{session_id}.jsonl"
    asked = len(api.main_requests())
    send_prompt(f"/resume-hooks:mark {GOAL}", session_id, [])
    assert len(api.main_requests()) == asked
    send_prompt("explore it", session_id, [read, "EXPLORED it"])
    before = api.main_requests()[-1]
    asked = len(api.main_requests())
    send_prompt(f">back {REPORT}", session_id, [])
    assert len(api.main_requests()) == asked
    (child,) = children_of_session(home, parent)
    send_prompt("now go on BETA", child.stem, ["fine"])
    after = api.main_requests()[-1]
    assert_went_back(before, after, "now go on BETA")
    assert "noted ALPHA" in text_of_request(after)


def test_back_before_a_compaction_sends_no_summary(
    client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path
) -> None:
    """After ``back`` to a mark before a compaction, the client sends the conversation without the summary."""

    def send_prompt(prompt: str, resume: str | None, answer: str) -> str:
        api.script = [answer]
        done = run_print(
            client, home, api, prompt, resume=resume, plugin_dir=plugin, extra_env=ENGINE_ENV
        )
        assert done.returncode == 0, done.stderr
        return done.session_id

    session_id = send_prompt("remember ALPHA", None, "noted ALPHA")
    send_prompt(f"/resume-hooks:mark {GOAL}", session_id, "")
    send_prompt("explore it", session_id, "EXPLORED it")
    before = api.main_requests()[-1]
    send_prompt("/compact", session_id, "<summary>SUMMED UP</summary>")
    assert "SUMMED UP" in (home.project_folder / f"{session_id}.jsonl").read_text()
    send_prompt(f"/resume-hooks:back {REPORT}", session_id, "")
    (child,) = children_of_session(home, home.project_folder / f"{session_id}.jsonl")
    send_prompt("now go on BETA", child.stem, "fine")
    assert_went_back(before, api.main_requests()[-1], "now go on BETA")
    assert "SUMMED UP" not in text_of_request(api.main_requests()[-1])


def choose_answers_without_open_calls(
    nodes: tuple[Node, ...], max_count: int, random_generator: random.Random
) -> list[Node]:
    """Return random answers after which no call is open, for the option ``--resume-session-at``."""
    row = linearize_chain(nodes)
    ends = [
        node
        for place, node in enumerate(row.nodes, 1)
        if node.kind == "assistant"
        and not node.call_ids
        and node.character_count
        and find_max_valid_record_count(row, place) == place
    ]
    return random_generator.sample(ends, min(max_count, len(ends)))


def assert_rewinds_match_the_client(
    name: str, client: ClientVersion, home: ClientHome, api: MockApi, rewind_count: int
) -> None:
    """Check that a rewind sends the same messages as the client with ``--resume-session-at``."""
    source = corpus() / name
    parent = home.install_session(source, str(uuid.uuid4()))
    fingerprint = hashlib.sha256(parent.read_bytes()).digest()
    environ = {**os.environ, "CLAUDE_CONFIG_DIR": str(home.config), "HOME": str(home.root)}
    session = locate.session_file(str(parent))
    for node in choose_answers_without_open_calls(
        tuple(scan_transcript(str(parent)).chain), rewind_count, random.Random(name)
    ):
        mark = Mark(
            session.session_id, node.uuid, node.line_number, GOAL, "2026-01-31T09:31:00.000Z"
        )
        made = write_child(
            plan_back.plan_back(session, mark, REPORT, Where(environ)).child, Where(environ)
        )
        # A client writes to the session that it resumes, so a copy is resumed.
        twin = home.install_session(source, str(uuid.uuid4()))
        cut = list_message_roles_and_blocks(
            resume_request(client, home, api, twin.stem, ["--resume-session-at", node.uuid])
        )
        went_back = list_message_roles_and_blocks(
            resume_request(client, home, api, made.session_id, [])
        )
        if cut[0][0] == "assistant":
            # Skip the lineage. It is in the first message because a conversation must begin with a message of the user.
            went_back = went_back[1:]
        place = find_position_of_report(went_back)
        assert went_back[:place] == cut[:place]
        assert [role for role, _ in went_back[place + 2 :]] == [role for role, _ in cut[place:]], (
            "the prompt follows"
        )
        os.unlink(made.file)
        twin.unlink()
    assert hashlib.sha256(parent.read_bytes()).digest() == fingerprint


def resume_request(
    client: ClientVersion,
    home: ClientHome,
    api: MockApi,
    session_id: str,
    extra_arguments: list[str],
) -> Request:
    """Return the client's request when it resumes a session."""
    api.clear_requests()
    done = run_print(client, home, api, "go on now", resume=session_id, extra_args=extra_arguments)
    assert done.returncode == 0, done.stderr
    return api.main_requests()[-1]


@pytest.mark.parametrize("name", one_in(3, SHORT_SAMPLE_NAMES))
def test_rewinds_of_a_few_real_sessions_match_the_client(
    name: str, client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """In a few real sessions, a rewind sends the same messages as the client's own rewind."""
    assert_rewinds_match_the_client(name, client, home, api, 1)


@pytest.mark.whole_corpus
@pytest.mark.parametrize("name", ALL_SESSION_NAMES)
def test_rewinds_of_every_real_session_match_the_client(
    name: str, client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """In each real session, three rewinds send the same messages as the client's own rewinds."""
    assert_rewinds_match_the_client(name, client, home, api, 3)
