"""Measure the time and memory of verbs that read a session of 1 GB that was never compacted."""

from __future__ import annotations

import json
import subprocess

from benchmarks.bench import Bench, CommandRun, run_in_process
from benchmarks.generate import generate_session
from benchmarks.trim import measure_run

GIGABYTE_SESSION_ID = "0d5e5540-0000-4000-8000-0000000000b4"
SESSION_BYTES = 1_000_000_000
MIDDLE_LINE = 150_000
"""The number of a line near the middle of the file."""


def print_large_rows(bench: Bench) -> None:
    """Print the rows for a session of 1 GB."""
    print(f"\n{'a session of 1 GB':52} {'ms':>8} {'MB RSS':>8}")
    path = bench.session.with_name(f"{GIGABYTE_SESSION_ID}.jsonl")
    run_in_process(generate_session, str(path), SESSION_BYTES, cwd=str(bench.work))
    place = _read_first_id(
        bench,
        bench.shell_run(
            "read", GIGABYTE_SESSION_ID, "--page", "--before", str(MIDDLE_LINE), "--json"
        ),
    )
    uuid = place.rpartition(":")[2].partition("@")[0]
    page = ["read", GIGABYTE_SESSION_ID, "--page", "--json"]
    for what, run, rounds in (
        ("read --page --json, its end", bench.shell_run(*page), 5),
        ("read --page --json, from its middle", bench.shell_run(*page, "--before", place), 5),
        (
            "read --page --json, from a uuid in the session's middle",
            bench.shell_run(*page, "--before", uuid),
            5,
        ),
        (
            "read of one record by its uuid, in the session's middle",
            bench.shell_run("read", f"{GIGABYTE_SESSION_ID}:{uuid}"),
            5,
        ),
        (
            "read of one record by its line, in the session's middle",
            bench.shell_run("read", f"{GIGABYTE_SESSION_ID}:{MIDDLE_LINE}"),
            5,
        ),
        (
            "sessions --json, with this session in the list",
            bench.shell_run("sessions", "--json"),
            5,
        ),
        (
            "resume --json, off a terminal",
            bench.shell_run("resume", GIGABYTE_SESSION_ID, "--json"),
            2,
        ),
        ("info --json, a whole scan", bench.shell_run("info", GIGABYTE_SESSION_ID, "--json"), 2),
    ):
        spent = measure_run(bench, run, rounds=rounds)
        print(f"{what:52} {spent.ms:8.0f} {spent.megabytes:8.0f}", flush=True)
    path.unlink()


def _read_first_id(bench: Bench, run: CommandRun) -> str:
    command, _, cwd = run
    done = subprocess.run(command, capture_output=True, env=bench.env, cwd=cwd, check=True)
    return str(json.loads(done.stdout)["data"]["firstId"])
