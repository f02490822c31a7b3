"""How large our state folder is, part by part. Links are not followed."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.paths import Where

MOST_ENTRIES = 200_000  # files and folders that are looked at; a folder that holds more is told as at least so large


class FolderSize(NamedTuple):
    """An entry of the state folder: files in it, and their bytes."""

    name: str
    files: int
    size: int


def parts(where: Where) -> list[FolderSize]:
    """The entries of the state folder, the largest first; none if there is no such folder."""
    home = where.state
    try:
        names = sorted(os.listdir(home))
    except OSError:
        return []
    found = []
    for name in names:
        sizes = list(_sizes(os.path.join(home, name)))
        found.append(FolderSize(name, len(sizes), sum(sizes)))
    return sorted(found, key=lambda part: -part.size)


def _sizes(path: str) -> Iterator[int]:
    waiting, left = [path], MOST_ENTRIES
    while waiting and left:
        here, left = waiting.pop(), left - 1
        with contextlib.suppress(OSError):  # gone, or not for us to look at
            status = os.lstat(here)
            if stat.S_ISREG(status.st_mode):
                yield status.st_size if status.st_nlink == 1 else 0  # what another name holds takes no room here
            elif stat.S_ISDIR(status.st_mode):
                waiting += [os.path.join(here, name) for name in os.listdir(here)]
