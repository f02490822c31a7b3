"""Run programs or functions that may hang, in a process with a time limit.

Invariant: these processes never inherit our pipes, so that our own output ends with our process. A
process that exceeds its time limit is killed. Standard library, Python 3.9.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
import warnings
from collections.abc import Callable, Mapping, Sequence

from resume_hooks.system import programs
from resume_hooks.untrusted_folders import ROOT_FOLDER


def run_and_read_output(
    command: Sequence[str], env: Mapping[str, str], deadline: float, data: bytes = b""
) -> bytes | None:
    """Run ``command`` with ``data`` on stdin and return its stdout.

    Return None if the program is missing, fails, or is killed at ``deadline``.

    Use this only for programs without background children. A child that keeps stdout open would
    delay us until the deadline.
    """
    if programs.find_program(command[0], env) is None:
        return None
    # imported late, because it takes 9 ms and a machine without a clipboard does not need it
    import subprocess

    pipe, null, remaining = (
        subprocess.PIPE,
        subprocess.DEVNULL,
        max(0.0, deadline - time.monotonic()),
    )
    try:
        with programs.start_program(
            command, env, stdin=pipe, stdout=pipe, stderr=null, start_new_session=True
        ) as process:
            try:
                out, _ = process.communicate(data, timeout=remaining)
            except subprocess.TimeoutExpired:
                kill_group(process.pid)
                return None
    except OSError:
        return None
    if process.returncode == 0:
        return out
    return None


def run_with_deadline(
    deadline: float, work: Callable[[], bool], env: Mapping[str, str]
) -> bool | None:
    """Run ``work`` and return its result: False if it raises, None if it is not done by ``deadline`` (time.monotonic).

    ``work`` runs in a forked process and session of its own, with /dev/null as stdin, stdout and stderr.
    The folder and environment are those that ``programs`` uses, because a library may start
    programs. If the result is None, the whole process group is killed. If it is True or False,
    children of the process may continue to run.
    """
    if not hasattr(
        os, "fork"
    ):  # on Windows, its clipboard calls run in this process, and take at most half a second
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            return work()
        return False
    read_end, write_end = os.pipe()
    try:
        pid = _run_in_fork(work, env)
    except OSError:
        os.close(read_end)
        return False
    finally:
        os.close(write_end)
    return _wait_for_exit(pid, read_end, deadline)


def _run_in_fork(work: Callable[[], bool], env: Mapping[str, str]) -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns that a fork may hang in a process with threads; in this case the
        # deadline ends it.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        program_variables = programs.program_environment(env)
        os.chdir(ROOT_FOLDER)
        os.environ.clear()
        os.environ.update(program_variables)
        code = 0 if work() else 1
    finally:
        # Every exception ends here: this process must never return into its parent's code.
        os._exit(code)


def _wait_for_exit(pid: int, read_end: int, deadline: float) -> bool | None:
    """Wait until the process ``pid`` closes its pipe, and then for its exit status."""
    has_ended = False
    try:
        has_ended = bool(
            select.select([read_end], [], [], max(0.0, deadline - time.monotonic()))[0]
        )
    finally:
        os.close(read_end)
        if not has_ended:
            kill_group(pid)
        status = 1
        with contextlib.suppress(ChildProcessError):  # the kernel reaps it if SIGCHLD is ignored
            status = os.waitpid(pid, 0)[1]
    if has_ended:
        return status == 0
    return None


def kill_group(pid: int) -> None:
    """Kill a group's leader and its whole group.

    On Windows, which has no groups, kill only the process.
    """
    if not hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
        return
    for kill in (os.killpg, os.kill):  # the group may not exist yet if the process has just started
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)
