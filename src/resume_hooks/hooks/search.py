"""``>search``: the best hits in this project's sessions, each with the command that opens it.

It copies nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from resume_hooks.clock import format_minute
from resume_hooks.derive.outcome import Report, report_on_text
from resume_hooks.errors import UsageError
from resume_hooks.hooks.plain_cards import COLUMNS, ROW
from resume_hooks.hooks.request import (
    EVERYWHERE,
    Request,
    current_folder,
    parse_search_words,
    time_limit,
)
from resume_hooks.hooks.session_list.rows import cut_to_columns, snippet_from_words
from resume_hooks.hooks.session_list.state import UPDATE_SECONDS
from resume_hooks.paths import Where
from resume_hooks.search.engine import search_index
from resume_hooks.search.hits import Hit
from resume_hooks.search.result import SearchResult
from resume_hooks.search.result_text import nothing_close
from resume_hooks.search.roles import MOST_LIMIT
from resume_hooks.search.scope import Scope, project_at, project_of
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import agent_named
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import collapse_line, format_count, plain_line, text_width

HITS, ROWS, TITLE = 4, 10, 28  # hits and rows of a card, and the columns of a title
LONGEST = 200  # characters; a longer query is cut in the printed command


def answer(request: Request) -> Report:
    """Search for the words of a trigger. Raise UsageError without words."""
    everywhere, words = parse_search_words(request.text)
    if not words:
        raise UsageError("No search words given", "Type: >search words, or >search --all words")
    scope, where = Scope(), request.where
    if not everywhere:
        if request.path:
            scope = project_of(request.path, where)
        else:
            scope = project_at(current_folder(), where)
    with time_limit(_search_command(words, everywhere=everywhere)):
        found = search_index([words], scope, where, most=HITS, limit=UPDATE_SECONDS)
    return report_on_text(search_card(found, request.typed_name, everywhere=everywhere))


def _search_command(words: str, *, everywhere: bool, limit: int = 0) -> str:
    options = [
        *([EVERYWHERE] if everywhere else []),
        *([f"--limit={min(limit, MOST_LIMIT)}"] if limit else []),
    ]
    return shell_command(shlex.join(["search", *options, words]))


def search_card(found: SearchResult, search: str, *, everywhere: bool = False) -> str:
    """Return the hits, best first, each with its command; ``search`` is the trigger as typed."""
    total = _hit_count(found, everywhere=everywhere)
    (asked,) = found.wordings
    said = [nothing_close(found), collapse_line(plain_line(asked), ROW), total]
    lines = [f"resume-hooks · search · {' · '.join(filter(None, said))}"]
    room = ROWS - len(lines) - 1 - len(found.notes)
    shown = found.hits[: max(1, (room if 2 * found.total <= room else room - 1) // 2)]
    for hit in shown:
        lines.extend(_hit_lines(hit))
    for note in found.notes:
        lines.append(f"  note: {note}")
    if found.total > len(shown):
        command = _search_command(
            collapse_line(plain_line(asked), LONGEST), everywhere=everywhere, limit=found.total
        )
        lines.append(f"  {found.total - len(shown):,} more, in a shell: {command}")
    last = "/resume <id> opens a session."
    if not shown:
        if everywhere:
            wider = ""
        else:
            wider = f"{search} {EVERYWHERE} {collapse_line(plain_line(asked), ROW)}, or "
        last = f"Try {wider}other words."
    return "\n".join([*lines, last])


def _hit_count(found: SearchResult, *, everywhere: bool) -> str:
    nothing = (
        f"nothing found in {'any' if everywhere else 'this'} project{'' if found.whole else ' yet'}"
    )
    least = "at least " if found.more else ""
    if found.hits:
        said = f"{least}{format_count(found.total, 'turn')}"
    else:
        said = nothing
    return f"{said}{f' · {collapse_line(plain_line(found.how), 2 * ROW)}' if found.how else ''}"


def _hit_lines(hit: Hit) -> Sequence[str]:
    where = Where()
    if hit.agent != NAME:
        whose = agent_named(hit.agent, where).label.lower()
    else:
        whose = ""
    named = f"  {cut_to_columns(hit.title, TITLE)}: "
    facts = ", ".join(
        filter(
            None,
            [
                whose,
                hit.strength,
                "headless run" * hit.headless,
                f"turn {hit.turn}",
                format_minute(hit.time)[:10],
            ],
        )
    )
    words = snippet_from_words(
        hit.snippet, hit.marks[0][0] if hit.marks else 0, COLUMNS - text_width(named)
    )
    opened = agent_named(hit.agent, where).commands(hit.session_id, hit.folder).in_client
    return [f"{named}{cut_to_columns(words, COLUMNS - text_width(named))}", f"  {opened} · {facts}"]
