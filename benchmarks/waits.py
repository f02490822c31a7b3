"""Measure README's figures for waiting, in processor time: an ordinary prompt, and a handoff of 11 MB.

The naive way for a prompt is a hook that starts Python with the imports of the peer's own hook.
Each round takes all of them in turn, so that a busy machine slows all of them equally.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.bench import Bench, Run

ROUNDS = 41
HANDOFF_ROUNDS = 9
SIZE, FILES = 11_000_000, 50
IMPORTS = "import json, math, os, re, stat, subprocess, sys, tempfile, time, typing"
NAIVE = f"{sys.executable} -c '{IMPORTS}; json.load(sys.stdin)'"


def main() -> int:
    """Print one row per measurement; return 0."""
    with tempfile.TemporaryDirectory(prefix="resume-hooks-bench-") as scratch:
        bench = Bench(Path(scratch), files=FILES, size=SIZE)
        prompt = bench.prompt("please look at this " * 10)
        runs = {
            "sh -c true": (["/bin/sh", "-c", "true"], b"", bench.work),
            "an ordinary prompt": prompt,
            "a hook that starts Python": (["/bin/sh", "-c", NAIVE], prompt[1], bench.work),
        }
        spent: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(ROUNDS):
            for name, run in runs.items():
                spent[name].append(processor_ms(bench, run))
        handoff = bench.prompt(">handoff fix the tests")
        spent[f">handoff of {SIZE / 1e6:.0f} MB"] = []
        for _ in range(HANDOFF_ROUNDS):
            spent[f">handoff of {SIZE / 1e6:.0f} MB"].append(processor_ms(bench, handoff))
            bench.forget_children()
        for name, times in spent.items():
            print(f"{name:28} {statistics.median(times[2:]):8.1f} ms")
    return 0


def processor_ms(bench: Bench, run: Run) -> float:
    """Return the processor time of a process and its descendants, in milliseconds."""
    command, stdin, cwd = run
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=stdin, capture_output=True, env=bench.env, cwd=cwd, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    system = after.ru_stime - before.ru_stime
    return (user + system) * 1000


if __name__ == "__main__":
    sys.exit(main())
