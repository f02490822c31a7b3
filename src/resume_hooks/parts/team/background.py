"""Push sessions in the background, and check whether a model may search the server.

The modification time of the mark file (``PUSH_ENABLED_FILE_NAME``) is normally the time of the last
attempt to push. After a failed attempt, it is set to the time of the next attempt, and no process
pushes before then. Turns are pushed at most once a minute. If a turn ends less than a minute after
a push, the turn's hook waits for the rest of the minute and then pushes, even if the client has
exited. The server therefore receives each turn within about a minute of its end.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from resume_hooks import settings
from resume_hooks.archive import data_rules
from resume_hooks.errors import ResumeHooksError, SessionInUse, SessionNotFound, UsageError
from resume_hooks.hooks import hook_replies
from resume_hooks.hooks.background import HOOK_NICENESS, MAX_INPUT_BYTES
from resume_hooks.parts.team import team_file
from resume_hooks.parts.team.connect import MAX_PUSH_SECONDS, DriverMissing, connect_to_team
from resume_hooks.parts.team.cursor import read_pushed_session_ids, read_upload_progress
from resume_hooks.parts.team.membership import read_project_name
from resume_hooks.parts.team.pushing import has_unsent_data, push_session
from resume_hooks.parts.team.rows import Database
from resume_hooks.parts.team.sharing import (
    find_expired_ids_and_retention_days,
    has_queued_deletions,
    remove_queued_sessions_and_expired_sessions,
)
from resume_hooks.parts.team.team_file import (
    PUSH_ENABLED_FILE_NAME,
    Team,
    find_team_folder,
    read_team,
    record_push,
    record_push_failure,
)
from resume_hooks.paths import Where, is_session_id
from resume_hooks.sessions import locate
from resume_hooks.sessions.agents.registry import (
    RESUMABLE_AGENT_NAMES,
    list_other_agents,
    read_ends,
)
from resume_hooks.sessions.project_folder import home_folder_of_session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage.locks import lock_folder
from resume_hooks.system import bug_log
from resume_hooks.system.text import format_count
from resume_hooks.version import __version__

MIN_SECONDS_BETWEEN_PUSHES = 60
"""The minimum number of seconds between two pushes that follow turns."""

RETRY_PAUSE_SECONDS = 15 * 60
"""The number of seconds between a failed push and the next attempt."""

SESSION_END_PUSH_PAUSES_SECONDS = (1.0, 4.0, 10.0)
"""The pauses, in seconds, before the three attempts to push a session that has ended.

An attempt can fail because the client is still writing its last records, or because another push is
running.
"""


def find_pushable_sessions(team: Team, where: Where) -> list[SessionFile]:
    """Return the sessions to push, newest first.

    These are the sessions of the added projects, and the pushed sessions that were scrubbed since
    their last push. The result is empty if the data rules of the account forbid pushing.
    """
    if data_rules.read_data_rules(where):
        return []
    added_state_by_folder: dict[str, bool] = {}
    pushed_session_ids = read_pushed_session_ids(where)
    return [
        session
        for session in locate.all_sessions(where)
        if _belongs_to_team(session, team, where, added_state_by_folder)
        or (
            session.session_id in pushed_session_ids
            and read_upload_progress(session.session_id, where).must_replace_server_copy
        )
    ]


def find_unsent_sessions(team: Team, where: Where) -> list[SessionFile]:
    """Return the sessions that, according to this machine's records, are not completely on the server."""
    return [
        session
        for session in find_pushable_sessions(team, where)
        if has_unsent_data(session, where)
    ]


def build_unsupported_agent_notes(team: Team, where: Where) -> list[str]:
    """Return a sentence about each agent other than Claude Code that has sessions in the added projects.

    Sessions of these agents cannot be pushed. The sentence contains the number of sessions that
    stayed on this machine.
    """
    added_state_by_folder: dict[str, bool] = {}
    counts_by_agent = {}
    for agent in list_other_agents(where):
        if agent.name in RESUMABLE_AGENT_NAMES:
            counts_by_agent[agent.label] = sum(
                _belongs_to_team(session, team, where, added_state_by_folder)
                for session in agent.store.sessions()
            )
    fork_hint = "you can push a fork: resume-hooks fork SESSION --to claude"
    return [
        f"{format_count(count, f'{label} session')} cannot be pushed; {fork_hint}"
        for label, count in counts_by_agent.items()
        if count
    ]


