"""Log bugs: where in the code a failure occurred, without any text from a session or from a user.

An entry contains the time, the version, the verb or trigger, and code locations. It contains
neither environment variables nor the error message, which may quote a transcript. When the log file
reaches ``MAX_LOG_BYTES`` bytes, it is renamed and replaces the previous old log. The installer also
uses this module for its own log, so it needs only the standard library and Python 3.9.
"""

from __future__ import annotations

import contextlib
import os
from datetime import datetime, timezone
from typing import List, Optional

from resume_hooks.paths import Where, make_private_folder, read_regular_file

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOG_FOLDER_NAME = "log"
LOG_FILE_NAME = "errors.log"
OLD_LOG_SUFFIX = ".1"  # The suffix of the old log's name.
# The size in bytes at which the log is renamed and a new log is started.
MAX_LOG_BYTES = 256 * 1024
# The maximum number of innermost frames to record. A recursion may have a thousand frames.
MAX_TRACEBACK_FRAMES = 40

_LOG_FILE_MODE = 0o600
_MAX_OPEN_ATTEMPTS = 10
_PACKAGE_NAME = "resume_hooks"


def log_file_path(where: Optional[Where] = None) -> str:
    """Return the path of the log, which may not exist."""
    return os.path.join((where or Where()).state, LOG_FOLDER_NAME, LOG_FILE_NAME)


def log_bug(command: str, version: str, error: BaseException, where: Optional[Where] = None) -> str:
    """Log where in the code an error occurred. ``command`` is the verb or trigger that failed.

    Return the log's path, or ``""`` if the log could not be written.
    """
    where = where or Where()
    path = log_file_path(where)
    timestamp = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    entry = "\n".join(
        [
            f"{timestamp} {version} {command} {type(error).__name__}",
            *_list_traceback_locations(error),
            "",
            "",
        ]
    )
    try:
        make_private_folder(os.path.dirname(path), where)
        descriptor = open_log(path)
        try:
            os.write(descriptor, entry.encode("utf-8", "replace"))
        finally:
            os.close(descriptor)
    except OSError:
        return ""
    return path


def open_log(path: str) -> int:
    """Open a private log file for appending. Rename it first if it is full.

    The call never waits and follows no symbolic link. Raise OSError on failure.
    """
    safe_flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    for _ in range(_MAX_OPEN_ATTEMPTS):
        descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | safe_flags, _LOG_FILE_MODE
        )
        if os.fstat(descriptor).st_size < MAX_LOG_BYTES or not _rotate_log(path, descriptor):
            return descriptor
        os.close(descriptor)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | safe_flags, _LOG_FILE_MODE)


def read_log_entries(where: Optional[Where] = None) -> List[str]:
    """Return the entries of the old log and the current log, oldest first."""
    path = log_file_path(where)
    text = b""
    for name in (path + OLD_LOG_SUFFIX, path):
        with contextlib.suppress(OSError):
            text += b"" if os.path.islink(name) else read_regular_file(name, 4 * MAX_LOG_BYTES)
    entries = []
    for entry in text.decode("utf-8", "replace").split("\n\n"):
        if entry.strip():
            entries.append(entry)
    return entries


def _rotate_log(path: str, descriptor: int) -> bool:
    """Rename a full log to the old log. If several processes try this, only one of them succeeds.

    Return whether the caller must open the log again. If a process opened the log before the
    rename, it writes its entry to the old log.
    """
    if fcntl is not None:
        # Without file locks, a process may append an entry to the old log even after the rename.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        if os.path.samestat(os.lstat(path), os.fstat(descriptor)):
            os.replace(path, path + OLD_LOG_SUFFIX)
    except FileNotFoundError:
        pass  # Another process has just renamed the log.
    except OSError:
        return False  # The folder cannot be changed. The log grows beyond its limit, so that no entry is lost.
    return True


def _list_traceback_locations(error: BaseException) -> List[str]:
    """Return the code locations of an error's traceback, innermost last.

    A location in one of our files includes the path in the package. For other files, it includes
    only the file's name.
    """
    import traceback  # Imported here because only a bug needs it.

    frames = traceback.extract_tb(error.__traceback__)[-MAX_TRACEBACK_FRAMES:]
    locations = []
    for frame in frames:
        parts = frame.filename.replace("\\", "/").split("/")
        first_part = len(parts) - (
            parts[::-1].index(_PACKAGE_NAME) if _PACKAGE_NAME in parts else 1
        )
        locations.append(f"  {'/'.join(parts[first_part:])}:{frame.lineno} {frame.name}")
    return locations
