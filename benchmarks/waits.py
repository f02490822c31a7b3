"""Measure the processor time for which users wait.

It is measured for prompts, handoffs, the start after a compaction, and searches. For prompts, the
naive way is a hook that starts Python with the imports of the peer's hook. Each round runs all
commands of a group in turn, so that a busy machine slows all of them equally.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.bench import LARGE_SESSION_BYTES, Bench, CommandRun, run_in_process
from benchmarks.generate import generate_home
from benchmarks.search import QUERIES

ROUNDS, HANDOFF_ROUNDS, SEARCH_ROUNDS = 41, 11, 4
UNCOUNTED_ROUNDS = 2
"""The number of rounds before the measured rounds."""

SIZE, FILE_COUNT = 11_000_000, 50
SEARCHED_FILES, SEARCHED_BYTES = 1_070, 330_000_000
"""The number and the requested size of the sessions to search. Their actual size is 450 MB, because
each contains at least one whole turn."""

PEER_HOOK_IMPORTS = "import json, math, os, re, stat, subprocess, sys, tempfile, time, typing"
NAIVE_HOOK_COMMAND = f"{sys.executable} -c '{PEER_HOOK_IMPORTS}; json.load(sys.stdin)'"


def main() -> int:
    """Print a row for each measurement. Return 0."""
    with tempfile.TemporaryDirectory(prefix="resume-hooks-bench-") as scratch:
        for name in ("small", "large", "library"):
            (Path(scratch) / name).mkdir()
        bench = Bench(Path(scratch) / "small", files=FILE_COUNT, size=SIZE)
        prompt = bench.prompt_run("please look at this " * 10)
        prompts = {
            "sh -c true": (["/bin/sh", "-c", "true"], b"", bench.work),
            "an ordinary prompt": prompt,
            "a hook that starts Python": (
                ["/bin/sh", "-c", NAIVE_HOOK_COMMAND],
                prompt[1],
                bench.work,
            ),
        }
        print_medians(bench, prompts, ROUNDS)
        handoff = {f">handoff of {SIZE / 1e6:.0f} MB": bench.prompt_run(">handoff fix the tests")}
        print_medians(bench, handoff, HANDOFF_ROUNDS)
        large = Bench(Path(scratch) / "large", files=FILE_COUNT)
        runs = {
            f">handoff of {LARGE_SESSION_BYTES / 1e6:.0f} MB": large.prompt_run(
                ">handoff fix the tests"
            ),
            "the start after a compaction": large.hook_run("SessionStart", source="compact"),
            ">resume": large.prompt_run(">resume"),
        }
        print_medians(large, runs, HANDOFF_ROUNDS)
        print_search_percentiles(bench, Path(scratch) / "library")
    return 0


def print_medians(bench: Bench, runs: Mapping[str, CommandRun], rounds: int) -> None:
    """Print the median time of each run. The first ``UNCOUNTED_ROUNDS`` rounds are not counted."""
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(UNCOUNTED_ROUNDS + rounds):
        for name, run in runs.items():
            spent[name].append(measure_processor_ms(bench.env, run))
            bench.remove_children()
    for name, times in spent.items():
        print(f"{name:28} {statistics.median(times[UNCOUNTED_ROUNDS:]):8.1f} ms", flush=True)


def print_search_percentiles(bench: Bench, folder: Path) -> None:
    """Print the median and the 95th percentile of searches from a shell, in a home of 450 MB."""
    config = folder / ".claude"
    env = {**bench.env, "HOME": str(folder), "CLAUDE_CONFIG_DIR": str(config)}
    run_in_process(generate_home, str(config), SEARCHED_FILES, SEARCHED_BYTES)
    measure_processor_ms(env, bench.shell_run("doctor", "--index", "rebuild"))
    times: dict[str, list[float]] = {"text": [], "--json": []}
    for _ in range(SEARCH_ROUNDS):
        for query in QUERIES:
            times["text"].append(
                measure_processor_ms(env, bench.shell_run("search", "--all", "--", query))
            )
            run = bench.shell_run("search", "--all", "--json", "--", query)
            times["--json"].append(measure_processor_ms(env, run))
    for name, spent in times.items():
        high = statistics.quantiles(spent, n=20)[-1]
        print(f"search, {name:20} {statistics.median(spent):8.1f} ms, p95 {high:.1f}")


def measure_processor_ms(env: Mapping[str, str], run: CommandRun) -> float:
    """Return the processor time of a process and its descendants in milliseconds."""
    command, stdin, cwd = run
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=stdin, capture_output=True, env=env, cwd=cwd, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    system = after.ru_stime - before.ru_stime
    return (user + system) * 1000


if __name__ == "__main__":
    sys.exit(main())
