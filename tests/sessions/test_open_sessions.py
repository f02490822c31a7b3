"""Tests of whether a session is open in a client.

This depends on the entries that running clients write, and on the last write to the session's file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resume_hooks import clock
from resume_hooks.derive import fork
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.sessions.open_sessions import (
    RECENT_WRITE_SECONDS,
    RunningClients,
    describe_open_session,
)
from resume_hooks.sessions.session_files import SessionFile, session_file
from resume_hooks.system import processes
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    conversation,
    session_bytes,
    session_id,
    user,
    write_session,
)

OLD_FILE_TIME = 1_000_000_000.0
OTHER_ID = session_id(2)


@pytest.fixture
def old_session(config_home: ConfigHome) -> SessionFile:
    """Write a session whose file has not changed for a long time."""
    return session_file(
        write_session(config_home.project(), SESSION, conversation(1), mtime=OLD_FILE_TIME)
    )


@pytest.fixture
def ended_process_id() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def write_client_entry(home: ConfigHome, pid: int, **entry: Any) -> None:
    """Write the entry of a client to its folder, as version 2.1.329 does."""
    folder = home.config / "sessions"
    folder.mkdir(exist_ok=True)
    fields = {"pid": pid, "sessionId": SESSION, "cwd": CWD, "updatedAt": 1, **entry}
    body = entry.get("body") or json.dumps(
        {key: value for key, value in fields.items() if value is not None}
    )
    (folder / f"{pid}.json").write_text(body, encoding="utf-8")


def test_an_old_session_is_not_open(config_home: ConfigHome, old_session: SessionFile) -> None:
    """A session that was last written long ago and that no client's entry names is not open."""
    assert describe_open_session(old_session, config_home.where) == ""


@pytest.mark.parametrize(
    ("age_seconds", "is_open"),
    [
        (0, True),
        (RECENT_WRITE_SECONDS - 10, True),
        (RECENT_WRITE_SECONDS + 10, False),
        (-1_000, True),
    ],
)
def test_a_recently_written_session_is_open(
    config_home: ConfigHome, old_session: SessionFile, age_seconds: int, *, is_open: bool
) -> None:
    """A session is open if it was written within the last minute, or in the future."""
    os.utime(old_session.path, (time.time() - age_seconds,) * 2)
    assert bool(describe_open_session(old_session, config_home.where)) is is_open


def test_an_untouched_child_is_not_open(config_home: ConfigHome, old_session: SessionFile) -> None:
    """A new child is not open, although this plugin has just written it.

    The child is open if a client's entry names it or the user has continued it.
    """
    child = session_file(
        write_child(fork.plan_fork(old_session, config_home.where), config_home.where).file
    )
    assert describe_open_session(child, config_home.where) == ""
    write_client_entry(config_home, os.getpid(), sessionId=child.session_id)
    assert "has the session open" in describe_open_session(child, config_home.where)
    write_client_entry(config_home, os.getpid(), sessionId=OTHER_ID)
    with open(child.path, "ab") as stream:
        stream.write(
            session_bytes(
                [user("more", uuid="m", parent="r1", ts=clock.now(), session_id=child.session_id)]
            )
        )
    assert "it was written" in describe_open_session(child, config_home.where)


RUNNING_CLIENT_REASON = f"the running client {os.getpid()} has the session open"
CLIENT_ENTRY_CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a running client that names it": ({}, RUNNING_CLIENT_REASON),
    "a running client that names another": ({"sessionId": OTHER_ID}, ""),
    "a client that was killed": ({"ended": True}, ""),
    "a process that has the number of a client by now": ({"procStart": "1"}, ""),
    "a client that started when it says so": (
        {"procStart": processes.read_process_start_time(os.getpid()) or None},
        RUNNING_CLIENT_REASON,
    ),
    "a machine that can't be seen": (
        {"ended": True, "pidDomain": "linux:another-machine:pid:[4026531836]"},
        "the session open",
    ),
    "a container that can't be seen": (
        {"ended": True, "pidDomain": "linux::pid:[1]"},
        "the session open",
    ),
    "an entry without a session": ({"sessionId": None}, ""),
    "a damaged entry": ({"body": "{"}, ""),
    "2.1.112 after /clear, in the same folder": ({"sessionId": OTHER_ID, "updatedAt": None}, ""),
}
"""Changed fields of a client's entry, and the expected reason why the session counts as open.

The reason is "" if the session is not open. All other fields of the entry are those of client
2.1.329, unless the name of the case gives another version.
"""


