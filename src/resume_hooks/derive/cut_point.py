"""Find the place to cut a conversation: the requested record, and the nearest place that splits nothing.

Invariant: a tool call stays with its result, and an answer of the model stays whole. A record
requested by id is kept together with the results of its calls. A cut before an instant keeps
nothing later than that instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import takewhile
from typing import NamedTuple, Protocol

from resume_hooks import clock
from resume_hooks.errors import UsageError
from resume_hooks.sessions.record_references import RecordOffset, Reference, parse_reference
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts.chain import chain_to
from resume_hooks.transcripts.linearize import (
    Linear,
    linearize,
    standalone_count,
    standalone_count_from,
)
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import ASSISTANT, PROGRESS
from resume_hooks.transcripts.transcript import Transcript

EARLIEST = (
    "A cut keeps at least one prompt: name a later place, or start fresh with resume-hooks "
    "rollover --quick."
)


class CutTarget(NamedTuple):
    """The last record to keep.

    If ``whole``, the results of its calls are kept too; otherwise the cut moves back. ``remark`` is
    a note for the user on how the record was chosen. ``then`` ignores the records that a later
    compaction preserved.
    """

    node: Node
    whole: bool = True
    remark: str = ""
    then: bool = False


class Truncator(Protocol):
    """A request to cut a conversation at some place."""

    @property
    def place_in_words(self) -> str:
        """The requested place, for messages."""

    def find(self, transcript: Transcript) -> CutTarget | None:
        """Return the last record to keep, or None if the part of the file that was read starts after it.

        Raises UsageError if no such record exists.
        """


class Cut(NamedTuple):
    """A cut conversation: ``nodes`` are kept, in order.

    ``last`` is the last message among them, and ``turn`` is its turn.

    Turns are counted as in ``outline``; ``turn`` is None if only the end of the file was read.
    ``moved`` is -1 if the cut is before the requested place, 1 if it is after it, else 0.
    """

    asked: str
    nodes: tuple[Node, ...]
    last: Node
    turn: int | None
    moved: int
    remarks: tuple[str, ...]


class AtRecord(NamedTuple):
    """A cut after a record, like ``--resume-session-at``.

    The record is a 0-based line, a uuid, or an offset.
    """

    record: int | str | RecordOffset

    @property
    def place_in_words(self) -> str:
        """The record, for messages."""
        return (
            f"record {self.record.word if isinstance(self.record, RecordOffset) else self.record}"
        )

    def find(self, transcript: Transcript) -> CutTarget | None:
        """Return the record itself, or the last message before a line that is not a message."""
        record = self.record
        if isinstance(record, int):
            return self._find_number(transcript, record)
        if isinstance(record, str):
            return self._find_uuid(transcript, record)
        if record.uuid:  # The uuid still finds the record after its line moved.
            return self._find_uuid(transcript, record.uuid)
        return self._find_offset(transcript, record.offset)

    def _find_uuid(self, transcript: Transcript, uuid: str) -> CutTarget | None:
        named = []
        for node in transcript.nodes:
            if node.uuid.lower() == uuid.lower():
                named.append(node)
        if not named:
            return _not_there(transcript, f"No {self.place_in_words}")
        return CutTarget(_usable(named, self.place_in_words))

    def _find_number(self, transcript: Transcript, number: int) -> CutTarget | None:
        if number >= transcript.line_count:
            return self._no_line(transcript)
        before = []
        for node in transcript.nodes:
            if node.number <= number:
                before.append(node)
        is_message = bool(before) and before[-1].number == number
        return self._last_message(transcript, before, is_message=is_message)

    def _find_offset(self, transcript: Transcript, offset: int) -> CutTarget | None:
        if offset >= transcript.size:
            return self._no_line(transcript)
        before = []
        for node in transcript.nodes:
            if node.offset <= offset:
                before.append(node)
        is_message = bool(before) and before[-1].offset == offset
        return self._last_message(transcript, before, is_message=is_message)

    def _no_line(self, transcript: Transcript) -> CutTarget | None:
        lines = f"lines 0 to {transcript.line_count - 1}"
        return _not_there(transcript, f"No {self.place_in_words}, it has {lines}")

    def _last_message(
        self, transcript: Transcript, before: list[Node], *, is_message: bool
    ) -> CutTarget | None:
        """Return the last of the nodes up to a line.

        ``is_message`` is true if that line is the last node itself.
        """
        if is_message:
            return CutTarget(_usable(before[-1:], self.place_in_words))
        last = _last(before)
        if last is None:
            return _not_there(transcript, f"Nothing was said up to {self.place_in_words}")
        remark = (
            f"{self.place_in_words.capitalize()} is not a message, so the message before it counts."
        )
        return CutTarget(last, remark=remark)


class AtMessage(NamedTuple):
    """A cut after an answer of the model, by its message id in the API."""

    message_id: str

    @property
    def place_in_words(self) -> str:
        """The answer, for messages."""
        return f"message {one_line(plain_line(self.message_id), 80)}"

    def find(self, transcript: Transcript) -> CutTarget | None:
        """Return the last record of the answer, from the live chain if possible."""
        parts = []
        for node in transcript.chain:
            if node.message_id == self.message_id:
                parts.append(node)
        if not parts and transcript.whole:
            parts = []
            for node in transcript.nodes:
                if node.message_id == self.message_id:
                    parts.append(node)
        if parts and self.message_id:
            return CutTarget(_usable(parts, self.place_in_words))
        return _not_there(transcript, f"No {self.place_in_words}")


class Before(NamedTuple):
    """A cut before an instant."""

    instant: datetime

    @property
    def place_in_words(self) -> str:
        """The instant, for messages."""
        return f"before {clock.minute(clock.stamp(self.instant))} UTC"

    def find(self, transcript: Transcript) -> CutTarget | None:
        """Return the last record of the live chain before the instant.

        If the chain starts later, return the last such record of the file.
        """
        end = round(self.instant.timestamp() * 1000)
        # A record without a timestamp belongs with the record before it.
        nodes = linearize(transcript.chain).nodes
        early = list(takewhile(lambda node: node.time_ms is None or node.time_ms < end, nodes))
        found = early[-1] if early else None
        if found is None and not transcript.whole:
            return None
        if found is None:
            found = _last(
                node for node in transcript.nodes if node.time_ms is not None and node.time_ms < end
            )
        if found is None:
            first = next(
                (node.time_ms for node in transcript.nodes if node.spoken and node.time_ms), None
            )
            since = (
                f"The first message is from {clock.minute(clock.from_milliseconds(first))} UTC. "
                if first
                else ""
            )
            raise UsageError(f"Nothing was said {self.place_in_words}", f"{since}{EARLIEST}")
        return CutTarget(found, whole=False)


class AtTurn(NamedTuple):
    """A cut after a turn, counted from 1 as in ``outline``, or from the end: -1 is the last turn."""

    number: int

    @property
    def place_in_words(self) -> str:
        """The turn, for messages."""
        return f"the end of turn {self.number}"

    def find(self, transcript: Transcript) -> CutTarget | None:
        """Return the last record before the next prompt of the file.

        Prefer records of the live chain.
        """
        if not transcript.whole:
            return None  # the unread start of the file has turns of its own
        prompts = []
        for node in transcript.nodes:
            if node.prompt:
                prompts.append(node)
        number = self.number if self.number > 0 else len(prompts) + 1 + self.number
        if not self.number or not 1 <= number <= len(prompts):
            there = (
                f"It has turns 1 to {len(prompts)}; -1 is the last."
                if prompts
                else "It has no turns."
            )
            raise UsageError(f"No turn {self.number} in this session", there)
        first = prompts[number - 1].number
        end = prompts[number].number if number < len(prompts) else transcript.line_count
        live = []
        for node in linearize(transcript.chain).nodes:
            if first <= node.number < end:
                live.append(node)
        own = live or [node for node in transcript.nodes if first <= node.number < end]
        return CutTarget(_usable(own, self.place_in_words))


class BeforeCompaction:
    """A cut just before the session's newest compaction."""

    @property
    def place_in_words(self) -> str:
        """The compaction, for messages."""
        return "before the last compaction"

    def find(self, transcript: Transcript) -> CutTarget | None:
        """Return the last message before the compaction at the start of the live chain."""
        if not transcript.whole:
            return None
        line = next((node.number for node in reversed(transcript.chain) if node.boundary), 0)
        found = _last(node for node in transcript.nodes if node.number < line)
        if found is None:
            left = not line and any(node.boundary for node in transcript.nodes)
            raise UsageError(
                "The client left the compaction of this session on an abandoned branch"
                if left
                else "This session was never compacted",
                "There is nothing to undo. outline shows its contents.",
            )
        return CutTarget(found, then=True)


