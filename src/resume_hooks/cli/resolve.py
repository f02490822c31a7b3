"""``resolve``: which session a locator names."""

from __future__ import annotations

import click

from resume_hooks import clock
from resume_hooks.cli.output import emit, json_option, located, locator_argument
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.sessions import kept_facts
from resume_hooks.transcripts.head_tail import HeadTail


@click.command("resolve")
@locator_argument
@json_option
def command(locator: str | None, as_json: bool) -> None:
    """Print the id and the file of the session that LOCATOR names; of a kept copy where only that is left.

    \b
    Examples:
      resume-hooks resolve
      resume-hooks resolve 5e12
      resume-hooks resolve "Fix the parser" --json
    """
    session = located(locator)
    data = {
        "session_id": session.session_id,
        "session_file": session.path,
        "title": HeadTail(session.path).title,
        "size": session.size,
        "ended": clock.from_epoch(session.mtime),
        **kept_facts(session.path, Where()),
    }
    emit("resolve", data, lambda: f"{session.session_id}\n{session.path}", as_json=as_json)
