"""Tests that moving a session to a new folder changes only paths below its old folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resume_hooks.derive.child.inherited_metadata import plan_relocation
from tests.builders import Record

PATHS_BEFORE_AND_AFTER_A_MOVE = {
    "/old/proj": "/new",
    "/old/proj/": "/new",
    "/old/proj/src/a b": "/new/src/a b",
    "/old/proj//src": "/new/src",
    "/old/project": "/old/project",
    "/old": "/old",
    "/": "/",
    "": "",
    "src": "src",
}


@pytest.mark.parametrize("path", PATHS_BEFORE_AND_AFTER_A_MOVE)
def test_a_path_below_the_old_folder_is_moved(path: str) -> None:
    """A path below the old folder is moved. A path that only begins with the same characters is kept."""
    assert (
        plan_relocation("/old/proj", "/new").relocate_path(path)
        == PATHS_BEFORE_AND_AFTER_A_MOVE[path]
    )


@pytest.mark.parametrize("old_folder", ["", "/", "relative", "/a\0b"])
def test_an_unknown_old_folder_moves_no_paths(old_folder: str) -> None:
    """If the old folder is empty, relative, invalid or the root, no path is moved."""
    assert plan_relocation(old_folder, "/new").relocate_path("/home/user") == "/home/user"
    assert plan_relocation(old_folder, "/new").relocate_path("") == ""


def test_a_windows_folder_is_moved() -> None:
    """A Windows path with backslashes is moved."""
    move = plan_relocation("C:\\Users\\me\\proj", "/new")
    assert move.relocate_path("C:\\Users\\me\\proj\\src\\a.py") == "/new/src/a.py"


def test_a_linked_old_folder_is_moved_by_its_real_path(tmp_path: Path) -> None:
    """If the old folder is a symbolic link, paths below its target are moved too."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    move = plan_relocation(str(tmp_path / "link"), "/new")
    assert (
        move.relocate_path(str(tmp_path / "real" / "x"))
        == move.relocate_path(str(tmp_path / "link" / "x"))
        == "/new/x"
    )


LINES_BEFORE_AND_AFTER_A_MOVE = {
    "moved": (b'{"a":1.50,"cwd":"/old/proj/x","b":2}', b'{"a":1.50,"cwd":"/new/x","b":2}'),
    "elsewhere": (b'{"a":1.50,"cwd":"/tmp"}', b'{"a":1.50,"cwd":"/tmp"}'),
    "none": (b'{"a":1.50}', b'{"a":1.50}'),
    "only deeper inside": (b'{"x":{"cwd":"/old/proj"}}', b'{"x":{"cwd":"/old/proj"}}'),
    "deeper inside, too": (
        b'{"x":{"cwd":"/old/proj"},"cwd":"/old/proj"}',
        b'{"x":{"cwd":"/old/proj"},"cwd":"/new"}',
    ),
    "no text": (b'{"cwd":7}', b'{"cwd":7}'),
}


@pytest.mark.parametrize("case_name", LINES_BEFORE_AND_AFTER_A_MOVE)
def test_only_the_folder_in_a_line_changes(case_name: str) -> None:
    """In each line, only the record's own folder is changed. All other bytes are kept."""
    before, after = LINES_BEFORE_AND_AFTER_A_MOVE[case_name]
    assert plan_relocation("/old/proj", "/new").relocate_folder_in_line(before) == after


@pytest.mark.parametrize(
    "line", [b'{"cwd":"/tmp"}', b'{"a":1}', b'{"cwd":7}', b'{"cwd":"/old/proj"}']
)
def test_the_first_line_names_the_new_folder(line: bytes) -> None:
    """The first line names the new folder, even if the line had no folder before."""
    assert (
        json.loads(
            plan_relocation("/old/proj", "/new").relocate_folder_in_line(line, is_first=True)
        )["cwd"]
        == "/new"
    )


SNAPSHOTS_BEFORE_AND_AFTER_A_MOVE: dict[str, tuple[Record, Record]] = {
    "a delta": (
        {"trackingPath": "../b/x", "backup": {"realParentDir": "/old/b"}},
        {"trackingPath": "/old/b/x", "backup": {"realParentDir": "/old/b"}},
    ),
    "a name that begins with dots": ({"trackingPath": "..x/y"}, {"trackingPath": "..x/y"}),
    "a delta within": (
        {"trackingPath": "x", "backup": {"backupFileName": None, "realParentDir": "/old/proj"}},
        {"trackingPath": "x", "backup": {"backupFileName": None, "realParentDir": "/new"}},
    ),
    "a whole path within": ({"trackingPath": "/old/proj/x"}, {"trackingPath": "/new/x"}),
    "damaged": (
        {"trackingPath": 7, "backup": [], "snapshot": {"trackedFileBackups": {"x": None}}},
        {"trackingPath": 7, "backup": [], "snapshot": {"trackedFileBackups": {"x": None}}},
    ),
    "something else": (
        {"snapshot": {"trackedFileBackups": 7}},
        {"snapshot": {"trackedFileBackups": 7}},
    ),
}


@pytest.mark.parametrize("case_name", SNAPSHOTS_BEFORE_AND_AFTER_A_MOVE)
def test_a_snapshot_names_files_in_the_new_folder(case_name: str) -> None:
    """A file snapshot names files in the new folder. A damaged snapshot is unchanged."""
    before, after = SNAPSHOTS_BEFORE_AND_AFTER_A_MOVE[case_name]
    assert plan_relocation("/old/proj", "/new").relocate_snapshot(before) == after
