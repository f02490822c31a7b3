"""Keeping ancestors: whatever a child was made of is in the vault from then on, and so are those before it.

Invariant: the child never depends on it. What can't be kept is told; what takes longer than a moment is left to the
next session's start.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable

from resume_hooks.archive.retention import pending
from resume_hooks.archive.retention.cost_check import is_quick
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where
from resume_hooks.sessions.expiry import Found, is_kept
from resume_hooks.sessions.files import is_known, session_file
from resume_hooks.sessions.lineage import Ancestor

LIMIT = 0.05
"""Seconds that a verb spends on this at most, the last one begun aside."""

PRESENT = "present"


def keep_ancestors(ancestors: Iterable[Ancestor], where: Where) -> list[str]:
    """Keep those of a lineage that the client may delete, the nearest first; what could not be done, as sentences.

    Costs a look at a note where they are kept already. Where nothing may be kept nothing is done.
    """
    files = [row.session_file for row in ancestors if row.status == PRESENT]
    due = [session for path in files[::-1] if (session := unkept(path, where))]
    if not due:
        return []
    from resume_hooks.archive.retention.keeper import Keeper  # noqa: PLC0415 - 15 ms that most children need not wait for

    keeper, until, said = Keeper(where), time.monotonic() + LIMIT, []
    for session in due if keeper.may else ():
        try:
            if time.monotonic() > until or not is_quick(session, where):
                pending.want(session.session_id, where)
            else:
                keeper.keep(session.path)
        except (ResumeHooksError, OSError) as error:
            said.append(f"The ancestor {session.session_id} is not in the vault yet: {_why(error)}.")
            with contextlib.suppress(OSError):
                pending.want(session.session_id, where)
    return said


def unkept(path: str, where: Where) -> Found | None:
    """The session at a path, where it is one that the client deletes, and the vault has not got it as it is."""
    try:
        session = session_file(path)
    except ResumeHooksError:  # gone since
        return None
    if not is_known(session, where) or os.path.islink(os.path.dirname(session.path)):
        return None
    return None if is_kept(session.session_id, session.mtime, where) else Found(*session)


def _why(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
