"""Create a temporary home with large sessions, and run commands in it."""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.generate import generate_home, generate_session
from resume_hooks.paths import project_key
from resume_hooks.system.plugin_files import assemble_plugin

LARGE_SESSION_BYTES = 50_000_000
FILE_COUNT = 2_000
COMPACTION_BYTES = 1_500_000
"""A generated session is compacted after this number of bytes, which is about 170,000 tokens of the
corpus."""

LARGE_SESSION_ID = "0d5e5510-0000-4000-8000-0000000000b1"
LONG_SESSION_ID = "0d5e5520-0000-4000-8000-0000000000b2"
COMPACTED_SESSION_ID = "0d5e5530-0000-4000-8000-0000000000b3"
CommandRun = tuple[list[str], bytes, Path]


def run_in_process(
    function: Callable[..., object], *arguments: object, **keyword_arguments: object
) -> None:
    """Call ``function`` in another process.

    A measured process begins with the peak memory of the process that starts it, so this process
    must stay small.
    """
    process = multiprocessing.get_context("spawn").Process(
        target=function, args=arguments, kwargs=keyword_arguments
    )
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"{function} failed")


class Bench:
    """A temporary home with a session of ``size`` bytes and many other sessions.

    Its methods make and time the commands that are run in this home.
    """

    def __init__(
        self, scratch: Path, *, files: int = FILE_COUNT, size: int = LARGE_SESSION_BYTES
    ) -> None:
        self.work = scratch / "work"
        self.work.mkdir()
        self.plugin = scratch / "plugin"
        assemble_plugin(str(self.plugin))
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
        self.session = folder / f"{LARGE_SESSION_ID}.jsonl"
        self.compacted = folder / f"{COMPACTED_SESSION_ID}.jsonl"
        run_in_process(generate_home, str(scratch / ".claude"), files, files * 100_000)
        run_in_process(generate_session, str(self.session), size, cwd=str(self.work))
        run_in_process(
            generate_session,
            str(self.compacted),
            size,
            cwd=str(self.work),
            compacted_bytes=COMPACTION_BYTES,
            days=1,
        )
        os.utime(self.compacted, (1_700_000_000, 1_700_000_000))
        self.long = folder / f"{LONG_SESSION_ID}.jsonl"
        self.known = {path.name for path in (*folder.iterdir(), self.long)}

    def prompt_run(self, text: str) -> CommandRun:
        """Return a run of the prompt hook in hooks.json, as the client's shell runs it."""
        return self.hook_run("UserPromptSubmit", prompt=text)

    def hook_run(self, name: str, **fields: str) -> CommandRun:
        """Return a run of the hook that hooks.json declares for an event, on the large session."""
        hooks = json.loads((self.plugin / "hooks" / "hooks.json").read_text(encoding="utf-8"))
        command = hooks["hooks"][name][0]["hooks"][0]["command"]
        event = {
            "session_id": LARGE_SESSION_ID,
            "transcript_path": str(self.session),
            "hook_event_name": name,
            **fields,
        }
        return (
            ["/bin/sh", "-c", command],
            json.dumps(event, separators=(",", ":")).encode(),
            self.work,
        )

    def shell_run(self, *arguments: str) -> CommandRun:
        """Return a run of a verb, as the installed command runs it."""
        code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from resume_hooks.__main__ import start; start()"
        return [sys.executable, "-c", code, str(self.plugin / "src"), *arguments], b"", self.work

    def median_ms(
        self, run: CommandRun, rounds: int, after_each_run: Callable[[], None] = lambda: None
    ) -> float:
        """Return the median time of a whole process in milliseconds.

        The first two runs are not measured. ``after_each_run`` is called after each run.
        """
        command, stdin, cwd = run
        times = []
        for _ in range(rounds + 2):
            begun = time.perf_counter()
            subprocess.run(
                command, input=stdin, capture_output=True, env=self.env, cwd=cwd, check=True
            )
            times.append((time.perf_counter() - begun) * 1000)
            after_each_run()
        return statistics.median(times[2:])

    def remove_children(self) -> None:
        """Remove the children that verbs have made, so that every run finds the same home."""
        for path in self.session.parent.glob("*.jsonl"):
            if path.name not in self.known:
                path.unlink()
