"""Tests of the SessionEnd and SessionStart hooks on every supported Python version.

The hooks record which session follows a ``/clear``. The SessionStart hook also shows lines about
handoffs, expired caches and large files.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resume_hooks import clock
from resume_hooks.hooks import session
from resume_hooks.hooks.pending_handoff import PendingHandoff, store_handoff
from resume_hooks.sessions.link_log import Link, links_file, read_links, read_successors
from tests.builders import (
    ConfigHome,
    Record,
    assistant,
    conversation,
    session_id,
    user,
    write_session,
)
from tests.fuzz.targets.hooks import run_hook_main
from tests.hooks.conftest import RunHook
from tests.needs import REPO, python39_path
from tests.test_state_failures import failing_writes

OLD_ID, NEW_ID, CHILD_ID = session_id(1), session_id(2), session_id(1_000)
SendEvent = Callable[..., None]
SendAndReply = Callable[..., dict[str, Any]]


RUN_ON_BOTH_PYTHONS = pytest.mark.parametrize(
    "any_python", ["this Python", "Python 3.9"], indirect=True
)
"""Marks a test that also runs on the oldest supported Python.

Together, the tests with this mark run every line of the hook.
"""


@pytest.fixture
def any_python(request: pytest.FixtureRequest) -> str:
    """Return the path of the Python that runs the hook's script, or "" for the tests' own process."""
    return python39_path() if getattr(request, "param", "") == "Python 3.9" else ""


@pytest.fixture
def reply_to_event(
    run_hook: RunHook, any_python: str, monkeypatch: pytest.MonkeyPatch
) -> SendAndReply:
    """Return a function that sends an event to the hook and returns the reply, or ``{}`` if there is none.

    The function's argument ``pid`` is the process id of the client that sends the event.
    """

    def send_and_return_reply(
        event: object, pid: int | str = 4711, **environ: str
    ) -> dict[str, Any]:
        environ = {"CLAUDE_PID": str(pid), **environ}
        if any_python:
            done = run_hook("session", event, environ=environ, python=any_python)
            assert (done.returncode, done.stderr) == (0, b"")
            printed = done.stdout
        else:
            with monkeypatch.context() as patch:
                patch.setattr(sys, "argv", ["session.py"])
                for name, value in environ.items():
                    patch.setenv(name, value)
                printed = run_hook_main(
                    session.main, event if isinstance(event, bytes) else json.dumps(event).encode()
                )
        assert printed != b"{}"
        return dict(json.loads(printed or b"{}"))

    return send_and_return_reply


@pytest.fixture
def send_event(reply_to_event: SendAndReply) -> SendEvent:
    """Return a function that sends an event and checks that the hook does not reply."""

    def send_and_expect_no_reply(event: object, pid: int | str = 4711, **environ: str) -> None:
        assert reply_to_event(event, pid, **environ) == {}

    return send_and_expect_no_reply


def make_end_event(ended_id: str = OLD_ID, reason: object = "clear") -> dict[str, Any]:
    """Return the event of a session's end."""
    return {"hook_event_name": "SessionEnd", "session_id": ended_id, "reason": reason}


def make_start_event(started_id: str = NEW_ID, source: object = "clear") -> dict[str, Any]:
    """Return the event of a session's start."""
    return {"hook_event_name": "SessionStart", "session_id": started_id, "source": source}


def linked_pairs(home: ConfigHome) -> list[tuple[str, str]]:
    """Return every recorded link as (parent, child)."""
    return [(link.parent_id, link.child_id) for link in read_links(home.where)]


def clear_notes(home: ConfigHome) -> list[Path]:
    """Return the notes about cleared sessions whose next session has not started yet."""
    return [
        path for path in sorted(notes_folder(home).glob("*")) if not path.name.startswith("keep-")
    ]


def notes_folder(home: ConfigHome) -> Path:
    """Return the path of the folder that contains the notes."""
    return home.config / "resume-hooks" / "pending"


