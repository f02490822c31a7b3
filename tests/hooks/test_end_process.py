"""The end of a hook's process: nothing that was written is lost, and what runs at an exit runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.needs import REPO

SCRIPT = f"""
import atexit, os, sys
sys.path.insert(0, {str(REPO / "src")!r})
from resume_hooks.hooks.end_process import end_process

class Freed:
    def __del__(self):
        os.write(2, b"freed")

held = Freed()
atexit.register(os.write, 2, b"exit ")
sys.stdout.write("a reply without a line feed")
"""


def run_script(ending: str) -> subprocess.CompletedProcess[bytes]:
    """Run the script with its last line."""
    command = [sys.executable, "-I", "-c", SCRIPT + ending]
    return subprocess.run(command, capture_output=True, check=False, timeout=60)


@pytest.mark.parametrize("status", [0, 1])
def test_the_end_of_a_process(status: int) -> None:
    """Buffered text is written, exit handlers run, and no object is freed."""
    done = run_script(f"end_process({status})")
    assert done.returncode == status
    assert done.stdout == b"a reply without a line feed"
    assert done.stderr == b"exit "


def test_a_closed_stream() -> None:
    """A client that has ended is not an error."""
    done = run_script("sys.stdout.close(); sys.stderr = None; end_process()")
    assert done.returncode == 0
