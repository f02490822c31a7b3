"""Answer the engine's requests to the team part, for example after a session was deleted.

These functions do not import the other modules of this part until you have joined a team.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING

from resume_hooks.parts.team import team_file
from resume_hooks.parts.team.team_file import PUSH_ENABLED_FILE_NAME, find_team_folder, read_team
from resume_hooks.paths import Where
from resume_hooks.system.text import format_count

if TYPE_CHECKING:
    from resume_hooks.maintenance.doctor import Finding


def queue_deletion_on_server(session_id: str, where: Where) -> list[str]:
    """Queue a deleted session, which the next push removes from the server. Return notes for the user."""
    if read_team(where) is None:
        return []
    from resume_hooks.parts.team.sharing import queue_deletion

    return list(filter(None, [queue_deletion(session_id, where)]))


def queue_scrubbed_sessions(sessions: Iterable[str], where: Where) -> list[str]:
    """Queue scrubbed sessions, and return notes for the user.

    The next push replaces the server's copies of these sessions.
    """
    if read_team(where) is None:
        return []
    from resume_hooks.parts.team.sharing import queue_replacement_of_server_copy

    return [
        note
        for session_id in dict.fromkeys(sessions)
        if session_id and (note := queue_replacement_of_server_copy(session_id, where))
    ]


def push_unsent_sessions_if_enabled(where: Where, is_time_over: Callable[[], bool]) -> None:
    """Push the turns that earlier pushes did not send. Stop early if ``is_time_over`` returns true.

    Turns remain unsent if they ended less than a minute after a push, or if the server was
    unreachable.
    """
    if not os.path.exists(os.path.join(find_team_folder(where), PUSH_ENABLED_FILE_NAME)):
        return
    from resume_hooks.parts.team.background import push_unsent

    push_unsent(where, is_time_over, pause_seconds=0)


def check_pushes(_: str) -> Finding:
    """Check for ``doctor`` whether the automatic pushes work, without contacting the server."""
    from resume_hooks.maintenance.doctor import make_ok_finding, make_problem_finding
    from resume_hooks.parts.team.connect import DRIVER_PACKAGE, format_driver_install_advice

    team, failure = team_file.read_team(Where()), team_file.read_push_failure(Where())
    if team is None:
        return make_ok_finding("none was joined", "none")
    if failure:
        return make_problem_finding(failure.report_sentence, failure.remedy, "failing")
    if find_spec(DRIVER_PACKAGE) is None:
        return make_problem_finding(
            f"{DRIVER_PACKAGE}, which connects to the server of {team.service}, is missing",
            format_driver_install_advice(),
            "driver",
        )
    push_summary = (
        f"{format_count(len(team.projects), 'project')} pushed automatically after turns, last push "
        f"{team_file.format_last_push(Where())}"
    )
    return make_ok_finding(
        f"{team.service} as {team.login}; {push_summary}; the server was not contacted"
    )
