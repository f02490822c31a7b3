"""``>search``: show the best hits in this project's sessions, each with the command for its session.

Nothing is copied to the clipboard.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from resume_hooks.clock import format_minute
from resume_hooks.derive.outcome import Report, make_text_report
from resume_hooks.errors import UsageError
from resume_hooks.hooks.plain_cards import CARD_WIDTH, MAX_TITLE_COLUMNS
from resume_hooks.hooks.request import (
    ALL_OPTION,
    Request,
    current_folder,
    parse_search_input,
)
from resume_hooks.hooks.session_list.rows import cut_snippet_start, cut_to_columns
from resume_hooks.hooks.session_list.state import MAX_INDEX_UPDATE_SECONDS
from resume_hooks.hooks.time_limit import time_limit
from resume_hooks.paths import Where
from resume_hooks.search.hits import Hit
from resume_hooks.search.result import SearchResult
from resume_hooks.search.result_text import advise_if_hits_are_weak, count_sentence
from resume_hooks.search.roles import MAX_SEARCH_HITS
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope, project_scope_of_folder, project_scope_of_session
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import agent_with_name
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import collapse_line, plain_line, text_width

# the maximum number of hits and of rows on a card, and the width in columns of a title
MAX_CARD_HITS, MAX_CARD_ROWS, HIT_TITLE_COLUMNS = 4, 10, 28
# the maximum number of characters of the query in the printed command
MAX_PRINTED_QUERY_CHARACTERS = 200


def answer_request(request: Request) -> Report:
    """Search for the words after the trigger. Raise UsageError if there are no words."""
    words, in_all_projects = parse_search_input(request.text)
    if not words:
        raise UsageError("No search words given", "Type: >search words, or >search --all words")
    scope, where = Scope(), request.where
    if not in_all_projects:
        if request.path:
            scope = project_scope_of_session(request.path, where)
        else:
            scope = project_scope_of_folder(current_folder(), where)
    with time_limit(_format_search_command(words, in_all_projects=in_all_projects)):
        result = search_index(
            [words], scope, where, max_hits=MAX_CARD_HITS, max_seconds=MAX_INDEX_UPDATE_SECONDS
        )
    return make_text_report(
        search_card(result, request.typed_name, in_all_projects=in_all_projects)
    )


def _format_search_command(words: str, *, in_all_projects: bool, max_hits: int = 0) -> str:
    options = [
        *([ALL_OPTION] if in_all_projects else []),
        *([f"--limit={min(max_hits, MAX_SEARCH_HITS)}"] if max_hits else []),
    ]
    return shell_command(shlex.join(["search", *options, words]))


def search_card(result: SearchResult, typed_name: str, *, in_all_projects: bool = False) -> str:
    """Return the card with the best hits, each with the command that opens its session.

    ``typed_name`` is the trigger's name as the user typed it.
    """
    count_text = _describe_hit_count(result, in_all_projects=in_all_projects)
    (query,) = result.wordings
    heading_parts = [
        advise_if_hits_are_weak(result),
        collapse_line(plain_line(query), MAX_TITLE_COLUMNS),
        count_text,
    ]
    lines = [f"resume-hooks · search · {' · '.join(filter(None, heading_parts))}"]
    remaining_rows = MAX_CARD_ROWS - len(lines) - 1 - len(result.notes)
    shown_hits = result.hits[
        : max(
            1,
            (
                remaining_rows
                if 2 * result.matching_turn_count <= remaining_rows
                else remaining_rows - 1
            )
            // 2,
        )
    ]
    for hit in shown_hits:
        lines.extend(_make_hit_lines(hit))
    for note in result.notes:
        lines.append(f"  note: {note}")
    if result.matching_turn_count > len(shown_hits):
        command = _format_search_command(
            collapse_line(plain_line(query), MAX_PRINTED_QUERY_CHARACTERS),
            in_all_projects=in_all_projects,
            max_hits=result.matching_turn_count,
        )
        lines.append(
            f"  {result.matching_turn_count - len(shown_hits):,} more, in a shell: {command}"
        )
    last_line = "/resume <id> opens a session."
    if not shown_hits:
        if in_all_projects:
            wider_command = ""
        else:
            wider_command = f"{typed_name} {ALL_OPTION} {collapse_line(plain_line(query), MAX_TITLE_COLUMNS)}, or "
        last_line = f"Try {wider_command}other words."
    return "\n".join([*lines, last_line])


def _describe_hit_count(result: SearchResult, *, in_all_projects: bool) -> str:
    scope_text = "any project" if in_all_projects else "this project"
    no_hits_text = f"nothing found in {scope_text}"
    if not result.is_complete:
        no_hits_text += " yet"
    return count_sentence(result, no_hits_text, 2 * MAX_TITLE_COLUMNS)


def _make_hit_lines(hit: Hit) -> Sequence[str]:
    where = Where()
    if hit.agent != CLAUDE_NAME:
        agent_label = agent_with_name(hit.agent, where).label.lower()
    else:
        agent_label = ""
    title_part = f"  {cut_to_columns(hit.title, HIT_TITLE_COLUMNS)}: "
    facts = ", ".join(
        filter(
            None,
            [
                agent_label,
                hit.strength,
                "headless run" * hit.is_headless,
                f"turn {hit.turn_number}",
                format_minute(hit.time)[:10],
            ],
        )
    )
    snippet = cut_snippet_start(
        hit.snippet, hit.marks[0][0] if hit.marks else 0, CARD_WIDTH - text_width(title_part)
    )
    command = (
        agent_with_name(hit.agent, where).resume_commands(hit.session_id, hit.folder).client_command
    )
    return [
        f"{title_part}{cut_to_columns(snippet, CARD_WIDTH - text_width(title_part))}",
        f"  {command} · {facts}",
    ]
