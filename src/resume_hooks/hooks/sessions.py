"""``/sessions``: show the newest sessions of this project, each with the command that opens it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from resume_hooks.clock import format_minute
from resume_hooks.derive.outcome import Report, make_text_report
from resume_hooks.errors import UsageError
from resume_hooks.hooks.plain_cards import MAX_TITLE_COLUMNS
from resume_hooks.hooks.request import ALL_OPTION, Request, current_folder
from resume_hooks.hooks.time_limit import time_limit
from resume_hooks.paths import Where
from resume_hooks.search import listing
from resume_hooks.search.listing import ORIGINAL_KIND, ListedSession
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import agent_with_name
from resume_hooks.sessions.child_titles import kind_unless_in_title
from resume_hooks.sessions.project_folder import home_folder_of_session
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.head_tail import HeadTail

MAX_LISTED_SESSIONS = 10


def answer_request(request: Request) -> Report:
    """List the newest sessions. Raise UsageError for a word that is not an option."""
    if request.text not in {"", ALL_OPTION}:
        unknown_words = collapse_line(request.text, MAX_TITLE_COLUMNS)
        raise UsageError(
            f"'{unknown_words}' is not an option",
            f"To search for words: {request.trigger.name_of_verb('search')} {unknown_words}",
        )
    in_all_projects = request.text == ALL_OPTION
    with time_limit(shell_command("sessions")):
        if request.path:
            folder = home_folder_of_session(HeadTail(request.path), request.where)
        else:
            folder = current_folder()
        rows = list(
            islice(
                listing.list_project(folder, request.where, covers_all_projects=in_all_projects),
                MAX_LISTED_SESSIONS + 1,
            )
        )
    return make_text_report(
        sessions_card(rows, request.session_id, in_all_projects=in_all_projects)
    )


def sessions_card(rows: Sequence[ListedSession], current_id: str, *, in_all_projects: bool) -> str:
    """Return the card with the newest sessions. ``current_id`` is the session in which the user typed."""
    scope_text = "every project" if in_all_projects else "this project"
    lines = [f"resume-hooks · sessions of {scope_text}, newest first"]
    for row in rows[:MAX_LISTED_SESSIONS]:
        lines += [
            "",
            f"  {collapse_line(plain_line(row.title), MAX_TITLE_COLUMNS)}",
            f"  {' · '.join(_describe_row(row, current_id))}",
        ]
        lines += [f"  {row.commands.client_command}"]
    more_line = f"  more, in a shell: {shell_command(f'sessions {ALL_OPTION}' if in_all_projects else 'sessions')}"
    return "\n".join(
        [
            *lines,
            *(["", more_line] if rows[MAX_LISTED_SESSIONS:] else []),
            "",
            "/resume <id> opens a listed session.",
        ]
    )


def _describe_row(row: ListedSession, current_id: str) -> Sequence[str]:
    if row.context_percent is None:
        size_fact = ""
    else:
        size_fact = f"{'about ' if row.context.is_estimate else ''}{row.context_percent} % full"
    if row.kind == ORIGINAL_KIND:
        kind_fact = ""
    else:
        kind_fact = kind_unless_in_title(row.title, row.kind)
    current_fact = "this session" if row.session_id == current_id else ""
    if row.agent != CLAUDE_NAME:
        agent_label = agent_with_name(row.agent, Where()).label.lower()
    else:
        agent_label = ""
    return [
        fact
        for fact in (agent_label, format_minute(row.end_time), size_fact, kind_fact, current_fact)
        if fact
    ]
