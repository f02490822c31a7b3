"""What the client deletes within the next seven days, in all projects, as a client that starts in one folder would."""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from resume_hooks.paths import Where, all_folders
from resume_hooks.sessions.expiry import SOON, Ending, Endings, is_archived
from resume_hooks.system.claude_settings import Retention, retention


class Outlook(NamedTuple):
    """``sessions`` that go whole, of how many ``projects``; ``younger`` ones that lose files by themselves.

    ``unkept`` of both are not in the vault as they are. ``first`` is when the first of them may go, in seconds since
    the epoch, None where none does. ``retention`` is what decides.
    """

    retention: Retention
    sessions: int
    projects: int
    younger: int
    unkept: int
    first: float | None


def outlook(cwd: str, where: Where) -> Outlook:
    """What goes within seven days, were a client started in ``cwd``."""
    found = retention(cwd, where)
    ends = _going(found.days, where) if found.days is not None else []
    whole = [ending for ending in ends if ending.whole]
    return Outlook(
        retention=found,
        sessions=len(whole),
        projects=len({os.path.dirname(ending.session.path) for ending in whole}),
        younger=len(ends) - len(whole),
        unkept=sum(not is_archived(ending.session.session_id, ending.written, where) for ending in ends),
        first=min((ending.at for ending in ends), default=None),
    )


def _going(days: int, where: Where) -> list[Ending]:
    endings, until = Endings(days, where), time.time() + SOON
    return [ending for folder in all_folders(where) for ends in endings.of(folder) if (ending := ends.before(until))]
