"""Moving a session to a new home rewrites folders below the old home, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resume_hooks.derive.child.inherited_metadata import plan_relocation
from tests.builders import Record

PATHS = {
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


@pytest.mark.parametrize("path", PATHS)
def test_a_path_below_the_old_home_is_moved(path: str) -> None:
    """A folder that only shares a prefix stays."""
    assert plan_relocation("/old/proj", "/new").move_path(path) == PATHS[path]


@pytest.mark.parametrize("old", ["", "/", "relative", "/a\0b"])
def test_an_unknown_old_home_moves_no_paths(old: str) -> None:
    """This applies to an empty, a relative or an invalid home, and to the root."""
    assert plan_relocation(old, "/new").move_path("/home/user") == "/home/user"
    assert plan_relocation(old, "/new").move_path("") == ""


def test_a_home_on_windows_is_moved() -> None:
    """A transcript from Windows has backslashes in its paths."""
    move = plan_relocation("C:\\Users\\me\\proj", "/new")
    assert move.move_path("C:\\Users\\me\\proj\\src\\a.py") == "/new/src/a.py"


def test_a_linked_old_home_is_moved_by_its_real_path(tmp_path: Path) -> None:
    """Clients write real paths, even if the user entered a folder through a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    move = plan_relocation(str(tmp_path / "link"), "/new")
    assert (
        move.move_path(str(tmp_path / "real" / "x"))
        == move.move_path(str(tmp_path / "link" / "x"))
        == "/new/x"
    )


LINES = {
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


@pytest.mark.parametrize("name", LINES)
def test_a_line_keeps_everything_but_its_folder(name: str) -> None:
    """Only the record's own working directory changes; the other bytes stay."""
    before, after = LINES[name]
    assert plan_relocation("/old/proj", "/new").move_line(before) == after


@pytest.mark.parametrize(
    "body", [b'{"cwd":"/tmp"}', b'{"a":1}', b'{"cwd":7}', b'{"cwd":"/old/proj"}']
)
def test_the_first_line_names_the_new_home(body: bytes) -> None:
    """Lists read the folder from this line."""
    assert (
        json.loads(plan_relocation("/old/proj", "/new").move_line(body, first=True))["cwd"]
        == "/new"
    )


SNAPSHOTS: dict[str, tuple[Record, Record]] = {
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


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_snapshot_names_the_files_in_the_new_home(name: str) -> None:
    """A damaged snapshot stays unchanged."""
    before, after = SNAPSHOTS[name]
    assert plan_relocation("/old/proj", "/new").move_snapshot(before) == after
