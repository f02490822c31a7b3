"""``resolve``: which session a locator names."""

from __future__ import annotations

import click

from resume_hooks import clock
from resume_hooks.cli.options import VerbOptions, as_one_value, json_option, locator_argument
from resume_hooks.sessions.archived.sessions import archive_facts
from resume_hooks.transcripts.head_tail import HeadTail


@click.command("resolve")
@locator_argument
@json_option
@as_one_value
def command(options: VerbOptions) -> None:
    """Print the id and the file of SESSION; of the archived copy if only that is left.

    \b
    Examples:
      resume-hooks resolve
      resume-hooks resolve 5e12
      resume-hooks resolve "Fix the parser" --json
    """
    session = options.located(foreign=True)
    data = {
        "session_id": session.session_id,
        "agent": session.agent,
        "session_file": session.original,
        "title": HeadTail(session.path).title,
        "size": session.size,
        "ended": clock.from_epoch(session.mtime),
        **archive_facts(session.path, options.where),
    }
    options.emit(data, lambda: f"{session.session_id}\n{data['session_file']}")
