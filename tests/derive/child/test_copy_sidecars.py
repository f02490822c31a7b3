"""Tests of copying a parent's sidecar files for a child, and of removing them after a failure."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from resume_hooks.derive.child.copy_files import copy_sidecar_files, find_backup_names
from resume_hooks.derive.child.draft import Draft
from resume_hooks.sessions.locate import session_file
from resume_hooks.sessions.opening_layout import ChildAttributes
from tests.builders import SESSION, ConfigHome, conversation, session_id, write_session

CHILD_ID = session_id(7)


class SessionWithSidecars:
    """A session with large outputs and backups, and the paths of its child's files."""

    def __init__(self, home: ConfigHome) -> None:
        self.home = home
        self.path = Path(write_session(home.project(), SESSION, conversation(1)))
        self.outputs = self.path.with_suffix("") / "tool-results"
        self.history = home.config / "file-history" / SESSION
        self.child = home.project() / f"{CHILD_ID}.jsonl"
        self.linked = [self.child.with_suffix("") / "tool-results", self.history.parent / CHILD_ID]

    def write_sidecars(self) -> None:
        """Write a large output and a backup for the session."""
        for folder in (self.outputs, self.history):
            folder.mkdir(parents=True)
            (folder / "file").write_bytes(b"kept")
            (folder / "file").chmod(0o751)
            os.utime(folder / "file", (1_700_000_000, 1_700_000_000))

    def copy_sidecar_files(self, *, is_interrupted: bool = False) -> list[str]:
        """Copy the sidecars and return the failures.

        If ``is_interrupted`` is true, ``KeyboardInterrupt`` is raised after the copy.
        """
        setting = ChildAttributes(CHILD_ID, "", "", "", "")
        child = Draft(
            "fork", setting, str(self.child), "child", parent=session_file(str(self.path))
        )
        with copy_sidecar_files(child, {"file"}, self.home.where) as missed:
            if is_interrupted:
                raise KeyboardInterrupt
        return missed


@pytest.fixture
def session_with_sidecars(config_home: ConfigHome) -> SessionWithSidecars:
    """Return a session whose sidecars the tests copy, in a config home of its own."""
    return SessionWithSidecars(config_home)


def test_outputs_are_linked_and_backups_are_copied(
    session_with_sidecars: SessionWithSidecars,
) -> None:
    """A child's outputs are hard links. Its backups are copies with the original modes and times.

    The folders for outputs and backups are private.
    """
    session_with_sidecars.write_sidecars()
    assert session_with_sidecars.copy_sidecar_files() == []
    outputs, history = session_with_sidecars.linked
    assert (outputs / "file").samefile(session_with_sidecars.outputs / "file")
    assert (history / "file").read_bytes() == b"kept"
    assert stat.S_IMODE((history / "file").stat().st_mode) == 0o751
    assert (history / "file").stat().st_mtime_ns == (
        session_with_sidecars.history / "file"
    ).stat().st_mtime_ns
    assert all(
        stat.S_IMODE(folder.stat().st_mode) == 0o700 for folder in session_with_sidecars.linked
    )


def test_changing_the_childs_backup_does_not_change_the_parents(
    session_with_sidecars: SessionWithSidecars,
) -> None:
    """Overwriting the child's backup does not change the parent's backup.

    Clients before 2.1.329 overwrite backups. Only the backups that the child needs are copied.
    """
    session_with_sidecars.write_sidecars()
    (session_with_sidecars.history / "later@v2").write_bytes(
        b"of a turn that the child does not hold"
    )
    session_with_sidecars.copy_sidecar_files()
    assert os.listdir(session_with_sidecars.linked[1]) == ["file"]
    with (session_with_sidecars.linked[1] / "file").open("r+b") as stream:
        stream.write(b"over")
    assert (session_with_sidecars.history / "file").read_bytes() == b"kept"


