"""The options of the verb ``search``."""

from __future__ import annotations

from typing import Any

import click

from resume_hooks.cli.options import (
    AGENT_OPTION,
    MAX_CHARS_OPTION,
    PART_OPTIONS,
    VerbOptions,
    argument,
    flag,
    option,
)
from resume_hooks.search.roles import DEFAULT_MAX_SEARCH_HITS, MAX_SEARCH_HITS, ROLE_ALIASES


class SearchOptions(
    VerbOptions,
    function="resume_hooks.cli.search:search_and_print_hits",
    context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]},
):
    """Find what was said, asked, run or read: also before a compaction, on abandoned branches and by sub-agents.

    Ask in words or in a whole sentence. The best hits come first; each shows which words it contains
    and which it lacks, and its strength (strong, fair, weak). Other forms of a word match too, such
    as a plural. For a word without any match, search tries similar spellings, then longer words that
    contain it, and the answer says so. Several wordings (--or) find more than a single wording, and
    turns found by several wordings come first. "In quotes" finds exactly these words (in a shell:
    '"in quotes"'), and -word excludes a word. "last week" or "in June" ranks turns from that time
    first. Times are UTC.

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
    other_wordings: tuple[str, ...] = option(
        "--or",
        metavar="WORDS",
        multiple=True,
        help="Another wording of the same question. Can be given several times.",
    )
    everywhere: bool = flag(
        "--all", help="Search every project, not only this one and its worktrees."
    )
    project: str | None = option(metavar="DIR", help="Search the project of this folder.")
    lineage: str | None = option(
        metavar="SESSION",
        help="Search only a session and its ancestors; '.' is the current session.",
    )
    session: str | None = option(
        metavar="SESSION",
        help="Search only a session and its sub-agents; '.' is the current session.",
    )
    since: str | None = option(
        metavar="WHEN",
        help="Find only turns since a date such as 2026-01-31, or from the last 12h, 3d, 2w or 6m.",
    )
    until: str | None = option(metavar="WHEN", help="Find only turns before this date.")
    branch: str = option(metavar="NAME", default="", help="Find only turns on this git branch.")
    tool: str = option(
        metavar="NAME",
        default="",
        help="Find only this tool's calls and their results, for example Bash or Edit.",
    )
    file: str = option(
        metavar="PATH",
        default="",
        help=(
            "Find only reads and writes of this file; the end of its path is enough. PATH:LINE finds "
            "the session that wrote that line."
        ),
    )
    role: str | None = option(
        type=click.Choice(sorted(ROLE_ALIASES)), help="Find only messages of this speaker."
    )
    include_helpers: bool = flag(
        "--helpers",
        help="Find all headless runs with a single question, not only the three that fit best.",
    )
    agent: str = AGENT_OPTION
    part_options: Any = PART_OPTIONS
    limit: int = option(
        type=click.IntRange(1, MAX_SEARCH_HITS),
        default=DEFAULT_MAX_SEARCH_HITS,
        show_default=True,
        help="Maximum number of hits.",
    )
    max_chars: int = MAX_CHARS_OPTION
