"""A mark: the record of a session that ``back`` goes back to, and what was to be tried from there.

Invariant: it stands where nothing is cut in two: no tool call waits for its answer before it.
"""

from __future__ import annotations

from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.errors import InSubagent, NothingToMark, UsageError
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.system.text import encodable
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.linearize import linearize, standalone_count
from resume_hooks.transcripts.records import USER
from resume_hooks.transcripts.transcript import scan_live

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
    def what(self) -> str:
        """What it is, to begin a sentence with."""
        return "The place where the fork left its parent" if self.left else "The mark"

    def is_at(self, other: Mark) -> bool:
        """Whether another one marks the same place for the same goal."""
        return (self.uuid, self.goal) == (other.uuid, other.goal)


class Placed(NamedTuple):
    """A mark as it would be set now; ``unfinished`` where the model has begun something after it."""

    mark: Mark
    unfinished: bool


def place(session: SessionFile, goal: str = "") -> Placed:
    """The mark of this moment. Reads, writes nothing.

    While the model works it stands after the last step that is whole. NothingToMark where nobody spoke yet,
    InSubagent for a sub-agent's transcript, UsageError for what is no goal.
    """
    goal = encodable(goal.strip())
    if len(goal) > MAX_GOAL:
        raise UsageError(
            f"The goal has {len(goal):,} characters, more than {MAX_GOAL:,}", "Say in a line what is to be tried."
        )
    refuse_subagent(session)
    transcript, _ = scan_live(session.path, lambda: ())
    row = linearize(transcript.chain)
    spoken = [node for node in row.nodes if node.spoken]
    whole = [node for node in row.nodes[: standalone_count(row, len(row.nodes))] if node.spoken]
    said = [node for node in spoken if node.said]
    if not whole or not said:
        raise NothingToMark(
            "There is nothing to mark: nobody said anything in this session yet", "Send a prompt first."
        )
    leaf = whole[-1]
    mark = Mark(session.session_id, leaf.uuid, leaf.number, goal, clock.now())
    return Placed(mark, unfinished=len(whole) < len(spoken) or said[-1].kind == USER)


def refuse_subagent(session: SessionFile) -> None:
    """InSubagent for the transcript of one."""
    if subagent_name(session.path) is not None or HeadTail(session.path).is_sidechain:
        raise InSubagent
