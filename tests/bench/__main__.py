"""``make bench``: what users wait for, as medians of whole processes, beside the peer's command line in the same run.

The peer (claude-code-tools) is measured where BENCH_PEER names its ``aichat``; docs/testing.md says how to get one.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from resume_hooks.paths import project_key
from resume_hooks.plugin_files import assemble
from tests.bench.generate import generate_home, generate_session

BIG = 50_000_000
FILES = 2_000
SESSION = "0d5e5510-0000-4000-8000-0000000000b1"
Run = tuple[list[str], bytes, Path]


class Bench:
    """A throw-away home with one 50 MB session and 2,000 others, and the commands that are timed in it."""

    def __init__(self, scratch: Path) -> None:
        self.work = scratch / "work"
        self.work.mkdir()
        self.plugin = scratch / "plugin"
        assemble(str(self.plugin))
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(scratch),
            "CLAUDE_CONFIG_DIR": str(scratch / ".claude"),
            "CLAUDE_PLUGIN_ROOT": str(self.plugin),
            "CLAUDE_PLUGIN_DATA": str(scratch / "data"),
            "RESUME_HOOKS_PYTHON": sys.executable,
            "RESUME_HOOKS_CLIPBOARD": os.environ.get("RESUME_HOOKS_CLIPBOARD", "auto"),
            **({"DISPLAY": os.environ["DISPLAY"]} if "DISPLAY" in os.environ else {}),
        }
        folder = scratch / ".claude" / "projects" / project_key(str(self.work))
        self.session = folder / f"{SESSION}.jsonl"
        generate_home(str(scratch / ".claude"), sessions=FILES, total_bytes=200_000_000)
        generate_session(str(self.session), BIG, cwd=str(self.work))

    def prompt(self, text: str) -> Run:
        """A prompt through hooks.json, as the client's shell runs it."""
        hooks = json.loads((self.plugin / "hooks" / "hooks.json").read_text(encoding="utf-8"))
        command = hooks["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"]
        event = {"session_id": SESSION, "hook_event_name": "UserPromptSubmit", "prompt": text}
        return ["/bin/sh", "-c", command], json.dumps(event, separators=(",", ":")).encode(), self.work

    def shell(self, *arguments: str) -> Run:
        """A verb from the shell, as the installed command runs it."""
        code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from resume_hooks.cli.main import main; main()"
        return [sys.executable, "-c", code, str(self.plugin / "src"), *arguments], b"", self.work

    def median_ms(self, run: Run, rounds: int, clean: Callable[[], None] = lambda: None) -> float:
        """The median wall time of a whole process in milliseconds, after two that do not count."""
        command, stdin, cwd = run
        times = []
        for _ in range(rounds + 2):
            begun = time.perf_counter()
            subprocess.run(command, input=stdin, capture_output=True, env=self.env, cwd=cwd, check=True)
            times.append((time.perf_counter() - begun) * 1000)
            clean()
        return statistics.median(times[2:])

    def forget_children(self) -> None:
        """Remove what a handoff made, so that every round finds the same home."""
        for path in self.session.parent.glob("*.jsonl"):
            if path.read_bytes()[:21] == b'{"continue_metadata":':
                path.unlink()


def main() -> int:
    """Print one row a measurement; 0."""
    with tempfile.TemporaryDirectory(prefix="resume-hooks-bench-") as scratch:
        bench = Bench(Path(scratch))
        idle = bench.median_ms((["/bin/sh", "-c", "true"], b"", bench.work), 41)
        print(f"{'what':52} {'ms':>8}   target")
        row("sh -c true", idle, "")
        for size, name in ((200, "200 B"), (64_000, "64 KB"), (1_000_000, "1 MB")):
            target = 12 if size == 1_000_000 else 3
            spent = bench.median_ms(bench.prompt("please look at this " * (size // 20)), 41)
            row(f"untriggered prompt of {name}", spent, f"{target} ms over sh -c true: {spent - idle:+.1f}")
        row(">session", bench.median_ms(bench.prompt(">session"), 21), "60")
        row(">resume, 50 MB session", bench.median_ms(bench.prompt(">resume"), 21), "200")
        spent = bench.median_ms(bench.prompt(">handoff fix the tests"), 21, bench.forget_children)
        row(">handoff, 50 MB session, checks included", spent, "350")
        row("lineage by id, 2,000 files", bench.median_ms(bench.shell("lineage", SESSION), 21), "90")
        row("lineage by prefix, 2,000 files", bench.median_ms(bench.shell("lineage", SESSION[:8]), 21), "90")
        row("lineage of the latest, 2,000 files", bench.median_ms(bench.shell("lineage"), 21), "90")
        row("lineage --json, 2,000 files", bench.median_ms(bench.shell("lineage", SESSION, "--json"), 21), "")
        peer(bench)
    return 0


def peer(bench: Bench) -> None:
    """The peer's command line on the same home."""
    found = os.environ.get("BENCH_PEER") or shutil.which("aichat")
    if found is None:
        print("peer: not measured; set BENCH_PEER to the aichat of a scratch venv with claude-code-tools")
        return
    for name, locator in (("id", SESSION), ("prefix", SESSION[:8])):
        spent = bench.median_ms(([found, "lineage", locator], b"", bench.work), 5)
        row(f"peer: aichat lineage by {name}, 2,000 files", spent, "")
    print("peer: its prompt hook is not in its wheel, so it is not measured here")


def row(what: str, spent: float, target: str) -> None:
    """One line of the table."""
    print(f"{what:52} {spent:8.1f}   {target}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
