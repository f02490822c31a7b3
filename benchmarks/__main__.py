"""Measure how long users wait, next to the peer (claude-code-tools).

``make bench`` prints medians of whole processes. The peer is measured in the same run if BENCH_PEER
is the path of its ``aichat``. docs/testing.md describes how to install it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.bench import LARGE_SESSION_ID, Bench
from benchmarks.expiry import print_start_times
from benchmarks.large import print_large_rows
from benchmarks.search import print_search_rows
from benchmarks.trim import print_trims
from benchmarks.vault import print_vault_rows


def main() -> int:
    """Print a row for each measurement. Return 0."""
    argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__).parse_args()
    # The engine's background processes may still write to the folder when it is deleted.
    with tempfile.TemporaryDirectory(
        prefix="resume-hooks-bench-", ignore_cleanup_errors=True
    ) as scratch:
        bench = Bench(Path(scratch))
        idle = bench.median_ms((["/bin/sh", "-c", "true"], b"", bench.work), 41)
        print(f"{'what':52} {'ms':>8}   target")
        print_row("sh -c true", idle, "")
        for size, name in ((200, "200 B"), (64_000, "64 KB"), (1_000_000, "1 MB")):
            target = 12 if size == 1_000_000 else 3
            spent = bench.median_ms(bench.prompt_run("please look at this " * (size // 20)), 41)
            print_row(
                f"prompt of {name} without a trigger",
                spent,
                f"{target} ms over sh -c true: {spent - idle:+.1f}",
            )
        print_row(">session", bench.median_ms(bench.prompt_run(">session"), 21), "60")
        print_row(">resume, 50 MB session", bench.median_ms(bench.prompt_run(">resume"), 21), "200")
        spent = bench.median_ms(
            bench.prompt_run(">handoff fix the tests"), 21, bench.remove_children
        )
        print_row(">handoff, 50 MB session, checks included", spent, "250")
        print_row(
            "handoff --print of 50 MB, from the shell",
            bench.median_ms(bench.shell_run("handoff", LARGE_SESSION_ID, "--print"), 11),
            "",
        )
        print_row(
            "resume of 50 MB, from the shell",
            bench.median_ms(bench.shell_run("resume", LARGE_SESSION_ID), 11),
            "250",
        )
        print_row("handoff --help", bench.median_ms(bench.shell_run("handoff", "--help"), 21), "80")
        print_row(">mark, 50 MB session", bench.median_ms(bench.prompt_run(">mark try"), 11), "")
        print_row(
            ">recover-context, 50 MB session",
            bench.median_ms(bench.prompt_run(">recover-context"), 11),
            "",
        )
        for name, fields in (
            ("SessionStart", "startup"),
            ("SessionStart", "compact"),
            ("Stop", ""),
        ):
            spent = bench.median_ms(
                bench.hook_run(name, **({"source": fields} if fields else {})), 11
            )
            print_row(
                f"{name} {fields}, 50 MB session".replace(" ,", ","),
                spent,
                "150" if fields == "compact" else "",
            )
        print_row(
            "lineage by id, 2,000 files",
            bench.median_ms(bench.shell_run("lineage", LARGE_SESSION_ID), 21),
            "90",
        )
        print_row(
            "lineage by prefix, 2,000 files",
            bench.median_ms(bench.shell_run("lineage", LARGE_SESSION_ID[:8]), 21),
            "90",
        )
        print_row(
            "lineage of the latest, 2,000 files",
            bench.median_ms(bench.shell_run("lineage"), 21),
            "90",
        )
        print_row(
            "lineage --json, 2,000 files",
            bench.median_ms(bench.shell_run("lineage", LARGE_SESSION_ID, "--json"), 21),
            "",
        )
        print_row(
            "stats --all, 2,000 files, nothing new",
            bench.median_ms(bench.shell_run("stats", "--all"), 11),
            "",
        )
        found = os.environ.get("BENCH_PEER") or shutil.which("aichat")
        print_peer_rows(bench, found)
        print_trims(bench, found)
        print_search_rows(bench, found)
        print_vault_rows(bench)
        print_start_times(Path(scratch) / "starts")
        print_large_rows(bench)
    return 0


def print_peer_rows(bench: Bench, peer_program: str | None) -> None:
    """Print rows for the peer's command line in the same home."""
    if peer_program is None:
        print(
            "peer: not measured; set BENCH_PEER to the aichat of a scratch venv with claude-code-tools"
        )
        return
    for name, locator in (("id", LARGE_SESSION_ID), ("prefix", LARGE_SESSION_ID[:8])):
        spent = bench.median_ms(([peer_program, "lineage", locator], b"", bench.work), 5)
        print_row(f"peer: aichat lineage by {name}, 2,000 files", spent, "")
    print("peer: its prompt hook is not in its wheel, so it is not measured here")


def print_row(row_name: str, spent: float, target: str) -> None:
    """Print a row with the time in milliseconds and the target."""
    print(f"{row_name:52} {spent:8.1f}   {target}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
