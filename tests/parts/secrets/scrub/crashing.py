"""A scrub in place that is killed at a step, in a copy of a planted home; run by test_crash.py in a process of its own.

``crashing.py FOLDER``: prints a JSON list, one object a step.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from resume_hooks.parts.secrets.scrub import findings
from resume_hooks.parts.secrets.scrub.findings import LEFT, ScrubReach
from resume_hooks.parts.secrets.scrub.purge import clear_left, purge
from resume_hooks.sessions.session_files import session_file
from resume_hooks.storage import append_carryover
from tests.builders import SESSION, ConfigHome
from tests.crashes import killed_at
from tests.parts.secrets.scrub.planting import places_with, plant

STEPS = ("replace", "rename", "link", "unlink", "mkdir", "rmdir", "fsync", "fchown", "utime")
"""The calls that can be the last one of a step; what is written between two of them has no name yet."""

WANTED = ScrubReach(parents=True, others=True, file_backups=True, documents=True, client=True)
MOST = 2_000


def scrub(home: ConfigHome) -> list[str]:
    """Scrub the planted session in place; what could not be done."""
    clear_left(home.where)
    session = session_file(str(home.project() / f"{SESSION}.jsonl"))
    rows = purge(findings.look_everywhere(session, home.where, wanted=WANTED), home.where)
    return [f"{row.place.kind}: {row.why}" for row in rows if row.state == LEFT]


def states(home: ConfigHome) -> dict[str, bytes]:
    """Every file of a session that a client reads, by its path."""
    found = [*home.project().glob("*.jsonl"), *home.project().rglob("*/*.*")]
    return {str(path.relative_to(home.root)): path.read_bytes() for path in found if path.is_file()}


def in_a_child(work: Callable[[], object]) -> bool:
    """Whether some work, done in a process of its own, was killed."""
    process = os.fork()
    if not process:
        work()
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


def tries(root: Path, every: int) -> Iterator[dict[str, Any]]:
    """One try for every so-manieth step of a scrub until one is not killed, each followed by a whole one."""
    append_carryover.GRACE = append_carryover.QUIET = append_carryover.TORN = 0.0
    model, root = root / "model", root / "home"
    home = ConfigHome(root, root / ".claude", {"HOME": str(root), "CLAUDE_CONFIG_DIR": str(root / ".claude")})
    root.mkdir(parents=True)
    plant(home)
    os.rename(root, model)
    before: dict[str, bytes] = {}
    after: dict[str, bytes] = {}
    for count in (MOST, *range(1, MOST, every)):
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(model, root, symlinks=True)
        before = before or states(home)

        def work(count: int = count) -> None:
            killed_at(count, STEPS)
            scrub(home)

        killed = in_a_child(work)
        after = after or states(home)
        there = states(home)
        whole = {path: (before.get(path), after.get(path)) for path in there if ".resume-hooks-" not in path}
        mixed = [path for path, both in whole.items() if there[path] not in both]
        left = scrub(home) if killed else []
        rest = sorted(path for path in places_with(home) if not path.endswith("settings.json"))
        same = states(home) == after
        temporary = [path.name for path in home.root.rglob(".resume-hooks-*")]
        yield {"killed": killed, "mixed": mixed, "left": left, "rest": rest, "same": same, "temporary": temporary}
        if not killed and count != MOST:
            return


def main() -> None:
    """Run all tries."""
    print(json.dumps(list(tries(Path(sys.argv[1]), int(sys.argv[2])))))


if __name__ == "__main__":
    main()
