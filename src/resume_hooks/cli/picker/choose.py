"""The door to the chooser: a full screen where the terminal has one, else a numbered list."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import islice

import click

from resume_hooks.cli import relocate
from resume_hooks.cli.continue_as import copied
from resume_hooks.cli.menu import Answer, ask
from resume_hooks.cli.output import current_folder
from resume_hooks.cli.picker.loading import sessions
from resume_hooks.cli.picker.rows import age, used
from resume_hooks.cli.picker.state import Choices, Found
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.search.listing import SessionRow
from resume_hooks.sessions.locate import SessionFile

LISTED = 30
"""Sessions of a numbered list."""

LOOKED_AT = 2_000
"""Sessions among which words are looked for where all of them would be waited for."""


def choose(typed: str = "", *, everywhere: bool = False) -> SessionFile:
    """The session that the user chooses. click.Abort where they leave, SessionNotFound where there is none to list."""
    folder = current_folder()

    def listing(everywhere: bool) -> Iterator[Found]:
        return sessions(folder, Where(), everywhere=everywhere)

    if os.environ.get("TERM", "dumb") == "dumb":
        row: SessionRow | None = _numbered(listing(everywhere), typed)
    else:
        # 100 ms, for which nobody waits who names a session.
        from resume_hooks.cli.picker.chooser import Chooser  # noqa: PLC0415

        row = Chooser(listing, folder, Where(), _command, copied, typed=typed, everywhere=everywhere).run()
    if row is None:
        raise click.Abort
    return SessionFile(row.session_id, row.path, row.mtime, row.size)


def _numbered(found: Iterator[Found], typed: str) -> SessionRow:
    choices = Choices(typed)
    choices.add(islice(found, LOOKED_AT))
    rows = choices.fitting[:LISTED]
    if not rows:
        raise SessionNotFound(
            f"No session here holds all of '{typed}'" if typed else "No session of this folder",
            "List them all: resume-hooks sessions --all",
        )
    now = time.time()
    facts = (" · ".join(part for part in (age(row, now), used(row), row.branch) if part) for row in rows)
    answers = [Answer(row.title, about) for row, about in zip(rows, facts, strict=True)]
    return rows[ask("Which session?", answers)]


def _command(row: SessionRow) -> str:
    return relocate.way_on(SessionFile(row.session_id, row.path, row.mtime, row.size), row.folder, Where())
