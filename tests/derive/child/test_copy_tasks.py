"""Tests that a child gets a copy of the whole task list or no list, and that links are ignored."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from resume_hooks.derive import agents, fork
from resume_hooks.derive.child import copy_files
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.sessions import locate
from resume_hooks.sessions.child_titles import ChildKind
from tests.builders import SESSION, ConfigHome, conversation, session_id, write_session
from tests.crashes import kill_before_each_change


class SessionWithTasks:
    """A session with two tasks, the first of which is completed."""

    def __init__(self, home: ConfigHome) -> None:
        self.home = home
        self.parent = locate.session_file(write_session(home.project(), SESSION, conversation(2)))
        self.lists = home.config / "tasks"
        self.own = self.lists / SESSION
        self.own.mkdir(parents=True)
        for number, status in ((1, "completed"), (3, "pending")):
            task = {
                "id": str(number),
                "subject": f"Task {number}",
                "status": status,
                "blocks": [],
                "blockedBy": [],
            }
            (self.own / f"{number}.json").write_bytes(
                orjson.dumps(task, option=orjson.OPT_INDENT_2)
            )
        (self.own / ".highwatermark").write_bytes(b"2")
        (self.own / ".lock").write_bytes(b"")

    def write_child_of_kind(self, kind: ChildKind = "handoff") -> Receipt:
        """Write a child of this kind and return its receipt."""
        if kind == "fork":
            return write_child(fork.plan_fork(self.parent, self.home.where), self.home.where)
        return write_child(
            agents.plan_fresh_child(self.parent, self.home.where, kind=kind), self.home.where
        )

    def read_task_files(self, session_id: str = SESSION) -> dict[str, bytes]:
        """Return the files of a session's task list, without the client's lock file."""
        folder = self.lists / session_id
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


@pytest.fixture
def session_with_tasks(config_home: ConfigHome) -> SessionWithTasks:
    """Return a session with tasks in a config home of its own."""
    return SessionWithTasks(config_home)


@pytest.mark.parametrize("kind", ["handoff", "rollover", "fork"])
def test_every_child_gets_the_task_list(
    session_with_tasks: SessionWithTasks, kind: ChildKind
) -> None:
    """A handoff, a rollover and a fork get a private copy of the parent's task files."""
    before = session_with_tasks.read_task_files()
    receipt = session_with_tasks.write_child_of_kind(kind)
    own = session_with_tasks.lists / receipt.session_id
    assert (
        session_with_tasks.read_task_files(receipt.session_id)
        == before
        == session_with_tasks.read_task_files()
    )
    assert not [warning for warning in receipt.warnings if "task" in warning]
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in own.iterdir())
    assert not any((own / name).samefile(session_with_tasks.own / name) for name in before)


def test_a_session_without_tasks_gets_no_folder(session_with_tasks: SessionWithTasks) -> None:
    """If all tasks of a session were deleted, its child gets no task folder."""
    for name in ("1.json", "3.json"):
        (session_with_tasks.own / name).unlink()
    session_with_tasks.write_child_of_kind()
    assert os.listdir(session_with_tasks.lists) == [SESSION]


@pytest.mark.parametrize(
    "damage", ["too large", "too many", "damaged", "a link", "a pipe", "linked", "all linked"]
)
def test_an_invalid_task_list_is_not_copied(
    session_with_tasks: SessionWithTasks, damage: str
) -> None:
    """If the task list is invalid, the receipt has a warning, and no part of the list is copied."""
    task, elsewhere = session_with_tasks.own / "4.json", session_with_tasks.home.root / "elsewhere"
    if damage == "too large":
        task.write_bytes(b'"' + b"x" * copy_files.MAX_TASK_BYTES + b'"')
    elif damage == "too many":
        for number in range(copy_files.MAX_TASKS):
            (session_with_tasks.own / f"{number + 10}.json").write_bytes(b"{}")
    elif damage == "damaged":
        task.write_bytes(b'{"id": "4", "subj')
    elif damage == "a link":
        elsewhere.write_bytes(b"{}")
        task.symlink_to(elsewhere)
    elif damage == "a pipe":
        os.mkfifo(task)
    else:
        folder = session_with_tasks.own if damage == "linked" else session_with_tasks.lists
        folder.rename(elsewhere)
        folder.symlink_to(elsewhere)
    receipt = session_with_tasks.write_child_of_kind()
    assert [
        warning
        for warning in receipt.warnings
        if warning.startswith("The task list could not be copied (")
    ]
    assert Path(receipt.file).is_file()
    assert os.listdir(session_with_tasks.lists) == [SESSION]


def test_a_task_list_that_cannot_be_written_is_removed(
    session_with_tasks: SessionWithTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk is full, the receipt has a warning, and no part of the task list is left."""

    def fail_with_full_disk(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(
        "resume_hooks.derive.child.copy_files.state_file.create_file", fail_with_full_disk
    )
    assert any(
        "No space left" in warning for warning in session_with_tasks.write_child_of_kind().warnings
    )
    assert os.listdir(session_with_tasks.lists) == [SESSION]


def test_a_killed_copy_leaves_the_whole_task_list_or_none(
    session_with_tasks: SessionWithTasks,
) -> None:
    """If the process is killed while it copies a task list, the child has the whole list or none.

    Hidden leftovers are removed when the next child is written.
    """
    before, children = session_with_tasks.read_task_files(), iter(map(session_id, range(1, 50)))

    def prepare_copy() -> Callable[[], object]:
        child = next(children)
        return lambda: copy_files.copy_tasks(SESSION, child, session_with_tasks.home.where)

    for _ in kill_before_each_change(prepare_copy):
        made = [name for name in os.listdir(session_with_tasks.lists) if not name.startswith(".")]
        assert all(session_with_tasks.read_task_files(name) == before for name in made)
    assert len(made) > 1
    session_with_tasks.write_child_of_kind()
    assert not [name for name in os.listdir(session_with_tasks.lists) if name.startswith(".")]
    assert session_with_tasks.read_task_files() == before
