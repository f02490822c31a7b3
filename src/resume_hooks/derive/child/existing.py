"""A handoff, or a way back, that stands already: what is asked for twice, also at one instant, makes one child.

Recent clients put a blocked prompt back into the input box, where a stray Enter sends it again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from resume_hooks import clock
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.errors import NotATranscript, SessionNotFound, WriteFailed
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import agent_of, ends_of, store_of
from resume_hooks.sessions.link_log import read_links
from resume_hooks.sessions.open_sessions import Clients
from resume_hooks.sessions.opening_layout import next_step_of
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage.locks import locked_folder
from resume_hooks.system.processes import client_pid
from resume_hooks.transcripts import records, tokens
from resume_hooks.transcripts.calibration import quick_context
from resume_hooks.transcripts.head_tail import HeadTail, is_talk
from resume_hooks.transcripts.records import mapping, message

_BUSY = "Another command is making a child of this session"
_PATIENCE = 10.0  # seconds that are waited for it: longer than a trigger may read, and the write


@contextlib.contextmanager
def one_at_a_time(parent: SessionFile, where: Where) -> Iterator[None]:
    """Wait for who else makes a child of ``parent``.

    SessionOpen after long, nobody waits where no state is written.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(WriteFailed):
            folder = os.path.join(where.state, "pending", f"making-{parent.session_id}")
            held.enter_context(locked_folder(folder, where, _BUSY, "Could not hold", _PATIENCE))
        yield


def existing_child(
    parent: SessionFile,
    kind: str,
    where: Where,
    next_step: str | None = None,
    report: str = "",
    opening_tokens: int = 0,
) -> Receipt | None:
    """The receipt of the newest child of ``parent`` if it is of that kind and nobody went on in it since, else None.

    Nor in the parent; a ``next_step`` must be the child's own, a ``report`` must stand in it,
    ``opening_tokens`` must be the size that it was made with. Children of other running clients
    don't count: each may be open there.
    """
    clients, pid = Clients(where), client_pid()
    rows = (row for row in reversed(read_links(where)) if row.parent_id == parent.session_id)
    link = next((row for row in rows if clients.leave_to(pid, row.child_id, row.client_pid)), None)
    if link and link.kind == kind:
        session = store_of(where).find(link.child_id)
    else:
        session = None
    if link is None or session is None:
        return None
    agent = agent_of(session, where)
    try:
        child, ends = agent.ends(session.path), ends_of(parent, where)
        path = agent.readable(session).path
    except (SessionNotFound, NotATranscript):
        return None  # gone since it was found
    if child.touched or went_on(ends, clock.normal(link.at)):
        return None
    opening = next((row for row in child.first_records if row.get("isCompactSummary") is True), {})
    if next_step is not None and next_step_of(message(opening).get("content")) != next_step.strip():
        return None
    first = child.first_records[0] if child.first_records else {}
    if (
        opening_tokens
        and mapping(first, "continue_metadata").get("opening_tokens") != opening_tokens
    ):
        return None
    if not any(report in str(message(row).get("content")) for row in child.first_records):
        return None
    before = quick_context(parent.path).tokens
    return Receipt(
        session_id=link.child_id,
        file=session.path,
        title=child.title,
        parent_session_id=parent.session_id,
        parent_file=ends.path,
        kind=kind,
        written=False,
        folder=home_folder(child, where),
        agent=agent.name,
        tokens_before=before,
        tokens_after=tokens.recent_context(path).tokens,
    )


def went_on(parent: HeadTail, at: str) -> bool:
    """Whether there was talk in a session after ``at``, be it one prompt with more work behind it than its tail."""
    reached = any(
        "" < clock.normal(record.get("timestamp")) <= at for record in parent.last_records
    )

    def talks(record: records.Record) -> bool:
        return is_talk(record) and clock.normal(record.get("timestamp")) > at

    if reached:
        return any(map(talks, parent.last_records))
    return parent.holds(talks)
