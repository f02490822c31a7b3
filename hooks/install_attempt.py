"""Record the last attempt in install.json, so that a failed installation is not retried within an hour.

install.json: {"state": "installing" | "ready" | "failed", "started", "ended", "retry_after" (epoch
seconds; 0: not yet, or at once), "error" (one line), "pid", "lock" (digest of the locks), "tool"
(the Python that lends its packages, or "")}.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import install_venv

RETRY_SECONDS = 3600


def save_attempt(data: Path, state: dict[str, Any]) -> None:
    """Replace install.json atomically, because a hook may read it at any moment."""
    fresh = data / f"install.json.{os.getpid()}"
    fresh.write_text(json.dumps(state) + "\n", encoding="utf-8")
    os.replace(fresh, data / "install.json")


def is_due(data: Path, locks: list[Path], now: float, *, asked: bool) -> bool:
    """Return True if there is no venv for these locks and the last attempt did not fail within the last hour.

    If the user `asked` for it, an earlier failure is ignored, and a venv that does not work is
    replaced.
    """
    if install_venv.is_ready(data, locks) and not (
        asked and install_venv.is_damaged(data / "venv")
    ):
        return False
    try:
        last = json.loads((data / "install.json").read_text(encoding="utf-8"))
        waiting = (
            last["lock"] == install_venv.digest(locks)
            and last["started"] <= now < last["retry_after"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return True  # missing, or not written by us
    return asked or not waiting


def run(data: Path, locks: list[Path]) -> int:
    """Build the venv and record the result. Return 0 or 1."""
    state = {
        "state": "installing",
        "started": int(time.time()),
        "ended": 0,
        "retry_after": 0,
        "error": "",
        "tool": "",
    }
    state.update(pid=os.getpid(), lock=install_venv.digest(locks))
    save_attempt(data, state)
    try:
        install_venv.build_venv(data, locks)
        state.update(state="ready", tool=install_venv.lending_python(data / "venv"))
    except install_venv.MissingPythonError as error:
        state.update(
            state="failed", error=str(error)
        )  # no network was used, so try again at the next start
    except (OSError, install_venv.BuildError) as error:
        state.update(state="failed", error=str(error), retry_after=int(time.time()) + RETRY_SECONDS)
    state["ended"] = int(time.time())
    save_attempt(data, state)
    print(f"resume-hooks: {state['error'] or 'the engine is ready'}", file=sys.stderr)
    return int(state["state"] == "failed")
