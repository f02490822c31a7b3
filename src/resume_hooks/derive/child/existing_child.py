"""Find the existing child when a request is repeated, so that only one child is created.

Recent clients put a blocked prompt back into the input box, where an accidental Enter sends it
again. Two such requests may even run at the same time.

An existing child is returned only if neither the child nor its parent has been continued since the
child was written.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.errors import NotATranscript, SessionNotFound, WriteFailed
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import agent_of_session, store_of_agents
from resume_hooks.sessions.link_log import Link, read_links
from resume_hooks.sessions.open_sessions import RunningClients
from resume_hooks.sessions.opening_layout import extract_next_step
from resume_hooks.sessions.project_folder import home_folder_of_session
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile, session_file
from resume_hooks.storage.locks import lock_folder
from resume_hooks.system.processes import find_client_pid
from resume_hooks.transcripts import records
from resume_hooks.transcripts.head_tail import HeadTail, is_prompt_or_answer
from resume_hooks.transcripts.provenance import read_parent
from resume_hooks.transcripts.records import Record, get_mapping, get_message

_BUSY_MESSAGE = "Another command is making a child of this session"
# Maximum number of seconds to wait for the lock. A trigger that holds the lock must finish its
# child in less time.
MAX_LOCK_WAIT_SECONDS = 10.0


@contextlib.contextmanager
def lock_parent(parent: Session, where: Where) -> Iterator[None]:
    """Lock ``parent`` while a child of it is created. If another command has the lock, wait for it.

    Raises SessionInUse after a timeout. If the state folder is not writable, the child is created
    without a lock.
    """
    with contextlib.ExitStack() as locks:
        with contextlib.suppress(WriteFailed):
            folder = os.path.join(where.state, "pending", f"making-{parent.session_id}")
            locks.enter_context(
                lock_folder(folder, where, _BUSY_MESSAGE, "Could not hold", MAX_LOCK_WAIT_SECONDS)
            )
        yield


class _UnusedChild(NamedTuple):
    """A child that was never continued.

    ``path`` is its transcript in Claude Code's format. ``parent_file`` is the path of the parent's
    transcript.
    """

    session: SessionFile
    file_ends: HeadTail
    path: str
    agent: str
    parent_file: str

    @property
    def first_record(self) -> Record:
        """The child's first record, which names its parent, or ``{}`` if the record is unreadable."""
        if self.file_ends.first_records:
            return self.file_ends.first_records[0]
        return {}


def find_existing_child(
    parent: Session,
    kind: str,
    where: Where,
    next_step: str | None = None,
    report: str = "",
    opening_tokens: int = 0,
) -> Receipt | None:
    """Return the receipt of the newest child of ``parent`` if it fits the request, and otherwise None.

    The child fits if it was not continued, is of this ``kind``, and has the given ``next_step``,
    ``report`` and ``opening_tokens``. Arguments that are omitted are not compared.
    ``opening_tokens`` is the requested size of the child's opening. Children that another running
    client made or opened are ignored, because that client may still show them.
    """
    link = _find_newest_link(parent, where)
    if link is None or link.kind != kind:
        return None
    child = _find_unused_child(parent, link.child_id, clock.normalize_timestamp(link.at), where)
    if child is None:
        return None
    first_records = child.file_ends.first_records
    if next_step is not None:
        opening = next((row for row in first_records if row.get("isCompactSummary") is True), {})
        if extract_next_step(get_message(opening).get("content")) != next_step.strip():
            return None
    if opening_tokens:
        metadata = get_mapping(child.first_record, "continue_metadata")
        if metadata.get("opening_tokens") != opening_tokens:
            return None
    if not any(report in str(get_message(row).get("content")) for row in first_records):
        return None
    tokens_before = parent.context.tokens
    tokens_after = Session.from_file(session_file(child.path), where).context.tokens
    return _make_receipt(parent, child, kind, tokens_before, tokens_after, where)


def find_existing_trim(parent: Session, child_id: str, where: Where) -> Receipt | None:
    """Return the receipt of the trim of ``parent`` with the id ``child_id``.

    Return None if no such child exists, or if the child or ``parent`` has been continued after the
    trim. The receipt's sizes are read from the child's first line, which the user may have edited.
    """
    child = _find_unused_child(parent, child_id, "", where)
    if child is None:
        return None
    parent_link = read_parent(child.session.path)
    if parent_link is None or parent_link.session_id != parent.session_id:
        return None
    recorded_stats = get_mapping(get_mapping(child.first_record, "trim_metadata"), "stats")
    stats = {}
    for name, value in recorded_stats.items():
        if type(value) is int:
            stats[name] = value
    tokens_before, tokens_after = stats.get("original_tokens", 0), stats.get("trimmed_tokens", 0)
    receipt = _make_receipt(parent, child, parent_link.kind, tokens_before, tokens_after, where)
    return receipt._replace(
        chars_saved=stats.get("chars_saved", 0), tools_trimmed=stats.get("tools_trimmed", 0)
    )


def _find_newest_link(parent: Session, where: Where) -> Link | None:
    """Return the link from ``parent`` to its newest child.

    Children that another running client opened or made are ignored.
    """
    clients, pid = RunningClients(where), find_client_pid()
    for row in reversed(read_links(where)):
        if row.parent_id != parent.session_id:
            continue
        if clients.may_open_child(pid, row.child_id, row.client_pid):
            return row
    return None


def _find_unused_child(
    parent: Session, child_id: str, made_at: str, where: Where
) -> _UnusedChild | None:
    """Return the child with this id, or None if it or ``parent`` was continued after ``made_at``.

    ``made_at`` is a timestamp in the normal form of ``clock``. If it is ``""``, the time in the
    child's first line is used.
    """
    session = store_of_agents(where).find(child_id)
    if session is None:
        return None
    agent = agent_of_session(session, where)
    try:
        file_ends, parent_ends = agent.read_ends(session.path), parent.ends
        path = agent.to_common_format(session).path
    except (SessionNotFound, NotATranscript):
        return None  # The file was deleted after it was found.
    if file_ends.was_continued or has_later_records(parent_ends, made_at or file_ends.derived_at):
        return None
    return _UnusedChild(session, file_ends, path, agent.name, parent_ends.path)


def _make_receipt(
    parent: Session,
    child: _UnusedChild,
    kind: str,
    tokens_before: int,
    tokens_after: int,
    where: Where,
) -> Receipt:
    return Receipt(
        session_id=child.session.session_id,
        file=child.session.path,
        title=child.file_ends.title,
        parent_session_id=parent.session_id,
        parent_file=child.parent_file,
        kind=kind,
        written=False,
        folder=home_folder_of_session(child.file_ends, where),
        agent=child.agent,
        tokens_before=tokens_before,
        tokens_after=tokens_after,
    )


def has_later_records(file_ends: HeadTail, instant: str) -> bool:
    """Check whether a session has a message or a tool result with a time after ``instant``.

    Usually only the last records are read. If all of them are later than ``instant``, an earlier
    record may be later too, so the whole transcript is read.
    """
    tail_covers_instant = any(
        "" < clock.normalize_timestamp(record.get("timestamp")) <= instant
        for record in file_ends.last_records
    )

    def is_message_or_result_after_instant(record: Record) -> bool:
        is_continuation = is_prompt_or_answer(record) or bool(records.list_results(record))
        return is_continuation and clock.normalize_timestamp(record.get("timestamp")) > instant

    if tail_covers_instant:
        return any(map(is_message_or_result_after_instant, file_ends.last_records))
    return file_ends.has_record(is_message_or_result_after_instant)
