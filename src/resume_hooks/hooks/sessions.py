"""``/sessions``: the newest sessions of this project, each with the command that opens it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from resume_hooks.clock import format_minute
from resume_hooks.derive.outcome import Report, report_on_text
from resume_hooks.errors import UsageError
from resume_hooks.hooks.plain_cards import ROW
from resume_hooks.hooks.request import (
    EVERYWHERE,
    Request,
    current_folder,
    time_limit,
)
from resume_hooks.paths import Where
from resume_hooks.search import listing
from resume_hooks.search.listing import ORIGINAL, ListedSession
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import agent_named
from resume_hooks.sessions.child_titles import kind_beside
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.head_tail import HeadTail

ROWS = 10


def answer(request: Request) -> Report:
    """List the sessions. Raise UsageError for words that are not an option."""
    if request.text not in {"", EVERYWHERE}:
        words = collapse_line(request.text, ROW)
        raise UsageError(
            f"'{words}' is not an option",
            f"To search for words: {request.trigger.name('search')} {words}",
        )
    everywhere = request.text == EVERYWHERE
    with time_limit(shell_command("sessions")):
        if request.path:
            folder = home_folder(HeadTail(request.path), request.where)
        else:
            folder = current_folder()
        rows = list(
            islice(listing.list_project(folder, request.where, everywhere=everywhere), ROWS + 1)
        )
    return report_on_text(sessions_card(rows, request.session_id, everywhere=everywhere))


def sessions_card(found: Sequence[ListedSession], here: str, *, everywhere: bool) -> str:
    """Return a card with the newest sessions; ``here`` is the current session."""
    whose = "every project" if everywhere else "this project"
    lines = [f"resume-hooks · sessions of {whose}, newest first"]
    for row in found[:ROWS]:
        lines += [
            "",
            f"  {collapse_line(plain_line(row.title), ROW)}",
            f"  {' · '.join(_facts_of_row(row, here))}",
        ]
        lines += [f"  {row.commands.in_client}"]
    more = f"  more, in a shell: {shell_command(f'sessions {EVERYWHERE}' if everywhere else 'sessions')}"
    return "\n".join(
        [*lines, *(["", more] if found[ROWS:] else []), "", "/resume <id> opens one of them."]
    )


def _facts_of_row(row: ListedSession, here: str) -> Sequence[str]:
    if row.percent is None:
        used = ""
    else:
        used = f"{'about ' if row.context.is_estimate else ''}{row.percent} % full"
    if row.kind == ORIGINAL:
        kind = ""
    else:
        kind = kind_beside(row.title, row.kind)
    mine = "this session" if row.session_id == here else ""
    if row.agent != NAME:
        left = agent_named(row.agent, Where()).label.lower()
    else:
        left = ""
    return [fact for fact in (left, format_minute(row.ended), used, kind, mine) if fact]
