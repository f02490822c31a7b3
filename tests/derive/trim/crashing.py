"""A program that trims a session and is stopped on the way: killed at a step, by a full disk, by a folder's mode.

Run by test_crash.py in a process of its own: ``crashing.py FOLDER kill|slim|full|readonly``; prints JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from resume_hooks.derive.child.write import write
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.errors import WriteFailed
from tests.builders import SESSION, ConfigHome
from tests.crashes import an_ordinary_user, killed_at, little_room
from tests.derive.trim.sessions import Chain, planned, written

STEPS = ("open", "fsync", "link", "replace", "unlink", "mkdir", "chmod", "close", "write")
"""The calls of a write that can be its last."""

REFUSED = 7
"""The exit status of a process that was refused."""


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


def left_behind(home: ConfigHome, decided: TrimPlan) -> dict[str, Any]:
    """What lies about after a try: the child's file as the plan has it or not, companions, temporary files."""
    child, history = Path(decided.draft.path), home.config / "file-history" / decided.draft.session_id
    beside = [*child.with_suffix("").rglob("*"), *history.rglob("*")]
    return {
        "child": child.exists() and len(child.read_bytes().rpartition(b"customTitle")[0]),
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
            killed_at(count, STEPS)
            write(decided, home.where)
            os._exit(0)
        status = os.waitpid(process, 0)[1]
        yield {"killed": os.WIFSIGNALED(status), **left_behind(home, decided)}
        again = planned(home, home.project() / f"{SESSION}.jsonl")
        write(again, home.where)
        yield {"killed": False, **left_behind(home, again)}
        if not os.WIFSIGNALED(status):
            return


def slim(root: Path, every: int) -> Iterator[dict[str, Any]]:
    """``archive --slim``, killed at each so-manieth step until it is not, each followed by a whole one."""
    status, count = 1, every
    while status:
        home, _ = session(root)
        before = {path.name: path.read_bytes() for path in home.project().iterdir() if path.is_file()}
        status = _run(home, ["archive", "--slim", SESSION], killed=count)
        count += every
        now = {path.name: path.read_bytes() for path in home.project().iterdir() if path.is_file()}
        children = [name for name in now if name.endswith(".jsonl") and name not in before]
        yield {
            "killed": bool(status),
            "kept": all(now[name] == before[name] for name in before),
            "children": [now[name].count(b"\n") for name in children],
            "whole": not children or not _run(home, ["archive", "--verify", SESSION]),
            "again": _run(home, ["archive", "--slim", SESSION]),
        }


def _run(home: ConfigHome, words: list[str], killed: int = 0) -> int:
    """The status of a command line, run in a process of its own that may be killed at a step."""
    process = os.fork()
    if not process:
        os.environ.update(home.environ)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        from resume_hooks.cli.main import main as command_line

        sys.argv = ["resume-hooks", *words]
        if killed:
            killed_at(killed, STEPS)
        try:
            command_line()
        except SystemExit as ended:
            os._exit(ended.code if isinstance(ended.code, int) else 0)
        os._exit(0)
    return os.waitpid(process, 0)[1]


def refused(root: Path, limit: int | None = None) -> dict[str, Any]:
    """One try with room for ``limit`` bytes a file, None: in a read-only folder; whether it was refused in words."""
    home, decided = session(root)
    process = os.fork()
    if not process:
        with (
            an_ordinary_user(home.root) if limit is None else contextlib.nullcontext(),
            contextlib.suppress(WriteFailed),
        ):
            if limit is None:
                home.project().chmod(0o555)
            else:
                little_room(limit)
            write(decided, home.where)
            os._exit(0)
        os._exit(REFUSED)
    status = os.waitpid(process, 0)[1]
    return {"refused": os.waitstatus_to_exitcode(status) == REFUSED, **left_behind(home, decided)}


def main() -> None:
    """Run one kind of crash."""
    root, kind = Path(sys.argv[1]), sys.argv[2]
    if kind == "kill":
        tries = list(kills(root))
    elif kind == "slim":
        tries = list(slim(root, int(sys.argv[3])))
    elif kind == "full":
        tries = [refused(root, limit) for limit in (0, 1, 4_096, 60_000)]
    else:
        tries = [refused(root)]
    print(json.dumps(tries))


if __name__ == "__main__":
    main()
