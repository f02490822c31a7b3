"""``resolve``: which session a locator names."""

from __future__ import annotations

from resume_hooks import clock
from resume_hooks.cli.verbs.sessions import ResolveOptions
from resume_hooks.sessions.archived.sessions import archive_facts
from resume_hooks.transcripts.head_tail import HeadTail


def resolve(options: ResolveOptions) -> None:
    """Print the id and the file."""
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
