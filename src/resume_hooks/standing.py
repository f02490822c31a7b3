"""A handoff that stands already: the same one asked for twice makes one child.

Recent clients put a blocked prompt back into the input box, where a stray Enter sends it again.
"""

from __future__ import annotations

from collections.abc import Mapping

from resume_hooks import clock, records, tokens
from resume_hooks.errors import SessionNotFound
from resume_hooks.glance import Glance
from resume_hooks.links import read_links
from resume_hooks.opening import next_step_of
from resume_hooks.paths import find_session
from resume_hooks.receipt import Receipt
from resume_hooks.records import message
from resume_hooks.store import SessionFile


def standing_handoff(parent: SessionFile, next_step: str, environ: Mapping[str, str]) -> Receipt | None:
    """The receipt of the newest handoff of ``parent``, if it is the one asked for: else None.

    It is, where its next step is the same, nobody went on in it, and nobody asked anything in the parent since.
    """
    link = next((found for found in reversed(read_links(environ)) if found.parent_id == parent.session_id), None)
    path = find_session(link.child_id, environ) if link and link.kind == "handoff" else None
    if link is None or path is None:
        return None
    try:
        child, glance = Glance(path), Glance(parent.path)
    except SessionNotFound:
        return None  # gone since it was found
    opening = next((r for r in child.first_records if r.get("isCompactSummary") is True), {})
    step = next_step_of(message(opening).get("content"))
    asked_since = any(
        records.is_prompt(record) and clock.normal(record.get("timestamp")) > clock.normal(link.at)
        for record in glance.last_records
    )
    if child.touched or asked_since or step != next_step.strip():
        return None
    return Receipt(
        session_id=link.child_id,
        file=path,
        title=child.title,
        parent_session_id=parent.session_id,
        parent_file=parent.path,
        kind=link.kind,
        written=False,
        folder=child.cwd,
        tokens_before=tokens.recent_context(parent.path).tokens,
        tokens_after=tokens.recent_context(path).tokens,
    )