@RUN_ON_BOTH_PYTHONS
def test_a_clear_writes_one_link(config_home: ConfigHome, send_event: SendEvent) -> None:
    """After ``/clear``, one link names the cleared session as the parent of the next session.

    The next session is the one that starts in the same client. The note about ``/clear`` is
    deleted.
    """
    send_event(make_end_event())
    assert len(clear_notes(config_home)) == 1
    send_event(make_start_event())
    send_event(make_start_event(session_id(3)))
    (link,) = read_links(config_home.where)
    assert link == Link(NEW_ID, OLD_ID, "clear", link.at, 4711)
    assert (
        abs(time.time() - __import__("datetime").datetime.fromisoformat(link.at).timestamp()) < 60
    )
    assert clear_notes(config_home) == []


def test_repeated_clears_write_a_chain_of_links(
    config_home: ConfigHome, send_event: SendEvent
) -> None:
    """Each of several ``/clear`` commands links the new session to the one before it.

    A session is never linked to itself.
    """
    send_event(make_end_event())
    send_event(make_start_event())
    send_event(make_end_event(NEW_ID))
    send_event(make_start_event(session_id(3)))
    send_event(make_end_event(session_id(3)))
    send_event(make_start_event(session_id(3)))
    assert linked_pairs(config_home) == [(OLD_ID, NEW_ID), (NEW_ID, session_id(3))]


@RUN_ON_BOTH_PYTHONS
def test_an_older_client_is_found_among_the_ancestor_processes(
    config_home: ConfigHome, any_python: str
) -> None:
    """Without CLAUDE_PID, the client is the nearest ancestor process that is neither a shell nor a Python."""
    script = config_home.root / "client.pl"
    hook = f"{any_python or sys.executable} -I {REPO / 'hooks' / 'session.py'}"
    events = [json.dumps(event) for event in (make_end_event(), make_start_event())]
    lines = [
        f"open(my $h, '|-', 'sh', '-c', '{hook}; true') or die; print $h '{event}'; close $h;"
        for event in events
    ]
    script.write_text("\n".join(lines))
    need_perl = subprocess.run(
        ["perl", str(script)], env={**os.environ, **config_home.environ}, check=False, timeout=60
    )
    assert need_perl.returncode == 0
    assert linked_pairs(config_home) == [(OLD_ID, NEW_ID)]


def test_parallel_clears_get_their_own_links(
    config_home: ConfigHome, send_event: SendEvent
) -> None:
    """If two clients run ``/clear`` at the same time, each gets its own link.

    The link leads from the client's old session to its new one. A session that starts in another
    client gets no link.
    """
    send_event(make_end_event(session_id(10)), 10)
    send_event(make_end_event(session_id(20)), 20)
    send_event(make_start_event(session_id(21)), 20)
    send_event(make_start_event(session_id(31)), 30)
    send_event(make_start_event(session_id(11)), 10)
    assert linked_pairs(config_home) == [
        (session_id(20), session_id(21)),
        (session_id(10), session_id(11)),
    ]


@pytest.mark.parametrize(
    "event",
    [make_end_event(reason=r) for r in ("resume", "logout", "other", "prompt_input_exit", None, 7)],
)
def test_only_clear_leaves_a_note_at_the_end_of_a_session(
    config_home: ConfigHome, send_event: SendEvent, event: dict[str, Any]
) -> None:
    """If a session ends for a reason other than ``/clear``, the hook leaves no note."""
    send_event(event)
    assert clear_notes(config_home) == []


@pytest.mark.parametrize("source", ["startup", "resume", "compact", "fork", None, ["clear"]])
def test_only_a_start_after_clear_consumes_the_clear_note(
    config_home: ConfigHome, send_event: SendEvent, source: object
) -> None:
    """If a session starts for a reason other than ``/clear``, the note stays and no link is recorded.

    The next start after ``/clear`` consumes the note and records the link.
    """
    send_event(make_end_event())
    send_event(make_start_event(session_id(5), source))
    assert linked_pairs(config_home) == []
    send_event(make_start_event())
    assert linked_pairs(config_home) == [(OLD_ID, NEW_ID)]


