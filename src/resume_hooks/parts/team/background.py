"""Push in the background: which sessions, when, and which requests a model may make.

The time of the mark file is that of the last attempt. After a failure it lies in the future, and
nobody tries before then. Pushes after turns run at most once a minute. A turn that ends sooner
waits for the rest of that minute, even if its client exits. So each turn reaches the server within
a minute, or moments after the end of the session.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from resume_hooks import settings
from resume_hooks.archive import data_rules
from resume_hooks.errors import ResumeHooksError, SessionNotFound, SessionOpen, UsageError
from resume_hooks.hooks import reply
from resume_hooks.hooks.background import MAX_INPUT, NICENESS
from resume_hooks.parts.team import team_file
from resume_hooks.parts.team.connect import DriverMissing, connect_to_team
from resume_hooks.parts.team.cursor import pushed_ids, read_cursor
from resume_hooks.parts.team.membership import project_name
from resume_hooks.parts.team.pushing import is_behind, push_session
from resume_hooks.parts.team.rows import Database
from resume_hooks.parts.team.sharing import (
    expired_sessions,
    has_queued_forgets,
    remove_lost_sessions,
)
from resume_hooks.parts.team.team_file import (
    PUSH_MARK,
    Team,
    joined_team,
    record_failure,
    record_push,
    team_folder,
)
from resume_hooks.paths import Where, is_session_id
from resume_hooks.sessions import locate
from resume_hooks.sessions.agents.registry import RUNNING, ends_of, other_agents
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage.locks import lock_folder
from resume_hooks.system import bug_log
from resume_hooks.system.text import format_count
from resume_hooks.version import __version__

PUSH_PAUSE = 60
"""Seconds between two pushes after turns."""

RETRY_PAUSE = 15 * 60
"""Seconds until the next attempt if the server is unreachable."""

PUSH_LIMIT = 240.0
"""Seconds after which no further session is pushed."""

PAUSES_AFTER_END = (1.0, 4.0, 10.0)
"""Seconds to wait before each attempt after a session's end.

