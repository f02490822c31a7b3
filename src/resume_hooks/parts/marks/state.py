"""Store the active mark of each session in a state file.

A mark contains the id of the record to which ``back`` returns.

Invariants: every tool call before a mark is followed by its result. Only a successful ``back``
deletes the mark. If several ``back`` commands run at the same time, only one of them gets the mark.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.errors import MarkInSubagent, MarkNotFound, NothingToMark, UsageError, WriteFailed
from resume_hooks.hooks import hook_state
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.storage.state_file import NOTHING_CHANGED_REMEDY
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.linearize import find_max_valid_record_count, linearize_chain
from resume_hooks.transcripts.records import USER
from resume_hooks.transcripts.transcript import scan_live_records

NO_MARK_MESSAGE = "No active mark."
BACK_ALREADY_RUNNING_MESSAGE = "Another command is already going back to the mark of this session"

MARK_LIFETIME_SECONDS = 60 * 86_400
"""The number of seconds after which a mark is deleted. By then, the client has deleted the session,
because it deletes sessions after 30 days."""

MAX_UUID_CHARACTERS = 200
"""Maximum number of characters in the id of a record."""

_STATE_FILE_PREFIX = "mark-"

MAX_GOAL_CHARACTERS = 4_000
"""Maximum number of characters in a goal."""


class Mark(NamedTuple):
    """A point in a session, after one of its records.

    ``uuid`` is the id of this record. ``record`` is the line number of the record, counted from 0,
    when the mark was set. If the mark is the point where a fork branched off from its parent,
    ``left_parent_id`` is the id of the parent. Otherwise ``left_parent_id`` is ``""``.
    """

    session_id: str
    uuid: str
    record: int
    goal: str
    started_at: str
    left_parent_id: str = ""

    @property
    def subject_phrase(self) -> str:
        """A phrase for the mark that can be the subject of a sentence."""
        if self.left_parent_id:
            return "The place where the fork branched off from its parent"
        return "The mark"

    def is_same_as(self, other: Mark) -> bool:
        """Check whether another mark is at the same record and has the same goal."""
        return (self.uuid, self.goal) == (other.uuid, other.goal)


def remove_mark_after_delete(session_id: str, _: Where) -> list[str]:
    """Delete the mark of a deleted session, because the mark's goal contains the user's words.

    Return an empty list, because the user needs no note about it.
    """
    hook_state.consume_note(f"{_STATE_FILE_PREFIX}{session_id}.json")
    return []


class PlacedMark(NamedTuple):
    """A mark at the current end of a session.

    ``is_step_unfinished`` is true if the model has started a step after the mark.
    """

    mark: Mark
    is_step_unfinished: bool


def make_mark_at_end(session: SessionFile, goal: str = "") -> PlacedMark:
    """Return a mark at the current end of the session, without storing it.

    While the model is working, the mark is after the last complete step. Raise NothingToMark if the
    session has no conversation yet, MarkInSubagent for a sub-agent's transcript, and UsageError if
    the goal is too long.
    """
    goal = replace_surrogates(goal.strip())
    if len(goal) > MAX_GOAL_CHARACTERS:
        raise UsageError(
            f"The goal has {len(goal):,} characters, more than {MAX_GOAL_CHARACTERS:,}",
            "Describe in one line what you want to try.",
        )
    check_not_subagent(session)
    transcript, _ = scan_live_records(session.path, lambda: ())
    linear = linearize_chain(transcript.chain)
    spoken_nodes = [node for node in linear.nodes if node.is_message]
    complete_nodes = []
    for node in linear.nodes[: find_max_valid_record_count(linear, len(linear.nodes))]:
        if node.is_message:
            complete_nodes.append(node)
    said_nodes = [node for node in spoken_nodes if node.is_in_conversation]
    if not complete_nodes or not said_nodes:
        raise NothingToMark(
            "There is nothing to mark: this session has no conversation yet",
            "Send a prompt first.",
        )
    leaf = complete_nodes[-1]
    mark = Mark(session.session_id, leaf.uuid, leaf.line_number, goal, clock.now())
    return PlacedMark(
        mark,
        is_step_unfinished=len(complete_nodes) < len(spoken_nodes) or said_nodes[-1].kind == USER,
    )


def check_not_subagent(session: SessionFile) -> None:
    """Raise MarkInSubagent if a sub-agent wrote the transcript."""
    if subagent_name(session.path) is not None or HeadTail(session.path).is_sidechain:
        raise MarkInSubagent


def save_mark(mark: Mark) -> None:
    """Store a mark, which replaces the session's earlier mark. Raise WriteFailed if this fails."""
    hook_state.delete_old_notes(_STATE_FILE_PREFIX, MARK_LIFETIME_SECONDS)
    try:
        hook_state.write_note(_format_state_file_name(mark.session_id), mark._asdict())
    except OSError as error:
        raise WriteFailed(
            f"The mark could not be saved in {Where().state}: {error.strerror or error}",
            NOTHING_CHANGED_REMEDY,
        ) from error


def find_mark(session_id: str) -> Mark | None:
    """Return the active mark of a session, or None."""
    note = hook_state.read_note(_format_state_file_name(session_id))
    uuid, record, goal, time = (note.get(key) for key in ("uuid", "record", "goal", "started_at"))
    if (
        note.get("session_id") != session_id
        or not isinstance(uuid, str)
        or not 0 < len(uuid) <= MAX_UUID_CHARACTERS
    ):
        return None
    if (
        type(record) is not int
        or record < 0
        or not isinstance(goal, str)
        or len(goal) > MAX_GOAL_CHARACTERS
    ):
        return None
    started_at = clock.normalize_timestamp(time)
    if started_at:
        return Mark(session_id, uuid, record, goal, started_at)
    return None


def clear_mark(session_id: str) -> bool:
    """Delete the mark of a session, and return whether the session had a mark."""
    return hook_state.consume_note(_format_state_file_name(session_id))


def wait_for_mark(session_id: str) -> Mark | None:
    """Return the active mark of a session, or None.

    If a ``back`` command is running, wait until it ends, because it may delete the mark.
    """
    hook_state.wait_for_note(_format_state_file_name(session_id))
    return find_mark(session_id)


@contextlib.contextmanager
def use_up_mark(mark: Mark) -> Iterator[None]:
    """Delete a mark if the ``with`` block succeeds.

    The point where a fork branched off from its parent is never deleted. Raise MarkNotFound if the mark
    is no longer the session's active mark, or if another ``back`` command is using it.
    """
    if mark.left_parent_id:
        yield
        return
    name = _format_state_file_name(mark.session_id)
    if not hook_state.claim_note(name):
        raise MarkNotFound(BACK_ALREADY_RUNNING_MESSAGE, "Wait a moment.")
    try:
        if find_mark(mark.session_id) != mark:
            raise MarkNotFound(NO_MARK_MESSAGE, "The mark was used or replaced in the meantime.")
        yield
        hook_state.consume_note(name)
    finally:
        hook_state.release_note(name)


def _format_state_file_name(session_id: str) -> str:
    return f"{_STATE_FILE_PREFIX}{session_id}.json"
