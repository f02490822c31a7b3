"""Answer the core's verbs and hooks for the team part.

If no team was joined, the rest of this part is not imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from resume_hooks.parts.team import team_file
from resume_hooks.parts.team.team_file import PUSH_MARK, joined_team, team_folder
from resume_hooks.paths import Where
from resume_hooks.system.text import format_count

if TYPE_CHECKING:
    from resume_hooks.maintenance.doctor import Finding


def after_delete(session_id: str, where: Where) -> list[str]:
    """Queue a deleted session, so that the next push makes the server forget it, and return notes for the user."""
    if joined_team(where) is None:
        return []
    from resume_hooks.parts.team.sharing import queue_forget

    return list(filter(None, [queue_forget(session_id, where)]))


def after_scrub(sessions: Iterable[str], where: Where) -> list[str]:
    """Queue scrubbed sessions, so that the next push replaces the server's copies, and return notes for the user."""
    if joined_team(where) is None:
        return []
    from resume_hooks.parts.team.sharing import queue_replacement

    return [
        note
        for session_id in dict.fromkeys(sessions)
        if session_id and (note := queue_replacement(session_id, where))
    ]


def after_start(where: Where, is_over: Callable[[], bool]) -> None:
    """Push turns that are still unsent because of the pause between pushes or an unreachable server."""
    if not os.path.exists(os.path.join(team_folder(where), PUSH_MARK)):
        return
    from resume_hooks.parts.team.background import push_behind

    push_behind(where, is_over, pause=0)


def check(_: str) -> Finding:
    """Return doctor's finding on whether pushes after turns can work. The server is not contacted."""
    from resume_hooks.maintenance.doctor import ok_finding, problem_finding
    from resume_hooks.parts.team.connect import DRIVER, driver_remedy

    joined, failing = team_file.joined_team(Where()), team_file.read_failure(Where())
    if joined is None:
        return ok_finding("none was joined", "none")
    if failing:
        return problem_finding(failing.sentence, failing.remedy, "failing")
    if find_spec(DRIVER) is None:
        return problem_finding(
            f"{DRIVER}, which speaks to the server of {joined.service}, is missing",
            driver_remedy(),
            "driver",
        )
    pushes = (
        f"turns' ends push {format_count(len(joined.projects), 'project')}, last push "
        f"{team_file.last_push_text(Where())}"
    )
    return ok_finding(f"{joined.service} as {joined.login}; {pushes}; the server was not asked")
