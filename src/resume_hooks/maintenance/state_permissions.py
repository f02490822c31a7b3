"""What in the state folder is not as we make it: somebody else may read it, write it, or lead us elsewhere by it.

Looked at are the folder's own entries and those of the folders that hold notes and the log. What lies deeper are copies
of the user's files, each in a folder of ours.
"""

from __future__ import annotations

import itertools
import os
import shlex
import stat
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.paths import is_own

OURS = ("pending", "log")
"""Folders that hold nothing but files of our own."""

MOST = 10_000
"""Entries that are looked at."""


class Oddity(NamedTuple):
    """An entry that is not as we make it: ``why`` is the rest of a sentence, ``remedy`` a command."""

    path: str
    why: str
    remedy: str


def oddities(folder: str) -> list[Oddity]:
    """Everything odd in a state folder, the first ones first by name; what can't be looked at is passed over."""
    paths = itertools.chain(_entries(folder), *(_entries(os.path.join(folder, name)) for name in OURS))
    return [found for path in itertools.islice(paths, MOST) if (found := _odd(path))]


def _entries(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as listed:
            yield from sorted(entry.path for entry in listed if not os.path.islink(folder))
    except OSError:
        return


def _odd(path: str) -> Oddity | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None  # gone since it was listed
    word, mode = shlex.quote(path), status.st_mode
    if stat.S_ISLNK(mode):
        return Oddity(path, "is a symbolic link, which is not followed", f"Run: rm {word}")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return Oddity(path, "is neither a file nor a folder", f"Run: rm {word}")
    if not is_own(status):
        return Oddity(path, "belongs to another user", f"Run: sudo chown -R $USER {word}")
    if stat.S_ISREG(mode) and status.st_nlink > 1:
        return Oddity(path, "has a second name elsewhere", f"Run: cp {word} {word}.new && mv {word}.new {word}")
    if mode & 0o077:
        return Oddity(path, "can be read or written by others", f"Run: chmod -R go-rwx {word}")
    return None
