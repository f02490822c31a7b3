"""Rehoming: folders below the old home become folders below the new; nothing else changes."""

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
def test_a_path(path: str) -> None:
    """At or below the old home; a folder that only shares a prefix is another one."""
    assert plan_relocation("/old/proj", "/new").move_path(path) == PATHS[path]


@pytest.mark.parametrize("old", ["", "/", "relative", "/a\0b"])
def test_an_old_home_that_reports_nothing(old: str) -> None:
    """An unknown home, the root, a relative path, or no path: other folders are unchanged."""
    assert plan_relocation(old, "/new").move_path("/home/user") == "/home/user"
    assert plan_relocation(old, "/new").move_path("") == ""


def test_an_old_home_of_another_system() -> None:
    """A transcript from Windows."""
    move = plan_relocation("C:\\Users\\me\\proj", "/new")
    assert move.move_path("C:\\Users\\me\\proj\\src\\a.py") == "/new/src/a.py"


def test_an_old_home_through_a_link(tmp_path: Path) -> None:
    """Clients write the real paths of folders, even if they were entered through links."""
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
def test_a_line(name: str) -> None:
    """The record's own working directory, byte for byte otherwise."""
    before, after = LINES[name]
    assert plan_relocation("/old/proj", "/new").move_line(before) == after


@pytest.mark.parametrize(
    "body", [b'{"cwd":"/tmp"}', b'{"a":1}', b'{"cwd":7}', b'{"cwd":"/old/proj"}']
)
def test_the_first_line(body: bytes) -> None:
    """It always names the new home, because lists use it."""
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
def test_a_snapshot(name: str) -> None:
    """It names the same files in the new home; a damaged one is unchanged."""
    before, after = SNAPSHOTS[name]
    assert plan_relocation("/old/proj", "/new").move_snapshot(before) == after
