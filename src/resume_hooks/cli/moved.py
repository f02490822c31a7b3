"""A session whose folder is gone, or whose file no client finds: where it could be at home, and a child of it there."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from resume_hooks import fork, repositories
from resume_hooks.cli.asking import Answer, ask
from resume_hooks.cli.child import tell
from resume_hooks.cli.output import current_folder, say
from resume_hooks.cli.starting import start_of
from resume_hooks.errors import ResumeHooksError
from resume_hooks.glance import Glance
from resume_hooks.home import home_folder
from resume_hooks.paths import canonical
from resume_hooks.repositories import Place
from resume_hooks.store import SessionFile, all_sessions, is_known, session_file

MOST = 5
"""Folders that are offered beside the current one."""

COPY = "A copy of its live conversation becomes a session of the folder you choose; the session itself stays as it is."


class Lost(NamedTuple):
    """A session that no client can be started on: why, and the folders that it could be at home in, the best first."""

    why: str
    homes: tuple[Place, ...]

    def refusal(self, session: SessionFile) -> ResumeHooksError:
        """The failure of going on where nobody can be asked."""
        return ResumeHooksError(self.why, f"To go on in a copy that is at home elsewhere: {self.command(session)}")

    def command(self, session: SessionFile) -> str:
        """What gives it the best home in a shell."""
        named = session.session_id if session.path.endswith(f"{session.session_id}.jsonl") else session.path
        return f"resume-hooks fork {shlex.quote(named)} --home {shlex.quote(self.homes[0].folder)} --start"


def lost(session: SessionFile, environ: Mapping[str, str]) -> Lost | None:
    """Why a session can't be gone on in where it is, None where it can. Only reads."""
    folder = home_folder(Glance(session.path))
    if not is_known(session, environ) and not start_of(session.session_id, session.path, folder, environ).config:
        why = f"{session.path} lies outside of the client's folders, where claude --resume does not find it."
        homes = [folder] if os.path.isdir(folder) else []
        return Lost(why, (*(Place(canonical(home), (), 0, 0, worktree=False) for home in homes), _here()))
    if os.path.isdir(folder):
        return None
    return Lost(f"{folder} is gone, the folder that this session is at home in.", _homes(session, folder, environ))


def rehomed(session: SessionFile, found: Lost, environ: Mapping[str, str]) -> SessionFile:
    """Ask for the folder that a session shall be at home in, and make its child there. click.Abort for none."""
    say(found.why)
    answers = [Answer(place.folder, place.why or "the current folder") for place in found.homes]
    chosen = found.homes[ask(COPY, answers)]
    receipt = fork.write(fork.plan(session, environ, home=chosen.folder), environ)
    tell(receipt)
    return session_file(receipt.file)


def _homes(session: SessionFile, folder: str, environ: Mapping[str, str]) -> tuple[Place, ...]:
    """The folders that something speaks for, then the current one."""
    here = _here()
    known = repositories.neighbours(one.path for one in all_sessions(environ))
    likely = [here.folder, *repositories.siblings(folder), *known]
    found = repositories.places(repositories.traces(session.path, folder), likely, environ)[:MOST]
    return (*found, *([] if here.folder in {place.folder for place in found} else [here]))


def _here() -> Place:
    return Place(canonical(current_folder()), (), 0, 0, worktree=False)
