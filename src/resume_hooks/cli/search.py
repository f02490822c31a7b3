"""``search``: full-text search in the sessions of this project or of all projects."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from resume_hooks import questions
from resume_hooks.cli.options import (
    current_folder,
    find_project_folder,
    parse_time_option,
    refuse_unknown_options,
)
from resume_hooks.cli.output import show_work_progress
from resume_hooks.cli.search_answer import MAX_INDEX_UPDATE_SECONDS, print_search_result
from resume_hooks.cli.verbs.search import SearchOptions
from resume_hooks.seam import find_answers
from resume_hooks.search.result import SearchResult
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import (
    Scope,
    current_project_scope,
    lineage_scope,
    project_scope_of_folder,
    session_scope,
)
from resume_hooks.sessions.agents.registry import NAME_FOR_ALL_AGENTS

if TYPE_CHECKING:
    from resume_hooks.search.index.update import ProgressCallback

_CURRENT_SESSION_LOCATOR = "."


def search_and_print_hits(options: SearchOptions) -> None:
    """Search for the words and print the turns that were found."""
    refuse_unknown_options(options.words)
    for search_with_option_of_part in options.find_part_functions(
        questions.search_with_option_of_part
    ):
        search_with_option_of_part(options)
        return
    options.refuse_combination("project", "lineage", "session", "everywhere")
    with show_work_progress("Indexing", quiet=options.as_json) as progress:
        result = _find_hits(options, progress)
    scope_option = next(
        (name for name in ("session", "lineage") if options.is_option_given(name)), None
    )
    if options.everywhere:
        scope = "all"
    else:
        scope = scope_option or find_project_folder(options.project)
    print_search_result(
        result,
        scope,
        click.get_current_context().obj or (),
        as_json=options.as_json,
        max_chars=options.max_chars,
        mark_style=partial(click.style, fg="yellow", bold=True),
        title_style=partial(click.style, bold=True),
    )


def _find_hits(options: SearchOptions, progress: ProgressCallback | None) -> SearchResult:
    """Return the turns that a search finds.

    If ``--file`` names a line (``PATH:LINE``), an installed part finds the session that wrote that
    line.
    """
    scope = _make_scope(options)._replace(
        asking_session_id=options.where.environ.get("CLAUDE_CODE_SESSION_ID", ""),
        start_time=_parse_epoch_seconds(options.since),
        end_time=_parse_epoch_seconds(options.until),
        branch=options.branch,
        tool=options.tool,
        file=options.file,
        role=options.role or "",
        include_helpers=options.include_helpers,
        agent_names=frozenset({options.agent} - {NAME_FOR_ALL_AGENTS}),
    )
    if options.file:
        for answer_line_search in find_answers(questions.answer_line_search):
            result = answer_line_search(
                options,
                scope,
                current_folder(),
                max_seconds=MAX_INDEX_UPDATE_SECONDS,
                progress=progress,
            )
            if result is not None:
                return result
    return search_index(
        options.words,
        scope,
        options.where,
        other_wordings=options.other_wordings,
        max_hits=options.limit,
        max_seconds=MAX_INDEX_UPDATE_SECONDS,
        progress=progress,
    )


def _make_scope(options: SearchOptions) -> Scope:
    """Return the sessions to search, as selected by the options. The default is the current project."""
    for locator, make_scope in ((options.session, session_scope), (options.lineage, lineage_scope)):
        if locator is not None:
            return make_scope(
                None if locator == _CURRENT_SESSION_LOCATOR else locator,
                current_folder(),
                options.where,
            )
    if options.everywhere:
        return Scope()
    folder = find_project_folder(options.project)
    if options.project is None:
        return current_project_scope(folder, options.where)
    return project_scope_of_folder(folder, options.where)


def _parse_epoch_seconds(time_text: str | None) -> int | None:
    """Return an option's time in seconds since 1970. Return None if the option was not given."""
    if time_text is None:
        return None
    return int(parse_time_option(time_text).timestamp())
