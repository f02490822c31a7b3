"""Install the engine's packages, detached from the client, with the log install.log.

Usage: install.py [--now] [--team] [--tool] DATA_FOLDER. With --tool, the engine uses the packages
of the Python that runs this script. Only one installation runs at a time. Exit status 0: the engine
is ready, nothing needs to be done, or another installation is running; 1: the installation failed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import IO


def acquire_install_lock(handle: IO[str]) -> bool:
    """Take the lock that only one installation can have. Return False if another installation has it.

    The kernel releases the lock when this process ends, even if the process is killed.
    """
    try:
        if sys.platform == "win32":
            import msvcrt  # This module exists only on Windows.

            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # This module exists on all systems except Windows.

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def detach_from_client(data_folder: Path) -> None:
    """Leave the client's process session, and write output to a log.

    The client then neither waits for the installation nor kills it.
    """
    if sys.platform != "win32":
        os.setsid()
    # Imported late, so that only an installation opens a log.
    from resume_hooks.system.bug_log import open_log

    log = open_log(str(data_folder / "install.log"))
    os.dup2(log, 1)
    os.dup2(log, 2)


def main(arguments: list[str]) -> int:
    """Install the engine's packages if they are missing or outdated. Return the exit status."""
    hooks = Path(__file__).resolve().parent
    sys.path[:0] = [str(hooks), str(hooks.parent / "src")]
    from resume_hooks.system.bytecode import repair_bytecode_on_import

    repair_bytecode_on_import()
    # Imported here, because Python's option -I keeps this folder out of sys.path until it is added
    # above.
    import install_attempt
    import install_venv

    now, data = "--now" in arguments, Path(arguments[-1])
    os.umask(0o077)
    data.mkdir(parents=True, exist_ok=True)
    if "--tool" in arguments:
        (data / install_venv.TOOL_FILE_NAME).write_text(sys.executable, encoding="utf-8")
    locks = install_venv.list_needed_lock_files(has_team="--team" in arguments)
    with open(data / "install.lock", "a", encoding="utf-8") as lock:
        if not acquire_install_lock(lock) or not install_attempt.is_installation_due(
            data, locks, time.time(), is_requested=now
        ):
            if now:
                print(
                    "resume-hooks: the engine is ready or being installed already",
                    file=sys.stderr,
                )
            return 0
        if not now:
            detach_from_client(data)
        return install_attempt.run_installation(data, locks)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
