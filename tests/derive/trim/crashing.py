"""A program that trims a session and is stopped on the way: killed at a step, by a full disk, by a folder's mode.

Run by test_crash.py in a process of its own: ``crashing.py kill|full|readonly FOLDER``; prints JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from resume_hooks.derive.child.write import write
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.errors import WriteFailed
from tests.builders import SESSION, ConfigHome
from tests.derive.trim.sessions import Chain, planned, written

STEPS = ("open", "fsync", "link", "replace", "unlink", "mkdir", "chmod", "close", "write")
"""The calls of a write that can be its last."""

NOBODY = 65_534


def session(root: Path) -> tuple[ConfigHome, TrimPlan]:
    """A fresh home with a session, its large outputs and its file backups, and the plan of a trim."""
    shutil.rmtree(root, ignore_errors=True)
    home = ConfigHome(root, root / ".claude", {"HOME": str(root), "CLAUDE_CONFIG_DIR": str(root / ".claude")})
    chain = Chain()
    for number in range(60):
        chain.ask("question " * 90).tool(f"t{number}", "Bash", f"{number} " * 900).answer()
    tracked = {name: {"backupFileName": name} for name in ("one", "two")}
    snapshot = {"messageId": "c0", "trackedFileBackups": tracked}
    path = written(home, [*chain.rows, {"type": "file-history-snapshot", "messageId": "c0", "snapshot": snapshot}])
    for folder in (path.with_suffix("") / "tool-results", home.config / "file-history" / SESSION):
        folder.mkdir(parents=True)
        (folder / "one").write_bytes(b"1")
        (folder / "two").write_bytes(b"2")
    return home, planned(home, path)


def killed_at(count: int) -> None:
    """Have this process killed at the so-manieth call of any step."""
    left = [count]

    def fatal(call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*words: Any, **named: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*words, **named)

        return step

    for name in STEPS:
        setattr(os, name, fatal(getattr(os, name)))


def left_behind(home: ConfigHome, decided: TrimPlan) -> dict[str, Any]:
    """What lies about after a try: the child's file as the plan has it or not, companions, temporary files."""
    child, history = Path(decided.draft.path), home.config / "file-history" / decided.draft.session_id
    beside = [*child.with_suffix("").rglob("*"), *history.rglob("*")]
    return {
        "child": child.exists() and child.stat().st_size,
        "parent": home.project().joinpath(f"{SESSION}.jsonl").stat().st_size,
        "companions": sorted(path.name for path in beside if path.is_file()),
        "folders": child.with_suffix("").exists() or history.exists(),
        "linked": all(path.stat().st_nlink > 1 for path in beside if path.parent.name == "tool-results"),
        "temporary": sorted(path.name for path in home.project().iterdir() if path.name.startswith(".resume-hooks-")),
    }


def kills(root: Path) -> Iterator[dict[str, Any]]:
    """One try for each step of a write until one is not killed, each followed by a whole one, which sweeps."""
    for count in range(1, 200):
        home, decided = session(root)
        process = os.fork()
        if not process:
            killed_at(count)
            write(decided, home.where)
            os._exit(0)
        status = os.waitpid(process, 0)[1]
        yield {"killed": os.WIFSIGNALED(status), **left_behind(home, decided)}
        again = planned(home, home.project() / f"{SESSION}.jsonl")
        write(again, home.where)
        yield {"killed": False, **left_behind(home, again)}
        if not os.WIFSIGNALED(status):
            return


def refused(root: Path, prepare: Callable[[ConfigHome, TrimPlan], None]) -> dict[str, Any]:
    """One try in a process that was prepared to fail: the error in words, and what is left."""
    home, decided = session(root)
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        prepare(home, decided)
        with contextlib.suppress(WriteFailed):
            write(decided, home.where)
            os._exit(0)
        os.write(writing, b"refused")
        os._exit(0)
    os.waitpid(process, 0)
    os.close(writing)
    with open(reading, "rb") as stream:
        return {"refused": stream.read() == b"refused", **left_behind(home, decided)}


def full_disk(limit: int) -> Callable[[ConfigHome, TrimPlan], None]:
    """No file may grow over ``limit`` bytes: what a full disk is to a writer."""

    def prepare(home: ConfigHome, decided: TrimPlan) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return prepare


def read_only(home: ConfigHome, decided: TrimPlan) -> None:
    """The project's folder can't be written by whoever runs this."""
    if os.geteuid() == 0:
        for path in [home.root, *home.root.rglob("*")]:
            os.chown(path, NOBODY, NOBODY)
    home.project().chmod(0o555)
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def main() -> None:
    """Run one kind of crash."""
    kind, root = sys.argv[1], Path(sys.argv[2])
    if kind == "kill":
        print(json.dumps(list(kills(root))))
    elif kind == "full":
        print(json.dumps([refused(root, full_disk(limit)) for limit in (0, 1, 4_096, 60_000)]))
    else:
        print(json.dumps([refused(root, read_only)]))


if __name__ == "__main__":
    main()
