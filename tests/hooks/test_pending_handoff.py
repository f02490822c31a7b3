"""Tests of a pending handoff, which waits for the user to type ``/clear`` in the client that made it.

``/clear`` uses the handoff and removes it. It is also removed if the user opens its child. The next
start announces a pending handoff once.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.hooks import hook_state, pending_handoff
from resume_hooks.hooks.pending_handoff import (
    ANNOUNCEMENT_PERIOD_SECONDS,
    MAX_OPENING_CHARACTERS,
    PendingHandoff,
)
from resume_hooks.system.processes import read_process_start_time
from tests.builders import ConfigHome, assistant, conversation, session_id, write_session

PARENT_ID, CHILD_ID, OTHER_ID = session_id(1), session_id(2), session_id(3)
CLIENT_PID = os.getpid()
TOO_OLD_SECONDS = hook_state.NOTE_LIFETIME_SECONDS + 60


@pytest.fixture
def handoff(config_home: ConfigHome) -> PendingHandoff:
    """Return a pending handoff of this process, made now."""
    path = write_session(config_home.project(), CHILD_ID, conversation(1, session_id=CHILD_ID))
    return PendingHandoff(
        CLIENT_PID,
        read_process_start_time(CLIENT_PID),
        PARENT_ID,
        CHILD_ID,
        path,
        os.path.getsize(path),
        time.time(),
        "the opening",
    )


def project_folder(home: ConfigHome) -> str:
    """Return the path of the project that contains the parent and the child."""
    return str(home.project())


def list_note_names(home: ConfigHome) -> list[str]:
    """Return the file names of all stored notes."""
    return sorted(path.name for path in (home.config / "resume-hooks" / "pending").glob("*"))


def handoff_with_new_child(handoff: PendingHandoff, child_number: int) -> PendingHandoff:
    """Return ``handoff`` with a different child, which is not opened yet."""
    path = write_session(
        os.path.dirname(handoff.child_file), session_id(child_number), conversation(1)
    )
    return handoff._replace(
        child_id=session_id(child_number), child_file=path, child_size=os.path.getsize(path)
    )


def test_clear_consumes_a_handoff_once(config_home: ConfigHome, handoff: PendingHandoff) -> None:
    """``/clear`` consumes a pending handoff, so a second ``/clear`` finds none.

    The handoff's note is private. If the id of the cleared session is unknown (None), the client
    and the folder must match.
    """
    for cleared in (PARENT_ID, None):
        pending_handoff.store_handoff(handoff)
        (name,) = list_note_names(config_home)
        assert os.stat(hook_state.note_path(name)).st_mode & 0o777 == 0o600
        assert (
            pending_handoff.consume_cleared_handoff(
                CLIENT_PID, project_folder(config_home), cleared
            )
            == handoff
        )
        assert (
            pending_handoff.consume_cleared_handoff(
                CLIENT_PID, project_folder(config_home), cleared
            )
            is None
        )
        assert list_note_names(config_home) == []


def test_a_client_has_one_pending_handoff(config_home: ConfigHome, handoff: PendingHandoff) -> None:
    """A client has only one pending handoff, the latest. Handoffs of other clients stay pending."""
    pending_handoff.store_handoff(handoff._replace(pid=1))
    pending_handoff.store_handoff(handoff)
    pending_handoff.store_handoff(handoff_with_new_child(handoff, 4))
    assert len(list_note_names(config_home)) == 2
    taken = pending_handoff.consume_cleared_handoff(
        CLIENT_PID, project_folder(config_home), PARENT_ID
    )
    assert taken is not None
    assert taken.child_id == session_id(4)


def test_clearing_another_session_keeps_the_handoff(
    config_home: ConfigHome, handoff: PendingHandoff
) -> None:
    """If ``/clear`` ends a session other than the handoff's parent, the handoff stays pending.

    The same is true for ``/clear`` in a different folder or client. The user may still return to
    the parent and clear it.
    """
    pending_handoff.store_handoff(handoff)
    assert (
        pending_handoff.consume_cleared_handoff(CLIENT_PID, project_folder(config_home), OTHER_ID)
        is None
    )
    assert (
        pending_handoff.consume_cleared_handoff(
            CLIENT_PID, str(config_home.project("/elsewhere")), PARENT_ID
        )
        is None
    )
    assert (
        pending_handoff.consume_cleared_handoff(
            CLIENT_PID + 1, project_folder(config_home), PARENT_ID
        )
        is None
    )
    assert (
        pending_handoff.consume_cleared_handoff(CLIENT_PID, project_folder(config_home), PARENT_ID)
        == handoff
    )


def test_a_process_with_a_reused_id_gets_no_handoff(
    config_home: ConfigHome, handoff: PendingHandoff
) -> None:
    """If a new process got the client's old process id, it does not get the handoff.

    The start time of the new process differs from the stored one. If the stored start time is
    unknown, only the id is compared.
    """
    pending_handoff.store_handoff(handoff._replace(started="1"))
    assert (
        pending_handoff.consume_cleared_handoff(CLIENT_PID, project_folder(config_home), PARENT_ID)
        is None
    )
    pending_handoff.store_handoff(handoff._replace(started=""))
    assert (
        pending_handoff.consume_cleared_handoff(CLIENT_PID, project_folder(config_home), PARENT_ID)
        is not None
    )


@pytest.mark.parametrize("change", ["opened", "gone", "link", "old", "future"])
def test_an_outdated_handoff_is_dropped(
    config_home: ConfigHome, handoff: PendingHandoff, change: str
) -> None:
    """``/clear`` ignores and deletes a handoff whose child was opened, deleted or replaced with a link.

    The same is true for a handoff that is older than a day or has a time in the future.
    """
    child = Path(handoff.child_file)
    if change == "opened":
        child.write_bytes(child.read_bytes() + b"{}\n")
    elif change in {"gone", "link"}:
        child.rename(config_home.root / "moved")
    if change == "link":
        child.symlink_to(config_home.root / "moved")
    made = time.time() + {"old": -TOO_OLD_SECONDS, "future": 3_600}.get(change, 0)
    pending_handoff.store_handoff(handoff._replace(at=made))
    assert pending_handoff.find_handoff_to_announce(project_folder(config_home)) is None
    assert (
        pending_handoff.consume_cleared_handoff(CLIENT_PID, project_folder(config_home), PARENT_ID)
        is None
    )
    assert list_note_names(config_home) == []


def test_a_pending_handoff_is_reported_once(
    config_home: ConfigHome, handoff: PendingHandoff
) -> None:
    """A pending handoff is announced once, and only in its own project.

    After the announcement, ``/clear`` can still use the handoff. Opening its child deletes the
    handoff.
    """
    pending_handoff.store_handoff(handoff)
    assert pending_handoff.find_handoff_to_announce(str(config_home.project("/elsewhere"))) is None
    assert pending_handoff.find_handoff_to_announce(project_folder(config_home)) == handoff
    assert pending_handoff.find_handoff_to_announce(project_folder(config_home)) is None
    assert (
        pending_handoff.consume_cleared_handoff(CLIENT_PID, project_folder(config_home), PARENT_ID)
        == handoff
    )
    pending_handoff.store_handoff(handoff)
    assert pending_handoff.find_handoff_to_announce(project_folder(config_home)) == handoff
    pending_handoff.consume_handoff_to_child(OTHER_ID)
    assert len(list_note_names(config_home)) == 1
    pending_handoff.consume_handoff_to_child(CHILD_ID)
    assert list_note_names(config_home) == []


def test_only_the_newest_handoff_is_reported(
    config_home: ConfigHome, handoff: PendingHandoff
) -> None:
    """Only the newest of several pending handoffs is announced."""
    for number, age in ((4, 30), (5, 10), (6, 20)):
        pending_handoff.store_handoff(
            handoff_with_new_child(handoff, number)._replace(pid=number, at=time.time() - age)
        )
    told = pending_handoff.find_handoff_to_announce(project_folder(config_home))
    assert told is not None
    assert told.child_id == session_id(5)
    assert pending_handoff.find_handoff_to_announce(project_folder(config_home)) is None


def test_a_handoff_is_not_announced_after_an_hour(
    config_home: ConfigHome, handoff: PendingHandoff
) -> None:
    """A pending handoff is no longer announced after an hour, but ``/clear`` can still use it."""
    pending_handoff.store_handoff(
        handoff._replace(at=time.time() - ANNOUNCEMENT_PERIOD_SECONDS - 10)
    )
    assert pending_handoff.find_handoff_to_announce(project_folder(config_home)) is None
    assert [name.endswith(".json") for name in list_note_names(config_home)] == [False]
    assert (
        pending_handoff.consume_cleared_handoff(CLIENT_PID, project_folder(config_home), PARENT_ID)
        is not None
    )


INVALID_FIELDS: list[dict[str, Any]] = [
    {"pid": "1"},
    {"pid": 2**22 + 1},  # This is larger than any process id on Linux, where the maximum is 2**22.
    {"child_id": OTHER_ID},
    {"child_id": "../x"},
    {"child_file": "/etc/passwd"},
    {"child_file": 7},
    {"child_file": f"/\0/{CHILD_ID}.jsonl"},
    {"child_file": f"/\ud800/{CHILD_ID}.jsonl"},
    {"child_size": "7"},
    {"parent_id": CHILD_ID},
    {"parent_id": ""},
    {"at": "now"},
    {"at": 10**400},
    {"at": -1},
    {"opening": "x" * (MAX_OPENING_CHARACTERS + 1)},
    {"opening": ["x"]},
    {"opening": None},
]


@pytest.mark.parametrize("change", INVALID_FIELDS, ids=repr)
def test_an_invalid_handoff_note_is_dropped(
    config_home: ConfigHome, handoff: PendingHandoff, change: dict[str, Any]
) -> None:
    """A note with an invalid field is neither used nor announced, and the next start ignores it."""
    pending_handoff.store_handoff(handoff)
    (name,) = list_note_names(config_home)
    sound = json.loads(Path(hook_state.note_path(name)).read_text())
    Path(hook_state.note_path(name)).write_text(json.dumps({**sound, **change}))
    assert (
        pending_handoff.consume_cleared_handoff(CLIENT_PID, project_folder(config_home), PARENT_ID)
        is None
    )
    assert pending_handoff.find_handoff_to_announce(project_folder(config_home)) is None
    assert not any(name.endswith(".json") for name in list_note_names(config_home))


def test_a_rewind_drops_the_handoff(config_home: ConfigHome, handoff: PendingHandoff) -> None:
    """A rewind in a session deletes the pending handoff of this session and of no other."""
    pending_handoff.store_handoff(handoff)
    pending_handoff.consume_handoffs_of_parent(OTHER_ID)
    assert (
        pending_handoff.consume_cleared_handoff(CLIENT_PID, project_folder(config_home), PARENT_ID)
        == handoff
    )
    pending_handoff.store_handoff(handoff)
    pending_handoff.consume_handoffs_of_parent(PARENT_ID)
    assert list_note_names(config_home) == []


@pytest.mark.parametrize(
    ("answer_time", "is_outdated"),
    [("2020-01-01T00:00:00.000Z", False), ("2999-01-01T00:00:00.000Z", True)],
)
def test_later_work_makes_a_handoff_outdated(
    config_home: ConfigHome, handoff: PendingHandoff, answer_time: str, is_outdated: bool
) -> None:
    """A handoff is outdated if the model answered in the parent after the handoff was made.

    If the parent's file is missing, the handoff is not outdated.
    """
    assert not pending_handoff.is_handoff_outdated(handoff)
    write_session(
        config_home.project(),
        PARENT_ID,
        [assistant("more", uuid="a1", parent=None, ts=answer_time), b"not JSON"],
    )
    assert pending_handoff.is_handoff_outdated(handoff) is is_outdated
