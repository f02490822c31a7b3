"""Tests of private state files: complete replacement, and removal of what killed writers left."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from resume_hooks.paths import Where
from resume_hooks.storage.state_file import (
    is_process_running,
    remove_stale_temporaries,
    replace_state_file,
)

STATE_FILE_NAME = "00000000-0000-4000-8000-000000000001.jsonl"


def test_a_state_file_is_replaced_completely(tmp_path: Path) -> None:
    """A state file is replaced completely and is private. Its folder is created if it is missing.

    A link in place of the file is replaced, not followed.
    """
    other = tmp_path / "other"
    other.write_bytes(b"mine")
    path = tmp_path / "new" / "state.json"
    replace_state_file(str(path), b"{}", Where())
    path.unlink()
    path.symlink_to(other)
    replace_state_file(str(path), b"[]", Where())
    assert (path.read_bytes(), path.stat().st_mode & 0o777, other.read_bytes()) == (
        b"[]",
        0o600,
        b"mine",
    )
    assert [each.name for each in path.parent.iterdir()] == ["state.json"]


@pytest.mark.parametrize("failing_function_name", ["fsync", "replace"])
def test_a_failed_write_keeps_the_old_file(
    tmp_path: Path, failing_function_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a write fails, the old file is kept, no temporary file is left, and the next write succeeds."""
    path = tmp_path / "state.json"
    path.write_bytes(b"old")

    def raise_disk_full_error(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, failing_function_name, raise_disk_full_error)
        with pytest.raises(OSError, match="No space"):
            replace_state_file(str(path), b"new", Where())
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [
        ("state.json", b"old")
    ]
    replace_state_file(str(path), b"new", Where())
    assert path.read_bytes() == b"new"


def test_sweep_removes_only_files_of_ended_processes(tmp_path: Path) -> None:
    """Only temporary files of ended processes are removed. All other files are kept."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    dead = f".resume-hooks-{ended.pid}-0000.tmp"
    running = [f".resume-hooks-{os.getpid()}-0000.tmp", ".resume-hooks-1-0000.tmp"]
    foreign = [
        ".resume-hooks-\u00b2-0.tmp",
        ".resume-hooks--.tmp",
        f".resume-hooks-{ended.pid}-0000.txt",
        STATE_FILE_NAME,
    ]
    kept = [*running, *foreign, f"resume-hooks-{ended.pid}-0.tmp"]
    for name in [dead, *kept]:
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / f".resume-hooks-{ended.pid}-folder.tmp").mkdir()
    remove_stale_temporaries(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == sorted(kept)
    remove_stale_temporaries(str(tmp_path / "gone"))


def test_is_process_running_recognizes_running_processes() -> None:
    """A running process of any user is recognized. An impossible process id also counts as running."""
    assert is_process_running(os.getpid())
    assert is_process_running(1)
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert not is_process_running(ended.pid)
    assert is_process_running(10**30)