def parse(text: str) -> Truncator | Reference:
    """Parse the value of ``--at``: a record or message of this session, or a reference that names its session."""
    if ":" in text:
        return parse_reference(text)
    return parse_record(text)


def parse_record(text: str) -> Truncator:
    """Parse a line number, uuid or message id. Raises UsageError for anything else."""
    wanted = text.strip()
    if wanted.startswith("msg_"):
        return AtMessage(wanted)
    return AtRecord(parse_reference(wanted, "").record)


def cut_at(transcript: Transcript, truncator: Truncator) -> Cut | None:
    """Cut a conversation. Return None if the part of the file that was read is not enough.

    Raises UsageError if the place does not exist, or if nothing would remain.
    """
    wanted = truncator.find(transcript)
    if wanted is None:
        return None
    row, way = _row_with(transcript, wanted)
    if row is None:
        return None
    place = next(
        (place for place, node in enumerate(row.nodes, 1) if node.uuid == wanted.node.uuid), 0
    )
    end = (standalone_count_from(row, place) if wanted.whole else 0) or standalone_count(row, place)
    kept = row.nodes[:end]
    said = [node for node in kept if node.spoken]
    if not any(node.prompt or node.summary or node.kind == ASSISTANT for node in said):
        raise UsageError(
            f"There is no message before the cut ({truncator.place_in_words})", EARLIEST
        )
    between, moved, split = row.nodes[min(place, end) : max(place, end)], 0, ""
    if any(node.spoken for node in between):
        moved = 1 if end > place else -1
        word = "forward" if moved > 0 else "back"
        split = f"The cut moved {word} to record {said[-1].number}, so that no tool call is split."
    before = (node for node in transcript.nodes if node.number <= said[-1].number)
    turn = sum(node.prompt and not node.copied for node in before)
    return Cut(
        truncator.place_in_words,
        kept,
        said[-1],
        turn if transcript.whole else None,
        moved,
        tuple(filter(None, (wanted.remark, way, split))),
    )


