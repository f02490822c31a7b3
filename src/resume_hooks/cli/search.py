"""``search``: what was ever said, in this project or everywhere."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import click

from resume_hooks import clock
from resume_hooks.cli.output import current_folder, emit, json_option
from resume_hooks.cli.progress import at_work
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where, canonical, find_session
from resume_hooks.search.as_text import MOST_LIMIT, text_of
from resume_hooks.search.engine import SearchResult, find
from resume_hooks.search.hits import Hit
from resume_hooks.search.scope import ALIASES, Scope, lineage_scope, project_at, project_of, session_scope
from resume_hooks.system.invocation import resume_command

MAX_CHARACTERS = 8_000
"""Characters that are printed where nothing else is asked for: about 2,000 tokens of a model that reads along."""

_HERE = "."


@click.command("search", context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.option("--all", "everywhere", is_flag=True, help="Every project, not only this one and its worktrees.")
@click.option("--project", metavar="DIR", help="The project of another folder.")
@click.option("--lineage", metavar="LOCATOR", help="Only a session and its ancestors; '.' for the current one.")
@click.option("--session", metavar="LOCATOR", help="Only one session and its sub-agents; '.' for the current one.")
@click.option("--since", metavar="WHEN", help="Said since: a date such as 2026-01-31, or 12h, 3d, 2w, 6m ago.")
@click.option("--until", metavar="WHEN", help="Said before.")
@click.option("--branch", metavar="NAME", default="", help="Said on a git branch.")
@click.option("--tool", metavar="NAME", default="", help="Calls of a tool and what they gave: Bash, Edit...")
@click.option(
    "--file", metavar="PATH", default="", help="Where a file was read or written; the end of its path will do."
)
@click.option("--role", type=click.Choice(sorted(ALIASES)), help="Who said it.")
@click.option("--helpers", is_flag=True, help="Also headless runs of a single question.")
@click.option("--limit", type=click.IntRange(1, MOST_LIMIT), default=10, show_default=True, help="Hits.")
@click.option(
    "--max-chars", type=click.IntRange(0), default=MAX_CHARACTERS, show_default=True,
    help="Characters of the text at most; 0 for all.",
)  # fmt: skip
@json_option
def command(words: tuple[str, ...], limit: int, max_chars: int, as_json: bool, **asked: Any) -> None:
    """Find what was ever said, asked, run or read: also before a compaction, on abandoned branches and by sub-agents.

    All words are looked for first, then as many as possible, inflected or as the beginning or a part of others, then
    related ones; the answer says which. "In quotes" is exact (in a shell: '"in quotes"'), -word must not be there.
    Times are UTC.

    \b
    Examples:
      resume-hooks search why did we drop redis
      resume-hooks search '"connection pool" timeout -redis' --all
      resume-hooks search getUserName --tool Edit --since 2w
      resume-hooks search --file src/parser.py
      resume-hooks search retry policy --lineage . --json
    """
    _refuse(words, asked)
    where = Where()
    with at_work("Indexing", quiet=as_json) as progress:
        found = find(words, _scope(asked, where), where, most=limit, progress=progress)
    emit(
        "search",
        {**_data(found), "scope": _where(asked)},
        lambda: text_of(found, max(1, max_chars - 1) if max_chars else 0, mark=_bold, title=_title, model=_is_model()),
        as_json=as_json,
        warnings=found.notes,
    )


def _refuse(words: tuple[str, ...], asked: Mapping[str, Any]) -> None:
    for word in words:
        if re.match(r"--[^\s-]\S*\Z", word):
            option = word.partition("=")[0]
            raise UsageError(f"No such option: {option}", f"Options: search --help. To find it: search '\"{option}\"'")
    given = [f"--{name}" for name in ("project", "lineage", "session") if asked[name] is not None]
    given += ["--all"] if asked["everywhere"] else []
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other", "Leave one of them out.")


def _scope(asked: Mapping[str, Any], where: Where) -> Scope:
    return replace(
        _place(asked, where),
        asking=where.environ.get("CLAUDE_CODE_SESSION_ID", ""),
        since=_seconds(asked["since"]),
        until=_seconds(asked["until"]),
        branch=asked["branch"],
        tool=asked["tool"],
        file=asked["file"],
        role=asked["role"] or "",
        helpers=asked["helpers"],
    )


def _place(asked: Mapping[str, Any], where: Where) -> Scope:
    """The sessions that are meant: one or its lineage, all, a folder's, those around the one that we run in."""
    for name, scoped in (("session", session_scope), ("lineage", lineage_scope)):
        if asked[name] is not None:
            return scoped(None if asked[name] == _HERE else asked[name], current_folder(), where)
    if asked["everywhere"]:
        return Scope()
    current = find_session(where.environ.get("CLAUDE_CODE_SESSION_ID", ""), where)
    if asked["project"] is None and current is not None:
        return project_of(current, where)  # a model's shell may stand anywhere
    return project_at(_folder(asked), where)


def _folder(asked: Mapping[str, Any]) -> str:
    """The folder whose project is meant."""
    return os.path.join(current_folder(), os.path.expanduser(asked["project"] or "."))


def _where(asked: Mapping[str, Any]) -> str:
    """What was searched, in a word for programs."""
    if asked["everywhere"]:
        return "all"
    named = next((name for name in ("session", "lineage") if asked[name] is not None), None)
    return named or canonical(_folder(asked))


def _seconds(when: str | None) -> int | None:
    """An instant as seconds since the epoch. UsageError for what is none."""
    if when is None:
        return None
    moment = clock.point(when)
    if moment is None:
        raise UsageError(f"'{when}' is no date", clock.WHEN)
    return int(moment.timestamp())


def _data(found: SearchResult) -> dict[str, Any]:
    return {
        "query": found.query.text,
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
        "resume": resume_command(hit.folder, hit.session_id),
        "handoff": f"resume-hooks handoff {hit.session_id}",
    }
    return row


def _is_model() -> bool:
    """Whether a model reads the answer, which may go on from nothing by itself."""
    return "CLAUDECODE" in os.environ and not sys.stdout.isatty()


def _bold(text: str) -> str:
    return click.style(text, fg="yellow", bold=True)


def _title(text: str) -> str:
    return click.style(text, bold=True)
