"""Tests that every verb that writes a child also archives the child's ancestors.

The verb does not wait until all ancestors are archived.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resume_hooks.archive.retention import ancestors, archive_sessions, pending
from resume_hooks.archive.retention.ancestors import (
    archive_ancestors,
    archive_parents,
    archive_pending_sessions,
)
from resume_hooks.derive import agents, fork
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.errors import WriteFailed
from resume_hooks.sessions.archived.manifest import archived_ids, find_archived
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.session_files import SessionFile, session_file
from tests.archive.retention.sessions_of_age import (
    always_over_time_limit,
    never_over_time_limit,
    session_of_age,
    write_file_backups,
    write_tool_output,
)
from tests.builders import ConfigHome, conversation, session_bytes, session_id, user, write_session


def write_handoff_child(home: ConfigHome, parent: SessionFile) -> Receipt:
    """Write a handoff child of ``parent``."""
    return write_child(agents.plan_fresh_child(parent, home.where, kind="handoff"), home.where)


def append_prompt(path: str) -> SessionFile:
    """Append a prompt to a session, and return its new state."""
    own_id = Path(path).stem
    with open(path, "ab") as stream:
        stream.write(session_bytes([user("on", uuid="z", session_id=own_id)]))
    return session_file(path)


def test_a_handoff_archives_every_ancestor(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handoff archives its parent with the parent's files, and the parent's own ancestors."""
    monkeypatch.setattr(ancestors, "MAX_ANCESTOR_ARCHIVING_SECONDS", 60)
    root = session_of_age(config_home, 1, 25)
    output = write_tool_output(root, 25)
    config_home.environ["RESUME_HOOKS_VAULT"] = "off"
    first = write_handoff_child(config_home, root)
    assert archived_ids(config_home.where) == []
    del config_home.environ["RESUME_HOOKS_VAULT"]
    second = write_handoff_child(config_home, append_prompt(first.file))
    assert second.warnings == ()
    assert archived_ids(config_home.where) == sorted([root.session_id, first.session_id])
    kept = find_archived(root.session_id, config_home.where)
    assert kept
    assert {os.path.basename(part.place) for part in kept.parts} == {
        os.path.basename(root.path),
        output.name,
    }


def test_a_handoff_skips_an_archived_parent(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handoff does not archive an unchanged parent again. A parent that grew is archived again."""
    root = session_of_age(config_home, 1, 0)
    write_handoff_child(config_home, root)
    with monkeypatch.context() as patch:
        patch.setattr(archive_sessions, "archive_session", None)
        assert write_handoff_child(config_home, root).warnings == ()
    write_handoff_child(config_home, append_prompt(root.path))
    kept = find_archived(root.session_id, config_home.where)
    assert kept
    assert kept.size == os.path.getsize(root.path)


def test_a_handoff_warns_if_it_cannot_archive_the_parent(config_home: ConfigHome) -> None:
    """If the parent can't be archived, the child is still written, and its receipt has a warning.

    The start of a later session archives the parent.
    """
    root = session_of_age(config_home, 1, 0)
    state = config_home.config / "resume-hooks"
    state.mkdir(mode=0o700)
    (state / "vault").write_text("in the way")
    receipt = write_handoff_child(config_home, root)
    assert receipt.written
    (warning,) = receipt.warnings
    assert warning.startswith(f"The ancestor {root.session_id} is not in the vault yet: ")
    assert pending.list_pending_sessions(config_home.where) == [root.session_id]
    assert archive_pending_sessions(config_home.where, never_over_time_limit) == 1
    (state / "vault").unlink()
    assert archive_pending_sessions(config_home.where, never_over_time_limit) == 0
    assert (archived_ids(config_home.where), pending.list_pending_sessions(config_home.where)) == (
        [root.session_id],
        [],
    )


def test_a_handoff_leaves_a_large_parent_to_the_next_start(config_home: ConfigHome) -> None:
    """A handoff does not archive a large parent, but the start of the next session does."""
    root = session_of_age(config_home, 1, 0)
    write_file_backups(config_home, root, 0, count=archive_sessions.MAX_QUICK_SESSION_FILES + 1)
    assert write_handoff_child(config_home, root).warnings == ()
    assert archived_ids(config_home.where) == []
    assert archive_pending_sessions(config_home.where, always_over_time_limit) == 1
    assert archive_pending_sessions(config_home.where, never_over_time_limit) == 0
    assert archived_ids(config_home.where) == [root.session_id]


def test_a_handoff_postpones_ancestors_after_its_time_limit(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handoff that has no time to archive an ancestor records the ancestor as pending."""
    monkeypatch.setattr(ancestors, "MAX_ANCESTOR_ARCHIVING_SECONDS", -1.0)
    root = session_of_age(config_home, 1, 0)
    assert write_handoff_child(config_home, root).warnings == ()
    assert (archived_ids(config_home.where), pending.list_pending_sessions(config_home.where)) == (
        [],
        [root.session_id],
    )


def test_a_deleted_ancestor_is_removed_from_the_pending_list(config_home: ConfigHome) -> None:
    """A pending session without a file is removed from the pending list, and an invalid id is ignored."""
    pending.record_pending_session(session_id(1), config_home.where)
    (config_home.config / "resume-hooks" / "pending" / "keep-..").touch()
    assert archive_pending_sessions(config_home.where, never_over_time_limit) == 0
    assert pending.list_pending_sessions(config_home.where) == []


def test_ancestors_outside_the_project_folders_are_not_archived(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """An ancestor outside the client's project folders is not archived, as the client never deletes it."""
    path = write_session(
        tmp_path / "elsewhere", session_id(1), conversation(1, session_id=session_id(1))
    )
    rows = LineageFinder(config_home.where).find_lineage(path)
    assert archive_ancestors(rows, config_home.where) == []
    assert archived_ids(config_home.where) == []


def test_the_parent_of_a_fork_by_the_client_is_archived(config_home: ConfigHome) -> None:
    """The parent of a fork that the client wrote since the last check is archived."""
    parent = session_of_age(config_home, 1, 0)
    origin = {"forkedFrom": {"sessionId": parent.session_id, "messageUuid": "r0"}}
    records = [record | origin for record in conversation(1, session_id=session_id(2))]
    child = session_file(write_session(config_home.project(), session_id(2), records))
    assert not archive_parents(config_home.where, 0, always_over_time_limit)
    assert archive_parents(config_home.where, child.mtime + 60, never_over_time_limit)
    assert archived_ids(config_home.where) == []
    assert archive_parents(config_home.where, child.mtime - 60, never_over_time_limit)
    assert archived_ids(config_home.where) == [parent.session_id]


def test_a_fork_archives_its_parent(config_home: ConfigHome) -> None:
    """``fork`` archives the parent just as a handoff does."""
    parent = session_of_age(config_home, 1, 0)
    decided = fork.plan_fork(parent, config_home.where)
    write_child(decided, config_home.where)
    assert archived_ids(config_home.where) == [parent.session_id]


def test_a_handoff_reports_an_archiving_error(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If archiving the parent raises an error, the receipt's warning contains the error's text."""

    def raise_write_failed(*_: object, **__: object) -> None:
        raise WriteFailed("No room", "Make some.")

    monkeypatch.setattr(archive_sessions, "archive_session", raise_write_failed)
    root = session_of_age(config_home, 1, 0)
    assert write_handoff_child(config_home, root).warnings == (
        f"The ancestor {root.session_id} is not in the vault yet: No room.",
    )
