"""Stop a function that writes: kill its process before a change, fill the disk, or remove its rights."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

NOBODY_UID = 65_534

WRITE_FUNCTIONS = ("copy_file_range", "sendfile", "write")
"""Functions that write to an open file. Python raises no audit event for them."""

DISK_CHANGE_EVENTS = frozenset(
    {
        "os.chmod",
        "os.chown",
        "os.link",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.symlink",
        "os.truncate",
        "os.utime",
    }
)
"""Audit events of the functions that change the disk without an open file.

The event ``open`` is counted separately, only if it opens a file for writing.
"""


def kill_before_each_change(
    prepare: Callable[[], Callable[[], object]], *, every: int = 1
) -> Iterator[bool]:
    """Run a function repeatedly in new processes, and kill each process at a different point.

    The first process is killed before its first change of the disk, the second process before its
    second change, and so on. Yields True after each kill, and False after the run that was not
    killed. With ``every=3``, processes are killed only before every third change.
    """
    for count in range(1, 5_000, every):
        status = exit_code_of_fork(prepare(), killed_before=count)
        assert status in {0, -signal.SIGKILL}
        yield bool(status)
        if not status:
            return
    raise AssertionError("It has more steps than that")


def exit_code_of_fork(work: Callable[[], object], *, killed_before: int = 0) -> int:
    """Run a function in a new process and return the exit code of this process.

    The code is 1 if the function raised an exception. If a signal ended the process, the code is
    the negative number of the signal.
    """
    process = os.fork()
    if not process:
        _run_and_exit(work, killed_before)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _run_and_exit(work: Callable[[], object], fatal_change_number: int) -> NoReturn:
    left, code = fatal_change_number, 1

    def count_down() -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    def count_event(event: str, arguments: tuple[Any, ...]) -> None:
        if event in DISK_CHANGE_EVENTS or (
            event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        ):
            count_down()

    def add_counter(call: Callable[..., Any]) -> Callable[..., Any]:
        def count_and_call(*arguments: Any, **keywords: Any) -> Any:
            count_down()
            return call(*arguments, **keywords)

        return count_and_call

    try:
        if fatal_change_number:
            sys.addaudithook(count_event)
            for name in WRITE_FUNCTIONS:
                setattr(os, name, add_counter(getattr(os, name)))
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - the end of a process: it prints its trace
        traceback.print_exc()
    finally:
        os._exit(code)


def limit_file_size(max_bytes: int) -> None:
    """Keep this process from making a file larger than ``max_bytes`` bytes, as if the disk were full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))


@contextlib.contextmanager
def without_root_rights(root: Path | None = None) -> Iterator[None]:
    """Run the ``with`` block as a user who is not root but owns everything in ``root``.

    Root could write even to read-only folders.
    """
    was = os.geteuid()
    if was == 0:
        for path in [root, *root.rglob("*")] if root else ():
            os.chown(path, NOBODY_UID, NOBODY_UID)
        os.seteuid(NOBODY_UID)
    try:
        yield
    finally:
        os.seteuid(was)
