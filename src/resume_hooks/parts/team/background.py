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
from resume_hooks.parts.team.connect import DriverMissing, connected
from resume_hooks.parts.team.cursor import cursor_of, pushed_here
from resume_hooks.parts.team.membership import project_of
from resume_hooks.parts.team.pushing import is_behind, push
from resume_hooks.parts.team.rows import Database
from resume_hooks.parts.team.sharing import expiring, has_queued, remove_gone
from resume_hooks.parts.team.team_file import (
    PUSHES,
    Team,
    joined_team,
    note_failing,
    note_pushed,
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

PAUSE = 60
"""Seconds between two pushes after turns."""

AWAY = 15 * 60
"""Seconds until the next attempt if the server is unreachable."""

LIMIT = 240.0
"""Seconds after which no further session is pushed."""

AFTER_END = (1.0, 4.0, 10.0)
"""Seconds to wait before each attempt after a session's end.

The client may still write its last records, or a push may still run.
"""


def pushable(team: Team, where: Where) -> list[SessionFile]:
    """Return the sessions of added projects, and those that were scrubbed since their last push, newest first.

    Return [] if the account's data rules forbid it.
    """
    if data_rules.read_data_rules(where):
        return []
    known: dict[str, bool] = {}
    sent = pushed_here(where)
    return [
        session
        for session in locate.all_sessions(where)
        if _belongs_to_team(session, team, where, known)
        or (session.session_id in sent and cursor_of(session.session_id, where).drop)
    ]


def sessions_behind(team: Team, where: Where) -> list[SessionFile]:
    """Return the pushable sessions that the server lacks or has only in part, as far as this machine remembers."""
    return [session for session in pushable(team, where) if is_behind(session, where)]


def not_taken(team: Team, where: Where) -> list[str]:
    """Return a sentence for each other agent with the number of its sessions that are not pushed."""
    known: dict[str, bool] = {}
    counts = {}
    for agent in other_agents(where):
        if agent.name in RUNNING:
            counts[agent.label] = sum(
                _belongs_to_team(session, team, where, known) for session in agent.store.sessions()
            )
    fork = "you can push a fork: resume-hooks fork SESSION --to claude"
    return [
        f"{format_count(count, 'session')} of {label} stayed here; {fork}"
        for label, count in counts.items()
        if count
    ]


def push_behind(
    where: Where, is_over: Callable[[], bool], only: str = "", *, pause: int = PAUSE
) -> None:
    """Push the sessions that are behind, or only the session ``only``, and record a failure.

    Do nothing if the last attempt was less than ``pause`` seconds ago, or if the server was
    unreachable and its next attempt is not due. With ``-AWAY``, both limits are ignored.
    """
    team, mark = joined_team(where), os.path.join(team_folder(where), PUSHES)
    with contextlib.suppress(ResumeHooksError, OSError):
        if (
            team is None
            or not team.projects
            or -AWAY <= time.time() - os.stat(mark).st_mtime < pause
        ):
            return
        everything = sessions_behind(team, where)
        waiting = []
        for each in everything:
            if only in {"", each.session_id}:
                waiting.append(each)
        if not (waiting or has_queued(where) or (not only and expiring(where)[0])):
            return  # the next push need not wait
        os.utime(mark)
        from resume_hooks.parts.team.fetching import (
            drop_gone,
        )  # imported late: a push from the command line is 65 ms faster without it

        try:
            with connected(team.service) as db:
                remove_gone(db, where)
                drop_gone(db, where)
                _push_each(waiting, team, db, where, is_over)
            note_pushed(where)
        except Exception as error:  # noqa: BLE001 - a bug of ours, too: the scanner's stops a push, and nobody would know
            later = time.time() + AWAY
            os.utime(mark, (later, later))
            if isinstance(error, ResumeHooksError):
                said, at_once = (error.message, error.remedy), isinstance(error, DriverMissing)
            else:
                bug_log.log_bug("team push", __version__, error, where)
                told = f"a bug in resume-hooks stopped it ({type(error).__name__})"
                said, at_once = (told, "Report it: resume-hooks doctor --bundle"), True
            note_failing(said, len(everything), where, at_once=at_once)


def _push_each(
    waiting: list[SessionFile], team: Team, db: Database, where: Where, is_over: Callable[[], bool]
) -> None:
    """Push each session; a failure does not stop the others, and is raised after them."""
    failed: Exception | None = None
    for session in waiting:
        if is_over():
            break
        try:
            push(session, team, db, where)
        except SessionNotFound:
            continue
        except Exception as error:
            if db.closed:
                raise
            failed = error
    if failed is not None:
        raise failed


def require_model_may_search(where: Where) -> None:
    """Raise UsageError unless the user allows the model's shell to send queries to the team's server."""
    allowed = settings.load_settings(where)["team_model_search"]
    # A command line can set its own environment, so a variable does not count.
    if allowed != ("on", "file"):
        raise UsageError(
            "A model may not search the team: the query would leave this machine",
            "Allow it in a terminal: resume-hooks config team_model_search on",
        )


def _belongs_to_team(
    session: SessionFile, team: Team, where: Where, known: dict[str, bool]
) -> bool:
    try:
        home = home_folder(ends_of(session, where), where)
    except SessionNotFound:
        return False
    if home not in known:
        known[home] = project_of(home) in team.projects
    return known[home]


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
    where, until = Where(), time.monotonic() + LIMIT
    if reply.text_field(event, "hook_event_name") == "SessionEnd":
        for pause in AFTER_END:
            time.sleep(pause)
            push_behind(where, lambda: time.monotonic() > until, str(session_id), pause=-AWAY)
        return
    waiting = os.path.join(team_file.team_folder(where), "waiting", str(session_id))
    pause = 0.0  # an unreachable server is not tried before its time
    with contextlib.suppress(OSError):
        past = time.time() - os.stat(os.path.join(team_folder(where), PUSHES)).st_mtime
        pause = PAUSE - past if 0 <= past < PAUSE else 0.0
    with contextlib.suppress(
        SessionOpen
    ):  # Another process already waits, and will push this turn too.
        if pause:
            with lock_folder(waiting, where, "Another process waits to push", "Could not wait in"):
                time.sleep(pause)
        push_behind(where, lambda: time.monotonic() > until, str(session_id))
