"""``>lineage``: show the session's ancestors, oldest first, with their ids."""

from __future__ import annotations

from resume_hooks.clock import format_minute
from resume_hooks.derive.outcome import Report, make_text_report
from resume_hooks.hooks.plain_cards import CARD_WIDTH
from resume_hooks.hooks.request import Request
from resume_hooks.hooks.session_list.rows import cut_title
from resume_hooks.hooks.time_limit import time_limit
from resume_hooks.sessions.lineage import (
    ARCHIVED_STATUS,
    MISSING_STATUS,
    REMARKS_BY_STATUS,
    Ancestor,
    LineageFinder,
)
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.record_references import SHORT_ID_CHARACTERS
from resume_hooks.system.invocation import shell_command

MAX_SHOWN_SESSIONS = 4  # the maximum number of sessions on the card, which has ten rows


def answer_request(request: Request) -> Report:
    """Show the session's ancestors. Raise SessionNotFound if the session has no transcript."""
    session = request.session
    with time_limit(request.command):
        return make_text_report(
            lineage_card(LineageFinder(request.where).find_lineage(session.path))
        )


def lineage_card(rows: list[Ancestor]) -> str:
    """Return the card with two rows for each session of the lineage.

    The last session in ``rows`` is the one in which the user typed. If the lineage is long, the
    card shows only the first session and the last ones. The numbers have no period, because the
    client displays Markdown and would renumber the list.
    """
    count = len(rows)
    numbered_rows = list(enumerate(rows, 1))
    if count <= MAX_SHOWN_SESSIONS:
        shown_rows = numbered_rows
    else:
        shown_rows = [numbered_rows[0], *numbered_rows[2 - MAX_SHOWN_SESSIONS :]]
    plural = "" if count == 1 else "s"
    lines = [f"resume-hooks · lineage, oldest first ({count} session{plural})"]
    for number, row in shown_rows:
        lines += _lines_of_ancestor(number, row, is_last=number == count)
        if number == 1 and len(shown_rows) < count:
            command = shell_command(f"lineage {rows[-1].session_id[:SHORT_ID_CHARACTERS]}")
            lines.append(
                f"  {count - len(shown_rows)} more in between; to see them, in a shell: {command}"
            )
    archived_id = next((row.session_id for row in rows if row.status == ARCHIVED_STATUS), "")
    if archived_id:
        lines.append(
            f"Restore an archived copy first, in a shell: {shell_command(f'restore {archived_id}')}"
        )
    return "\n".join([*lines, "/resume <id> opens a listed session."])


def _lines_of_ancestor(number: int, row: Ancestor, *, is_last: bool) -> tuple[str, str]:
    """Return the two rows of one session in the lineage. ``is_last`` means that the lineage ends with it."""
    facts = []
    if row.status == MISSING_STATUS:
        name = "(file gone)"
    else:
        name = row.title
        facts.append(row.origin_note)
    if is_last:
        facts.append("this session")
    marks = REMARKS_BY_STATUS.get(row.status, "")
    if any(facts):
        marks += f"  {' · '.join(filter(None, facts))}"
    title = cut_title(name, CARD_WIDTH - len(marks) - 5 - len(str(number)))
    second_line = f"     {row.session_id or '(id unknown)'}"
    if row.created_at:
        second_line += f" · {format_minute(row.created_at)} · {format_bytes(row.size)}"
    return f"  {number} · {title}{marks}", second_line
