"""Ways to stop a writer in the middle: killed at a step, on a full disk, without the right to write."""

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

NOBODY = 65_534

WRITES = ("copy_file_range", "sendfile", "write")
"""What puts bytes into a file that is open; Python tells of no such call by itself."""

STEPS = frozenset(
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
"""The other calls that change a disk, as Python's audit names them.

Beside them whatever opens a file to write.
"""


def crashes(prepare: Callable[[], Callable[[], object]], *, every: int = 1) -> Iterator[bool]:
    """Kill a work before its first change of the disk, then before a later one each time, until it gets to the end.

    Each try does what ``prepare`` gave just before, in a process of its own; yields whether that
    was killed.
    """
    for count in range(1, 5_000, every):
        status = outcome(prepare(), killed_before=count)
        assert status in {0, -signal.SIGKILL}
        yield bool(status)
        if not status:
            return
    raise AssertionError("It has more steps than that")


def outcome(work: Callable[[], object], *, killed_before: int = 0) -> int:
    """The exit code of a work in a process of its own, 1 where it raised.

    Minus the signal where one ended it.
    """
    process = os.fork()
    if not process:
        _do(work, killed_before)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _do(work: Callable[[], object], count: int) -> NoReturn:
    left, code = count, 1

    def step() -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    def seen(event: str, arguments: tuple[Any, ...]) -> None:
        if event in STEPS or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            step()

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def write(*words: Any, **named: Any) -> Any:
            step()
            return call(*words, **named)

        return write

    try:
        if count:
            sys.addaudithook(seen)
            for name in WRITES:
                setattr(os, name, counted(getattr(os, name)))
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - the end of a process: it prints its trace
        traceback.print_exc()
    finally:
        os._exit(code)


def little_room(limit: int) -> None:
    """Limit every file of this process to ``limit`` bytes, which has the effect of a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


@contextlib.contextmanager
def an_ordinary_user(root: Path | None = None) -> Iterator[None]:
    """Run without root's rights, which ignore read-only folders; the user owns everything below ``root``."""
    was = os.geteuid()
    if was == 0:
        for path in [root, *root.rglob("*")] if root else ():
            os.chown(path, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)
