"""In a separate process with a time limit, run a program or a function that may hang.

A process that exceeds its time limit is killed. The processes do not inherit our pipes, so our own
output ends when our process ends. This module needs only the standard library and Python 3.9.
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
    """Run ``command`` with ``data`` on stdin, and return its stdout.

    Return None if the program is missing, fails, or is killed at ``deadline``. Do not use this
    function for a program that leaves children in the background: a child that keeps stdout open
    would delay us until the deadline.
    """
    if programs.find_program(command[0], env) is None:
        return None
    # Imported here because the import takes 9 ms, and a machine without a clipboard does not need
    # it.
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
                kill_process_group(process.pid)
                return None
    except OSError:
        return None
    if process.returncode == 0:
        return out
    return None


def run_with_deadline(
    deadline: float, work: Callable[[], bool], env: Mapping[str, str]
) -> bool | None:
    """Run ``work`` in a separate process and return its result.

    Return False if ``work`` raises an error, and None if it is not done by ``deadline`` (compared
    with ``time.monotonic``).

    The process is forked and has its own kernel session. Its stdin, stdout and stderr are
    /dev/null. It uses the same folder and environment as programs started by ``programs``, because
    a library in it may start programs. If the result is None, the whole process group is killed.
    Otherwise children of the process may continue to run.
    """
    # On Windows the work is done in this process. The clipboard calls there take at most half a second.
    if not hasattr(os, "fork"):
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            return work()
        return False
    read_end, write_end = os.pipe()
    try:
        pid = _start_fork_and_return_pid(work, env)
    except OSError:
        os.close(read_end)
        return False
    finally:
        os.close(write_end)
    return _wait_for_exit(pid, read_end, deadline)


def _start_fork_and_return_pid(work: Callable[[], bool], env: Mapping[str, str]) -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns that a fork may hang in a process with threads. If it hangs, the
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
        # The forked process must end here, even after an exception, and never continue with its
        # parent's code.
        os._exit(code)


def _wait_for_exit(pid: int, read_end: int, deadline: float) -> bool | None:
    """Wait until a process closes its pipe, or kill it at ``deadline``.

    Return whether the process exited with 0, or None if it was killed.
    """
    has_ended = False
    try:
        has_ended = bool(
            select.select([read_end], [], [], max(0.0, deadline - time.monotonic()))[0]
        )
    finally:
        os.close(read_end)
        if not has_ended:
            kill_process_group(pid)
        status = 1
        # If SIGCHLD is ignored, the kernel discards the exit status.
        with contextlib.suppress(ChildProcessError):
            status = os.waitpid(pid, 0)[1]
    if has_ended:
        return status == 0
    return None


def kill_process_group(pid: int) -> None:
    """Kill a process and its whole process group.

    Windows has no process groups, so only the process is killed there.
    """
    if not hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
        return
    for kill in (os.killpg, os.kill):  # A process that has just started may not have its group yet.
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)
