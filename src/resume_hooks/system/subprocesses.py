"""Run what may hang: programs, and a piece of work in a process of its own, under a time limit.

Invariant: nothing that is started here has our pipes, so that our own output ends when we do, and
what does not end in time is killed. Standard library, Python 3.9.
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
from resume_hooks.untrusted_folders import ROOT


def output_of_command(
    command: Sequence[str], env: Mapping[str, str], deadline: float, data: bytes = b""
) -> bytes | None:
    """Run ``command`` with ``data`` on stdin: its stdout.

    None if it is absent, fails, or is killed at ``deadline``.

    For programs that leave nothing behind: a child that kept its stdout would be waited for until
    then.
    """
    if programs.find_program(command[0], env) is None:
        return None
    import subprocess  # 9 ms, which a machine without a clipboard need not pay

    pipe, null, left = subprocess.PIPE, subprocess.DEVNULL, max(0.0, deadline - time.monotonic())
    try:
        with programs.start_program(
            command, env, stdin=pipe, stdout=pipe, stderr=null, start_new_session=True
        ) as process:
            try:
                out, _ = process.communicate(data, timeout=left)
            except subprocess.TimeoutExpired:
                kill_group(process.pid)
                return None
    except OSError:
        return None
    if process.returncode == 0:
        return out
    return None


def run_within(deadline: float, work: Callable[[], bool], env: Mapping[str, str]) -> bool | None:
    """Do ``work``: what it returns, False if it raises, None if it has not ended by ``deadline`` (time.monotonic).

    It runs in a forked process, in a session of its own, with /dev/null as its stdin, stdout and
    stderr, in the folder and with the environment that ``programs`` gives to what is started, since
    a library may start something there. On None that whole process group is killed. Its children
    may outlive a True or False.
    """
    if not hasattr(
        os, "fork"
    ):  # Windows: its clipboard calls are made here and limit themselves to half a second
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            return work()
        return False
    ended, held = os.pipe()
    try:
        pid = _fork_work(work, env)
    except OSError:
        os.close(ended)
        return False
    finally:
        os.close(held)
    return _wait_for_exit(pid, ended, deadline)


def _fork_work(work: Callable[[], bool], env: Mapping[str, str]) -> int:
    with warnings.catch_warnings():
        # In a process with threads a fork may hang, which Python 3.12 warns of; here the deadline
        # covers it.
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
        given = programs.program_environment(env)
        os.chdir(ROOT)
        os.environ.clear()
        os.environ.update(given)
        code = 0 if work() else 1
    finally:
        # Whatever was raised ends here: this process must never return into its parent's code.
        os._exit(code)


def _wait_for_exit(pid: int, ended: int, deadline: float) -> bool | None:
    """Wait for the end of the pipe that only the process ``pid`` holds, then for its exit status."""
    ready = False
    try:
        ready = bool(select.select([ended], [], [], max(0.0, deadline - time.monotonic()))[0])
    finally:
        os.close(ended)
        if not ready:
            kill_group(pid)
        status = 1
        with contextlib.suppress(ChildProcessError):  # where SIGCHLD is ignored the kernel reaps
            status = os.waitpid(pid, 0)[1]
    if ready:
        return status == 0
    return None


def kill_group(pid: int) -> None:
    """Kill a process that leads a group, and the group.

    On Windows, which knows no groups, the process alone.
    """
    if not hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
        return
    for kill in (os.killpg, os.kill):  # the group is there only once the process has made it
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)
