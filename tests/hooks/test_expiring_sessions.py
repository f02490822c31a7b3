"""Tests of archiving sessions that the client will soon delete.

At a start, some sessions are archived and reported. A background hook archives the rest of them.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.archive.retention import pending
from resume_hooks.archive.vault import delete
from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.hooks import background, expiring_sessions, hook_state
from resume_hooks.hooks.pending_handoff import PendingHandoff, store_handoff
from resume_hooks.hooks.session import EXPIRING_ARGUMENT, handle_session_event
from resume_hooks.paths import Where
from resume_hooks.sessions import held_links
from resume_hooks.sessions.archived.manifest import archived_ids, find_archived
from resume_hooks.sessions.archived.unpack import stored_path
from resume_hooks.sessions.link_log import Link, record_link
from tests.archive.retention.sessions_of_age import DAY, session_of_age
from tests.builders import CWD, ConfigHome, session_id
from tests.needs import REPO


@pytest.fixture(autouse=True)
def simulate_ordinary_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate an ordinary client, even if the tests themselves run inside a headless client."""
    monkeypatch.delenv("CLAUDE_CODE_ENTRYPOINT", raising=False)
    monkeypatch.setenv("CLAUDE_PID", str(os.getpid()))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def make_start_event(home: ConfigHome, source: str = "startup") -> dict[str, Any]:
    """Return the event of the start of a new session."""
    path = str(home.project() / f"{session_id(9)}.jsonl")
    event = {"session_id": session_id(9), "transcript_path": path, "cwd": CWD, "source": source}
    return event | {"hook_event_name": "SessionStart"}


def line_shown_at_start(home: ConfigHome, source: str = "startup") -> str:
    """Return the line that the hook shows at a start, or ``""`` if it shows none."""
    reply = handle_session_event(make_start_event(home, source), [EXPIRING_ARGUMENT])
    return str(json.loads(reply)["systemMessage"]) if reply else ""


def read_stamp(name: str) -> dict[str, Any]:
    """Return the content of a stamp file without its version."""
    return {key: value for key, value in hook_state.read_note(name).items() if key != "version"}


@pytest.mark.parametrize("source", ["startup", "resume", "fork"])
def test_a_start_archives_expiring_sessions(config_home: ConfigHome, source: str) -> None:
    """A start archives sessions that the client will soon delete, and reports how many it archived.

    The first report also names the command that turns archiving off. If a start archives no
    session, it prints nothing.
    """
    session_of_age(config_home, 1, 25)
    line = line_shown_at_start(config_home, source)
    assert line.startswith("resume-hooks: archived 1 session that the client will soon delete · ")
    assert line.endswith(
        f"To switch this off, run this in a shell: sh {REPO}/hooks/engine config vault off"
    )
    assert archived_ids(config_home.where) == [session_id(1)]
    stamp = read_stamp(f"due-{config_home.project().name}.json")
    assert stamp["look"] == pytest.approx(time.time() + DAY, abs=60)
    assert stamp["made"] == pytest.approx(time.time(), abs=60)
    assert line_shown_at_start(config_home, source) == ""
    session_of_age(config_home, 2, 25)
    assert (
        line_shown_at_start(config_home, source)
        == "resume-hooks: archived 1 session that the client will soon delete"
    )


def test_the_next_start_reports_the_first_archived_session(config_home: ConfigHome) -> None:
    """After a verb has archived a session for the first time, the next start reports this once.

    The report says that sessions are archived. If a handoff is waiting too, the start mentions the
    handoff first.
    """
    archive_session(session_of_age(config_home, 1, 0), config_home.where)
    child = session_of_age(config_home, 2, 0)
    store_handoff(
        PendingHandoff(
            1, "", session_id(1), session_id(2), child.path, child.size, time.time(), "the opening"
        )
    )
    waits, _, kept = line_shown_at_start(config_home).partition(" · ")
    assert waits == f"resume-hooks: a handoff waits here: /resume {session_id(2)}"
    assert kept.startswith("Transcripts are now archived beyond the client's 30 days")
    assert line_shown_at_start(config_home) == ""


def test_a_start_without_the_scripts_argument_archives_nothing(config_home: ConfigHome) -> None:
    """A start archives sessions only if the shell script passes the argument that asks for it."""
    session_of_age(config_home, 1, 25)
    assert handle_session_event(make_start_event(config_home)) == b""
    assert archived_ids(config_home.where) == []


