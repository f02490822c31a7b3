"""A program that rehomes a folder and is killed at each step in turn; prints JSON.

Run by test_crash.py in a process of its own: ``crashing.py FOLDER``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from resume_hooks.parts.moved import rehome
from tests.builders import ConfigHome
from tests.derive.imports.bundle.crashing import fresh, tries


def rehoming(root: Path) -> tuple[ConfigHome, Callable[[], object]]:
    """A home with the sessions of the old folder, and what copies them to the new one."""
    home, old = fresh(root), str(root / "old")

    def copy() -> object:
        sessions = rehome.own_sessions(old, home.where)
        return rehome.rehome(sessions, str(root / "new"), home.where, lambda *_: None, dry_run=False)

    return home, copy


if __name__ == "__main__":
    print(json.dumps(list(tries(Path(sys.argv[1]), rehoming))))
