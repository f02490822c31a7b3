"""The verb that searches."""

from __future__ import annotations

from typing import Any

import click

from resume_hooks.cli.options import (
    AGENT,
    MAX_CHARS,
    PART_OPTIONS,
    VerbOptions,
    argument,
    flag,
    option,
)
from resume_hooks.search.roles import DEFAULT_SEARCH_HITS, MAX_SEARCH_HITS, ROLE_ALIASES


class SearchOptions(
    VerbOptions,
    function="resume_hooks.cli.search:print_search",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
):
    """Find what was said, asked, run or read: also before a compaction, on abandoned branches and by sub-agents.

    Ask in words or in a whole sentence. Hits are ranked; each shows which words it contains and
    which it lacks, and its strength (strong, fair, weak). Inflected words match. A word without any
    match is also tried misspelled, and then as a part of other words; the answer says so. Several
    wordings (--or) find more than one: a turn that several find comes first. "In quotes" is exact
    (in a shell: '"in quotes"'), -word excludes; "last week" or "in June" ranks that time first.
    Times are UTC.

    \b
    Examples:
      resume-hooks search why did we drop redis
      resume-hooks search 'retry queue dropped' --or 'why no backoff' --or 'give up after three attempts'
      resume-hooks search '"connection pool" timeout -redis' --all
      resume-hooks search getUserName --tool Edit --since 2w
      resume-hooks search --file src/parser.py
      resume-hooks search --file src/parser.py:42
      resume-hooks search retry policy --lineage . --json
    """

    words: tuple[str, ...] = argument(nargs=-1, type=click.UNPROCESSED)
    also: tuple[str, ...] = option(
        "--or",
        metavar="WORDS",
        multiple=True,
        help="Another wording of the same question; repeatable.",
    )
    everywhere: bool = flag("--all", help="Every project, not only this one and its worktrees.")
    project: str | None = option(metavar="DIR", help="The project of another folder.")
    lineage: str | None = option(
        metavar="SESSION", help="Only a session and its ancestors; '.' for the current one."
    )
    session: str | None = option(
        metavar="SESSION", help="Only one session and its sub-agents; '.' for the current one."
    )
    since: str | None = option(
        metavar="WHEN", help="Only since a date such as 2026-01-31, or 12h, 3d, 2w, 6m ago."
    )
    until: str | None = option(metavar="WHEN", help="Only before a date.")
    branch: str = option(metavar="NAME", default="", help="Only on a git branch.")
    tool: str = option(
        metavar="NAME",
        default="",
        help="Only a tool's calls and the results of these calls: Bash, Edit...",
    )
    file: str = option(
        metavar="PATH",
        default="",
        help=(
            "Only reads and writes of a file; the end of the file's path is enough. PATH:LINE: the "
            "session that wrote that line."
        ),
    )
    role: str | None = option(
        type=click.Choice(sorted(ROLE_ALIASES)), help="Only this speaker's messages."
    )
    helpers: bool = flag(
        help="All headless runs of a single question, not only the three that fit best."
    )
    agent: str = AGENT
    part_options: Any = PART_OPTIONS
    limit: int = option(
        type=click.IntRange(1, MAX_SEARCH_HITS),
        default=DEFAULT_SEARCH_HITS,
        show_default=True,
        help="Hits.",
    )
    max_chars: int = MAX_CHARS