def test_remaining_sessions_are_reported_and_archived_later(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a start has no time for all expiring sessions, the background hook archives the others.

    The start's line says how many remain.
    """
    monkeypatch.setattr(expiring_sessions, "MAX_ARCHIVING_SECONDS", -1.0)
    for number in (1, 2, 3):
        session_of_age(config_home, number, 25)
    assert line_shown_at_start(config_home).startswith(
        "resume-hooks: archived 1 session that the client will soon delete, 2 more will follow · "
    )
    assert read_stamp(f"due-{config_home.project().name}.json")["look"] <= time.time()
    background.archive_in_background(make_start_event(config_home))
    assert archived_ids(config_home.where) == [session_id(number) for number in (1, 2, 3)]
    assert read_stamp(f"due-{config_home.project().name}.json")["look"] > time.time()


def test_a_headless_start_reports_nothing(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A headless start archives sessions and reports nothing.

    The next start with a user reports how to turn archiving off.
    """
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    session_of_age(config_home, 1, 25)
    assert line_shown_at_start(config_home) == ""
    assert archived_ids(config_home.where) == [session_id(1)]
    monkeypatch.delenv("CLAUDE_CODE_ENTRYPOINT")
    assert "vault off" in line_shown_at_start(config_home)


def test_only_one_of_two_starts_archives(config_home: ConfigHome) -> None:
    """A start neither archives nor waits while another start is archiving."""
    session_of_age(config_home, 1, 25)
    line_shown_at_start(config_home)
    session_of_age(config_home, 2, 25)
    assert hook_state.claim_note(f"due-{config_home.project().name}.json")
    assert line_shown_at_start(config_home) == ""
    assert archived_ids(config_home.where) == [session_id(1)]


@pytest.mark.parametrize(
    "path", ["", "/", "x.jsonl", "/a/b c/x.jsonl", "/a/../x.jsonl", "/a/\ud800/x.jsonl"]
)
def test_a_hostile_path_is_ignored(config_home: ConfigHome, path: str) -> None:
    """If the transcript path is malformed, a start archives nothing and writes nothing."""
    handle_session_event(
        make_start_event(config_home) | {"transcript_path": path}, [EXPIRING_ARGUMENT]
    )
    assert not [name for name in os.listdir(config_home.config) if name != "projects"]


def test_a_start_works_without_a_writable_state_folder(config_home: ConfigHome) -> None:
    """A start succeeds if the plugin's state folder cannot be written."""
    session_of_age(config_home, 1, 25)
    (config_home.config / "resume-hooks").write_text("in the way")
    assert line_shown_at_start(config_home) == ""


def test_a_cleared_session_is_archived_by_the_next_background_hook(config_home: ConfigHome) -> None:
    """``/clear`` only stores a note, and the next background hook archives the cleared session.

    The client therefore does not have to wait until the session is copied.
    """
    session_of_age(config_home, 1, 0)
    end = {"session_id": session_id(1), "hook_event_name": "SessionEnd", "reason": "clear"}
    assert handle_session_event(end) == b""
    assert pending.list_pending_sessions(Where()) == [session_id(1)]
    background.archive_in_background(make_start_event(config_home, "clear"))
    assert (pending.list_pending_sessions(Where()), archived_ids(config_home.where)) == (
        [],
        [session_id(1)],
    )


def test_the_hook_looks_for_ancestors_once_a_day(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The background hook looks for ancestors to archive only once a day.

    It stores the time of the next search in a stamp file. In a headless run, it does not search.
    """
    session_of_age(config_home, 1, 3)
    record_link(
        Link(session_id(2), session_id(1), "fork", "2026-01-31T09:30:00.000Z"), config_home.where
    )
    session_of_age(config_home, 2, 0)
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    background.archive_in_background(make_start_event(config_home))
    assert (read_stamp("vault.json"), archived_ids(config_home.where)) == ({}, [])
    monkeypatch.delenv("CLAUDE_CODE_ENTRYPOINT")
    background.archive_in_background(make_start_event(config_home))
    kept = find_archived(session_id(1), config_home.where)
    assert kept
    stamp = read_stamp("vault.json")
    assert stamp["look"] == pytest.approx(time.time() + DAY, abs=60)
    assert stamp["seen"] == stamp["made"]
    background.archive_in_background(make_start_event(config_home))
    assert read_stamp("vault.json") == stamp


def test_deleted_sessions_are_packed_once_a_day(config_home: ConfigHome) -> None:
    """The background hook compresses the files of deleted sessions once a day.

    When the user deletes a session, its files are not compressed yet, so that the deletion is fast.
    """
    session = session_of_age(config_home, 1, 3)
    entry = delete.move_to_trash(delete.plan_delete(session, config_home.where), config_home.where)
    assert os.path.exists(stored_path(entry.folder, entry.transcript))
    background.archive_in_background(make_start_event(config_home))
    assert sorted(os.listdir(entry.folder)) == ["manifest.json", "pack-1.xz"]


def test_the_background_hook_stops_after_its_client_has_ended(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If its client has ended, the background hook stops after one session, and the next hook continues.

    If the client is headless, the hook may go on for some seconds.
    """
    monkeypatch.setenv("CLAUDE_PID", str(2**22 + 1))
    for number in (1, 2, 3):
        session_of_age(config_home, number, 25)
    background.archive_in_background(make_start_event(config_home))
    assert len(archived_ids(config_home.where)) == 1
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
    background.archive_in_background(make_start_event(config_home))
    assert len(archived_ids(config_home.where)) == 3


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"session_id": 7}', b'{"session_id": "../x"}'])
def test_the_background_hook_never_raises(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, raw: bytes
) -> None:
    """The background hook never raises an error, whatever the event contains."""
    folder = Path(config_home.root)
    (folder / "event").write_bytes(raw)
    with (folder / "event").open(encoding="utf-8") as stream:
        monkeypatch.setattr("sys.stdin", stream)
        # Keep the hook from lowering the priority of the test process.
        monkeypatch.setattr(os, "nice", lambda _: 0)
        background.main()
    assert archived_ids(config_home.where) == []


@pytest.mark.parametrize("entrypoint", ["cli", "sdk-cli"])
def test_a_start_links_every_session(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, entrypoint: str
) -> None:
    """A start links every session, so that the next start can archive what the client deleted.

    A headless run does the same.
    """
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", entrypoint)
    path = Path(session_of_age(config_home, 1, 2).path)
    background.archive_in_background(make_start_event(config_home))
    link = Path(held_links.links_folder(config_home.where), path.parent.name, path.name)
    assert link.samefile(path)
    path.unlink()
    background.archive_in_background(make_start_event(config_home))
    assert (archived_ids(config_home.where), link.exists()) == ([session_id(1)], False)
