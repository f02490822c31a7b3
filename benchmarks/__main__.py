"""Measure how long users wait, next to the peer (claude-code-tools).

``make bench`` prints medians of whole processes. The peer is measured in the same run if BENCH_PEER
is the path of its ``aichat``. docs/testing.md describes how to install it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.bench import SESSION, Bench
from benchmarks.expiry import starts
from benchmarks.large import large
from benchmarks.search import searches
from benchmarks.trim import trims
from benchmarks.vault import vaults


def main() -> int:
    """Print a row for each measurement. Return 0."""
    with tempfile.TemporaryDirectory(prefix="resume-hooks-bench-") as scratch:
        bench = Bench(Path(scratch))
        idle = bench.median_ms((["/bin/sh", "-c", "true"], b"", bench.work), 41)
        print(f"{'what':52} {'ms':>8}   target")
        row("sh -c true", idle, "")
        for size, name in ((200, "200 B"), (64_000, "64 KB"), (1_000_000, "1 MB")):
            target = 12 if size == 1_000_000 else 3
            spent = bench.median_ms(bench.prompt("please look at this " * (size // 20)), 41)
            row(
                f"untriggered prompt of {name}",
                spent,
                f"{target} ms over sh -c true: {spent - idle:+.1f}",
            )
        row(">session", bench.median_ms(bench.prompt(">session"), 21), "60")
        row(">resume, 50 MB session", bench.median_ms(bench.prompt(">resume"), 21), "200")
        spent = bench.median_ms(bench.prompt(">handoff fix the tests"), 21, bench.forget_children)
        row(">handoff, 50 MB session, checks included", spent, "250")
        row(
            "handoff --print of 50 MB, from the shell",
            bench.median_ms(bench.shell("handoff", SESSION, "--print"), 11),
            "",
        )
        row(
            "resume of 50 MB, from the shell",
            bench.median_ms(bench.shell("resume", SESSION), 11),
            "250",
        )
        row("handoff --help", bench.median_ms(bench.shell("handoff", "--help"), 21), "80")
        row(">mark, 50 MB session", bench.median_ms(bench.prompt(">mark try"), 11), "")
        row(
            ">recover-context, 50 MB session",
            bench.median_ms(bench.prompt(">recover-context"), 11),
            "",
        )
        for name, fields in (
            ("SessionStart", "startup"),
            ("SessionStart", "compact"),
            ("Stop", ""),
        ):
            spent = bench.median_ms(bench.hook(name, **({"source": fields} if fields else {})), 11)
            row(
                f"{name} {fields}, 50 MB session".replace(" ,", ","),
                spent,
                "150" if fields == "compact" else "",
            )
        row(
            "lineage by id, 2,000 files", bench.median_ms(bench.shell("lineage", SESSION), 21), "90"
        )
        row(
            "lineage by prefix, 2,000 files",
            bench.median_ms(bench.shell("lineage", SESSION[:8]), 21),
            "90",
        )
        row("lineage of the latest, 2,000 files", bench.median_ms(bench.shell("lineage"), 21), "90")
        row(
            "lineage --json, 2,000 files",
            bench.median_ms(bench.shell("lineage", SESSION, "--json"), 21),
            "",
        )
        row(
            "stats --all, 2,000 files, nothing new",
            bench.median_ms(bench.shell("stats", "--all"), 11),
            "",
        )
        found = os.environ.get("BENCH_PEER") or shutil.which("aichat")
        peer(bench, found)
        trims(bench, found)
        searches(bench, found)
        vaults(bench)
        starts(Path(scratch) / "starts")
        large(bench)
    return 0


def peer(bench: Bench, found: str | None) -> None:
    """Print rows for the peer's command line in the same home."""
    if found is None:
        print(
            "peer: not measured; set BENCH_PEER to the aichat of a scratch venv with claude-code-tools"
        )
        return
    for name, locator in (("id", SESSION), ("prefix", SESSION[:8])):
        spent = bench.median_ms(([found, "lineage", locator], b"", bench.work), 5)
        row(f"peer: aichat lineage by {name}, 2,000 files", spent, "")
    print("peer: its prompt hook is not in its wheel, so it is not measured here")


def row(what: str, spent: float, target: str) -> None:
    """Print one row of the table."""
    print(f"{what:52} {spent:8.1f}   {target}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