def test_backup_names_are_found_in_snapshots_and_deltas() -> None:
    """Names of backups are found in whole snapshots and in deltas. A name with a path is ignored."""
    lines = [
        b'{"snapshot":{"trackedFileBackups":{"a":{"backupFileName":"1@v1"},"b":{"backupFileName": null}}}}',
        b'{"backup":{"backupFileName": "2@v7"}}',
        b'{"backup":{"backupFileName":"../3"}}',
    ]
    assert find_backup_names(lines) == {"1@v1", "2@v7"}


def test_a_session_without_sidecars_gets_no_folders(
    session_with_sidecars: SessionWithSidecars,
) -> None:
    """The child of a session without sidecars, or with an empty folder for them, gets no folders."""
    session_with_sidecars.outputs.mkdir(parents=True)
    before = sorted(session_with_sidecars.home.root.rglob("*"))
    assert session_with_sidecars.copy_sidecar_files() == []
    assert sorted(session_with_sidecars.home.root.rglob("*")) == before


def test_a_failed_child_leaves_no_sidecars(session_with_sidecars: SessionWithSidecars) -> None:
    """If writing a child is interrupted, its sidecars are removed and the parent's are kept."""
    session_with_sidecars.write_sidecars()
    before = sorted(session_with_sidecars.home.root.rglob("*"))
    with pytest.raises(KeyboardInterrupt):
        session_with_sidecars.copy_sidecar_files(is_interrupted=True)
    assert sorted(session_with_sidecars.home.root.rglob("*")) == before
    assert (session_with_sidecars.outputs / "file").read_bytes() == b"kept"


def test_only_regular_sidecars_are_copied(
    session_with_sidecars: SessionWithSidecars, tmp_path: Path
) -> None:
    """A link, a folder or a pipe among the sidecars is not copied."""
    session_with_sidecars.write_sidecars()
    secret = tmp_path / "secret"
    secret.write_bytes(b"no")
    (session_with_sidecars.outputs / "link").symlink_to(secret)
    (session_with_sidecars.outputs / "folder").mkdir()
    os.mkfifo(session_with_sidecars.outputs / "pipe")
    assert session_with_sidecars.copy_sidecar_files() == []
    assert os.listdir(session_with_sidecars.linked[0]) == ["file"]


@pytest.mark.parametrize("is_own_folder_linked", [False, True])
def test_sidecars_in_a_linked_folder_are_not_copied(
    session_with_sidecars: SessionWithSidecars, tmp_path: Path, is_own_folder_linked: bool
) -> None:
    """Sidecars are not copied if the session's folder or its outputs folder is a symbolic link."""
    elsewhere = tmp_path / "elsewhere" / session_with_sidecars.outputs.name
    elsewhere.mkdir(parents=True)
    (elsewhere / "file").write_bytes(b"no")
    if is_own_folder_linked:
        session_with_sidecars.outputs.parent.symlink_to(elsewhere.parent)
    else:
        session_with_sidecars.outputs.parent.mkdir()
        session_with_sidecars.outputs.symlink_to(elsewhere)
    assert session_with_sidecars.copy_sidecar_files() == []
    assert not session_with_sidecars.linked[0].exists()


def test_a_failed_copy_of_large_outputs_is_reported_once(
    session_with_sidecars: SessionWithSidecars,
) -> None:
    """A failed copy of large outputs is reported in one warning, and the backups are still copied."""
    session_with_sidecars.write_sidecars()
    session_with_sidecars.linked[0].parent.write_bytes(b"in the way")
    (missed,) = session_with_sidecars.copy_sidecar_files()
    assert "tool-results could not be copied for the new session" in missed
    assert (session_with_sidecars.linked[1] / "file").exists()


def test_an_existing_folder_of_the_child_is_kept(
    session_with_sidecars: SessionWithSidecars,
) -> None:
    """A folder that already exists for the child is neither filled nor removed."""
    session_with_sidecars.write_sidecars()
    session_with_sidecars.linked[1].mkdir(parents=True)
    (session_with_sidecars.linked[1] / "theirs").write_bytes(b"theirs")
    with pytest.raises(KeyboardInterrupt):
        session_with_sidecars.copy_sidecar_files(is_interrupted=True)
    assert [path.name for path in session_with_sidecars.linked[1].iterdir()] == ["theirs"]
