"""``search``: full-text search in this project or in all."""

from __future__ import annotations

import re
import shlex
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from resume_hooks import questions
from resume_hooks.cli.options import (
    current_folder,
    project_folder_of_option,
    refuse_unknown,
    time_of_option,
)
from resume_hooks.cli.output import Complete, work_progress
from resume_hooks.cli.verbs.search import SearchOptions
from resume_hooks.paths import find_session
from resume_hooks.seam import answers
from resume_hooks.search.engine import search_index
from resume_hooks.search.hits import Hit
from resume_hooks.search.result import SearchResult
from resume_hooks.search.result_text import result_text
from resume_hooks.search.scope import Scope, lineage_scope, project_at, project_of, session_scope
from resume_hooks.sessions.agents.registry import ALL
from resume_hooks.system.invocation import in_shell, is_model

if TYPE_CHECKING:
    from resume_hooks.search.index.update import Progress

_HERE = "."
LONGEST = 120  # characters; a longer command is not repeated
_IN_JSON = [name for name in Hit._fields if name not in {"short", "resume", "marks"}]
UPDATE_SECONDS = 1.5  # for updating the index; the search then uses its current state


def search(options: SearchOptions) -> None:
    """Print the hits."""
    refuse_unknown(options.words)
    for search_by_option in options.asked_of_parts(questions.search_by_option):
        search_by_option(options)
        return
    options.refuse_together("project", "lineage", "session", "everywhere")
    budget = 0  # characters of the text; 0 for no limit
    if options.max_chars:
        budget = max(1, options.max_chars - 1)  # the last character is the line feed
    with work_progress("Indexing", quiet=options.as_json) as progress:
        found = _find_hits(options, progress)
    named = next((name for name in ("session", "lineage") if options.has(name)), None)
    if options.everywhere:
        scope = "all"
    else:
        scope = named or project_folder_of_option(options.project)
    typed = shlex.join(click.get_current_context().obj or ())
    typed = re.sub(r" --(limit|max-chars)[ =]\d+", "", typed)
    command = in_shell(typed) if 0 < len(typed) <= LONGEST else ""
    mark = partial(click.style, fg="yellow", bold=True)
    title = partial(click.style, bold=True)
    options.emit(
        _hits_data(found, scope),
        lambda: result_text(
            found, budget, mark=mark, title=title, command=command, model=is_model()
        ),
        found.notes,
    )


def _find_hits(options: SearchOptions, progress: Progress | None) -> SearchResult:
    """Return the hits: a part's answer for a line in ``--file``, else the index's."""
    scope = _scope_of_options(options)._replace(
        asking=options.where.environ.get("CLAUDE_CODE_SESSION_ID", ""),
        since=_seconds_of_time(options.since),
        until=_seconds_of_time(options.until),
        branch=options.branch,
        tool=options.tool,
        file=options.file,
        role=options.role or "",
        helpers=options.helpers,
        programs=frozenset({options.agent} - {ALL}),
    )
    if options.file:
        for answer_line_search in answers(questions.answer_line_search):
            found = answer_line_search(
                options, scope, current_folder(), limit=UPDATE_SECONDS, progress=progress
            )
            if found is not None:
                return found
    return search_index(
        options.words,
        scope,
        options.where,
        also=options.also,
        most=options.limit,
        limit=UPDATE_SECONDS,
        progress=progress,
    )


def _scope_of_options(options: SearchOptions) -> Scope:
    """Return the sessions to search: one or its lineage, all, a folder's, or the current session's project."""
    for given, scoped in ((options.session, session_scope), (options.lineage, lineage_scope)):
        if given is not None:
            return scoped(None if given == _HERE else given, current_folder(), options.where)
    if options.everywhere:
        return Scope()
    current = find_session(options.where.environ.get("CLAUDE_CODE_SESSION_ID", ""), options.where)
    if options.project is None and current is not None:
        return project_of(current, options.where)  # a model's shell may be in any folder
    return project_at(project_folder_of_option(options.project), options.where)


def _seconds_of_time(when: str | None) -> int | None:
    if when is None:
        return None
    return int(time_of_option(when).timestamp())


def _hits_data(found: SearchResult, scope: str) -> Complete:
    query, *also = found.wordings
    return Complete(
        {
            "query": query,
            "also": also,
            "scope": scope,
            "how": found.how,
            "nothing_close": found.nothing_close,
            "suggestions": found.suggestions,
            "total": found.total,
            "more": found.more,
            "hits": [_fields(hit) for hit in found.hits],
            "helpers_left_out": found.helpers,
            "provisional": [row._asdict() for row in found.provisional],
            "unread": found.unread,
        }
    )


def _fields(hit: Hit) -> dict[str, Any]:
    commands = {
        "read": f"resume-hooks read {shlex.quote(hit.reference)}",
        "resume": hit.resume,
        "handoff": f"resume-hooks handoff {hit.session_id}",
    }
    return {**{name: getattr(hit, name) for name in _IN_JSON}, "commands": commands}
