"""Tests of a handoff whose digest is loaded when the user types ``/clear`` in the same client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.fresh_child import OPENING_RECORD_LINE_NUMBER, ChildContents
from resume_hooks.hooks import handoff
from resume_hooks.hooks.handoff import prepare_next_clear
from resume_hooks.hooks.start_parts import MAX_UNITS_WITHOUT_PARTS
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.sections import CONSTRAINTS_SECTION
from resume_hooks.sessions import locate
from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    conversation,
    session_id,
    user,
    write_session,
)
from tests.hooks.conftest import RunHook
from tests.needs import REPO

CLIENT_PID = os.getpid()
NEXT_SESSION_ID = session_id(9)
MAX_SHORT_OPENING_CHARACTERS = 3_800
"""Maximum number of characters in an opening, so small that the openings in the tests are cut."""


def handoff_notes(home: ConfigHome) -> list[dict[str, Any]]:
    """Return the stored notes of pending handoffs."""
    folder = home.config / "resume-hooks" / "pending"
    return [json.loads(path.read_text()) for path in sorted(folder.glob("handoff-*.json"))]


@pytest.fixture
def parent(config_home: ConfigHome) -> str:
    """Write a session that can be handed off and return its path."""
    return write_session(config_home.project(), SESSION, conversation(2))


def write_handoff(home: ConfigHome, parent_path: str, next_step: str = "go on") -> Receipt:
    """Write a handoff of the session in ``parent_path`` and return its receipt."""
    plan = agents.plan_fresh_child(
        locate.session_file(parent_path), home.where, kind="handoff", next_step=next_step
    )
    return write_child(plan, home.where)


def reply_after_clear(run_hook: RunHook, child: Path) -> dict[str, Any]:
    """Return the hook's reply when a session starts after ``/clear``."""
    event = {"hook_event_name": "SessionStart", "source": "clear", "session_id": NEXT_SESSION_ID}
    event["transcript_path"] = str(child.parent / f"{NEXT_SESSION_ID}.jsonl")
    return dict(
        json.loads(run_hook("session", event, environ={"CLAUDE_PID": str(CLIENT_PID)}).stdout)
    )


@pytest.mark.parametrize(
    "prompt",
    [
        ">handoff fix the tests",
        "/resume-hooks:handoff fix the tests",
        ">handoff --new-task fix the tests",
    ],
)
def test_a_session_after_clear_opens_with_the_pending_handoff(
    config_home: ConfigHome, parent: str, run_hook: RunHook, prompt: str
) -> None:
    """After ``handoff`` and ``/clear``, the new session starts with the same opening as the child.

    If the user types the same handoff twice, only one child is made.
    """
    client = {"CLAUDE_PID": str(CLIENT_PID)}
    for _ in range(2):
        done = run_hook(
            "prompt",
            {"session_id": SESSION, "transcript_path": parent, "prompt": prompt},
            environ=client,
        )
        assert (
            "or type /clear in an empty box: this also starts a session with the digest"
            in json.loads(done.stdout)["reason"]
        )
    (note,) = handoff_notes(config_home)
    child = Path(note["child_file"])
    assert (note["pid"], note["parent_id"], note["child_size"]) == (
        CLIENT_PID,
        SESSION,
        child.stat().st_size,
    )
    run_hook(
        "session",
        {"hook_event_name": "SessionEnd", "session_id": SESSION, "reason": "clear"},
        environ=client,
    )
    context = reply_after_clear(run_hook, child)["hookSpecificOutput"]["additionalContext"]
    opening = json.loads(child.read_bytes().split(b"\n")[OPENING_RECORD_LINE_NUMBER])["message"][
        "content"
    ]
    assert context.endswith(opening.replace(child.stem, NEXT_SESSION_ID))
    assert context.endswith("fix the tests")


def test_four_parallel_handoffs_make_one_child(config_home: ConfigHome, parent: str) -> None:
    """If the same handoff is requested four times in parallel, only one child is made.

    The other three replies name the child that the first request made.
    """
    event = {"session_id": SESSION, "transcript_path": parent, "prompt": ">handoff fix the tests"}

    def reply_of_hook(_: int) -> str:
        done = subprocess.run(
            [sys.executable, "-I", REPO / "hooks" / "prompt.py"], env=os.environ | config_home.environ,
            input=json.dumps(event).encode(), stdout=subprocess.PIPE, check=True, timeout=60,
        )  # fmt: skip
        return str(json.loads(done.stdout)["reason"])

    with ThreadPoolExecutor(4) as clients:
        replies = list(clients.map(reply_of_hook, range(4)))
    assert sorted(reply.count("already handed off") for reply in replies) == [0, 1, 1, 1]
    assert len(list(config_home.project().glob("*.jsonl"))) == 2
    assert not list((config_home.config / "resume-hooks" / "pending").glob("making-*"))


