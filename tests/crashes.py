"""Ways to stop a writer in the middle: killed at a step, on a full disk, without the right to write."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.needs import REPO

NOBODY = 65_534


def killed_at(count: int, steps: Sequence[str]) -> list[int]:
    """Have this process killed at the so-manieth call of any of these functions of ``os``; the calls that are left."""
    left = [count]

    def fatal(call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*words: Any, **named: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*words, **named)

        return step

    for name in steps:
        setattr(os, name, fatal(getattr(os, name)))
    return left


def little_room(limit: int) -> None:
    """No file of this process may grow over ``limit`` bytes: what a full disk is to a writer."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


@contextlib.contextmanager
def an_ordinary_user(root: Path | None = None) -> Iterator[None]:
    """Without root's rights, which know no read-only folder; all below ``root`` is that user's."""
    was = os.geteuid()
    if was == 0:
        for path in [root, *root.rglob("*")] if root else ():
            os.chown(path, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)


def crashed(module: str, *words: str) -> list[dict[str, Any]]:
    """What a program of the tests prints as JSON, run in a folder that an ordinary user may enter."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        environ = {**os.environ, "PYTHONPATH": f"{REPO / 'src'}:{REPO}", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-m", module, str(Path(folder) / "home"), *words],
            env=environ,
            cwd=REPO,
            capture_output=True,
            check=False,
            timeout=1_200,
        )
        assert done.returncode == 0, done.stderr.decode()
        return list(json.loads(done.stdout))
