"""Time the start of a session among 3,000 sessions, of which none, one or 500 expire soon.

Run it with ``python -m benchmarks.expiry``.
"""

from __future__ import annotations

import functools
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
from typing import NamedTuple

from resume_hooks.paths import project_key
from resume_hooks.system.plugin_files import assemble_plugin
from tests.builders import conversation, session_id, write_session

FILE_COUNT = 3_000
DUE_SESSION_COUNT = 500
ROUNDS = 11
DAY_SECONDS = 86_400


class ProcessTimes(NamedTuple):
    """The time of a process, and the processor time with its children, in milliseconds."""

    ms: float
    cpu_ms: float


class ExpiringHome:
    """A temporary home with 3,000 small sessions of one project."""

    def __init__(self, scratch: Path) -> None:
        self.work = scratch / "work"
        self.work.mkdir(parents=True)
        self.plugin = scratch / "plugin"
        assemble_plugin(str(self.plugin))
        config = scratch / ".claude"
        self.folder = config / "projects" / project_key(str(self.work))
        self.state = config / "resume-hooks"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(scratch),
            "CLAUDE_CONFIG_DIR": str(config),
            "CLAUDE_PLUGIN_ROOT": str(self.plugin),
            "CLAUDE_PLUGIN_DATA": str(scratch / "data"),
            "RESUME_HOOKS_PYTHON": sys.executable,
        }
        for number in range(FILE_COUNT):
            own_id = session_id(number)
            write_session(self.folder, own_id, conversation(2, session_id=own_id))
        self.set_ages(0)

    def set_ages(self, due_count: int) -> None:
        """Let ``due_count`` sessions expire soon and the others in two weeks, and empty the vault."""
        shutil.rmtree(self.state / "vault", ignore_errors=True)
        (self.state / "pending" / f"due-{self.folder.name}.json").unlink(missing_ok=True)
        for number in range(FILE_COUNT):
            then = time.time() - (25 if number < due_count else 10) * DAY_SECONDS
            os.utime(self.folder / f"{session_id(number)}.jsonl", (then, then))

    def run_start_hook(self) -> ProcessTimes:
        """Run the hook that delays the start of a session until it ends."""
        hooks = json.loads((self.plugin / "hooks" / "hooks.json").read_text(encoding="utf-8"))[
            "hooks"
        ]
        path = str(self.folder / f"{session_id(0)}.jsonl")
        event = {
            "session_id": session_id(0),
            "transcript_path": path,
            "hook_event_name": "SessionStart",
        }
        body = json.dumps(
            {**event, "source": "startup", "cwd": str(self.work)}, separators=(",", ":")
        )
        return self.run(hooks["SessionStart"][0]["hooks"][0]["command"], body.encode())

    def run(self, command: str, stdin: bytes = b"") -> ProcessTimes:
        """Run a shell command in this home."""
        before, begun = os.times(), time.perf_counter()
        subprocess.run(
            ["/bin/sh", "-c", command],
            input=stdin,
            capture_output=True,
            env=self.env,
            cwd=self.work,
            check=True,
        )
        ms, after = (time.perf_counter() - begun) * 1000, os.times()
        cpu = (
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
        return ProcessTimes(ms, cpu * 1000)

    def count_archived_sessions(self) -> int:
        """Return the number of sessions in the vault."""
        vault = self.state / "vault"
        return len(list(vault.iterdir())) if vault.exists() else 0


def print_start_times(scratch: Path) -> None:
    """Print how long the start of a session takes if 0, 1 or many sessions expire soon."""
    home = ExpiringHome(scratch)
    print(f"\n{f'the start of a session, {FILE_COUNT:,} sessions':52} {'ms':>8} {'cpu ms':>8}")
    print_row("sh -c true", lambda: home.run("true"), rounds=41)
    home.run_start_hook()
    print_row("SessionStart, nothing due", home.run_start_hook, rounds=41)
    for due in (0, 1, DUE_SESSION_COUNT):
        print_row(
            f"start of a session, sessions that expire soon: {due}",
            home.run_start_hook,
            before_each_run=functools.partial(home.set_ages, due),
        )
        print(f"  kept {home.count_archived_sessions()}", flush=True)


def print_row(
    row_name: str,
    run: Callable[[], ProcessTimes],
    *,
    rounds: int = ROUNDS,
    before_each_run: Callable[[], object] = lambda: None,
) -> None:
    """Print a row with the medians of ``rounds`` runs, after one run that is not measured."""
    spent = []
    for _ in range(rounds + 1):
        before_each_run()
        spent.append(run())
    ms, cpu = (statistics.median(column) for column in zip(*spent[1:], strict=True))
    print(f"{row_name:52} {ms:8.1f} {cpu:8.0f}", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="resume-hooks-starts-") as folder:
        print_start_times(Path(folder))
