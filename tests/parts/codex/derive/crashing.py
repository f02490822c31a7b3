"""A program that trims a Codex session and is killed on the way, at each step in turn; prints JSON.

Run by test_children.py in a process of its own: ``crashing.py FOLDER``.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from resume_hooks.derive import agents
from resume_hooks.derive.child.write import write
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import resolve
from tests.crashes import killed_at
from tests.derive.trim.crashing import STEPS
from tests.parts.codex import rollouts


def session(root: Path) -> tuple[Path, Where]:
    """A fresh home with a thread of large outputs."""
    shutil.rmtree(root, ignore_errors=True)
    lines = [rollouts.meta()]
    for number in range(12):
        lines += [rollouts.said("user", f"question {number}"), rollouts.call(f"c{number}", "ls")]
        lines += [rollouts.output(f"c{number}", f"{number} " * 2_000), rollouts.said("assistant", "done")]
    path = rollouts.write(root / ".codex", lines)
    return path, Where({"HOME": str(root)})


def planned(where: Where) -> TrimPlan:
    """A trim of it."""
    return agents.trim(resolve(rollouts.THREAD, "/", where, foreign=True), where, Options())


def tries(root: Path) -> Iterator[dict[str, Any]]:
    """One try for each step of a write until one is not killed: what lies about after it."""
    for count in range(1, 200):
        path, where = session(root)
        before, decided = path.read_bytes(), planned(where)
        whole = sum(map(len, decided.body.lines()))
        process = os.fork()
        if not process:
            killed_at(count, STEPS)
            write(decided, where)
            os._exit(0)
        killed = os.WIFSIGNALED(os.waitpid(process, 0)[1])
        child = Path(decided.draft.path)
        write(planned(where), where)  # sweeps
        yield {
            "killed": killed,
            "child": child.stat().st_size == whole if child.exists() else None,
            "parent": path.read_bytes() == before,
            "left": [one.name for one in (root / ".codex").rglob("*") if one.is_file() and one.suffix != ".jsonl"],
        }
        if not killed:
            return


if __name__ == "__main__":
    print(json.dumps(list(tries(Path(sys.argv[1])))))
