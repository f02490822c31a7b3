"""Our log of bugs: where our code failed, and nothing of what a session or a user said.

An entry holds the instant, the version, the verb or trigger, and places in code; no error message,
since that may quote a transcript, and nothing of the environment. Past ``MAX_LOG`` bytes the file
becomes the one older generation. Standard library only and readable by Python 3.9: the installer
keeps its own log with it.
"""

from __future__ import annotations

import contextlib
import os
from datetime import datetime, timezone
from typing import List, Optional

from resume_hooks.paths import Where, private_folder, read_regular

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FOLDER = "log"
FILE_NAME = "errors.log"
OLDER = ".1"  # the ending of the older generation
MAX_LOG = 256 * 1024  # bytes of a log that begin a new generation
MAX_FRAMES = 40  # places of one entry, the innermost; a recursion has a thousand

_MODE = 0o600
_TRIES = 10
_PACKAGE = "resume_hooks"


def log_file(where: Optional[Where] = None) -> str:
    """The path of our log; it may not exist."""
    return os.path.join((where or Where()).state, FOLDER, FILE_NAME)


def log_bug(who: str, version: str, error: BaseException, where: Optional[Where] = None) -> str:
    """Log where an error came from, for ``who``, a verb or trigger of ours.

    The log's path, ``""`` for none.
    """
    where = where or Where()
    path = log_file(where)
    at = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    entry = "\n".join(
        [f"{at} {version} {who} {type(error).__name__}", *_traceback_places(error), "", ""]
    )
    try:
        private_folder(os.path.dirname(path), where)
        descriptor = open_log(path)
        try:
            os.write(descriptor, entry.encode("utf-8", "replace"))
        finally:
            os.close(descriptor)
    except OSError:
        return ""
    return path


def open_log(path: str) -> int:
    """Open a private log for appending, a full one turned over, without waiting or following links.

    OSError.
    """
    special = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    for _ in range(_TRIES):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | special, _MODE)
        if os.fstat(descriptor).st_size < MAX_LOG or not _rotate_log(path, descriptor):
            return descriptor
        os.close(descriptor)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | special, _MODE)


def log_entries(where: Optional[Where] = None) -> List[str]:
    """The entries of both generations, oldest first."""
    path = log_file(where)
    text = b""
    for name in (path + OLDER, path):
        with contextlib.suppress(OSError):
            text += b"" if os.path.islink(name) else read_regular(name, 4 * MAX_LOG)
    entries = []
    for entry in text.decode("utf-8", "replace").split("\n\n"):
        if entry.strip():
            entries.append(entry)
    return entries


def _rotate_log(path: str, descriptor: int) -> bool:
    """Make a full log the older generation; of several writers one does.

    Returns whether to open the path again.

    Whoever still has the old file open writes into that generation.
    """
    if fcntl is not None:
        with contextlib.suppress(
            OSError
        ):  # a volume without locks: the worst is a generation that is short
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        if os.path.samestat(os.lstat(path), os.fstat(descriptor)):
            os.replace(path, path + OLDER)
    except FileNotFoundError:
        pass  # another writer has just done it
    except OSError:
        return False  # a folder that can't be changed: better a growing file than a lost entry
    return True


def _traceback_places(error: BaseException) -> List[str]:
    """The traceback's places, the innermost last: our files by their path in the package, others by name alone."""
    import traceback  # only a bug waits for it

    frames = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    places = []
    for frame in frames:
        parts = frame.filename.replace("\\", "/").split("/")
        first = len(parts) - (parts[::-1].index(_PACKAGE) if _PACKAGE in parts else 1)
        places.append(f"  {'/'.join(parts[first:])}:{frame.lineno} {frame.name}")
    return places
