"""Where a conversation is cut: the record that was named, by whatever it was named, and the nearest legal place.

Invariant: no tool call is cut off from its answer, and no answer of the model in two. What was
named by its id stays in, with what answers it; of what came before an instant nothing later does.
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
    "A cut keeps at least one prompt: name a later place, or start anew with resume-hooks "
    "rollover --quick."
)


class CutTarget(NamedTuple):
    """The last record that shall stay; ``whole``: with the answers to what it calls, else rather less than that.

    ``remark`` is what a person should hear of how it was found; ``then``: what a later compaction
    kept does not matter.
    """

    node: Node
    whole: bool = True
    remark: str = ""
    then: bool = False


class Truncator(Protocol):
    """A way to name where a conversation is cut."""

    @property
    def place_in_words(self) -> str:
        """The place in the words in which it was asked for."""

    def find(self, transcript: Transcript) -> CutTarget | None:
        """The last record to stay; None if it lies before the end that was read.

        UsageError for none.
        """


class Cut(NamedTuple):
    """A conversation cut: ``nodes`` stay, in their order.

    ``last`` is the last message of them, ``turn`` its turn.

    Turns are counted as ``outline`` does; None where only the end of the file was read. ``moved``
    is -1 where the place is before the one that was asked for, 1 where it is behind it.
    """

    asked: str
    nodes: tuple[Node, ...]
    last: Node
    turn: int | None
    moved: int
    remarks: tuple[str, ...]


class AtRecord(NamedTuple):
    """Up to and including a record, as ``--resume-session-at`` has it: its 0-based line, its uuid, or its place."""

    record: int | str | RecordOffset

    @property
    def place_in_words(self) -> str:
        """The record."""
        return (
            f"record {self.record.word if isinstance(self.record, RecordOffset) else self.record}"
        )

    def find(self, transcript: Transcript) -> CutTarget | None:
        """The record itself; of any other line the message before it."""
        record = self.record
        if isinstance(record, int):
            return self._find_number(transcript, record)
        if isinstance(record, str):
            return self._find_uuid(transcript, record)
        if record.uuid:  # it says where the record is, wherever its line begins by now
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
        """The last of the nodes ``before`` a line and on it; ``is_message``: the line is the last one itself."""
        if is_message:
            return CutTarget(_usable(before[-1:], self.place_in_words))
        last = _last(before)
        if last is None:
            return _not_there(transcript, f"Nothing was said up to {self.place_in_words}")
        remark = (
            f"{self.place_in_words.capitalize()} is not a message: what stands before it counts."
        )
        return CutTarget(last, remark=remark)


class AtMessage(NamedTuple):
    """Up to and including an answer of the model, by the API's id of it."""

    message_id: str

    @property
    def place_in_words(self) -> str:
        """The answer."""
        return f"message {one_line(plain_line(self.message_id), 80)}"

    def find(self, transcript: Transcript) -> CutTarget | None:
        """The last record of the answer, on the live chain if it is there."""
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
    """What was said before an instant."""

    instant: datetime

    @property
    def place_in_words(self) -> str:
        """The instant."""
        return f"before {clock.minute(clock.stamp(self.instant))} UTC"

    def find(self, transcript: Transcript) -> CutTarget | None:
        """The last record of the live chain from before it.

        Of the file, where the chain begins later.
        """
        end = round(self.instant.timestamp() * 1000)
        # Records without an instant go along with the one before them.
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
                f"The first message is of {clock.minute(clock.from_milliseconds(first))} UTC. "
                if first
                else ""
            )
            raise UsageError(f"Nothing was said {self.place_in_words}", f"{since}{EARLIEST}")
        return CutTarget(found, whole=False)


class AtTurn(NamedTuple):
    """Up to the end of a turn: counted from 1 as ``outline`` does, or from the end, where -1 is the last."""

    number: int

    @property
    def place_in_words(self) -> str:
        """The turn."""
        return f"the end of turn {self.number}"

    def find(self, transcript: Transcript) -> CutTarget | None:
        """The last record before the next prompt of the file.

        On the live chain if any of the turn is there.
        """
        if not transcript.whole:
            return None  # what stands before has turns of its own
        prompts = []
        for node in transcript.nodes:
            if node.prompt:
                prompts.append(node)
        number = self.number if self.number > 0 else len(prompts) + 1 + self.number
        if not self.number or not 1 <= number <= len(prompts):
            there = (
                f"It has turns 1 to {len(prompts)}; -1 is the last." if prompts else "It has none."
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
    """The session as it was before its newest compaction."""

    @property
    def place_in_words(self) -> str:
        """The compaction."""
        return "before the last compaction"

    def find(self, transcript: Transcript) -> CutTarget | None:
        """The last message before the compaction that the live chain begins with."""
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
                "So there is nothing to undo; outline shows what is in it.",
            )
        return CutTarget(found, then=True)


def parse(text: str) -> Truncator | Reference:
    """What ``--at`` names: a record or a message of the session, or a reference, session and all."""
    if ":" in text:
        return parse_reference(text)
    return parse_record(text)


def parse_record(text: str) -> Truncator:
    """The place that a line number, a uuid or a message id names. UsageError for anything else."""
    wanted = text.strip()
    if wanted.startswith("msg_"):
        return AtMessage(wanted)
    return AtRecord(parse_reference(wanted, "").record)


def cut_at(transcript: Transcript, truncator: Truncator) -> Cut | None:
    """Cut a conversation; None where its end does not tell.

    UsageError for no such place, or if nothing would stay.
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
            f"Nothing that was said stands before the cut ({truncator.place_in_words})", EARLIEST
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
    """None where only the end of the file was read. UsageError for the whole."""
    if not transcript.whole:
        return None
    raise UsageError(
        f"{what} in {transcript.path}", "Was it taken from another session? See outline and read."
    )


def _row_with(transcript: Transcript, wanted: CutTarget) -> tuple[Linear | None, str]:
    """The conversation that a record is part of, and what to say of it where that is not the live one."""
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
        ), "The cut lies before a compaction: the conversation is kept as it was then."
    return linearize(chain), "The cut lies on an abandoned branch: that branch is kept."


def _last(nodes: Iterable[Node]) -> Node | None:
    return max(
        (node for node in nodes if _is_of_talk(node)), key=lambda node: node.number, default=None
    )


def _usable(nodes: Sequence[Node], named: str) -> Node:
    """The last of ``nodes`` that a conversation can hold. UsageError where none is."""
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
