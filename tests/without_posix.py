"""Run the command line without POSIX: ``python -m tests.without_posix ARGUMENTS``.

Other properties of Windows are not simulated, for example open files that cannot be replaced,
paths, and consoles.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess  # noqa: F401 - this import and tempfile look for POSIX functions, which are hidden later
import sys
import tempfile  # noqa: F401
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

POSIX_MODULE_NAMES = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
POSIX_NAMES_IN_OS = (
    "chown", "copy_file_range", "fchdir", "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid",
    "getgroups", "getpgid", "getpgrp", "getsid", "getuid", "killpg", "lchown", "mkfifo", "mknod", "nice",
    "posix_fadvise", "pread", "preadv", "pwrite", "register_at_fork", "sched_getaffinity", "sendfile", "setpgid",
    "setsid", "statvfs", "sync", "tcgetpgrp", "ttyname", "wait3", "wait4",
    "O_CLOEXEC", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC", "WNOHANG",
)  # fmt: skip
POSIX_NAMES_IN_SIGNAL = (
    "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGPROF", "SIGQUIT", "SIGTSTP", "SIGURG",
    "SIGUSR1", "SIGUSR2", "SIGWINCH", "ITIMER_PROF", "ITIMER_REAL", "alarm", "pthread_kill", "pthread_sigmask",
    "setitimer", "sigwait",
)  # fmt: skip
FUNCTIONS_WITH_DIR_FD = (
    "access", "chmod", "link", "lstat", "mkdir", "open", "readlink", "rename", "replace", "rmdir", "stat", "symlink",
    "unlink", "utime",
)  # fmt: skip
LOCK_ARGUMENTS = (2, 1)
"""The arguments of a lock on Windows: the mode LK_NBLCK, and the number of bytes to lock."""


def hide_posix() -> None:
    """Remove everything that does not exist on Windows from this process.

    Modules that are already imported keep what they have imported.
    """
    windows: Any = _windows_lock_module()
    sys.modules["msvcrt"] = windows
    for name in POSIX_MODULE_NAMES:
        sys.modules[name] = None  # type: ignore[assignment]
    for owner, names in ((os, POSIX_NAMES_IN_OS), (signal, POSIX_NAMES_IN_SIGNAL)):
        for name in names:
            if hasattr(owner, name):
                delattr(owner, name)
    for name in FUNCTIONS_WITH_DIR_FD:
        setattr(os, name, _without_dir_fd(getattr(os, name)))
    for kind in ("supports_dir_fd", "supports_fd", "supports_effective_ids"):
        setattr(os, kind, set())
    shutil._use_fd_functions = False  # type: ignore[attr-defined] # what it found when it was imported


def _windows_lock_module() -> SimpleNamespace:
    """Return a replacement for ``msvcrt``, which locks one byte after the end of a file."""
    import fcntl

    def locking(descriptor: int, mode: int, length: int) -> None:
        if (mode, length) != LOCK_ARGUMENTS or os.lseek(descriptor, 0, os.SEEK_CUR) < os.fstat(
            descriptor
        ).st_size:
            raise ValueError("not how ours are locked")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(errno.EACCES, "Permission denied") from error

    return SimpleNamespace(LK_NBLCK=LOCK_ARGUMENTS[0], locking=locking)


def _without_dir_fd(call: Callable[..., Any]) -> Callable[..., Any]:
    def refuse_folder_descriptor(*arguments: Any, **keywords: Any) -> Any:
        if any(
            keywords.pop(key, None) is not None for key in ("dir_fd", "src_dir_fd", "dst_dir_fd")
        ):
            raise NotImplementedError("dir_fd unavailable on this platform")
        return call(*arguments, **keywords)

    return refuse_folder_descriptor


if __name__ == "__main__":
    hide_posix()
    if sys.argv[1:] == ["prompt"]:
        from resume_hooks.hooks.prompt import main

        sys.exit(main())  # type: ignore[func-returns-value]
    from resume_hooks.__main__ import start

    start()
