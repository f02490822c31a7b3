"""Whether a session can be archived while somebody waits: packed and read back, at 34 MB/s (benchmarks/vault.py)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import HISTORY
from resume_hooks.sessions.archived.manifest import find
from resume_hooks.sessions.expiry import Found

MOST_BYTES = 1024 * 1024
"""Bytes that are packed while somebody waits: some 30 ms."""

MOST_FILES = 100
"""Files that are read while somebody waits."""


def is_quick(session: Found, where: Where) -> bool:
    """Whether a session can be archived while somebody waits: its files, and what is archived of it already."""
    archived = find(session.session_id, where)
    total = session.size + (sum(part.size for part in archived.all_parts) if archived else 0)
    own = session.path.removesuffix(".jsonl")
    backups = os.path.join(where.config, HISTORY, session.session_id)
    for count, size in enumerate((*_sizes(own), *_sizes(backups)), 1):
        total += size
        if total > MOST_BYTES or count > MOST_FILES:
            return False
    return total <= MOST_BYTES


def _sizes(folder: str) -> Iterator[int]:
    """The sizes of the files in a folder and those in it."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _sizes(entry.path)
            else:
                yield entry.stat(follow_symlinks=False).st_size
