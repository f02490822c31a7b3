"""Measure the time, the memory and the savings of trims of large sessions, next to the peer.

Each round begins with the same file.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.bench import Bench, CommandRun, run_in_process
from tests.builders import assistant, tool_result, tool_use, user, write_session

LONG_LINE_BYTES = 60_000_000
ROUNDS = 5


class MeasuredRun(NamedTuple):
    """The medians of several runs of a process: its time and its peak memory.

    ``output`` is the output of the last run.
    """

    ms: float
    megabytes: float
    output: bytes


def print_trims(bench: Bench, peer: str | None) -> None:
    """Print the rows for trim."""
    print(f"\n{'trim':52} {'ms':>8} {'MB RSS':>8}   tokens saved")
    run_in_process(write_long_line_session, bench.long)
    sessions = (
        ("50 MB, all live", bench.session),
        ("50 MB, compacted", bench.compacted),
        ("a line of 60 MB", bench.long),
    )
    for name, session in sessions:
        kept = session.with_suffix(".kept")
        shutil.copyfile(session, kept)
        restore_file(bench, session, kept)
        clean = partial(restore_file, bench, session, kept)
        for what, run in make_own_runs(bench, session):
            spent = measure_run(bench, run, clean)
            data = json.loads(spent.output)["data"]
            print_row(f"{what}, {name}", spent, f"{data['savings']['tokens_saved']:,}")
        for what, run in make_peer_runs(bench, session, peer):
            spent = measure_run(bench, run, clean)
            print_row(f"peer: {what}, {name}", spent, read_peer_savings(spent.output))
        kept.unlink()


def make_own_runs(bench: Bench, session: Path) -> list[tuple[str, CommandRun]]:
    """Return runs of our trims. Recent turns are trimmed, too, because the peer also trims them."""
    options = [session.stem, "--keep-recent", "0", "--json"]
    return [
        ("trim --dry-run", bench.shell_run("trim", *options, "--dry-run")),
        ("trim, checks included", bench.shell_run("trim", *options)),
        (
            "trim --in-place, backup and checks included",
            bench.shell_run("trim", *options, "--in-place"),
        ),
    ]


def make_peer_runs(bench: Bench, session: Path, peer: str | None) -> list[tuple[str, CommandRun]]:
    """Return runs of the peer's trim commands. Without a peer, return no runs."""
    if peer is None:
        return []
    new = [peer, "trim", str(session), "--simple-ui"]
    place = [peer, "trim-in-place", str(session), "--json"]
    return [
        ("aichat trim-in-place --dry-run", ([*place, "--dry-run"], b"", bench.work)),
        ("aichat trim", (new, b"n\n", bench.work)),
        ("aichat trim-in-place", (place, b"", bench.work)),
    ]


def read_peer_savings(printed: bytes) -> str:
    """Return the savings that the peer reports, or ``""`` if it does not print JSON."""
    try:
        said = json.loads(printed.strip().split(b"\n")[-1])
    except ValueError:
        return ""
    return ", ".join(
        f"{key} {value:,}"
        for key, value in said.items()
        if "saved" in key and isinstance(value, int)
    )


def measure_run(
    bench: Bench,
    run: CommandRun,
    after_each_run: Callable[[], None] = lambda: None,
    rounds: int = ROUNDS,
) -> MeasuredRun:
    """Return the medians of ``rounds`` runs, after one run that is not measured."""
    times, memory, printed = [], [], b""
    for _ in range(rounds + 1):
        command, stdin, cwd = run
        begun = time.perf_counter()
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=bench.env,
            cwd=cwd,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(stdin)
            process.stdin.close()
            printed = process.stdout.read()
            _, _, usage = os.wait4(process.pid, 0)
            process.returncode = 0
        times.append((time.perf_counter() - begun) * 1000)
        memory.append(usage.ru_maxrss / 1000)
        after_each_run()
    return MeasuredRun(statistics.median(times[1:]), statistics.median(memory[1:]), printed)


def restore_file(bench: Bench, session: Path, copy_path: Path) -> None:
    """Restore the session's file from the copy ``copy_path``, with an old modification time.

    The children and backups that a measured run made are deleted.
    """
    shutil.copyfile(copy_path, session)
    os.utime(session, (1_700_000_000, 1_700_000_000))
    bench.remove_children()
    shutil.rmtree(
        bench.session.parent.parent.parent / "resume-hooks" / "backups", ignore_errors=True
    )
    for backup in session.parent.glob("*.bak"):
        backup.unlink()


def write_long_line_session(path: Path) -> None:
    """Write a session with a tool output that is a single line of 60 MB."""
    output = "a line of a log that nobody will read again\n" * (LONG_LINE_BYTES // 45)
    write_session(
        path.parent,
        path.stem,
        [
            user("run it", uuid="u1", session_id=path.stem),
            tool_use(
                "c1", uuid="a1", parent="u1", name="Bash", ts=1, session_id=path.stem, tokens=20_000
            ),
            tool_result("c1", output, uuid="r1", parent="a1", ts=2, session_id=path.stem),
            assistant("done", uuid="a2", parent="r1", ts=3, session_id=path.stem, tokens=900_000),
        ],
    )


def print_row(row_name: str, spent: MeasuredRun, savings: str) -> None:
    """Print one row of the table."""
    print(f"{row_name:52} {spent.ms:8.0f} {spent.megabytes:8.0f}   {savings}", flush=True)
