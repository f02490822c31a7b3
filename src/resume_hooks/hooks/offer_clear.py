"""Lets a handoff wait for ``/clear``: the child is made, and the session that ``/clear`` starts may stand in for it."""

from __future__ import annotations

import functools
import os
import time

from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.rollover import DIGEST_LINE, opening_of
from resume_hooks.hooks import pending_handoff
from resume_hooks.hooks.pending_handoff import MOST, Handoff
from resume_hooks.reading.digest.as_text import HEAD
from resume_hooks.reading.digest.as_text import opening as digest_opening
from resume_hooks.reading.digest.entries import digest_at
from resume_hooks.sessions.opening_records import short_opening
from resume_hooks.sessions.references import SHORT
from resume_hooks.system.processes import client_pid, started

LEAST = 600
"""Characters that a digest needs to be worth more than the front of the longer one."""

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
        shorter = functools.partial(_shorter, receipt)
        if not isinstance(opening, str) or not (text := short_opening(opening, MOST, whole, shorter)):
            return False
        ids = (receipt.parent_session_id, receipt.session_id)
        pending_handoff.leave(Handoff(pid, started(pid), *ids, receipt.file, size, time.time(), text))
    except OSError:
        return False
    return not os.environ.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk")  # `-p` ends before anybody clears


def _shorter(receipt: Receipt, between: str, room: int) -> str:
    """What a child holds between its lineage and its next step, the digest made anew for less room."""
    digest, (summary, head, _) = digest_at(receipt.file), between.partition(HEAD)
    left = room - len(summary)
    if digest is None or not head or left < LEAST:
        return ""
    return f"{summary}{digest_opening(digest, receipt.session_id, DIGEST_LINE, left)}"