def test_a_large_opening_is_shortened_to_fit(
    config_home: ConfigHome, parent: str, run_hook: RunHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The opening for ``/clear`` is cut to its limit, and a ``read`` command in it shows the full text.

    If only one hook can pass context to the model, the text is cut even further, but it still ends
    like the opening.
    """
    monkeypatch.setenv("CLAUDE_PID", str(CLIENT_PID))
    monkeypatch.setattr(handoff, "MAX_OPENING_CHARACTERS", MAX_SHORT_OPENING_CHARACTERS)
    receipt = write_handoff(config_home, parent, "a very long step\n" * 1_000)
    assert prepare_next_clear(receipt)
    (note,) = handoff_notes(config_home)
    assert len(note["opening"]) <= MAX_SHORT_OPENING_CHARACTERS
    assert (
        f"all of it: resume-hooks read {receipt.session_id[:8]}:{OPENING_RECORD_LINE_NUMBER})"
        in note["opening"]
    )
    said = reply_after_clear(run_hook, Path(receipt.file))
    context = said["hookSpecificOutput"]["additionalContext"]
    assert (len(context) <= MAX_UNITS_WITHOUT_PARTS, context.endswith(note["opening"][-500:])) == (
        True,
        True,
    )


def test_without_a_writable_note_no_handoff_is_pending(
    config_home: ConfigHome, parent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the note of a handoff cannot be written, ``/clear`` does not load the handoff.

    The same is true if the client's process id is invalid or the child's file no longer exists.
    """
    receipt = write_handoff(config_home, parent)
    monkeypatch.setenv("CLAUDE_PID", str(CLIENT_PID))
    (config_home.root / "file").touch()
    monkeypatch.setenv("RESUME_HOOKS_HOME", str(config_home.root / "file" / "x"))
    assert not prepare_next_clear(receipt)
    monkeypatch.delenv("RESUME_HOOKS_HOME")
    monkeypatch.setenv("CLAUDE_PID", "9" * 500)
    assert not prepare_next_clear(receipt)
    monkeypatch.setenv("CLAUDE_PID", str(CLIENT_PID))
    Path(receipt.file).unlink()
    assert not prepare_next_clear(receipt)
    assert handoff_notes(config_home) == []


def test_a_long_digest_is_shortened_by_section(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long digest for ``/clear`` keeps every section of the child's opening.

    Each section has fewer entries than in the opening.
    """
    talk = [
        user(f"Never touch file {n} of the {'long ' * 6}list.", uuid=f"u{n}", parent=None, ts=n)
        for n in range(60)
    ] + [
        assistant(
            f"I'll use plan {n} instead of {'the other ' * 20}one.",
            uuid=f"a{n}",
            parent=f"u{n}",
            ts=n + 60,
        )
        for n in range(60)
    ]
    parent = locate.session_file(str(write_session(config_home.project(), SESSION, talk)))
    contents = ChildContents(build_digest(parent, config_home.where))
    plan = agents.plan_fresh_child(
        parent, config_home.where, kind="handoff", next_step="go on " * 200, contents=contents
    )
    receipt = write_child(plan, config_home.where)
    assert len(plan.opening) > MAX_SHORT_OPENING_CHARACTERS
    monkeypatch.setenv("CLAUDE_PID", str(CLIENT_PID))
    monkeypatch.setattr(handoff, "MAX_OPENING_CHARACTERS", MAX_SHORT_OPENING_CHARACTERS)
    assert prepare_next_clear(receipt)
    (note,) = handoff_notes(config_home)
    assert len(note["opening"]) <= MAX_SHORT_OPENING_CHARACTERS
    for head in (
        f"\n{CONSTRAINTS_SECTION.heading}",
        "\nlast request, USER",
        "\nlast answer, ASSISTANT",
    ):
        assert head in plan.opening
        assert head in note["opening"]


@pytest.mark.parametrize("step", ["--print", '-n "fix it"', "--out=x y"])
def test_an_option_is_not_a_next_step(
    config_home: ConfigHome, parent: str, run_hook: RunHook, step: str
) -> None:
    """``handoff`` refuses a next step that begins with an option, such as ``--print``."""
    said = str(
        run_hook(
            "prompt",
            {"session_id": SESSION, "transcript_path": parent, "prompt": f">handoff {step}"},
        ).stdout
    )
    assert "is not an option here" in said
    assert len(list(config_home.project().glob("*.jsonl"))) == 1
