"""``>lineage``: the session's ancestors, oldest first, each with what resumes it."""

from __future__ import annotations

import os

from resume_hooks.clock import minute
from resume_hooks.hooks.plain_cards import ROW
from resume_hooks.hooks.request import Request, TriggerAnswer, show, time_limit
from resume_hooks.sessions.lineage import KEPT, LEFT, MISSING, Ancestor, Family
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.invocation import typed


def answer(request: Request) -> TriggerAnswer:
    """Show the ancestors. SessionNotFound without a transcript."""
    session = request.session
    with time_limit(request.command):
        return show(lineage_card(Family(request.where).lineage(session.path)))


def lineage_card(rows: list[Ancestor]) -> str:
    """List the ancestors, the last being the session itself."""
    count = len(rows)
    lines = [f"resume-hooks · lineage, oldest first ({count} session{'s' if count != 1 else ''})", ""]
    for number, row in enumerate(rows, 1):
        here = " · this session" if number == count else ""
        title = f"{row.title[:ROW]}{LEFT.get(row.status, '')}"
        name = "(file gone)" if row.status == MISSING else title
        lines.append(f"  {number}. {name} · {row.derivation_type}{here}")
        dates = f" · {minute(row.created)} .. {minute(row.ended)} · {size_text(row.size)}" if row.created else ""
        lines.append(f"     {row.session_id or '(id unknown)'}{dates}")
    archived = [row.session_id for row in rows if row.status == KEPT]
    lines.append("")
    if archived:
        back = typed(f"restore {archived[0]}", os.environ)
        lines.append(f"A kept copy has to be restored first, in a shell: {back}")
    return "\n".join([*lines, "/resume <id> opens one of them."])
