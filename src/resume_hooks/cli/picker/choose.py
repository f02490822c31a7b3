"""Let the user choose a session: in a full screen, or in a numbered list on a dumb terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import click

from resume_hooks.cli import relocate
from resume_hooks.cli.ask_question import AnswerChoice, ask_question, is_dumb_terminal
from resume_hooks.cli.continue_ import copy_command_to_clipboard
from resume_hooks.cli.options import current_folder
from resume_hooks.derive.cut_point import CutBeforeCompaction
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.fork import ForkSpec, fork
from resume_hooks.errors import ResumeHooksError, SessionNotFound
from resume_hooks.hooks.session_list.rows import age_text, context_percent_text, session_name
from resume_hooks.hooks.session_list.state import Choices, ListEntry, list_entries
from resume_hooks.paths import Where
from resume_hooks.search.listing import ListedSession
from resume_hooks.sessions.agents.registry import agent_of_path, readable_session, require_answers
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts.transcript import was_compacted

FORK_CONFIRMATION_HINT = (
    "Ctrl+B again: opens a fork from before the compaction; the session stays as it is"
)
MAX_LISTED_SESSIONS = 30  # the maximum number of sessions in the numbered list
# the maximum number of sessions that the numbered list filters; more would keep the user waiting
MAX_SEARCHED_SESSIONS = 2_000


class ListView(NamedTuple):
    """The state of the list that the user sees: the typed words, and whether it shows all projects."""

    typed_text: str = ""
    shows_all_projects: bool = False


def choose_session(view: ListView) -> tuple[SessionFile, ListView]:
    """Let the user choose a session. Return the session and the list's state when it was chosen.

    Raise click.Abort if the user leaves, and SessionNotFound if there is nothing to choose from.
    """
    folder = current_folder()

    def list_sessions(in_all_projects: bool) -> Iterator[ListEntry]:
        return list_entries(
            folder, Where(), covers_all_projects=in_all_projects, covers_all_agents=True
        )

    if is_dumb_terminal():
        row: ListedSession | None = _choose_by_number(
            list_sessions(view.shows_all_projects), view.typed_text
        )
    else:
        # Imported late: the screen takes 100 ms to load, and a dumb terminal does not need it.
        from resume_hooks.cli.picker.chooser_threads import ContentSearch
        from resume_hooks.cli.picker.screen import Chooser, OfferedSessions

        offered_sessions = OfferedSessions(
            list_sessions,
            folder,
            KEY_ACTIONS,
            lambda on_answer: ContentSearch(folder, Where(), on_answer),
        )
        chooser = Chooser(
            offered_sessions,
            Where(),
            typed_text=view.typed_text,
            shows_all_projects=view.shows_all_projects,
        )
        row = chooser.run_until_closed()
        view = ListView(chooser.typed_text, chooser.shows_all_projects)
    if row is None:
        raise click.Abort
    session = readable_session(row.path, Where())
    require_answers(session)
    return session, view


def _choose_by_number(sessions: Iterator[ListEntry], typed_text: str) -> ListedSession:
    choices = Choices(typed_text)
    choices.add_entries(islice(sessions, MAX_SEARCHED_SESSIONS))
    rows = choices.matches[:MAX_LISTED_SESSIONS]
    if not rows:
        raise SessionNotFound(
            f"No session here contains all words of '{typed_text}'"
            if typed_text
            else "This folder has no sessions",
            "List the sessions of all projects: resume-hooks sessions --all",
        )
    now = time.time()
    descriptions = (
        " · ".join(
            part for part in (age_text(row, now), context_percent_text(row), row.branch) if part
        )
        for row in rows
    )
    answers = []
    for row, description in zip(rows, descriptions, strict=True):
        answers.append(AnswerChoice(session_name(row), description))
    return rows[ask_question("Which session?", answers)]


def _fork_before_compaction(row: ListedSession, shown_message: str) -> str | ListedSession:
    """Fork the chosen session before its last compaction when the user presses Ctrl+B for the second time.

    Return the new session. After the first Ctrl+B, return a message that asks the user to press
    Ctrl+B again. If the fork is not possible, return a message with the reason. ``shown_message``
    is the message that the screen shows now.
    """
    if shown_message != FORK_CONFIRMATION_HINT:
        if was_compacted(row.path):
            return FORK_CONFIRMATION_HINT
        return "The session has no compaction to undo."
    session = Session.open_path(row.path, Where())
    try:
        path = fork(session, ForkSpec(CutBeforeCompaction()), Caller(Where())).receipt.file
        child = agent_of_path(path, Where()).open_session(path)
    except ResumeHooksError as error:
        return f"{error.message}. {error.remedy}"
    return row._replace(
        session_id=child.session_id, path=child.path, mtime=child.mtime, size=child.size
    )


def _copy_resume_command(row: ListedSession, _message: str) -> str:
    session = SessionFile(row.session_id, row.path, row.mtime, row.size)
    return copy_command_to_clipboard(relocate.command_to_continue(session, row.folder, Where()))


KEY_ACTIONS = {"c-y": _copy_resume_command, "c-b": _fork_before_compaction}
"""Additional keys of the picker, with the functions that they run on the chosen session."""
