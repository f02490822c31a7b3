"""What a push does that nobody waits for: which sessions it is about, when it is due, and what a model may ask.

The mark's time is that of the last try, or lies ahead where the server was away: then nobody tries
before. Turns' ends push at most once a minute. One that comes sooner waits for that, whatever
becomes of its client: so what was said is on the server a minute later, or a moment after the end.
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
from resume_hooks.hooks.background import MAX_INPUT, NICE
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
"""Seconds between two pushes of turns' ends."""

AWAY = 15 * 60
"""Seconds after which a server that could not be reached is tried again."""

LIMIT = 240.0
"""Seconds after which nothing more is begun."""

AFTER_END = (1.0, 4.0, 10.0)
"""Seconds before each look at what an end left: the client writes its last records after it, or a push still ran."""


def pushable(team: Team, where: Where) -> list[SessionFile]:
    """The sessions of the projects that were added, and those that were scrubbed since they were sent; newest first.

    None where the account's data rules let none leave the machine.
    """
    if data_rules.rules_in_force(where):
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
    """Those of them that the server has not, or not whole, as far as is remembered here."""
    return [session for session in pushable(team, where) if is_behind(session, where)]


def not_taken(team: Team, where: Where) -> list[str]:
    """Of each other agent how many sessions of those projects stay here, in a sentence."""
    known: dict[str, bool] = {}
    counts = {}
    for agent in other_agents(where):
        if agent.name in RUNNING:
            counts[agent.label] = sum(
                _belongs_to_team(session, team, where, known) for session in agent.store.sessions()
            )
    fork = "a fork is sent: resume-hooks fork SESSION --to claude"
    return [
        f"{format_count(count, 'session')} of {label} stayed here; {fork}"
        for label, count in counts.items()
        if count
    ]


def push_behind(
    where: Where, is_over: Callable[[], bool], only: str = "", *, pause: int = PAUSE
) -> None:
    """Push what is behind, or of it the session ``only``; what fails is remembered.

    Nothing is done where the last try is less than ``pause`` seconds ago, or a server that was away
    is not to be tried yet; ``-AWAY`` is for who can't wait for either.
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
            return  # the next turn's end need not wait
        os.utime(mark)
        from resume_hooks.parts.team.fetching import (
            drop_gone,
        )  # a command that pushes does without, 65 ms faster

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
                told = f"a bug of ours stopped it ({type(error).__name__})"
                said, at_once = (told, "Report it: resume-hooks doctor --bundle"), True
            note_failing(said, len(everything), where, at_once=at_once)


def _push_each(
    waiting: list[SessionFile], team: Team, db: Database, where: Where, is_over: Callable[[], bool]
) -> None:
    """Push each session; what stops one of them keeps none of the others, and is raised after them."""
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
    """UsageError unless the user lets a model's shell send words to the team's server."""
    allowed = settings.load_settings(where)["team_model_search"]
    if allowed != ("on", "file"):  # whoever runs a command can set its environment
        raise UsageError(
            "A model may not ask the team: the words would leave this machine",
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
    """Push the session of the event on stdin, a turn's or a session's end.

    Never raises, and prints nothing.
    """
    event = reply.read_stdin(MAX_INPUT)
    if event is not None:
        session_id = reply.field(event, "session_id")
    else:
        session_id = ""
    if event is None or not is_session_id(session_id):
        return
    with contextlib.suppress(OSError, AttributeError):  # Windows has no such call
        os.nice(NICE)
    where, until = Where(), time.monotonic() + LIMIT
    if reply.field(event, "hook_event_name") == "SessionEnd":
        for pause in AFTER_END:
            time.sleep(pause)
            push_behind(where, lambda: time.monotonic() > until, str(session_id), pause=-AWAY)
        return
    waiting = os.path.join(team_file.team_folder(where), "waiting", str(session_id))
    pause = 0.0  # a server that was away is not tried yet
    with contextlib.suppress(OSError):
        past = time.time() - os.stat(os.path.join(team_folder(where), PUSHES)).st_mtime
        pause = PAUSE - past if 0 <= past < PAUSE else 0.0
    with contextlib.suppress(
        SessionOpen
    ):  # another turn's end waits already, and sends this one's, too
        if pause:
            with lock_folder(waiting, where, "Another turn's end waits", "Could not wait in"):
                time.sleep(pause)
        push_behind(where, lambda: time.monotonic() > until, str(session_id))
