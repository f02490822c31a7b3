"""Create a home with 3,000 sessions, and measure the time and memory of commands in it."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.bench import (
    LARGE_SESSION_BYTES,
    LARGE_SESSION_ID,
    Bench,
    CommandRun,
    run_in_process,
)
from benchmarks.generate import generate_home, generate_session
from resume_hooks.paths import project_key

FILE_COUNT = 3_000
REQUESTED_BYTES = 254_000_000
"""The size that ``generate_home`` is asked for.

The actual size is about 600 MB, because each file contains at least one whole turn.
"""


ROUNDS = 3
SAMPLE_INTERVAL_SECONDS = 0.01
"""The number of seconds between two measurements of the memory of a running process."""


class ProcessCost(NamedTuple):
    """The time and the output of a process.

    ``cpu_ms`` is the processor time of the process and of its children.
    """

    ms: float
    cpu_ms: float
    output: bytes


class Library:
    """A home with 3,000 sessions, to which a session of 50 MB can be added.

    ``env`` is the environment of the commands that use this home.
    """

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        self.config = folder / ".claude"
        self.env = {**bench.env, "HOME": str(folder), "CLAUDE_CONFIG_DIR": str(self.config)}
        self.big = (
            self.config / "projects" / project_key(str(bench.work)) / f"{LARGE_SESSION_ID}.jsonl"
        )
        run_in_process(generate_home, str(self.config), FILE_COUNT, REQUESTED_BYTES)

    @property
    def total_bytes(self) -> int:
        """The total number of bytes of all transcripts."""
        return folder_size(self.config / "projects")

    def add_large_session(self) -> None:
        """Add the session of 50 MB."""
        run_in_process(
            generate_session, str(self.big), LARGE_SESSION_BYTES, cwd=str(self.bench.work)
        )

    def keep_first_sessions(self, session_count: int) -> None:
        """Remove all sessions except the first ``session_count``."""
        for path in sorted((self.config / "projects").rglob("*.jsonl"))[session_count:]:
            path.unlink()

    def run(self, run: CommandRun, *, may_fail: bool = False) -> ProcessCost:
        """Run a command in this home."""
        command, stdin, cwd = run
        before, begun = os.times(), time.perf_counter()
        done = subprocess.run(
            command, input=stdin, capture_output=True, env=self.env, cwd=cwd, check=not may_fail
        )
        ms, after = (time.perf_counter() - begun) * 1000, os.times()
        cpu = (
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
        return ProcessCost(ms, cpu * 1000, done.stdout)

    def measure_medians(
        self,
        run: CommandRun,
        rounds: int = ROUNDS,
        before_each_run: Callable[[], object] = lambda: None,
        *,
        may_fail: bool = False,
    ) -> ProcessCost:
        """Return the medians of a few runs. ``before_each_run`` is called before each of them."""
        spent = []
        for _ in range(rounds):
            before_each_run()
            spent.append(self.run(run, may_fail=may_fail))
        ms, cpu_ms = (
            statistics.median(column)
            for column in zip(*((one.ms, one.cpu_ms) for one in spent), strict=True)
        )
        return ProcessCost(ms, cpu_ms, spent[-1].output)

    def measure_peak_megabytes(self, run: CommandRun) -> float:
        """Return the peak memory of a process and its children in megabytes.

        Memory that several processes share is counted once.
        """
        command, stdin, cwd = run
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.env,
            cwd=cwd,
        ) as process:
            seen = [0]
            watcher = threading.Thread(target=_sample_memory, args=(process, seen))
            watcher.start()
            process.communicate(stdin)
            watcher.join()
        return max(seen) / 1000


def format_machine_load() -> str:
    """Return a text with the machine's load in the last minute. This benchmark is part of the load."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def folder_size(folder: Path) -> int:
    """Return the number of bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def print_row(row_name: str, spent: ProcessCost, target: str) -> None:
    """Print one row of the table."""
    cpu = f"{spent.cpu_ms:8.0f}" if spent.cpu_ms else f"{'':8}"
    print(f"{row_name:52} {spent.ms:8.1f} {cpu}   {target}", flush=True)


def print_note(text: str) -> None:
    """Print a remark below the row to which it belongs."""
    print(f"  {text}", flush=True)


def _sample_memory(process: subprocess.Popen[bytes], samples: list[int]) -> None:
    """Append the memory of a process and its children, in kilobytes, to ``samples`` until the process ends."""
    while process.poll() is None:
        samples.append(sum(map(_read_kilobytes, _list_descendants(process.pid))))
        time.sleep(SAMPLE_INTERVAL_SECONDS)


def _list_descendants(pid: int) -> list[int]:
    """Return the ids of a process and all its descendants."""
    found = [pid]
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
            found += _list_descendants(int(child))
    return found


def _read_kilobytes(pid: int) -> int:
    """Return the memory of a process in kilobytes, with its share of the memory used by several processes."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0
