"""Tests of writes to a user's project.

A file is written completely or not at all, and another program's change is never overwritten.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from resume_hooks.errors import WriteFailed
from resume_hooks.storage import project_files
from tests.needs import REPO, require_for_test


def test_a_new_file_never_replaces_an_existing_one(tmp_path: Path) -> None:
    """A new file does not replace one that another program created first."""
    path = tmp_path / "x.md"
    path.write_text("theirs")
    with pytest.raises(WriteFailed, match="File exists"):
        project_files.write_project_file(str(path), b"ours", None)
    assert (path.read_text(), os.listdir(tmp_path)) == ("theirs", ["x.md"])


def test_a_file_changed_since_the_read_is_not_replaced(tmp_path: Path) -> None:
    """A file that another program changed after it was read is not replaced."""
    path = tmp_path / "x.md"
    path.write_text("theirs")
    _, state = project_files.read_file_and_state(str(path), 100)
    path.write_text("theirs, later")
    with pytest.raises(WriteFailed, match="changed it in the meantime"):
        project_files.write_project_file(str(path), b"ours", state)
    assert (path.read_text(), os.listdir(tmp_path)) == ("theirs, later", ["x.md"])


def test_a_link_created_meanwhile_is_not_followed(tmp_path: Path) -> None:
    """A symbolic link that appeared after the file was read is neither followed nor replaced."""
    path, target = tmp_path / "x.md", tmp_path / "target"
    path.write_text("theirs")
    target.write_text("elsewhere")
    _, state = project_files.read_file_and_state(str(path), 100)
    path.unlink()
    path.symlink_to(target)
    for over in (state, None):
        with pytest.raises(WriteFailed):
            project_files.write_project_file(str(path), b"ours", over)
    assert path.is_symlink()
    assert target.read_text() == "elsewhere"


def test_a_failed_write_removes_the_new_folder(tmp_path: Path) -> None:
    """If a write fails, a folder that was made for it is removed.

    A folder that existed before or that another program uses is kept.
    """
    for name in ("made", "used", "there"):
        folder = tmp_path / name
        if name == "there":
            folder.mkdir()
        with pytest.raises(WriteFailed), project_files.ensure_folder(str(folder)):  # noqa: PT012
            if name == "used":
                (folder / "theirs").touch()
            raise WriteFailed("x")
    assert sorted(os.listdir(tmp_path)) == ["there", "used"]


REPLACE_AS_NOBODY_SCRIPT = """
import os
from resume_hooks.storage import project_files
from resume_hooks.errors import WriteFailed
os.setuid(65534)
try:
    project_files.read_file_state("x.md")
except WriteFailed as error:
    print(error.message)
"""


def test_a_read_only_file_is_not_replaced(tmp_path: Path) -> None:
    """A read-only file is not replaced, even if its folder is writable."""
    require_for_test("root", os.geteuid() == 0, "a user without rights is taken on by root alone")
    (tmp_path / "x.md").write_text("theirs")
    (tmp_path / "x.md").chmod(0o444)
    tmp_path.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-c", REPLACE_AS_NOBODY_SCRIPT],
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPO / "src")},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("x.md is read-only, so it was left alone\n", "")
