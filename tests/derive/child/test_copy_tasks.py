"""The task list goes with a child: whole or not at all, private, and never through a link."""

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
from resume_hooks.sessions.child_titles import Kind
from tests.builders import SESSION, ConfigHome, conversation, session_id, write_session
from tests.crashes import crashes


class Place:
    """A session with two tasks, of which one is done, and what comes of a child."""

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

    def child(self, kind: Kind = "handoff") -> Receipt:
        """Write one."""
        if kind == "fork":
            return write_child(fork.plan_fork(self.parent, self.home.where), self.home.where)
        return write_child(
            agents.plan_fresh(self.parent, self.home.where, kind=kind), self.home.where
        )

    def files(self, session_id: str = SESSION) -> dict[str, bytes]:
        """Return a session's task list, without the client's lock."""
        folder = self.lists / session_id
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


@pytest.fixture
def place(config_home: ConfigHome) -> Place:
    """A session with tasks in a home of the test's own."""
    return Place(config_home)


@pytest.mark.parametrize("kind", ["handoff", "rollover", "fork"])
def test_the_list_goes_with_every_child(place: Place, kind: Kind) -> None:
    """The same bytes in private files of its own, with the highest task number."""
    before = place.files()
    receipt = place.child(kind)
    own = place.lists / receipt.session_id
    assert place.files(receipt.session_id) == before == place.files()
    assert not [warning for warning in receipt.warnings if "task" in warning]
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in own.iterdir())
    assert not any((own / name).samefile(place.own / name) for name in before)


def test_no_list_makes_no_folder(place: Place) -> None:
    """A session without tasks, or with deleted ones alone, leaves the client's folder as it is."""
    for name in ("1.json", "3.json"):
        (place.own / name).unlink()
    place.child()
    assert os.listdir(place.lists) == [SESSION]


@pytest.mark.parametrize(
    "how", ["too large", "too many", "damaged", "a link", "a pipe", "linked", "all linked"]
)
def test_a_list_that_is_none_stays_behind(place: Place, how: str) -> None:
    """The child has no list, and its receipt reports it; no partial list is left."""
    task, elsewhere = place.own / "4.json", place.home.root / "elsewhere"
    if how == "too large":
        task.write_bytes(b'"' + b"x" * copy_files.MAX_TASK_BYTES + b'"')
    elif how == "too many":
        for number in range(copy_files.MAX_TASKS):
            (place.own / f"{number + 10}.json").write_bytes(b"{}")
    elif how == "damaged":
        task.write_bytes(b'{"id": "4", "subj')
    elif how == "a link":
        elsewhere.write_bytes(b"{}")
        task.symlink_to(elsewhere)
    elif how == "a pipe":
        os.mkfifo(task)
    else:
        folder = place.own if how == "linked" else place.lists
        folder.rename(elsewhere)
        folder.symlink_to(elsewhere)
    receipt = place.child()
    assert [
        warning
        for warning in receipt.warnings
        if warning.startswith("The task list could not be copied (")
    ]
    assert Path(receipt.file).is_file()
    assert os.listdir(place.lists) == [SESSION]


def test_a_full_disk(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partly written list is removed."""

    def full(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("resume_hooks.derive.child.copy_files.state_file.create_file", full)
    assert any("No space left" in warning for warning in place.child().warnings)
    assert os.listdir(place.lists) == [SESSION]


def test_a_crash_leaves_the_whole_list_or_none(place: Place) -> None:
    """Killed at any step, the child has all tasks or none.

    What is left next to goes with the next child.
    """
    before, children = place.files(), iter(map(session_id, range(1, 50)))

    def prepare() -> Callable[[], object]:
        child = next(children)
        return lambda: copy_files.copy_tasks(SESSION, child, place.home.where)

    for _ in crashes(prepare):
        made = [name for name in os.listdir(place.lists) if not name.startswith(".")]
        assert all(place.files(name) == before for name in made)
    assert len(made) > 1
    place.child()
    assert not [name for name in os.listdir(place.lists) if name.startswith(".")]
    assert place.files() == before
