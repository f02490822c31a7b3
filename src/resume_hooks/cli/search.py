"""``search``: what was ever said, in this project or everywhere."""

from __future__ import annotations

import shlex
from dataclasses import asdict, replace
from typing import Any

import click

from resume_hooks.cli.options import (
    VerbOptions,
    agent_option,
    as_one_value,
    current_folder,
    folder_of,
    json_option,
    max_chars_option,
    part_options,
    refuse_unknown,
    time_of,
)
from resume_hooks.cli.progress import at_work
from resume_hooks.paths import find_session
from resume_hooks.search.as_text import text_of
from resume_hooks.search.engine import SearchResult, find
from resume_hooks.search.hits import Hit
from resume_hooks.search.roles import ALIASES, MOST_LIMIT
from resume_hooks.search.scope import Scope, lineage_scope, project_at, project_of, session_scope
from resume_hooks.sessions.agents.registry import ALL
from resume_hooks.system.invocation import is_model

_HERE = "."
PATIENCE = 1.5
"""Seconds that a search brings the index up to date for; two after it was asked it answers from what there is."""


@click.command("search", context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.option("--or", "also", metavar="WORDS", multiple=True, help="Another wording of the same question; repeatable.")
@click.option("--all", "everywhere", is_flag=True, help="Every project, not only this one and its worktrees.")
@click.option("--project", metavar="DIR", help="The project of another folder.")
@click.option("--lineage", metavar="SESSION", help="Only a session and its ancestors; '.' for the current one.")
@click.option("--session", metavar="SESSION", help="Only one session and its sub-agents; '.' for the current one.")
@click.option("--since", metavar="WHEN", help="Said since: a date such as 2026-01-31, or 12h, 3d, 2w, 6m ago.")
@click.option("--until", metavar="WHEN", help="Said before.")
@click.option("--branch", metavar="NAME", default="", help="Said on a git branch.")
@click.option("--tool", metavar="NAME", default="", help="Calls of a tool and what they gave: Bash, Edit...")
@click.option(
    "--file", metavar="PATH", default="", help="Where a file was read or written; the end of its path will do."
)
@click.option("--role", type=click.Choice(sorted(ALIASES)), help="Who said it.")
@click.option("--helpers", is_flag=True, help="Also headless runs of a single question.")
@agent_option
@part_options("search")
@click.option("--limit", type=click.IntRange(1, MOST_LIMIT), default=10, show_default=True, help="Hits.")
@max_chars_option
@json_option
@as_one_value
def command(options: VerbOptions) -> None:
    """Find what was ever said, asked, run or read: also before a compaction, on abandoned branches and by sub-agents.

    Ask in words or in a whole sentence. Hits come ranked, each with the words that it has and lacks and how sure it is
    (strong, fair, weak). Words count inflected, a word that is nowhere also as a part of others or misspelled; the
    answer says which. Several wordings (--or) find more than one: what several find well comes first. "In quotes" is
    exact (in a shell: '"in quotes"'), -word must not be there; "last week" or "in June" puts what was said then first.
    Times are UTC.

    \b
    Examples:
      resume-hooks search why did we drop redis
      resume-hooks search 'retry queue dropped' --or 'why no backoff' --or 'give up after three attempts'
      resume-hooks search '"connection pool" timeout -redis' --all
      resume-hooks search getUserName --tool Edit --since 2w
      resume-hooks search --file src/parser.py
      resume-hooks search retry policy --lineage . --json
    """
    refuse_unknown(options.words)
    for answer in options.asked_of_parts():  # a part whose option was given prints its own
        answer(options)
        return
    options.refuse_together("project", "lineage", "session", "everywhere")
    limit = max(1, options.max_chars - 1) if options.max_chars else 0
    with at_work("Indexing", quiet=options.as_json) as progress:
        found = find(
            options.words,
            _scope(options),
            options.where,
            also=options.also,
            most=options.limit,
            limit=PATIENCE,
            progress=progress,
        )
    data = {**_data(found), "scope": _scope_name(options)}
    options.emit(data, lambda: text_of(found, limit, mark=_bold, title=_title, model=is_model()), found.notes)


def _scope(options: VerbOptions) -> Scope:
    return replace(
        _sessions(options),
        asking=options.where.environ.get("CLAUDE_CODE_SESSION_ID", ""),
        since=_seconds(options.since),
        until=_seconds(options.until),
        branch=options.branch,
        tool=options.tool,
        file=options.file,
        role=options.role or "",
        helpers=options.helpers,
        programs=frozenset({options.agent} - {ALL}),
    )


def _sessions(options: VerbOptions) -> Scope:
    """The sessions to search: one or its lineage, all, a folder's, those around the one that we run in."""
    for given, scoped in ((options.session, session_scope), (options.lineage, lineage_scope)):
        if given is not None:
            return scoped(None if given == _HERE else given, current_folder(), options.where)
    if options.everywhere:
        return Scope()
    current = find_session(options.where.environ.get("CLAUDE_CODE_SESSION_ID", ""), options.where)
    if options.project is None and current is not None:
        return project_of(current, options.where)  # a model's shell may stand anywhere
    return project_at(folder_of(options.project), options.where)


def _scope_name(options: VerbOptions) -> str:
    """What was searched, in a word for programs."""
    if options.everywhere:
        return "all"
    named = next((name for name in ("session", "lineage") if options.has(name)), None)
    return named or folder_of(options.project)


def _seconds(when: str | None) -> int | None:
    """A time as seconds since the epoch."""
    return None if when is None else int(time_of(when).timestamp())


def _data(found: SearchResult) -> dict[str, Any]:
    query, *also = found.wordings
    return {
        "query": query,
        "also": also,
        "how": found.how,
        "total": found.total,
        "more": found.more,
        "hits": [_row(hit) for hit in found.hits],
        "helpers_left_out": found.helpers,
    }


def _row(hit: Hit) -> dict[str, Any]:
    row = asdict(hit)
    del row["marks"], row["short"]
    row["commands"] = {
        "read": f"resume-hooks read {shlex.quote(hit.reference)}",
        "resume": row.pop("resume"),
        "handoff": f"resume-hooks handoff {hit.session_id}",
    }
    return row


def _bold(text: str) -> str:
    return click.style(text, fg="yellow", bold=True)


def _title(text: str) -> str:
    return click.style(text, bold=True)