@RUN_ON_BOTH_PYTHONS
@pytest.mark.parametrize("time_offset", [-3_600, 3_600])
def test_an_outdated_clear_note_writes_no_link(
    config_home: ConfigHome, send_event: SendEvent, time_offset: int
) -> None:
    """If the note of a ``/clear`` is too old or has a future time, no link is recorded.

    In both cases, the note is deleted.
    """
    send_event(make_end_event())
    (mark,) = clear_notes(config_home)
    mark.write_text(json.dumps({**json.loads(mark.read_text()), "at": time.time() + time_offset}))
    send_event(make_start_event())
    assert linked_pairs(config_home) == []
    assert clear_notes(config_home) == []


@RUN_ON_BOTH_PYTHONS
@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"\xff\xfe", b'{"session_id":"../x"}', b'{"session_id":7}', b"[" * 200_000],
)
def test_a_damaged_clear_note_writes_no_link(
    config_home: ConfigHome, send_event: SendEvent, damage: bytes
) -> None:
    """If the note of a ``/clear`` is damaged, it is deleted and no link is recorded.

    The next ``/clear`` works again.
    """
    send_event(make_end_event())
    (mark,) = clear_notes(config_home)
    mark.write_bytes(damage)
    send_event(make_start_event())
    assert linked_pairs(config_home) == []
    assert clear_notes(config_home) == []
    send_event(make_end_event(NEW_ID))
    send_event(make_start_event(session_id(3)))
    assert linked_pairs(config_home) == [(NEW_ID, session_id(3))]


@RUN_ON_BOTH_PYTHONS
@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"not json",
        b"[]",
        b"\xff",
        b"{" * 100_000,
        b" " * 2_000_000,
        {},
        {"hook_event_name": ["SessionEnd"], "session_id": OLD_ID, "reason": "clear"},
        make_end_event("../../x"),
        make_end_event(""),
        make_end_event(f"{OLD_ID}\0"),
        {"hook_event_name": "SessionEnd", "session_id": 7, "reason": "clear"},
        make_start_event("../x"),
    ],
)
def test_malformed_events_are_ignored(
    config_home: ConfigHome, send_event: SendEvent, event: object
) -> None:
    """A malformed event causes no output and no file."""
    send_event(event)
    assert not (config_home.config / "resume-hooks").exists()


@RUN_ON_BOTH_PYTHONS
@pytest.mark.parametrize("pid", ["", "x", "-1", "²", "9" * 500, "../7"])
def test_an_invalid_client_pid_is_harmless(
    config_home: ConfigHome, send_event: SendEvent, pid: str
) -> None:
    """If CLAUDE_PID is invalid, no error occurs, and no file is written outside the plugin's folder."""
    send_event(make_end_event(), pid)
    send_event(make_start_event(), pid)
    assert {path.name for path in config_home.config.iterdir()} <= {"projects", "resume-hooks"}


@RUN_ON_BOTH_PYTHONS
def test_an_unwritable_link_is_reported_after_clear(
    config_home: ConfigHome, reply_to_event: SendAndReply
) -> None:
    """If a link cannot be written after ``/clear``, the next start reports it.

    The report names the folder, the reason and the remedy.
    """
    (config_home.root / "file").touch()
    state = str(config_home.root / "file" / "x")
    assert reply_to_event(make_end_event(), RESUME_HOOKS_HOME=state) == {}
    assert reply_to_event(make_start_event(source="startup"), RESUME_HOOKS_HOME=state) == {}
    assert reply_to_event(make_start_event(), RESUME_HOOKS_HOME=state) == {
        "systemMessage": "resume-hooks: the session before this one could not be recorded in "
        f"{state} (Not a directory), so /resume-hooks:lineage will not show it. Check free space "
        "and the permissions of the folder."
    }
    assert linked_pairs(config_home) == []


@pytest.mark.parametrize("has_mark", [True, False])
def test_a_full_disk_is_reported_after_clear(
    config_home: ConfigHome, reply_to_event: SendAndReply, has_mark: bool
) -> None:
    """A start after ``/clear`` reports that the disk was full when the session ended, or is full now."""
    if has_mark:
        reply_to_event(make_end_event())
    with failing_writes(errno.ENOSPC)(config_home.config / "resume-hooks"):
        line = reply_to_event(make_start_event())["systemMessage"]
    assert "(No space left on device)" in line
    assert linked_pairs(config_home) == []


