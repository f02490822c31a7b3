"""A mark: the record of a session that ``back`` goes back to, and the note of a session's active one.

Invariant: it stands where nothing is cut in two: no tool call waits for its answer before it. It is
used up by the child that it made, and by nothing that failed; of several ``back`` one gets it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.errors import InSubagent, NoMark, NothingToMark, UsageError, WriteFailed
from resume_hooks.hooks import hook_state
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.linearize import linearize, standalone_count
from resume_hooks.transcripts.records import USER
from resume_hooks.transcripts.transcript import scan_live

NONE = "No active mark."
BUSY = "Another prompt is going back in this session right now"

KEPT = 60 * 86_400
"""Seconds after which a mark is swept; the client deletes sessions after 30 days."""

MAX_UUID = 200
"""Characters of a record's id; anything longer is not an id."""

_PREFIX = "mark-"

MAX_GOAL = 4_000
"""Characters of a goal; more is a document."""


class Mark(NamedTuple):
    """A mark: the leaf's ``uuid``, its ``record`` (0-based line) as it was set, the goal, the instant.

    Or where a fork left its parent, then ``left`` is that one's id.
    """

    session_id: str
    uuid: str
    record: int
    goal: str
    started_at: str
    left: str = ""

    @property
    def subject(self) -> str:
        """The subject of a sentence about it."""
        if self.left:
            return "The place where the fork left its parent"
        return "The mark"

    def is_at(self, other: Mark) -> bool:
        """Whether another mark has the same place and the same goal."""
        return (self.uuid, self.goal) == (other.uuid, other.goal)


def remove_mark_after_delete(session_id: str, _: Where) -> list[str]:
    """Remove the mark of a deleted session, since its goal is the user's own words.

    Adds no remark.
    """
    hook_state.consume_note(f"{_PREFIX}{session_id}.json")
    return []


class Placed(NamedTuple):
    """A mark as it would be set now; ``unfinished`` where the model has begun something after it."""

    mark: Mark
    unfinished: bool


def place_mark(session: SessionFile, goal: str = "") -> Placed:
    """The mark of this moment. Only reads.

    While the model works it stands after the last whole step. NothingToMark where nobody spoke yet,
    InSubagent for a sub-agent's transcript, UsageError for a goal that is too long.
    """
    goal = replace_surrogates(goal.strip())
    if len(goal) > MAX_GOAL:
        raise UsageError(
            f"The goal has {len(goal):,} characters, more than {MAX_GOAL:,}",
            "Say in a line what is to be tried.",
        )
    refuse_subagent(session)
    transcript, _ = scan_live(session.path, lambda: ())
    row = linearize(transcript.chain)
    spoken = [node for node in row.nodes if node.spoken]
    whole = []
    for node in row.nodes[: standalone_count(row, len(row.nodes))]:
        if node.spoken:
            whole.append(node)
    said = [node for node in spoken if node.said]
    if not whole or not said:
        raise NothingToMark(
            "There is nothing to mark: nobody said anything in this session yet",
            "Send a prompt first.",
        )
    leaf = whole[-1]
    mark = Mark(session.session_id, leaf.uuid, leaf.number, goal, clock.now())
    return Placed(mark, unfinished=len(whole) < len(spoken) or said[-1].kind == USER)


def refuse_subagent(session: SessionFile) -> None:
    """InSubagent for the transcript of one."""
    if subagent_name(session.path) is not None or HeadTail(session.path).is_sidechain:
        raise InSubagent


def save_mark(mark: Mark) -> None:
    """Save a mark as the session's only one. WriteFailed."""
    hook_state.sweep_notes(_PREFIX, KEPT)
    try:
        hook_state.write_note(_note_name(mark.session_id), mark._asdict())
    except OSError as error:
        raise WriteFailed(
            f"The mark could not be kept: {error.strerror or error}",
            "Check free space and the state folder.",
        ) from error


def find_mark(session_id: str) -> Mark | None:
    """The session's mark; None where ``save_mark`` wrote none."""
    found = hook_state.read_note(_note_name(session_id))
    uuid, record, goal, at = (found.get(key) for key in ("uuid", "record", "goal", "started_at"))
    if (
        found.get("session_id") != session_id
        or not isinstance(uuid, str)
        or not 0 < len(uuid) <= MAX_UUID
    ):
        return None
    if type(record) is not int or record < 0 or not isinstance(goal, str) or len(goal) > MAX_GOAL:
        return None
    started_at = clock.normalize_timestamp(at)
    if started_at:
        return Mark(session_id, uuid, record, goal, started_at)
    return None


def clear_mark(session_id: str) -> bool:
    """Delete the session's mark; False where it had none."""
    return hook_state.consume_note(_note_name(session_id))


def wait_for_mark(session_id: str) -> Mark | None:
    """The session's mark, once no other ``back`` is at work on it: one that succeeds uses it up."""
    hook_state.wait_for_note(_note_name(session_id))
    return find_mark(session_id)


@contextlib.contextmanager
def use_up_mark(mark: Mark) -> Iterator[None]:
    """Use up a mark if the block succeeds. The place where a fork left its parent is never used up.

    NoMark where it is not the session's mark any more, or another ``back`` is at work on it.
    """
    if mark.left:
        yield
        return
    name = _note_name(mark.session_id)
    if not hook_state.claim_note(name):
        raise NoMark(BUSY, "Wait a moment.")
    try:
        if find_mark(mark.session_id) != mark:
            raise NoMark(NONE, "It was used or replaced meanwhile.")
        yield
        hook_state.consume_note(name)
    finally:
        hook_state.release_note(name)


def _note_name(session_id: str) -> str:
    return f"{_PREFIX}{session_id}.json"
