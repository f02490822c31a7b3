"""The preview of a session: its outline, its lineage, or the table of ways to continue.

If the file is large, only its end is read, and the preview says so.
"""

from __future__ import annotations

import os
from itertools import chain

from resume_hooks import clock
from resume_hooks.clock import format_minute
from resume_hooks.derive import compare
from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks import resume_card
from resume_hooks.paths import Where
from resume_hooks.reading.outline import OutlineTurn, make_outline
from resume_hooks.search.listing import ListedSession
from resume_hooks.sessions.agents.registry import readable_session
from resume_hooks.sessions.child_titles import displayed_kind
from resume_hooks.sessions.lineage import ARCHIVED_STATUS, MISSING_STATUS, Ancestor, LineageFinder
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.system.text import format_count, plain_line

OUTLINE, LINEAGE, TABLE = KINDS = ("outline", "lineage", "table")
# the maximum number of bytes of a file whose whole outline is shown; reading a file of this size
# takes a third of a second
MAX_FULL_OUTLINE_BYTES = 32 * 1024 * 1024
OUTLINE_END_BYTES = 4 * 1024 * 1024  # the number of bytes that are read at the end of a larger file
MAX_PREVIEW_LINES = 200  # the maximum number of lines of a preview


def make_preview(kind: str, row: ListedSession, where: Where) -> list[str]:
    """Return the lines of a session's preview, or the reason why the session can't be read.

    ``kind`` is one of ``KINDS``.
    """
    make_lines = {OUTLINE: _outline_lines, LINEAGE: _lineage_lines, TABLE: _table_lines}[kind]
    try:
        return make_lines(row, where)[:MAX_PREVIEW_LINES]
    except ResumeHooksError as error:
        return [error.message, error.remedy]


def _outline_lines(row: ListedSession, where: Where) -> list[str]:
    """Return one line for each turn, newest first, each followed by lines for its sub-agents."""
    is_complete = row.size <= MAX_FULL_OUTLINE_BYTES
    session_outline = make_outline(
        readable_session(row.path, where), last_byte_count=0 if is_complete else OUTLINE_END_BYTES
    )
    agents: dict[int | None, list[str]] = {}
    for agent in session_outline.subagents:
        agents.setdefault(agent.turn_number, []).append(f"  {agent.name} · {agent.task}")
    lines = []
    for turn in reversed(session_outline.turns):
        lines.append([_describe_turn(turn, is_complete=is_complete), *agents.get(turn.number, ())])
    turns = [*agents.get(None, ()), *chain.from_iterable(lines)]
    if is_complete:
        return [f"{format_count(session_outline.turn_count, 'turn')}, newest first", *turns]
    heading = f"{format_bytes(row.size)}; the last {format_bytes(OUTLINE_END_BYTES)} of it, newest turn first"
    return [heading, *(turns or ["no complete turn in it"])]


def _describe_turn(turn: OutlineTurn, *, is_complete: bool) -> str:
    """Return a turn as one line. The line has the turn's number only if the whole file was read."""
    tools = ", ".join(
        f"{plain_line(tool)} {count}" for tool, count in list(turn.call_counts.items())[:4]
    )
    if turn.number:
        prompt_text = turn.first_words
    elif is_complete:
        prompt_text = "before the first prompt"
    else:
        prompt_text = "... within a turn"
    facts = (
        str(turn.number) if is_complete else "",
        format_minute(turn.timestamp)[5:],
        prompt_text,
        tools,
    )
    return " · ".join(fact for fact in facts if fact)


def _lineage_lines(row: ListedSession, where: Where) -> list[str]:
    rows = LineageFinder(where).find_lineage(row.path)
    lines = [f"{format_count(len(rows), 'session')}, oldest first"]
    for number, ancestor in enumerate(rows, 1):
        lines += _describe_ancestor(number, ancestor)
    return lines


def _describe_ancestor(number: int, row: Ancestor) -> list[str]:
    if row.status == MISSING_STATUS:
        return [f"{number}. (file gone)", f"   {plain_line(row.session_id) or '(id unknown)'}"]
    dates = f"{format_minute(row.created_at)} .. {format_minute(row.ended_at)}"
    archived_text = " (archived copy)" if row.status == ARCHIVED_STATUS else ""
    return [
        f"{number}. {row.title_and_origin}{archived_text}",
        f"   {row.session_id[:8]} · {dates} · {format_bytes(row.size)}",
    ]


def _table_lines(row: ListedSession, where: Where) -> list[str]:
    comparison = compare.compare_strategies(readable_session(row.path, where), where, clock.now())
    return [
        resume_card.describe_comparison(comparison, str),
        "",
        *resume_card.build_ways_table(comparison),
    ]


def describe_session(row: ListedSession) -> list[str]:
    """Return the lines above every preview: title, id and origin, folder and size."""
    if row.parent_id:
        origin = f"{displayed_kind(row.kind)} of {plain_line(row.parent_id)[:8]}"
    else:
        origin = displayed_kind(row.kind)
    location = " · ".join(
        part for part in (os.path.basename(row.folder) or row.folder, row.branch) if part
    )
    return [
        row.title,
        f"{row.session_id} · {origin}",
        f"{location} · {format_minute(row.end_time)} · {format_bytes(row.size)}",
    ]