The client may still write its last records, or a push may still run.
"""


def pushable_sessions(team: Team, where: Where) -> list[SessionFile]:
    """Return the sessions of added projects, and those that were scrubbed since their last push, newest first.

    Return [] if the account's data rules forbid it.
    """
    if data_rules.read_data_rules(where):
        return []
    is_added: dict[str, bool] = {}
    sent_ids = pushed_ids(where)
    return [
        session
        for session in locate.all_sessions(where)
        if _belongs_to_team(session, team, where, is_added)
        or (session.session_id in sent_ids and read_cursor(session.session_id, where).drop)
    ]


def sessions_behind(team: Team, where: Where) -> list[SessionFile]:
    """Return the pushable sessions that the server lacks or has only in part, as far as this machine remembers."""
    return [session for session in pushable_sessions(team, where) if is_behind(session, where)]


def unsupported_agent_notes(team: Team, where: Where) -> list[str]:
    """Return a sentence for each other agent with the number of its sessions that are not pushed."""
    is_added: dict[str, bool] = {}
    counts = {}
    for agent in other_agents(where):
        if agent.name in RUNNING:
            counts[agent.label] = sum(
                _belongs_to_team(session, team, where, is_added)
                for session in agent.store.sessions()
            )
    fork = "you can push a fork: resume-hooks fork SESSION --to claude"
    return [
        f"{format_count(count, 'session')} of {label} stayed here; {fork}"
        for label, count in counts.items()
        if count
    ]


def push_behind(
    where: Where, is_over: Callable[[], bool], only: str = "", *, pause: int = PUSH_PAUSE
) -> None:
    """Push the sessions that are behind, or only the session ``only``, and record a failure.

    Do nothing if the last attempt was less than ``pause`` seconds ago, or if the server was
    unreachable and its next attempt is not due. With ``-AWAY``, both limits are ignored.
    """
    team, mark = joined_team(where), os.path.join(team_folder(where), PUSH_MARK)
    with contextlib.suppress(ResumeHooksError, OSError):
        if (
            team is None
            or not team.projects
            or -RETRY_PAUSE <= time.time() - os.stat(mark).st_mtime < pause
        ):
            return
        behind = sessions_behind(team, where)
        sessions = []
        for session in behind:
            if only in {"", session.session_id}:
                sessions.append(session)
        if not (sessions or has_queued_forgets(where) or (not only and expired_sessions(where)[0])):
            return  # the next push need not wait
        os.utime(mark)
        from resume_hooks.parts.team.fetching import (
            drop_unreadable_copies,
        )  # imported late: a push from the command line is 65 ms faster without it

        try:
            with connect_to_team(team.service) as db:
                remove_lost_sessions(db, where)
                drop_unreadable_copies(db, where)
                _push_each(sessions, team, db, where, is_over)
            record_push(where)
        except Exception as error:  # noqa: BLE001 - a bug of ours, too: the scanner's stops a push, and nobody would know
            later = time.time() + RETRY_PAUSE
            os.utime(mark, (later, later))
            if isinstance(error, ResumeHooksError):
                reason, at_once = (error.message, error.remedy), isinstance(error, DriverMissing)
            else:
                bug_log.log_bug("team push", __version__, error, where)
                bug_text = f"a bug in resume-hooks stopped it ({type(error).__name__})"
                reason, at_once = (bug_text, "Report it: resume-hooks doctor --bundle"), True
            record_failure(reason, len(behind), where, at_once=at_once)


def _push_each(
    sessions: list[SessionFile], team: Team, db: Database, where: Where, is_over: Callable[[], bool]
) -> None:
    """Push each session; a failure does not stop the others, and is raised after them."""
    failed: Exception | None = None
    for session in sessions:
        if is_over():
            break
        try:
            push_session(session, team, db, where)
        except SessionNotFound:
            continue
        except Exception as error:
            if db.closed:
                raise
            failed = error
    if failed is not None:
        raise failed


def check_model_may_search(where: Where) -> None:
    """Raise UsageError unless the user allows the model's shell to send queries to the team's server."""
    allowed = settings.load_settings(where)["team_model_search"]
    # A command line can set its own environment, so a variable does not count.
    if allowed != ("on", "file"):
        raise UsageError(
            "A model may not search the team: the query would leave this machine",
            "Allow it in a terminal: resume-hooks config team_model_search on",
        )


def _belongs_to_team(
    session: SessionFile, team: Team, where: Where, is_added: dict[str, bool]
) -> bool:
    try:
        home = home_folder(ends_of(session, where), where)
    except SessionNotFound:
        return False
    if home not in is_added:
        is_added[home] = project_name(home) in team.projects
    return is_added[home]


def main() -> None:
    """Push the session of the event on stdin, after a turn or at the end of the session.

    Raise nothing and print nothing.
    """
    event = reply.read_stdin(MAX_INPUT)
    if event is not None:
        session_id = reply.text_field(event, "session_id")
    else:
        session_id = ""
    if event is None or not is_session_id(session_id):
        return
    with contextlib.suppress(OSError, AttributeError):  # Windows has no os.nice
        os.nice(NICENESS)
    where, deadline = Where(), time.monotonic() + PUSH_LIMIT
    if reply.text_field(event, "hook_event_name") == "SessionEnd":
        for pause in PAUSES_AFTER_END:
            time.sleep(pause)
            push_behind(
                where, lambda: time.monotonic() > deadline, str(session_id), pause=-RETRY_PAUSE
            )
        return
    waiting = os.path.join(team_file.team_folder(where), "waiting", str(session_id))
    pause = 0.0  # an unreachable server is not tried before its time
    with contextlib.suppress(OSError):
        elapsed = time.time() - os.stat(os.path.join(team_folder(where), PUSH_MARK)).st_mtime
        pause = PUSH_PAUSE - elapsed if 0 <= elapsed < PUSH_PAUSE else 0.0
    with contextlib.suppress(
        SessionOpen
    ):  # Another process already waits, and will push this turn too.
        if pause:
            with lock_folder(waiting, where, "Another process waits to push", "Could not wait in"):
                time.sleep(pause)
        push_behind(where, lambda: time.monotonic() > deadline, str(session_id))
