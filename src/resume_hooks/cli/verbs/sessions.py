"""The verbs that list, name and describe sessions."""

from __future__ import annotations

from typing import Any

import click

from resume_hooks.cli.options import (
    AGENT_OPTION,
    DRY_RUN_OPTION,
    PART_OPTIONS,
    OneSessionOptions,
    VerbOptions,
    argument,
    complete_session,
    flag,
    option,
)

DEFAULT_PAGE_ROWS = 20
MAX_PAGE_ROWS = 100_000  # the maximum number of rows on a page


class SessionsOptions(VerbOptions, function="resume_hooks.cli.sessions:list_sessions"):
    """List the sessions of this project and its repository's worktrees, newest first.

    LEFT is the time until the client may delete the session; the vault keeps sessions marked
    "archived". USED is how full the context is, as counted with the last answer: "~" marks an
    estimate, and "-" means unknown. "open" means that a client has the session open, or wrote to it
    in the last minute. The id at the front of a row can be used as SESSION in every verb. Only the
    first and last 64 KB of a file are read. If these do not contain all turns, TURNS is a minimum
    such as 12+. If /clear started a session of its own in place of a handoff, the handoff is not listed
    until it is continued; lineage SESSION --derived --all lists it.

    \b
    Examples:
      resume-hooks sessions
      resume-hooks sessions --all --limit 50
      resume-hooks sessions --expiring --all
      resume-hooks sessions --project ~/work/parser --json
      resume-hooks sessions --archived
      resume-hooks sessions --agent codex --all
    """

    everywhere: bool = flag(
        "--all", help="List every project, not only this one and its worktrees."
    )
    project: str | None = option(
        metavar="DIR",
        help="List the sessions of this folder's project, even if the folder is gone.",
    )
    limit: int = option(
        type=click.IntRange(0, MAX_PAGE_ROWS),
        default=DEFAULT_PAGE_ROWS,
        show_default=True,
        help="Maximum number of rows; 0 for all.",
    )
    offset: int = option(
        type=click.IntRange(0, MAX_PAGE_ROWS), default=0, help="Number of rows to skip."
    )
    include_headless_runs: bool = flag(
        "--helpers", help="Also list headless runs with a single question."
    )
    only_archived: bool = flag(
        "--archived", help="List the sessions that only the vault still has."
    )
    only_expiring: bool = flag(
        "--expiring",
        help="List only sessions that the client may delete within seven days, in the order of deletion.",
    )
    agent: str = AGENT_OPTION
    part_options: Any = PART_OPTIONS


class LineageOptions(OneSessionOptions, function="resume_hooks.cli.lineage:print_lineage"):
    """Show a session's ancestors, oldest first, and the session itself, or its descendants.

    An ancestor without a file is shown as missing, or as an archived copy if the vault has one.
    With --team, sessions on the team's server are shown with their owner and machine. Sessions that
    the server does not show are marked as private. SESSION may then also name a session on the server.

    --derived omits a handoff that /clear continued, and shows the session that /clear started
    instead. The verbs find-original and find-derived do the same as lineage --original and lineage
    --derived.

    \b
    Examples:
      resume-hooks lineage
      resume-hooks lineage 5e12a303 --continued
      resume-hooks lineage "bob:Fix the parser" --team
      resume-hooks lineage "Fix the parser" --json
      resume-hooks lineage 5e12a303 --derived --tree
    """

    omit_trimmed_sessions: bool = flag("--continued", help="Leave out trimmed sessions.")
    only_first_session: bool = flag(
        "--original", help="Show only the first known session of the lineage."
    )
    show_descendants: bool = flag(
        "--derived", help="Show the session's descendants instead, oldest first."
    )
    as_tree: bool = flag("--tree", help="With --derived: show a tree.")
    include_replaced_handoffs: bool = flag(
        "--all", help="With --derived: also show handoffs that /clear replaced."
    )
    part_options: Any = PART_OPTIONS


class InfoOptions(OneSessionOptions, function="resume_hooks.cli.info:print_session_info"):
    """Show the facts about a session: id, file, title, dates, turns, context tokens, records, damage.

    For a session that only the vault has, the file is the archived copy. The context tokens are the
    number that the API counted with the last answer of the live conversation.

    \b
    Examples:
      resume-hooks info
      resume-hooks info "Fix the parser"
      resume-hooks info 5e12a303 --json
    """


class RenameOptions(VerbOptions, function="resume_hooks.cli.info:rename_session"):
    """Give SESSION the title TITLE, or a tag.

    This appends a record to the session's file, as Claude Code's own /rename does. The file's
    modification time stays the same. Every verb, the client's picker and /resume TITLE then find
    the session by its title. Titles stay unique within a project. A session has one tag, and
    several sessions may share it.

    \b
    Examples:
      resume-hooks rename 5e12a303 "Fix the parser"
      resume-hooks rename "Fix the parser" "Parser, first try" --dry-run
      resume-hooks rename 5e12a303 --tag experiment
      resume-hooks rename 5e12a303 --no-tag
    """

    locator: str = argument(metavar="SESSION", shell_complete=complete_session)
    title: str | None = argument(required=False)
    tag: str | None = option(help="Give the session this tag instead of a title.")
    remove_tag: bool = flag("--no-tag", help="Remove the session's tag.")
    force: bool = flag(help="Set the title even if another session of the project has it.")
    dry_run: bool = DRY_RUN_OPTION
