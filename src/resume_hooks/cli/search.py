"""``search``: full-text search in this project or in all projects."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from resume_hooks import questions
from resume_hooks.cli.options import (
    current_folder,
    project_folder_of_option,
    refuse_unknown,
    time_of_option,
)
from resume_hooks.cli.output import work_progress
from resume_hooks.cli.search_answer import UPDATE_SECONDS, print_answer
from resume_hooks.cli.verbs.search import SearchOptions
from resume_hooks.seam import answers
from resume_hooks.search.engine import search_index
from resume_hooks.search.result import SearchResult
from resume_hooks.search.scope import (
    Scope,
    current_project_scope,
    lineage_scope,
    project_scope_of_folder,
    session_scope,
)
from resume_hooks.sessions.agents.registry import ALL_AGENTS

if TYPE_CHECKING:
    from resume_hooks.search.index.update import Progress

_HERE = "."


def search(options: SearchOptions) -> None:
    """Print the hits."""
    refuse_unknown(options.words)
    for search_by_option in options.functions_for_part_options(questions.search_by_option):
        search_by_option(options)
        return
    options.refuse_combination("project", "lineage", "session", "everywhere")
    with work_progress("Indexing", quiet=options.as_json) as progress:
        result = _find_hits(options, progress)
    scope_option = next((name for name in ("session", "lineage") if options.has(name)), None)
    if options.everywhere:
        scope = "all"
    else:
        scope = scope_option or project_folder_of_option(options.project)
    print_answer(
        result,
        scope,
        click.get_current_context().obj or (),
        as_json=options.as_json,
        max_chars=options.max_chars,
        mark=partial(click.style, fg="yellow", bold=True),
        title=partial(click.style, bold=True),
    )


def _find_hits(options: SearchOptions, progress: Progress | None) -> SearchResult:
    """Return the hits: a part's answer for a line in ``--file``, otherwise the index's hits."""
    scope = _scope_of_options(options)._replace(
        asking_session=options.where.environ.get("CLAUDE_CODE_SESSION_ID", ""),
        start_time=_seconds_of_time(options.since),
        end_time=_seconds_of_time(options.until),
        branch=options.branch,
        tool=options.tool,
        file=options.file,
        role=options.role or "",
        include_helpers=options.helpers,
        agent_names=frozenset({options.agent} - {ALL_AGENTS}),
    )
    if options.file:
        for answer_line_search in answers(questions.answer_line_search):
            result = answer_line_search(
                options, scope, current_folder(), limit=UPDATE_SECONDS, progress=progress
            )
            if result is not None:
                return result
    return search_index(
        options.words,
        scope,
        options.where,
        other_wordings=options.also,
        max_hits=options.limit,
        max_seconds=UPDATE_SECONDS,
        progress=progress,
    )


def _scope_of_options(options: SearchOptions) -> Scope:
    """Return the scope to search: a session or its lineage, all sessions, those of a folder, or the current project."""
    for locator, make_scope in ((options.session, session_scope), (options.lineage, lineage_scope)):
        if locator is not None:
            return make_scope(
                None if locator == _HERE else locator, current_folder(), options.where
            )
    if options.everywhere:
        return Scope()
    folder = project_folder_of_option(options.project)
    if options.project is None:
        return current_project_scope(folder, options.where)
    return project_scope_of_folder(folder, options.where)


def _seconds_of_time(time_text: str | None) -> int | None:
    if time_text is None:
        return None
    return int(time_of_option(time_text).timestamp())
