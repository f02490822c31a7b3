"""Whether keeping a session takes no time that anybody would feel: links do, copies of little do, others wait.

Links need the vault on the file system of the session; backups of files are always copied, each synced to the disk.
"""

from __future__ import annotations

import contextlib
import os

from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import HISTORY
from resume_hooks.sessions.archived.manifest import find
from resume_hooks.sessions.expiry import Found

MOST_BYTES = 2 * 1024 * 1024
"""Bytes that are copied while somebody waits."""

MOST_COPIES = 16
"""Files that are copied while somebody waits: a slow disk takes 5 ms to be sure of one."""

MOST_LINKS = 400
"""Files that are linked while somebody waits: some 20 microseconds each."""


def is_quick(session: Found, where: Where) -> bool:
    """Whether a session can be kept while somebody waits."""
    links = _same_device(session.path, where)
    own = _sizes(session.path.removesuffix(".jsonl"))
    kept = find(session.session_id, where)
    known = {part.place for part in kept.parts} if kept else set()
    place = f"{HISTORY}/{session.session_id}"
    backups = _sizes(os.path.join(where.config, *place.split("/")))
    copies = [size for name, size in backups.items() if f"{place}/{name}" not in known]
    if not links:
        copies += [session.size, *own.values()]
    return len(own) <= MOST_LINKS and len(copies) <= MOST_COPIES and sum(copies) <= MOST_BYTES


def _same_device(path: str, where: Where) -> bool:
    """Whether a link can lead from the vault to a file; the state folder may not be there yet."""
    home = where.state
    while not os.path.lexists(home) and home != os.path.dirname(home):
        home = os.path.dirname(home)
    try:
        return os.stat(home).st_dev == os.stat(path).st_dev
    except OSError:
        return False


def _sizes(folder: str) -> dict[str, int]:
    """The sizes of the files in a folder by their paths from there, as far as a few more than may be linked."""
    found: dict[str, int] = {}
    waiting = [""]
    while waiting and len(found) <= MOST_LINKS:
        below = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(os.path.join(folder, below)) as entries:
            for entry in entries:
                name = f"{below}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{name}/")
                elif len(found) <= MOST_LINKS:
                    found[name] = entry.stat(follow_symlinks=False).st_size
    return found