def _not_there(transcript: Transcript, what: str) -> CutTarget | None:
    """Return None if only the end of the file was read. Otherwise raise UsageError."""
    if not transcript.whole:
        return None
    raise UsageError(
        f"{what} in {transcript.path}", "It may belong to another session. See outline and read."
    )


def _row_with(transcript: Transcript, wanted: CutTarget) -> tuple[Linear | None, str]:
    """Return the conversation with the target record, and a remark if it is not the live one."""
    node = wanted.node
    if wanted.then:
        return linearize(chain_to(transcript.nodes, node, transcript.size)), ""
    if any(other.uuid == node.uuid for other in transcript.chain):
        return linearize(transcript.chain), ""
    if not transcript.whole:
        return None, ""
    chain = chain_to(transcript.nodes, node, transcript.size)
    live = transcript.chain
    if live and live[0].boundary and node.number < live[0].number:
        return linearize(
            chain
        ), "The cut is before a compaction: the fork has the conversation from then."
    return linearize(chain), "The cut is on an abandoned branch: the fork has that branch."


def _last(nodes: Iterable[Node]) -> Node | None:
    return max(
        (node for node in nodes if _is_of_talk(node)), key=lambda node: node.number, default=None
    )


def _usable(nodes: Sequence[Node], named: str) -> Node:
    """Return the last of ``nodes`` that belongs to a conversation.

    Raises UsageError if no node does.
    """
    node = next((node for node in reversed(nodes) if _is_of_talk(node)), None)
    if node is None:
        if nodes and nodes[-1].sidechain:
            why = "is a sub-agent's"
        else:
            why = "is not part of the conversation"
        raise UsageError(
            f"{named.capitalize()} {why}: nothing can be cut there",
            "Name a message; outline and read show them.",
        )
    return node


def _is_of_talk(node: Node) -> bool:
    return not node.sidechain and not node.broken and node.kind != PROGRESS
