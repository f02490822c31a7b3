"""Lets a handoff wait for ``/clear``: the child is made, and the session that ``/clear`` starts may stand in for it."""

from __future__ import annotations

import os
import time

from resume_hooks.events import handed_off
from resume_hooks.events.handed_off import MOST, Handoff
from resume_hooks.processes import client_pid, started
from resume_hooks.quick_rollover import opening_of
from resume_hooks.receipt import Receipt
from resume_hooks.reference import SHORT
from resume_hooks.short_opening import short_opening

OPENING_LINE = 1
"""The line of a child that holds its opening: after the metadata."""


def let_wait(receipt: Receipt) -> bool:
    """Whether the client's next ``/clear`` opens with what the child of ``receipt`` holds, as it lies there now.

    False outside a client, and where the state folder can't be written. A child that is rewritten has to be left anew.
    """
    pid = client_pid()
    if pid is None:
        return False
    whole = f"{receipt.session_id[:SHORT]}:{OPENING_LINE}"
    try:
        opening = opening_of(receipt.file)
        size = os.path.getsize(receipt.file)
        if not isinstance(opening, str) or not (text := short_opening(opening, MOST, whole)):
            return False
        ids = (receipt.parent_session_id, receipt.session_id)
        handed_off.leave(Handoff(pid, started(pid), *ids, receipt.file, size, time.time(), text))
    except OSError:
        return False
    return True