@RUN_ON_BOTH_PYTHONS
def test_a_clear_note_is_private(config_home: ConfigHome, send_event: SendEvent) -> None:
    """The note of ``/clear`` has mode 0600, and its folder has mode 0700."""
    send_event(make_end_event())
    state = config_home.config / "resume-hooks"
    modes = {
        path.relative_to(state).parts[0]: path.stat().st_mode & 0o777
        for path in [state / "pending", *notes_folder(config_home).glob("*")]
    }
    assert modes["pending"] == 0o600
    assert state.stat().st_mode & 0o777 == (state / "pending").stat().st_mode & 0o777 == 0o700


@RUN_ON_BOTH_PYTHONS
def test_ten_parallel_clears_write_ten_links(config_home: ConfigHome, any_python: str) -> None:
    """Ten ``/clear`` commands that run in parallel record ten complete links with different parents."""
    numbers = range(100, 110)

    def run_in_parallel(make_event: Callable[[int], dict[str, Any]]) -> None:
        running = []
        for number in numbers:
            env = {**config_home.environ, "CLAUDE_PID": str(number)}
            command = [any_python or sys.executable, "-I", str(REPO / "hooks" / "session.py")]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, env=env)
            assert process.stdin is not None
            process.stdin.write(json.dumps(make_event(number)).encode())
            process.stdin.close()
            running.append(process)
        assert [process.wait(timeout=60) for process in running] == [0] * len(running)

    run_in_parallel(lambda number: make_end_event(session_id(number)))
    run_in_parallel(lambda number: make_start_event(session_id(number + 1_000)))
    assert sorted(linked_pairs(config_home)) == [
        (session_id(n), session_id(n + 1_000)) for n in numbers
    ]


@pytest.mark.parametrize("file_kind", ["pipe", "link"])
def test_a_clear_note_that_is_not_a_file_is_ignored(
    config_home: ConfigHome, run_hook: RunHook, file_kind: str
) -> None:
    """If a note is a pipe or a link, it is ignored, and the start does not wait to read it."""
    mark = config_home.config / "resume-hooks" / "pending" / "clear-4711.json"
    mark.parent.mkdir(parents=True)
    if file_kind == "pipe":
        os.mkfifo(mark)
    else:
        (config_home.root / "elsewhere").write_text(json.dumps({"session_id": session_id(1)}))
        mark.symlink_to(config_home.root / "elsewhere")
    done = run_hook("session", make_start_event(session_id(2)), environ={"CLAUDE_PID": "4711"})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert linked_pairs(config_home) == []


@pytest.fixture
def pending_child(config_home: ConfigHome) -> Path:
    """Write an unopened child of ``OLD_ID`` and return its path.

    The child waits for a ``/clear`` in the client with the process id 4711.
    """
    path = write_session(config_home.project(), CHILD_ID, conversation(1, session_id=CHILD_ID))
    rows = f"1. old · {OLD_ID}\n2. new · {CHILD_ID} · this session\n   {path}"
    opening = f"[SESSION LINEAGE]\n{rows}\n[/SESSION LINEAGE]\n\ngo on \x1b[1m!"
    store_handoff(
        PendingHandoff(
            4711, "", OLD_ID, CHILD_ID, path, os.path.getsize(path), time.time(), opening
        )
    )
    return Path(path)


def test_a_pending_rollover_is_reported_after_clear(
    config_home: ConfigHome, pending_child: Path, reply_to_event: SendAndReply
) -> None:
    """If a rollover is pending, the start after ``/clear`` reports it and records a link.

    The link has the kind "rollover". A pending child of an unknown kind is ignored.
    """
    size = os.path.getsize(pending_child)
    for kind, said in (
        ("rollover", f"resume-hooks: the rollover of {OLD_ID[:8]} is loaded"),
        ("x", ""),
    ):
        store_handoff(
            PendingHandoff(
                4711, "", OLD_ID, CHILD_ID, str(pending_child), size, time.time(), "opening", kind
            )
        )
        reply_to_event(make_end_event())
        told = reply_to_event(make_start_event_in_folder_of(pending_child, NEW_ID, "clear")) or {}
        assert told.get("systemMessage", "")[: len(said) or None] == said
    assert read_links(config_home.where)[0].kind == "rollover"


