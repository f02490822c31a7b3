"""Who counts titles in a folder: one process at a time, from the count until the session that has the title is there.

The folder itself is locked, so that nothing is written for a plan that comes to nothing; the system lets go of the lock
with the process. Who can't have it in time, or works where folders can't be locked, counts all the same.
"""

from __future__ import annotations

import contextlib
import os

from resume_hooks.storage.locks import lock

PATIENCE = 1.0
"""Seconds that another process is waited for; it takes a fraction of that."""

_held: dict[str, int] = {}


def hold(folder: str) -> None:
    """Have the counters of a folder's titles for this process, until ``release``, or until it asks for another's."""
    if folder not in _held:
        release()
        with contextlib.suppress(OSError):  # it isn't there yet, so nothing in it has a title
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            if lock(descriptor, PATIENCE):
                _held[folder] = descriptor
            else:
                os.close(descriptor)


def release(folder: str = "") -> None:
    """Let others count in a folder again; without one in all."""
    for name in [folder] if folder else list(_held):
        descriptor = _held.pop(name, None)
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(descriptor)
