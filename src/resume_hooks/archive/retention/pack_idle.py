"""Which kept sessions are packed, and when: once they are quiet, and an ancestor or near their end.

A link is as good as the client's own file until somebody cuts that short in place; a pack is good whatever happens.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator

from resume_hooks.archive.vault.pack import is_packed, pack
from resume_hooks.clock import DAY
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where, find_session
from resume_hooks.sessions.archived.layout import is_foreign
from resume_hooks.sessions.archived.manifest import Kept, as_it_is, held
from resume_hooks.sessions.expiry import SOON
from resume_hooks.sessions.link_log import read_links
from resume_hooks.sessions.liveness import Clients
from resume_hooks.storage.state_file import MODE
from resume_hooks.system.claude_settings import kept_days

QUIET = DAY
"""Seconds without a write after which nobody is expected to go on in a session today."""


FAIR = 10.0
"""Seconds after which a session that is not packed by then is too large to be packed by itself."""

SLOW = "slow"
"""An empty file in the folder of such a session."""


def pack_quiet(where: Where, is_over: Callable[[], bool]) -> int:
    """Pack what is due, one after the other until time is over; how many are left for the next time.

    What can't be packed now stays as it is kept, and is tried again the next time; but for one that so much time was
    not enough for, which ``archive`` packs.
    """
    clients, left = Clients(where), 0
    for kept in list(due(where, time.time())):
        if os.path.lexists(slow := os.path.join(kept.folder, SLOW)):
            continue
        if is_over():
            left += 1
            continue
        begun = time.monotonic()
        try:
            pack(kept, where, clients=clients, is_over=is_over)
        except ResumeHooksError:
            if is_over() and time.monotonic() - begun >= FAIR:
                with contextlib.suppress(OSError):
                    os.close(os.open(slow, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE))
            else:
                left += is_over()
    return left


def due(where: Where, now: float) -> Iterator[Kept]:
    """The kept sessions that are to be packed at ``now``, seconds since the epoch; the smallest first.

    So that a large one holds up no other.
    """
    ancestors = {link.parent_id for link in read_links(where)}
    periods: dict[str, int | None] = {}
    for kept in sorted(held(where), key=lambda kept: kept.size):
        written = as_it_is(kept, kept.transcript).mtime_ns / 1e9
        if is_packed(kept) or now - written < QUIET or is_foreign(kept.home, where):
            continue
        if kept.cwd not in periods:
            periods[kept.cwd] = kept_days(kept.cwd or "/", where)
        days = periods[kept.cwd]
        near = days is not None and written + days * DAY - SOON < now
        if kept.session_id in ancestors or near or find_session(kept.session_id, where) is None:
            yield kept
