"""A program that brings a bundle in whole and is killed at each step in turn; prints JSON.

Run by test_crash.py in a process of its own: ``crashing.py FOLDER``.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from resume_hooks.derive.imports.bundle.bring_in import BundleOptions, import_sessions
from resume_hooks.derive.imports.bundle.read_bundle import unpacked
from resume_hooks.reading.bundle import export
from resume_hooks.sessions import locate
from tests.builders import ConfigHome, conversation, session_id, write_session
from tests.crashes import killed_at
from tests.derive.trim.crashing import STEPS


def fresh(root: Path) -> ConfigHome:
    """A home with two sessions of a folder that is gone, the first with outputs beside it."""
    shutil.rmtree(root, ignore_errors=True)
    home = ConfigHome(root, root / ".claude", {"HOME": str(root), "CLAUDE_CONFIG_DIR": str(root / ".claude")})
    folder = home.project(str(root / "old"))
    for number in (1, 2):
        rows = conversation(2, prefix=f"r{number}", session_id=session_id(number))
        write_session(folder, session_id(number), [{**row, "cwd": str(root / "old")} for row in rows])
    outputs = folder / session_id(1) / "tool-results"
    outputs.mkdir(parents=True)
    for name in ("one", "two"):
        (outputs / name).write_bytes(b"long output")
    (root / "new").mkdir()
    return home


def importing(root: Path) -> tuple[ConfigHome, Callable[[], object]]:
    """A home without the session that a bundle holds, and what brings it in."""
    home = fresh(root)
    source = home.project(str(root / "old"))
    bundle = root / "x.bundle.json"
    bundle.write_bytes(
        b"".join(export([locate.session_file(str(source / f"{session_id(1)}.jsonl"))], home.where, None))
    )
    shutil.rmtree(source)

    def bring() -> object:
        with unpacked(str(bundle), home.where) as packed:
            options = BundleOptions(str(root / "new"), whole=True, force=False, dry_run=False)
            return import_sessions(packed, str(bundle), options, home.where)

    return home, bring


def tries(root: Path, set_up: Callable[[Path], tuple[ConfigHome, Callable[[], object]]]) -> Iterator[dict[str, Any]]:
    """One try for each step until one is not killed, each followed by a whole one: what lies in the new folder."""
    for count in range(1, 300):
        home, work = set_up(root)
        process = os.fork()
        if not process:
            killed_at(count, STEPS)
            work()
            os._exit(0)
        killed = os.WIFSIGNALED(os.waitpid(process, 0)[1])
        work()
        folder = home.project(str(root / "new"))
        files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        yield {
            "killed": killed,
            "sessions": sorted(path.stem for path in folder.glob("*.jsonl")),
            "files": [name for name in files if not name.startswith(".resume-hooks-")],  # the next write sweeps those
        }
        if not killed:
            return


if __name__ == "__main__":
    print(json.dumps(list(tries(Path(sys.argv[1]), importing))))
