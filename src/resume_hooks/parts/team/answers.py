"""What verbs that remove something tell of a team that has it, too; where none was joined nothing of it is loaded."""

from __future__ import annotations

from collections.abc import Iterable

from resume_hooks.parts.team.team_file import found
from resume_hooks.paths import Where


def after_delete(session_id: str, where: Where) -> list[str]:
    """Have a deleted session forgotten at the next push; what to say."""
    if found(where) is None:
        return []
    from resume_hooks.parts.team.sharing import note_deleted

    return [note for note in [note_deleted(session_id, where)] if note]


def after_scrub(sessions: Iterable[str], where: Where) -> list[str]:
    """Have what the team has of scrubbed sessions replaced at the next push; what to say."""
    if found(where) is None:
        return []
    from resume_hooks.parts.team.sharing import note_scrubbed

    return [note for each in dict.fromkeys(sessions) if each and (note := note_scrubbed(each, where))]
