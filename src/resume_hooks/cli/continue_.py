"""``continue``: the client on the latest session of this folder, or on a named one, without a question."""

from __future__ import annotations

import sys
from typing import Any

import click

from resume_hooks.cli import relocate
from resume_hooks.cli.child import tell
from resume_hooks.cli.continue_as import finish, forked, settled
from resume_hooks.cli.output import emit, json_option, located, locator_argument, say
from resume_hooks.cli.start_client import Start, start_of
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.sessions import is_kept
from resume_hooks.sessions.liveness import why_live
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.transcripts.head_tail import HeadTail


@click.command("continue")
@locator_argument
@click.option("--fork", "forks", is_flag=True, help="Fork the session first, and go on in the fork.")
@click.option("--print", "show", is_flag=True, help="Print the command instead of starting the client.")
@json_option
def command(locator: str | None, forks: bool, show: bool, as_json: bool) -> None:
    """Start the client on the latest session of this folder, or on LOCATOR, in the session's own folder.

    Not on a terminal the command that does it is printed, and nothing else.

    \b
    Examples:
      resume-hooks continue
      resume-hooks continue 5e12a303 --fork
      eval "$(resume-hooks continue --print)"
    """
    session = located(locator)
    asks = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    whole = forks and is_kept(session.path, Where())  # a fork is made of a kept copy, too
    if asks and not whole:
        session = settled(session)
    elif not whole and (lost := relocate.lost(session, Where())) is not None:
        raise lost.refusal(session)
    made = forked(session) if forks else None
    begun = _start_of(session, made)
    if as_json:
        warnings = made.warnings if made else ()
        emit("continue", _data(begun, session, made), lambda: "", as_json=True, warnings=warnings)
        return
    if made is not None:
        tell(made)
    elif asks and not show and (why := why_live(session, Where())):
        say(f"note: it may be open in a client: {why}. --fork keeps two clients apart.", err=True)
    finish(begun, {"show": show or not asks, "copy": False})


def _start_of(session: SessionFile, made: Receipt | None) -> Start:
    if made is not None:
        return start_of(made.session_id, made.file, made.folder, Where())
    return start_of(session.session_id, session.path, home_folder(HeadTail(session.path)), Where())


def _data(begun: Start, session: SessionFile, made: Receipt | None) -> dict[str, Any]:
    """The documented form."""
    return {
        "session_id": begun.session_id,
        "parent_session_id": session.session_id if made else None,
        "folder": begun.folder,
        "commands": {"in_client": f"/resume {begun.session_id}", "shell": begun.command},
    }
