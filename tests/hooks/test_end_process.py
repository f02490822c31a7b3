"""Tests of ``end_process``, which writes buffered output and runs exit handlers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.needs import REPO

END_PROCESS_SCRIPT = f"""
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


def run_script_with_ending(ending: str) -> subprocess.CompletedProcess[bytes]:
    """Run the script, followed by the line ``ending``."""
    command = [sys.executable, "-I", "-c", END_PROCESS_SCRIPT + ending]
    return subprocess.run(command, capture_output=True, check=False, timeout=60)


@pytest.mark.parametrize("exit_status", [0, 1])
def test_end_process_writes_output_and_runs_exit_handlers(exit_status: int) -> None:
    """``end_process`` writes buffered output, runs exit handlers, and frees no objects."""
    done = run_script_with_ending(f"end_process({exit_status})")
    assert done.returncode == exit_status
    assert done.stdout == b"a reply without a line feed"
    assert done.stderr == b"exit "


def test_end_process_accepts_a_closed_stream() -> None:
    """``end_process`` works even if the standard streams are closed, for example because the client ended."""
    done = run_script_with_ending("sys.stdout.close(); sys.stderr = None; end_process()")
    assert done.returncode == 0