@pytest.mark.parametrize("case_name", CLIENT_ENTRY_CASES)
def test_a_running_clients_entry_marks_a_session_as_open(
    config_home: ConfigHome, old_session: SessionFile, ended_process_id: int, case_name: str
) -> None:
    """A session is open if a running client's entry names it. Files that are not entries are skipped."""
    fields, reason = CLIENT_ENTRY_CASES[case_name]
    entry = {key: value for key, value in fields.items() if key != "ended"}
    write_client_entry(config_home, ended_process_id if "ended" in fields else os.getpid(), **entry)
    for name in (f"{os.getpid()}.abc.key", "x.json", "\u00b2.json", "1"):
        (config_home.config / "sessions" / name).write_text("{}", encoding="utf-8")
    why = describe_open_session(old_session, config_home.where)
    assert reason in why
    assert bool(why) is bool(reason)


def test_an_unreadable_session_is_treated_as_open(
    config_home: ConfigHome, old_session: SessionFile
) -> None:
    """A session is treated as open if its file or the clients' entries cannot be read."""
    (config_home.config / "sessions").write_text("no folder", encoding="utf-8")
    assert "it is unknown" in describe_open_session(old_session, config_home.where)
    gone = old_session._replace(path=f"{old_session.path}.gone")
    assert "it is unknown" in describe_open_session(gone, config_home.where)


@pytest.fixture
def unlisted_client_process_id(tmp_path: Path) -> Iterator[int]:
    """Yield the id of a process that has a client's name but no entry, like client 2.1.42."""
    if not os.path.isdir("/proc/self"):
        pytest.skip("without /proc other processes' folders are not seen")
    program = tmp_path / "claude"
    shutil.copy(str(shutil.which("sleep")), program)
    process = subprocess.Popen([str(program), "60"], cwd=tmp_path)
    # The name changes a moment after the process has started.
    while Path(f"/proc/{process.pid}/comm").read_bytes() != b"claude\n":
        time.sleep(0.001)
    yield process.pid
    process.kill()
    process.wait()


@pytest.mark.parametrize("file_kind", ["pipe", "device"])
def test_an_entry_that_is_not_a_file_is_ignored(
    config_home: ConfigHome, old_session: SessionFile, file_kind: str
) -> None:
    """A client's entry that is a pipe or a device is ignored, and opening it does not block."""
    folder = config_home.config / "sessions"
    folder.mkdir()
    if file_kind == "pipe":
        os.mkfifo(folder / f"{os.getpid()}.json")
    else:
        (folder / f"{os.getpid()}.json").symlink_to("/dev/zero")
    assert describe_open_session(old_session, config_home.where) == ""


def test_a_client_without_an_entry_does_not_open_a_session(
    config_home: ConfigHome, unlisted_client_process_id: int
) -> None:
    """A session is not open just because a client without an entry runs in its folder.

    While a client without an entry runs, other clients may not open the children that it made.
    """
    path = write_session(
        config_home.project(os.readlink(f"/proc/{unlisted_client_process_id}/cwd")),
        SESSION,
        conversation(1),
        mtime=OLD_FILE_TIME,
    )
    assert describe_open_session(session_file(path), config_home.where) == ""
    assert not RunningClients(config_home.where).may_open_child(
        os.getpid(), SESSION, unlisted_client_process_id
    )


def test_only_the_client_that_made_a_child_may_open_it(
    config_home: ConfigHome, ended_process_id: int
) -> None:
    """Only the client that made a child may open it. After this client has ended, any client may.

    If a different client already has the child open, no client may open it.
    """
    here, other = os.getpid(), os.getppid()

    def may_client_open_child(maker_process_id: int | None) -> bool:
        return RunningClients(config_home.where).may_open_child(here, SESSION, maker_process_id)

    write_client_entry(config_home, here, sessionId=OTHER_ID)
    write_client_entry(config_home, other, sessionId=OTHER_ID)
    assert [may_client_open_child(maker) for maker in (here, other, ended_process_id, None)] == [
        True,
        False,
        True,
        True,
    ]
    write_client_entry(config_home, here)
    assert may_client_open_child(here)
    write_client_entry(config_home, other)
    assert not any(may_client_open_child(maker) for maker in (here, other, ended_process_id, None))