def push_unsent(
    where: Where,
    is_time_over: Callable[[], bool],
    only_session_id: str = "",
    *,
    pause_seconds: int = MIN_SECONDS_BETWEEN_PUSHES,
) -> None:
    """Push all unsent sessions, or only ``only_session_id``. If a push fails, record the failure.

    Do nothing if the last attempt was less than ``pause_seconds`` seconds ago, or if the last
    attempt failed less than ``RETRY_PAUSE_SECONDS`` seconds ago. To push without checking the last
    attempt, pass ``-RETRY_PAUSE_SECONDS`` as ``pause_seconds``: after a failure, the recorded time
    is this far in the future.
    """
    team, push_mark = (
        read_team(where),
        os.path.join(find_team_folder(where), PUSH_ENABLED_FILE_NAME),
    )
    with contextlib.suppress(ResumeHooksError, OSError):
        if (
            team is None
            or not team.projects
            or -RETRY_PAUSE_SECONDS <= time.time() - os.stat(push_mark).st_mtime < pause_seconds
        ):
            return
        unsent_sessions = find_unsent_sessions(team, where)
        sessions = []
        for session in unsent_sessions:
            if only_session_id in {"", session.session_id}:
                sessions.append(session)
        if not (
            sessions
            or has_queued_deletions(where)
            or (not only_session_id and find_expired_ids_and_retention_days(where)[0])
        ):
            return  # If there is nothing to push, the recorded time of the last attempt is not changed.
        os.utime(push_mark)
        # Imported here because a push from the command line does not need this module, whose import
        # takes 65 ms.
        from resume_hooks.parts.team.fetching import remove_copies_without_read_access

        try:
            with connect_to_team(team.service) as db:
                db.set_deadline(MAX_PUSH_SECONDS)
                remove_queued_sessions_and_expired_sessions(db, where)
                remove_copies_without_read_access(db, where)
                _push_sessions(sessions, team, db, where, is_time_over)
            record_push(where)
        except Exception as error:  # noqa: BLE001 - a bug of ours, too: the scanner's stops a push, and nobody would know
            retry_time = time.time() + RETRY_PAUSE_SECONDS
            os.utime(push_mark, (retry_time, retry_time))
            if isinstance(error, ResumeHooksError):
                reason, report_at_once = (
                    (error.message, error.remedy),
                    isinstance(error, DriverMissing),
                )
            else:
                bug_log.log_bug("team push", __version__, error, where)
                bug_text = f"a bug in resume-hooks stopped the push ({type(error).__name__})"
                reason, report_at_once = (bug_text, "Report it: resume-hooks doctor --bundle"), True
            record_push_failure(reason, len(unsent_sessions), where, report_at_once=report_at_once)


def _push_sessions(
    sessions: list[SessionFile],
    team: Team,
    db: Database,
    where: Where,
    is_time_over: Callable[[], bool],
) -> None:
    """Push each session. If a push fails, still push the remaining sessions, and then raise the error."""
    last_error: Exception | None = None
    for session in sessions:
        if is_time_over():
            break
        db.set_deadline(MAX_PUSH_SECONDS)
        try:
            push_session(session, team, db, where)
        except SessionNotFound:
            continue
        except Exception as error:
            if db.is_closed:
                raise
            last_error = error
    if last_error is not None:
        raise last_error


def require_model_search_permission(where: Where) -> None:
    """Raise UsageError if the user has not allowed the model to search the team's server."""
    search_setting = settings.load_settings(where)["team_model_search"]
    # The permission cannot come from an environment variable, because the model could set the
    # variable in the command that it runs.
    if search_setting != ("on", "file"):
        raise UsageError(
            "A model may not search the team: the query would leave this machine",
            "To allow such searches, run in a terminal: resume-hooks config team_model_search on",
        )


def _belongs_to_team(
    session: SessionFile, team: Team, where: Where, added_state_by_folder: dict[str, bool]
) -> bool:
    try:
        session_folder = home_folder_of_session(read_ends(session, where), where)
    except SessionNotFound:
        return False
    if session_folder not in added_state_by_folder:
        added_state_by_folder[session_folder] = read_project_name(session_folder) in team.projects
    return added_state_by_folder[session_folder]


def main() -> None:
    """Push a session after a turn or at its end. The session's id is in the hook event on stdin.

    This function raises no errors and prints nothing.
    """
    event = hook_replies.read_stdin(MAX_INPUT_BYTES)
    if event is not None:
        session_id = hook_replies.text_field(event, "session_id")
    else:
        session_id = ""
    if event is None or not is_session_id(session_id):
        return
    with contextlib.suppress(OSError, AttributeError):  # Windows has no os.nice.
        os.nice(HOOK_NICENESS)
    where, deadline = Where(), time.monotonic() + MAX_PUSH_SECONDS
    if hook_replies.text_field(event, "hook_event_name") == "SessionEnd":
        for pause in SESSION_END_PUSH_PAUSES_SECONDS:
            time.sleep(pause)
            push_unsent(
                where,
                lambda: time.monotonic() > deadline,
                str(session_id),
                pause_seconds=-RETRY_PAUSE_SECONDS,
            )
        return
    waiting_mark = os.path.join(team_file.find_team_folder(where), "waiting", str(session_id))
    # A failed push sets the mark file's modification time to a time in the future. Until then,
    # ``push_unsent`` does nothing.
    pause = 0.0
    with contextlib.suppress(OSError):
        elapsed = (
            time.time()
            - os.stat(os.path.join(find_team_folder(where), PUSH_ENABLED_FILE_NAME)).st_mtime
        )
        pause = (
            MIN_SECONDS_BETWEEN_PUSHES - elapsed
            if 0 <= elapsed < MIN_SECONDS_BETWEEN_PUSHES
            else 0.0
        )
    # If another process is already waiting to push this session, that process will also push this
    # turn.
    with contextlib.suppress(SessionInUse):
        if pause:
            with lock_folder(
                waiting_mark,
                where,
                "Another process is already waiting to push",
                "Could not wait in",
            ):
                time.sleep(pause)
        push_unsent(where, lambda: time.monotonic() > deadline, str(session_id))
