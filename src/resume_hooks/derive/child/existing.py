"""A handoff, or a rewind, that stands already: what is asked for twice makes one child.

Recent clients put a blocked prompt back into the input box, where a stray Enter sends it again.
"""

from __future__ import annotations

from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where, find_session
from resume_hooks.sessions.link_log import Link, read_links
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.opening_records import next_step_of
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.transcripts import records, tokens
from resume_hooks.transcripts.head_tail import HeadTail, is_talk
from resume_hooks.transcripts.records import message


def standing_handoff(parent: SessionFile, next_step: str, where: Where) -> Receipt | None:
    """The receipt of the newest handoff of ``parent``, if it is the one asked for: else None.

    It is, where its next step is the same, nobody went on in it, and nobody asked anything in the parent since.
    """
    found = _newest(parent, "handoff", where)
    if found is None:
        return None
    opening = next((r for r in found.child.first_records if r.get("isCompactSummary") is True), {})
    step = next_step_of(message(opening).get("content"))
    return _receipt(parent, found) if step == next_step.strip() else None


def standing_rollover(parent: SessionFile, where: Where) -> Receipt | None:
    """The receipt of the newest child of ``parent`` if a rollover made it and nobody went on since; else None."""
    found = _newest(parent, "rollover", where)
    return _receipt(parent, found) if found is not None else None


def standing_rewind(parent: SessionFile, where: Where) -> Receipt | None:
    """The receipt of the newest child of ``parent`` if a rewind made it and nobody went on since; else None."""
    found = _newest(parent, "rewind", where)
    return _receipt(parent, found) if found is not None else None


class _Standing(NamedTuple):
    link: Link
    child: HeadTail


def _newest(parent: SessionFile, kind: str, where: Where) -> _Standing | None:
    """The newest child of ``parent``, where it is of that kind and nobody went on in it or in the parent."""
    link = next((found for found in reversed(read_links(where)) if found.parent_id == parent.session_id), None)
    path = find_session(link.child_id, where) if link and link.kind == kind else None
    if link is None or path is None:
        return None
    try:
        child, glance = HeadTail(path), HeadTail(parent.path)
    except SessionNotFound:
        return None  # gone since it was found
    return None if child.touched or _went_on(glance, clock.normal(link.at)) else _Standing(link, child)


def _went_on(glance: HeadTail, at: str) -> bool:
    """Whether there was talk after ``at``, be it one prompt with more work behind it than the tail holds."""
    reached = any("" < clock.normal(record.get("timestamp")) <= at for record in glance.last_records)

    def talks(record: records.Record) -> bool:
        return is_talk(record) and clock.normal(record.get("timestamp")) > at

    return any(map(talks, glance.last_records)) if reached else glance.holds(talks)


def _receipt(parent: SessionFile, found: _Standing) -> Receipt:
    stated = tokens.stated_size(found.child.path)
    return Receipt(
        session_id=found.link.child_id,
        file=found.child.path,
        title=found.child.title,
        parent_session_id=parent.session_id,
        parent_file=parent.path,
        kind=found.link.kind,
        written=False,
        folder=home_folder(found.child),
        tokens_before=tokens.recent_context(parent.path).tokens,
        tokens_after=stated.tokens if stated else tokens.recent_context(found.child.path).tokens,
    )