def make_start_event_in_folder_of(path: Path, started_id: str, source: str) -> dict[str, Any]:
    """Return the start event of a session whose transcript is in the folder of ``path``."""
    return {
        **make_start_event(started_id, source),
        "transcript_path": str(path.parent / f"{started_id}.jsonl"),
    }


@RUN_ON_BOTH_PYTHONS
def test_a_session_after_handoff_and_clear_opens_with_the_digest(
    config_home: ConfigHome, pending_child: Path, reply_to_event: SendAndReply
) -> None:
    """After a handoff and ``/clear``, the new session starts with the handoff's opening, but only once.

    The opening names the new session instead of the child. The recorded link has the kind
    "handoff", and the child is marked as superseded.
    """
    raw = pending_child.read_bytes()
    reply_to_event(make_end_event())
    said = reply_to_event(make_start_event_in_folder_of(pending_child, NEW_ID, "clear"))
    context = said["hookSpecificOutput"]["additionalContext"]
    assert said["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert context.startswith("This session was started by /clear, after a handoff (")
    assert f"2. new · {NEW_ID} · this session\n   {pending_child.parent / NEW_ID}.jsonl" in context
    assert CHILD_ID not in context
    assert "\x1b" not in context
    assert (
        said["systemMessage"]
        == f"resume-hooks: the handoff of {OLD_ID[:8]} is loaded; /clear again starts without it"
    )
    (link,) = read_links(config_home.where)
    assert link == Link(NEW_ID, OLD_ID, "handoff", link.at, 4711)
    assert read_successors(config_home.where) == {CHILD_ID: NEW_ID}
    assert clear_notes(config_home) == []
    assert pending_child.read_bytes() == raw
    reply_to_event(make_end_event(NEW_ID))
    assert (
        reply_to_event(make_start_event_in_folder_of(pending_child, session_id(7), "clear")) == {}
    )
    assert linked_pairs(config_home)[-1] == (NEW_ID, session_id(7))


@RUN_ON_BOTH_PYTHONS
@pytest.mark.parametrize(
    "case", ["other client", "other session", "other folder", "opened", "no path"]
)
def test_clearing_another_session_does_not_load_the_handoff(
    config_home: ConfigHome, pending_child: Path, reply_to_event: SendAndReply, case: str
) -> None:
    """If ``/clear`` ends another session, or runs in another client or folder, no handoff is loaded.

    The same is true if the child was opened or the event has no path. In all these cases, a link of
    the kind "clear" is recorded.
    """
    pid, cleared, place = 4711, OLD_ID, pending_child
    if case == "other client":
        pid = 4712
    elif case == "other session":
        cleared = session_id(9)
    elif case == "other folder":
        place = config_home.project("/elsewhere") / "x"
    elif case == "opened":
        pending_child.write_bytes(pending_child.read_bytes() + b"\n")
    reply_to_event(make_end_event(cleared), pid)
    assert (
        reply_to_event(
            make_start_event()
            if case == "no path"
            else make_start_event_in_folder_of(place, NEW_ID, "clear"),
            pid,
        )
        == {}
    )
    (link,) = read_links(config_home.where)
    assert (link.parent_id, link.child_id, link.kind) == (cleared, NEW_ID, "clear")


@RUN_ON_BOTH_PYTHONS
def test_resuming_the_child_consumes_the_handoff(
    config_home: ConfigHome, pending_child: Path, reply_to_event: SendAndReply
) -> None:
    """After the user has resumed the child in any client, a later ``/clear`` loads no handoff."""
    assert (
        reply_to_event(make_start_event_in_folder_of(pending_child, session_id(8), "resume")) == {}
    )
    assert (
        reply_to_event(make_start_event_in_folder_of(pending_child, CHILD_ID, "resume"), 99) == {}
    )
    reply_to_event(make_end_event())
    assert reply_to_event(make_start_event_in_folder_of(pending_child, NEW_ID, "clear")) == {}
    assert [link.kind for link in read_links(config_home.where)] == ["clear"]


@RUN_ON_BOTH_PYTHONS
def test_the_next_start_reports_a_pending_handoff_once(
    pending_child: Path, reply_to_event: SendAndReply
) -> None:
    """The next start shows one line about a pending handoff and does not repeat it later.

    A headless start does not show the line.
    """
    assert (
        reply_to_event(
            make_start_event_in_folder_of(pending_child, session_id(6), "startup"),
            5,
            CLAUDE_CODE_ENTRYPOINT="sdk-cli",
        )
        == {}
    )
    told = reply_to_event(
        make_start_event_in_folder_of(pending_child, session_id(6), "startup"),
        5,
        CLAUDE_CODE_ENTRYPOINT="cli",
    )
    assert told == {"systemMessage": f"resume-hooks: a handoff waits here: /resume {CHILD_ID}"}
    assert (
        reply_to_event(make_start_event_in_folder_of(pending_child, session_id(7), "startup"), 6)
        == {}
    )


COLD_CACHE_FIELDS = {
    "context_tokens": 163_400,
    "prompt_cache_likely_expired": True,
    "estimated_cache_write_usd": 0.6128,
}
CACHE_EXPIRED_MESSAGE = (
    "resume-hooks: The prompt cache expired; your next prompt resends all 163,400 tokens{cost}; "
    "to send less, first type /resume-hooks:trim or /resume-hooks:handoff"
)


def turn_with_token_count(
    token_count: int, *, parent_uuid: str | None = None, prompt: str = "go on"
) -> list[Record]:
    """Return a turn whose answer reports this number of tokens.

    ``parent_uuid`` is the uuid of the preceding record.
    """
    return [
        user(prompt, uuid="u", parent=parent_uuid, session_id=OLD_ID),
        assistant("done", uuid="a", parent="u", ts=1, session_id=OLD_ID, tokens=token_count),
    ]


@RUN_ON_BOTH_PYTHONS
@pytest.mark.parametrize(
    ("changed_fields", "message"),
    [
        ({}, CACHE_EXPIRED_MESSAGE.format(cost=" (about $0.61)")),
        ({"estimated_cache_write_usd": None}, CACHE_EXPIRED_MESSAGE.format(cost="")),
        ({"estimated_cache_write_usd": 0.001}, CACHE_EXPIRED_MESSAGE.format(cost="")),
        ({"context_tokens": 99_999}, ""),
        ({"context_tokens": "163400"}, ""),
        ({"prompt_cache_likely_expired": "yes"}, ""),
        ({"source": "startup"}, ""),
    ],
)
def test_a_resume_states_the_cost_of_a_cold_cache(
    config_home: ConfigHome,
    reply_to_event: SendAndReply,
    changed_fields: dict[str, Any],
    message: str,
) -> None:
    """If a session with an expired prompt cache is resumed, the hook shows how many tokens are resent.

    The number is the client's count of the tokens that the next prompt resends. For a new child or
    in a headless run, the hook shows nothing.
    """
    for made, due in ((clock.now(), ""), ("2026-01-31T09:30:00.000Z", message)):
        rows = [{"continue_metadata": {"continued_at": made}}, *turn_with_token_count(163_400)]
        path = Path(write_session(config_home.project(), OLD_ID, rows))
        event = {
            **make_start_event_in_folder_of(path, OLD_ID, "resume"),
            **COLD_CACHE_FIELDS,
            **changed_fields,
        }
        assert reply_to_event(event, CLAUDE_CODE_ENTRYPOINT="sdk-cli") == {}
        assert reply_to_event(event, CLAUDE_CODE_ENTRYPOINT="cli") == (
            {"systemMessage": due} if due else {}
        )


@pytest.mark.parametrize(
    ("prompt", "size_text"),
    [
        ("go on", ""),
        (
            "x" * 400_000,
            (
                "resume-hooks: The prompt cache expired; your next prompt resends all "
                "(about 130,010 tokens); to send less, first type /resume-hooks:trim or /resume-hooks:handoff"
            ),
        ),
    ],
)
def test_the_cold_cache_line_ignores_a_missing_beginning(
    config_home: ConfigHome, reply_to_event: SendAndReply, prompt: str, size_text: str
) -> None:
    """If the beginning of the file is missing, the line about the cache shows the same size as ``info``.

    The client's number would be too large, because it includes the missing beginning, which is not
    sent.
    """
    rows = turn_with_token_count(263_400, parent_uuid="gone", prompt=prompt)
    path = Path(write_session(config_home.project(), OLD_ID, rows))
    event = {
        **make_start_event_in_folder_of(path, OLD_ID, "resume"),
        **COLD_CACHE_FIELDS,
        "context_tokens": 263_400,
    }
    due = {"systemMessage": size_text} if size_text else {}
    assert reply_to_event(event, CLAUDE_CODE_ENTRYPOINT="cli") == due


def test_the_hook_does_not_repeat_the_modules_line(
    config_home: ConfigHome, reply_to_event: SendAndReply
) -> None:
    """If the module has just shown a line about the cache, the hook does not show its own line.

    At the next resume, the hook shows its line again.
    """
    path = Path(write_session(config_home.project(), OLD_ID, turn_with_token_count(163_400)))
    event = {**make_start_event_in_folder_of(path, OLD_ID, "resume"), **COLD_CACHE_FIELDS}
    shown = session.claim_cold_cache_line(event)
    assert shown.endswith("; to send less, first type /trim or /handoff"), (
        "as the module's commands are called"
    )
    assert reply_to_event(event, CLAUDE_CODE_ENTRYPOINT="cli") == {}
    due = CACHE_EXPIRED_MESSAGE.format(cost=" (about $0.61)")
    assert reply_to_event(event, CLAUDE_CODE_ENTRYPOINT="cli") == {"systemMessage": due}


@RUN_ON_BOTH_PYTHONS
def test_resuming_a_giant_file_warns_and_names_a_remedy(
    config_home: ConfigHome, reply_to_event: SendAndReply
) -> None:
    """If a 123 MB file is resumed, the hook warns that the client may hang and names a remedy.

    The remedy is a command. In a headless run, the hook shows nothing.
    """
    path = config_home.project() / f"{OLD_ID}.jsonl"
    with path.open("wb") as file:
        file.truncate(123_400_000)
    said = reply_to_event(
        make_start_event_in_folder_of(path, OLD_ID, "resume"), CLAUDE_CODE_ENTRYPOINT="cli"
    )["systemMessage"]
    assert "is 123 MB long, and a client may hang on it" in said
    assert f"archive --slim {OLD_ID[:8]}" in said
    assert (
        reply_to_event(
            make_start_event_in_folder_of(path, OLD_ID, "resume"), CLAUDE_CODE_ENTRYPOINT="sdk-cli"
        )
        == {}
    )


@pytest.mark.parametrize("source", ["fork", "compact", "elsewhere", ""])
def test_a_start_without_clear_keeps_the_pending_handoff(
    pending_child: Path, config_home: ConfigHome, reply_to_event: SendAndReply, source: str
) -> None:
    """A start that does not follow ``/clear``, such as the start of a fork, keeps the pending handoff.

    The hook shows nothing.
    """
    assert (
        reply_to_event(make_start_event_in_folder_of(pending_child, session_id(6), source), 5) == {}
    )
    assert len(clear_notes(config_home)) == 1


@RUN_ON_BOTH_PYTHONS
def test_a_start_after_a_compaction_without_a_file_is_silent(
    reply_to_event: SendAndReply, config_home: ConfigHome
) -> None:
    """If a session without a file starts after a compaction, the hook shows nothing."""
    assert reply_to_event(make_start_event(session_id(6), "compact")) == {}


@RUN_ON_BOTH_PYTHONS
def test_an_unwritable_link_does_not_change_the_opening(
    pending_child: Path, config_home: ConfigHome, reply_to_event: SendAndReply
) -> None:
    """The session after a handoff and ``/clear`` gets the opening even if the link cannot be written."""
    reply_to_event(make_end_event())
    Path(links_file(config_home.where)).mkdir()
    assert (
        "go on"
        in reply_to_event(make_start_event_in_folder_of(pending_child, NEW_ID, "clear"))[
            "hookSpecificOutput"
        ]["additionalContext"]
    )
