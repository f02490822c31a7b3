"""Ancestors are in the vault from the birth of a child on, whatever made it.

The child never waits for that.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resume_hooks.archive.retention import ancestors, archive_sessions, pending
from resume_hooks.archive.retention.ancestors import (
    archive_ancestors,
    archive_parents,
    archive_pending,
)
from resume_hooks.derive import agents, fork
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.errors import WriteFailed
from resume_hooks.sessions.archived.manifest import archived_ids, find_archived
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.session_files import SessionFile, session_file
from tests.archive.retention.aged import aged, at_once, never, with_backups, with_output
from tests.builders import ConfigHome, conversation, session_bytes, session_id, user, write_session


def handoff_child(home: ConfigHome, parent: SessionFile) -> Receipt:
    """A handoff's child."""
    return write_child(agents.plan_fresh(parent, home.where, kind="handoff"), home.where)


def went_on(path: str) -> SessionFile:
    """A session after one more prompt."""
    own_id = Path(path).stem
    with open(path, "ab") as stream:
        stream.write(session_bytes([user("on", uuid="z", session_id=own_id)]))
    return session_file(path)


def test_a_child_keeps_its_parent_and_all_before(config_home: ConfigHome) -> None:
    """The parent's files are archived, too; for an old session, its whole lineage."""
    root = aged(config_home, 1, 25)
    output = with_output(root, 25)
    config_home.environ["RESUME_HOOKS_VAULT"] = "off"
    first = handoff_child(config_home, root)
    assert archived_ids(config_home.where) == []
    del config_home.environ["RESUME_HOOKS_VAULT"]
    second = handoff_child(config_home, went_on(first.file))
    assert second.warnings == ()
    assert archived_ids(config_home.where) == sorted([root.session_id, first.session_id])
    kept = find_archived(root.session_id, config_home.where)
    assert kept
    assert {os.path.basename(part.place) for part in kept.parts} == {
        os.path.basename(root.path),
        output.name,
    }


def test_a_parent_that_is_kept_costs_no_more(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it grows, the new state is archived for its next child."""
    root = aged(config_home, 1, 0)
    handoff_child(config_home, root)
    with monkeypatch.context() as patch:
        patch.setattr(archive_sessions, "archive_session", None)
        assert handoff_child(config_home, root).warnings == ()
    handoff_child(config_home, went_on(root.path))
    kept = find_archived(root.session_id, config_home.where)
    assert kept
    assert kept.size == os.path.getsize(root.path)


def test_a_vault_that_refuses_is_a_warning(config_home: ConfigHome) -> None:
    """The child is written, its receipt names the failed copy and the reason, and the next start tries again."""
    root = aged(config_home, 1, 0)
    state = config_home.config / "resume-hooks"
    state.mkdir(mode=0o700)
    (state / "vault").write_text("in the way")
    receipt = handoff_child(config_home, root)
    assert receipt.written
    (warning,) = receipt.warnings
    assert warning.startswith(f"The ancestor {root.session_id} is not in the vault yet: ")
    assert pending.list_pending_sessions(config_home.where) == [root.session_id]
    assert archive_pending(config_home.where, never) == 1
    (state / "vault").unlink()
    assert archive_pending(config_home.where, never) == 0
    assert (archived_ids(config_home.where), pending.list_pending_sessions(config_home.where)) == (
        [root.session_id],
        [],
    )


def test_large_sessions_are_archived_later(config_home: ConfigHome) -> None:
    """A verb does not wait for a large session; the next start's second hook archives it."""
    root = aged(config_home, 1, 0)
    with_backups(config_home, root, 0, count=archive_sessions.MAX_QUICK_FILES + 1)
    assert handoff_child(config_home, root).warnings == ()
    assert archived_ids(config_home.where) == []
    assert archive_pending(config_home.where, at_once) == 1
    assert archive_pending(config_home.where, never) == 0
    assert archived_ids(config_home.where) == [root.session_id]


def test_time_that_is_over(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long lineage that nobody kept yet a verb keeps as much as it has time for.

    The rest is noted.
    """
    monkeypatch.setattr(ancestors, "MAX_ANCESTOR_SECONDS", -1.0)
    root = aged(config_home, 1, 0)
    assert handoff_child(config_home, root).warnings == ()
    assert (archived_ids(config_home.where), pending.list_pending_sessions(config_home.where)) == (
        [],
        [root.session_id],
    )


def test_an_ancestor_that_is_gone_is_wanted_no_more(config_home: ConfigHome) -> None:
    """A session without a turn, or a deleted one, is dropped; an invalid id is skipped."""
    pending.record_pending_session(session_id(1), config_home.where)
    (config_home.config / "resume-hooks" / "pending" / "keep-..").touch()
    assert archive_pending(config_home.where, never) == 0
    assert pending.list_pending_sessions(config_home.where) == []


def test_sessions_elsewhere_are_not_archived(config_home: ConfigHome, tmp_path: Path) -> None:
    """The client deletes nothing outside of its project folders."""
    path = write_session(
        tmp_path / "elsewhere", session_id(1), conversation(1, session_id=session_id(1))
    )
    rows = LineageFinder(config_home.where).find_lineage(path)
    assert archive_ancestors(rows, config_home.where) == []
    assert archived_ids(config_home.where) == []


def test_a_fork_that_the_client_made(config_home: ConfigHome) -> None:
    """Its parent is found among the files written since the last check."""
    parent = aged(config_home, 1, 0)
    origin = {"forkedFrom": {"sessionId": parent.session_id, "messageUuid": "r0"}}
    records = [record | origin for record in conversation(1, session_id=session_id(2))]
    child = session_file(write_session(config_home.project(), session_id(2), records))
    assert not archive_parents(config_home.where, 0, at_once)
    assert archive_parents(config_home.where, child.mtime + 60, never)
    assert archived_ids(config_home.where) == []
    assert archive_parents(config_home.where, child.mtime - 60, never)
    assert archived_ids(config_home.where) == [parent.session_id]


def test_who_forks_keeps(config_home: ConfigHome) -> None:
    """Every verb that writes a child uses the same function."""
    parent = aged(config_home, 1, 0)
    decided = fork.plan_fork(parent, config_home.where)
    write_child(decided, config_home.where)
    assert archived_ids(config_home.where) == [parent.session_id]


def test_another_error_of_the_vault_is_reported(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report has the error's text."""

    def refuse(*_: object, **__: object) -> None:
        raise WriteFailed("No room", "Make some.")

    monkeypatch.setattr(archive_sessions, "archive_session", refuse)
    root = aged(config_home, 1, 0)
    assert handoff_child(config_home, root).warnings == (
        f"The ancestor {root.session_id} is not in the vault yet: No room.",
    )
