"""The counters of titles: one process at a time counts in a folder, and nobody waits for long."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from resume_hooks.sessions import title_lock
from resume_hooks.sessions.title_lock import PATIENCE, hold, release

HOLDER = """
import sys
from resume_hooks.sessions.title_lock import hold
hold(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Another process that counts in the folder until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(folder)]
    environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=environ, **pipes)  # type: ignore[call-overload]
    assert process.stdout.readline() == "held\n"
    return process  # type: ignore[no-any-return]


def seconds(folder: Path) -> float:
    """How long it takes to have the folder."""
    began = time.monotonic()
    hold(str(folder))
    return time.monotonic() - began


def test_another_process_is_waited_for_but_not_for_long(tmp_path: Path) -> None:
    """While it counts, and no longer: it may be stopped, or ask its user something. A killed one holds nothing."""
    process = holder(tmp_path)
    try:
        assert PATIENCE <= seconds(tmp_path) < PATIENCE + 2
        assert not title_lock._held
    finally:
        process.kill()
        process.communicate()
    assert seconds(tmp_path) < PATIENCE
    release(str(tmp_path))


def test_it_writes_nothing_and_lets_go(tmp_path: Path) -> None:
    """Held twice it is held once; folders that are not there, or are links, hold nobody up."""
    (tmp_path / "link").symlink_to(tmp_path)
    for folder in (tmp_path / "nobody", tmp_path / "link", tmp_path, tmp_path):
        hold(str(folder))
    assert list(title_lock._held) == [str(tmp_path)]
    release()
    assert not title_lock._held
    assert [path.name for path in tmp_path.iterdir()] == ["link"]
    process = holder(tmp_path)
    process.communicate("")
    assert process.returncode == 0
