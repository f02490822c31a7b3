"""Open the picker: a full screen where the terminal has one, else a numbered list."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import islice

import click

from resume_hooks.cli import relocate
from resume_hooks.cli.continue_ import copy_command
from resume_hooks.cli.options import current_folder
from resume_hooks.cli.question import AnswerChoice, ask
from resume_hooks.errors import SessionNotFound
from resume_hooks.hooks.choosing.found import found
from resume_hooks.hooks.choosing.rows import age, left, used
from resume_hooks.hooks.choosing.state import Choices, Listed
from resume_hooks.paths import Where
from resume_hooks.search.listing import ListedSession
from resume_hooks.sessions.agents.registry import require_whole
from resume_hooks.sessions.locate import SessionFile

LISTED = 30  # sessions of a numbered list
LOOKED_AT = 2_000  # sessions among which words are looked for where all of them would be waited for


def choose(typed: str = "", *, everywhere: bool = False) -> SessionFile:
    """Return the session that the user chooses. click.Abort if they leave, SessionNotFound if there is none to list."""
    folder = current_folder()

    def sessions_of(everywhere: bool) -> Iterator[Listed]:
        return found(folder, Where(), everywhere=everywhere)

    if os.environ.get("TERM", "dumb") == "dumb":
        row: ListedSession | None = _numbered(sessions_of(everywhere), typed)
    else:
        # 100 ms, for which nobody waits who names a session.
        from resume_hooks.cli.picker.contents import ContentSearch
        from resume_hooks.cli.picker.screen import Chooser

        row = Chooser(
            sessions_of,
            folder,
            Where(),
            _copy,
            typed=typed,
            everywhere=everywhere,
            contents=lambda told: ContentSearch(folder, Where(), told),
        ).run()
    if row is None:
        raise click.Abort
    chosen = SessionFile(row.session_id, row.path, row.mtime, row.size)
    require_whole(chosen, Where())
    return chosen


def _numbered(sessions: Iterator[Listed], typed: str) -> ListedSession:
    choices = Choices(typed)
    choices.add(islice(sessions, LOOKED_AT))
    rows = choices.fitting[:LISTED]
    if not rows:
        raise SessionNotFound(
            f"No session here holds all of '{typed}'" if typed else "No session of this folder",
            "List them all: resume-hooks sessions --all",
        )
    now = time.time()
    facts = (" · ".join(part for part in (age(row, now), used(row), row.branch) if part) for row in rows)
    answers = [AnswerChoice(f"{left(row)}{row.title}", about) for row, about in zip(rows, facts, strict=True)]
    return rows[ask("Which session?", answers)]


def _copy(row: ListedSession) -> str:
    """Copy the command that continues a session; what became of it, and the command itself."""
    session = SessionFile(row.session_id, row.path, row.mtime, row.size)
    if left(row):
        return copy_command(row.commands.shell)
    return copy_command(relocate.way_on(session, row.folder, Where()))
