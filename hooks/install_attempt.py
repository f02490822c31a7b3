"""Record the last installation in install.json, so that a failed one is not repeated within an hour.

install.json: {"state": "installing" | "ready" | "failed", "started", "ended" and "retry_after"
(seconds since 1970; "retry_after" is 0 if no time is set), "error" (one line), "pid", "lock"
(digest of the lock files), "tool" (the Python whose packages are used, or "")}.
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


def save_attempt(data_folder: Path, state: dict[str, Any]) -> None:
    """Write install.json in one step, because a hook may read it at any time."""
    temporary_file = data_folder / f"install.json.{os.getpid()}"
    temporary_file.write_text(json.dumps(state) + "\n", encoding="utf-8")
    os.replace(temporary_file, data_folder / "install.json")


def is_installation_due(
    data_folder: Path, lock_files: list[Path], now: float, *, is_requested: bool
) -> bool:
    """Return whether the packages must be installed now.

    The result is True if the packages are missing or outdated, and no installation failed in the
    last hour. If the user requested an installation (`is_requested`), an earlier failure does not
    matter, and packages that can't be loaded are replaced.
    """
    if install_venv.is_venv_ready(data_folder, lock_files) and not (
        is_requested and install_venv.is_venv_damaged(data_folder / "venv")
    ):
        return False
    try:
        last_attempt = json.loads((data_folder / "install.json").read_text(encoding="utf-8"))
        must_wait = (
            last_attempt["lock"] == install_venv.digest_lock_files(lock_files)
            and last_attempt["started"] <= now < last_attempt["retry_after"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return True  # The file is missing, or was not written by us.
    return is_requested or not must_wait


def run_installation(data_folder: Path, lock_files: list[Path]) -> int:
    """Build the venv and record the result in install.json. Return 0, or 1 after a failure."""
    state = {
        "state": "installing",
        "started": int(time.time()),
        "ended": 0,
        "retry_after": 0,
        "error": "",
        "tool": "",
    }
    state.update(pid=os.getpid(), lock=install_venv.digest_lock_files(lock_files))
    save_attempt(data_folder, state)
    try:
        install_venv.build_venv(data_folder, lock_files)
        state.update(state="ready", tool=install_venv.find_lending_python(data_folder / "venv"))
    except install_venv.MissingPythonError as error:
        # This failure was not caused by the network, so the next start tries again.
        state.update(state="failed", error=str(error))
    except (OSError, install_venv.BuildError) as error:
        state.update(state="failed", error=str(error), retry_after=int(time.time()) + RETRY_SECONDS)
    state["ended"] = int(time.time())
    save_attempt(data_folder, state)
    print(f"resume-hooks: {state['error'] or 'the engine is ready'}", file=sys.stderr)
    return int(state["state"] == "failed")
