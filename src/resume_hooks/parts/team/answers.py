"""What the core asks of a team at its verbs and hooks; where none was joined nothing of it is loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from resume_hooks.parts.team.team_file import PUSHES, folder, found
from resume_hooks.paths import Where


def after_delete(session_id: str, where: Where) -> list[str]:
    """Have a deleted session forgotten at the next push; what to say."""
    if found(where) is None:
        return []
    from resume_hooks.parts.team.sharing import note_deleted

    return list(filter(None, [note_deleted(session_id, where)]))


def after_scrub(sessions: Iterable[str], where: Where) -> list[str]:
    """Have what the team has of scrubbed sessions replaced at the next push; what to say."""
    if found(where) is None:
        return []
    from resume_hooks.parts.team.sharing import note_scrubbed

    return [note for each in dict.fromkeys(sessions) if each and (note := note_scrubbed(each, where))]


def after_start(where: Where, is_over: Callable[[], bool]) -> None:
    """Send the team what turns' ends did not: they pause a minute, and a server may be away."""
    if not os.path.exists(os.path.join(folder(where), PUSHES)):
        return
    from resume_hooks.parts.team.background import push_behind

    push_behind(where, is_over, pause=0)
