"""Sidecars: what is next to a transcript comes along under the child's id, or goes with a child not born."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from resume_hooks.derive.child.copy_files import copy_sidecars, find_backup_names
from resume_hooks.derive.child.draft import Draft
from resume_hooks.sessions.locate import session_file
from resume_hooks.sessions.opening_layout import ChildAttributes
from tests.builders import SESSION, ConfigHome, conversation, session_id, write_session

CHILD = session_id(7)


class Place:
    """A session with large outputs and backups, and where its child's would lie."""

    def __init__(self, home: ConfigHome) -> None:
        self.home = home
        self.path = Path(write_session(home.project(), SESSION, conversation(1)))
        self.outputs = self.path.with_suffix("") / "tool-results"
        self.history = home.config / "file-history" / SESSION
        self.child = home.project() / f"{CHILD}.jsonl"
        self.linked = [self.child.with_suffix("") / "tool-results", self.history.parent / CHILD]

    def fill(self) -> None:
        """Files of both kinds."""
        for folder in (self.outputs, self.history):
            folder.mkdir(parents=True)
            (folder / "file").write_bytes(b"kept")
            (folder / "file").chmod(0o751)
            os.utime(folder / "file", (1_700_000_000, 1_700_000_000))

    def link(self, *, fails: bool = False) -> list[str]:
        """Write the sidecars and return the failures. A write that ``fails`` raises."""
        setting = ChildAttributes(CHILD, "", "", "", "")
        child = Draft(
            "fork", setting, str(self.child), "child", parent=session_file(str(self.path))
        )
        with copy_sidecars(child, {"file"}, self.home.where) as missed:
            if fails:
                raise KeyboardInterrupt
        return missed


@pytest.fixture
def place(config_home: ConfigHome) -> Place:
    """A session in a home of the test's own."""
    return Place(config_home)


def test_both_come_along(place: Place) -> None:
    """Outputs linked, backups copied with modes and times, in private folders under the child's id.

    None is missed.
    """
    place.fill()
    assert place.link() == []
    outputs, history = place.linked
    assert (outputs / "file").samefile(place.outputs / "file")
    assert (history / "file").read_bytes() == b"kept"
    assert stat.S_IMODE((history / "file").stat().st_mode) == 0o751
    assert (history / "file").stat().st_mtime_ns == (place.history / "file").stat().st_mtime_ns
    assert all(stat.S_IMODE(folder.stat().st_mode) == 0o700 for folder in place.linked)


def test_a_client_that_writes_into_a_backup(place: Place) -> None:
    """Clients before 2.1.329 overwrite the file with this name: the parent keeps its content."""
    place.fill()
    (place.history / "later@v2").write_bytes(b"of a turn that the child does not hold")
    place.link()
    assert os.listdir(place.linked[1]) == ["file"]
    with (place.linked[1] / "file").open("r+b") as stream:
        stream.write(b"over")
    assert (place.history / "file").read_bytes() == b"kept"


def test_backups_that_lines_name() -> None:
    """Backups from snapshots and deltas; an invalid name is not a backup."""
    lines = [
        b'{"snapshot":{"trackedFileBackups":{"a":{"backupFileName":"1@v1"},"b":{"backupFileName": null}}}}',
        b'{"backup":{"backupFileName": "2@v7"}}',
        b'{"backup":{"backupFileName":"../3"}}',
    ]
    assert find_backup_names(lines) == {"1@v1", "2@v7"}


def test_no_companions_make_no_folders(place: Place) -> None:
    """A session without sidecars leaves the project unchanged; an empty folder does not count."""
    place.outputs.mkdir(parents=True)
    before = sorted(place.home.root.rglob("*"))
    assert place.link() == []
    assert sorted(place.home.root.rglob("*")) == before


def test_a_child_that_is_not_born_leaves_none(place: Place) -> None:
    """After any failure the parent's files stay, and the child's files and folders are removed."""
    place.fill()
    before = sorted(place.home.root.rglob("*"))
    with pytest.raises(KeyboardInterrupt):
        place.link(fails=True)
    assert sorted(place.home.root.rglob("*")) == before
    assert (place.outputs / "file").read_bytes() == b"kept"


def test_links_and_folders_are_not_followed(place: Place, tmp_path: Path) -> None:
    """Anything but a regular file could lead out of the session."""
    place.fill()
    secret = tmp_path / "secret"
    secret.write_bytes(b"no")
    (place.outputs / "link").symlink_to(secret)
    (place.outputs / "folder").mkdir()
    os.mkfifo(place.outputs / "pipe")
    assert place.link() == []
    assert os.listdir(place.linked[0]) == ["file"]


@pytest.mark.parametrize("own_folder", [False, True])
def test_a_folder_that_is_a_link_is_not_entered(
    place: Place, tmp_path: Path, own_folder: bool
) -> None:
    """A linked session folder, or a linked folder of outputs, gets no files."""
    elsewhere = tmp_path / "elsewhere" / place.outputs.name
    elsewhere.mkdir(parents=True)
    (elsewhere / "file").write_bytes(b"no")
    if own_folder:
        place.outputs.parent.symlink_to(elsewhere.parent)
    else:
        place.outputs.parent.mkdir()
        place.outputs.symlink_to(elsewhere)
    assert place.link() == []
    assert not place.linked[0].exists()


def test_a_failed_link_is_reported(place: Place) -> None:
    """The conversation does not depend on it: there is a sentence, and the other kind of file exists."""
    place.fill()
    place.linked[0].parent.write_bytes(b"in the way")
    (missed,) = place.link()
    assert "tool-results could not be copied for the new session" in missed
    assert (place.linked[1] / "file").exists()


def test_an_existing_folder_is_kept(place: Place) -> None:
    """A folder under the child's id that we did not create is neither filled nor removed."""
    place.fill()
    place.linked[1].mkdir(parents=True)
    (place.linked[1] / "theirs").write_bytes(b"theirs")
    with pytest.raises(KeyboardInterrupt):
        place.link(fails=True)
    assert [path.name for path in place.linked[1].iterdir()] == ["theirs"]
