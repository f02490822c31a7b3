"""Find the record after which to cut a conversation.

This is the requested record, or the nearest record after which a cut separates no call from its
result.

Invariant: a call stays with its result, and an answer of the model stays whole. If a record is
requested by its id, the results of its calls are kept too. If the cut is before an instant, no
record from that instant or later is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import takewhile
from operator import attrgetter
from typing import NamedTuple, Protocol

from resume_hooks import clock
from resume_hooks.errors import UsageError
from resume_hooks.sessions.record_references import RecordOffset, Reference, parse_reference
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.chain import build_chain_to
from resume_hooks.transcripts.linearize import (
    LinearChain,
    find_max_valid_record_count,
    find_min_valid_record_count,
    linearize_chain,
)
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import ASSISTANT, PROGRESS
from resume_hooks.transcripts.transcript import Transcript

TOO_EARLY_CUT_ADVICE = (
    "A cut must keep at least one prompt. Choose a later record, or start fresh with resume-hooks "
    "rollover --quick."
)


class CutTarget(NamedTuple):
    """The last record to keep.

    If ``includes_results`` is true, the results of the record's calls are kept too. Otherwise the
    cut moves back until no call lacks its result. ``remark`` tells the user how the record was
    chosen.

    A compaction can copy a record into the live conversation, so that the record exists twice. If
    ``ignores_preserved_records`` is true, the cut is made at the original record before the
    compaction, not at the copy.
    """

    node: Node
    includes_results: bool = True
    remark: str = ""
    ignores_preserved_records: bool = False


class CutSelector(Protocol):
    """A request to cut a conversation after a certain record."""

    @property
    def description(self) -> str:
        """The requested record in words, for messages."""

    def find_cut_target(self, transcript: Transcript) -> CutTarget | None:
        """Return the last record to keep.

        Return None if only the end of the file was read and the record may be in the part before
        it. Raises UsageError if the record does not exist.
        """


class Cut(NamedTuple):
    """A conversation that was cut. ``nodes`` are the records to keep, in order.

    ``last_message`` is the last message among them. ``turn_number`` is the number of the turn of
    that message, counted as in ``outline``, or None if only the end of the file was read.
    ``shift_direction`` is -1 if the cut moved back from the requested record, 1 if it moved forward,
    and otherwise 0.
    """

    requested_position: str
    nodes: tuple[Node, ...]
    last_message: Node
    turn_number: int | None
    shift_direction: int
    remarks: tuple[str, ...]


class CutAtRecord(NamedTuple):
    """A cut after one record, as made by the client's option ``--resume-session-at``.

    ``record`` is a line number counted from 0, a uuid, or a byte offset in the file.
    """

    record: int | str | RecordOffset

    @property
    def description(self) -> str:
        """The record in words, for messages."""
        return f"record {self.record.record_part if isinstance(self.record, RecordOffset) else self.record}"

    def find_cut_target(self, transcript: Transcript) -> CutTarget | None:
        """Return the requested record. If it is not a message, return the last message before it."""
        record = self.record
        if isinstance(record, int):
            return self._find_last_message_at_or_before(
                transcript, record, transcript.line_count, attrgetter("line_number")
            )
        if isinstance(record, str):
            return self._find_record_with_uuid(transcript, record)
        if (
            record.record_uuid
        ):  # The uuid is still valid even if the record's line number has changed.
            return self._find_record_with_uuid(transcript, record.record_uuid)
        return self._find_last_message_at_or_before(
            transcript, record.offset, transcript.size, attrgetter("offset")
        )

    def _find_record_with_uuid(self, transcript: Transcript, uuid: str) -> CutTarget | None:
        matching_nodes = []
        for node in transcript.nodes:
            if node.uuid.lower() == uuid.lower():
                matching_nodes.append(node)
        if not matching_nodes:
            _raise_if_record_missing(transcript, f"No {self.description}")
            return None
        return CutTarget(_require_conversation_node(matching_nodes, self.description))

    def _find_last_message_at_or_before(
        self,
        transcript: Transcript,
        line_position: int,
        end_position: int,
        position_of: Callable[[Node], int],
    ) -> CutTarget | None:
        """Return the last message at or before a line.

        ``line_position`` is the position of the line, and ``end_position`` is the position of the
        end of the file. Both are line numbers, or both are byte offsets. ``position_of`` returns
        the position of a node in the same unit.
        """
        if line_position >= end_position:
            valid_lines = f"lines 0 to {transcript.line_count - 1}"
            _raise_if_record_missing(
                transcript, f"No {self.description}: the session has {valid_lines}"
            )
            return None
        earlier_nodes = []
        for node in transcript.nodes:
            if position_of(node) <= line_position:
                earlier_nodes.append(node)
        if earlier_nodes and position_of(earlier_nodes[-1]) == line_position:
            return CutTarget(_require_conversation_node(earlier_nodes[-1:], self.description))
        last_node = _find_last_conversation_node(earlier_nodes)
        if last_node is None:
            _raise_if_record_missing(
                transcript, f"There is no message at or before {self.description}"
            )
            return None
        remark = f"{self.description.capitalize()} is not a message, so the cut is after the message before it."
        return CutTarget(last_node, remark=remark)


class CutAtMessage(NamedTuple):
    """A cut after an answer of the model. ``message_id`` is the answer's id in the API."""

    message_id: str

    @property
    def description(self) -> str:
        """A description of the answer, for use in messages to the user."""
        return f"message {collapse_line(plain_line(self.message_id), 80)}"

    def find_cut_target(self, transcript: Transcript) -> CutTarget | None:
        """Return the last record of the answer. Records of the live chain are preferred to others."""
        answer_nodes = []
        for node in transcript.chain:
            if node.message_id == self.message_id:
                answer_nodes.append(node)
        if not answer_nodes and transcript.is_whole:
            answer_nodes = []
            for node in transcript.nodes:
                if node.message_id == self.message_id:
                    answer_nodes.append(node)
        if answer_nodes and self.message_id:
            return CutTarget(_require_conversation_node(answer_nodes, self.description))
        _raise_if_record_missing(transcript, f"No {self.description}")
        return None


class CutBeforeInstant(NamedTuple):
    """A cut that keeps only the records that are older than a given time."""

    instant: datetime

    @property
    def description(self) -> str:
        """The instant in words, for messages."""
        return f"before {clock.format_minute(clock.format_timestamp(self.instant))} UTC"

    def find_cut_target(self, transcript: Transcript) -> CutTarget | None:
        """Return the last record of the live chain before the given time.

        If the live chain starts after this time, return the last record in the whole file before
        it.
        """
        end_ms = round(self.instant.timestamp() * 1000)
        # A record without a time is treated as if it had the time of the previous record.
        nodes = linearize_chain(transcript.chain).nodes
        earlier_nodes = list(
            takewhile(lambda node: node.time_ms is None or node.time_ms < end_ms, nodes)
        )
        last_node = earlier_nodes[-1] if earlier_nodes else None
        if last_node is None and not transcript.is_whole:
            return None
        if last_node is None:
            last_node = _find_last_conversation_node(
                node
                for node in transcript.nodes
                if node.time_ms is not None and node.time_ms < end_ms
            )
        if last_node is None:
            start_line = next(
                (node.time_ms for node in transcript.nodes if node.is_message and node.time_ms),
                None,
            )
            hint = (
                f"The first message is from {clock.format_minute(clock.timestamp_from_milliseconds(start_line))} UTC. "
                if start_line
                else ""
            )
            raise UsageError(
                f"There is no message {self.description}", f"{hint}{TOO_EARLY_CUT_ADVICE}"
            )
        return CutTarget(last_node, includes_results=False)


class CutAtTurn(NamedTuple):
    """A cut after a turn.

    Turns are counted from 1 as in ``outline``. A negative number counts from the end, so -1 is the
    last turn.
    """

    turn_number: int

    @property
    def description(self) -> str:
        """A description of the cut for messages to the user: the end of a turn."""
        return f"the end of turn {self.turn_number}"

    def find_cut_target(self, transcript: Transcript) -> CutTarget | None:
        """Return the last record of the turn. Records of the live chain are preferred to others."""
        if not transcript.is_whole:
            # If the start of the file was not read, the turns cannot be counted.
            return None
        prompts = []
        for node in transcript.nodes:
            if node.is_prompt:
                prompts.append(node)
        number = self.turn_number if self.turn_number > 0 else len(prompts) + 1 + self.turn_number
        if not self.turn_number or not 1 <= number <= len(prompts):
            valid_turns = (
                f"It has turns 1 to {len(prompts)}; -1 is the last."
                if prompts
                else "The session has no turns."
            )
            raise UsageError(f"No turn {self.turn_number} in this session", valid_turns)
        start_line = prompts[number - 1].line_number
        end_line = prompts[number].line_number if number < len(prompts) else transcript.line_count
        live_nodes = []
        for node in linearize_chain(transcript.chain).nodes:
            if start_line <= node.line_number < end_line:
                live_nodes.append(node)
        turn_nodes = live_nodes or [
            node for node in transcript.nodes if start_line <= node.line_number < end_line
        ]
        return CutTarget(_require_conversation_node(turn_nodes, self.description))


class CutBeforeCompaction:
    """A cut before the newest compaction of the session."""

    @property
    def description(self) -> str:
        """The compaction in words, for messages."""
        return "before the last compaction"

    def find_cut_target(self, transcript: Transcript) -> CutTarget | None:
        """Return the last message before the compaction that is at the start of the live chain."""
        if not transcript.is_whole:
            return None
        boundary_line = next(
            (node.line_number for node in reversed(transcript.chain) if node.is_boundary), 0
        )
        last_node = _find_last_conversation_node(
            node for node in transcript.nodes if node.line_number < boundary_line
        )
        if last_node is None:
            was_abandoned = not boundary_line and any(node.is_boundary for node in transcript.nodes)
            raise UsageError(
                "The compaction of this session is on an abandoned branch, so the conversation no longer contains it"
                if was_abandoned
                else "This session was never compacted",
                "There is nothing to undo. To see the session's contents, run resume-hooks outline.",
            )
        return CutTarget(last_node, ignores_preserved_records=True)


def parse_cut(text: str) -> CutSelector | Reference:
    """Parse the value of ``--at``.

    Return a ``CutSelector`` for a record or message of this session. If the text contains a colon,
    as in ``1a2b3c4d:56``, return a ``Reference``, which also names a session.
    """
    if ":" in text:
        return parse_reference(text)
    return parse_record_cut(text)


def parse_record_cut(text: str) -> CutSelector:
    """Parse a line number, a uuid or a message id. Raises UsageError for any other text."""
    stripped_text = text.strip()
    if stripped_text.startswith("msg_"):
        return CutAtMessage(stripped_text)
    return CutAtRecord(parse_reference(stripped_text, "").record)


def cut_conversation(transcript: Transcript, selector: CutSelector) -> Cut | None:
    """Cut a conversation after the record that ``selector`` finds.

    Return None if only the end of the file was read and the cut requires the whole file. Raises
    UsageError if the record does not exist, or if the cut would keep no message.
    """
    target = selector.find_cut_target(transcript)
    if target is None:
        return None
    conversation, branch_remark = _find_conversation_with_target(transcript, target)
    if conversation is None:
        return None
    target_count = _count_records_up_to(conversation, target.node.uuid)
    kept_count = (
        find_min_valid_record_count(conversation, target_count) if target.includes_results else 0
    )
    if not kept_count:
        kept_count = find_max_valid_record_count(conversation, target_count)
    kept_nodes = conversation.nodes[:kept_count]
    messages = [node for node in kept_nodes if node.is_message]
    if not any(node.is_prompt or node.is_summary or node.kind == ASSISTANT for node in messages):
        raise UsageError(
            f"There is no message before the cut ({selector.description})", TOO_EARLY_CUT_ADVICE
        )
    last_message = messages[-1]
    shift_direction, split_remark = 0, ""
    if any(
        node.is_message
        for node in conversation.nodes[
            min(target_count, kept_count) : max(target_count, kept_count)
        ]
    ):
        if kept_count > target_count:
            shift_direction, direction_word = 1, "forward"
        else:
            shift_direction, direction_word = -1, "back"
        split_remark = (
            f"The cut moved {direction_word} to record {last_message.line_number}, "
            "so that no tool call is split."
        )
    remarks = tuple(filter(None, (target.remark, branch_remark, split_remark)))
    turn = _find_turn_number(transcript, last_message)
    return Cut(selector.description, kept_nodes, last_message, turn, shift_direction, remarks)


def _count_records_up_to(conversation: LinearChain, uuid: str) -> int:
    """Return the number of records up to and including the one with this id, or 0 if there is none."""
    for number, node in enumerate(conversation.nodes, 1):
        if node.uuid == uuid:
            return number
    return 0


def _find_turn_number(transcript: Transcript, node: Node) -> int | None:
    """Return the number of the turn to which a record belongs.

    Return None if only the end of the file was read.
    """
    if not transcript.is_whole:
        return None
    earlier_nodes = (row for row in transcript.nodes if row.line_number <= node.line_number)
    return sum(row.is_prompt and not row.is_copied for row in earlier_nodes)


def _raise_if_record_missing(transcript: Transcript, description: str) -> None:
    """Raise UsageError for a record that is missing.

    If only the end of the file was read, raise nothing, because the record may be in the part that
    was not read.
    """
    if transcript.is_whole:
        raise UsageError(
            f"{description} in {transcript.path}",
            "The reference may belong to another session. resume-hooks outline and resume-hooks read show references.",
        )


def _find_conversation_with_target(
    transcript: Transcript, target: CutTarget
) -> tuple[LinearChain | None, str]:
    """Return the conversation that contains the target record, and a remark.

    The remark is ``""`` for the live conversation. The conversation is None if the whole file must
    be read to find it.
    """
    node = target.node
    if target.ignores_preserved_records:
        return linearize_chain(build_chain_to(transcript.nodes, node, transcript.size)), ""
    if any(live_node.uuid == node.uuid for live_node in transcript.chain):
        return linearize_chain(transcript.chain), ""
    if not transcript.is_whole:
        return None, ""
    chain = build_chain_to(transcript.nodes, node, transcript.size)
    live_chain = transcript.chain
    if live_chain and live_chain[0].is_boundary and node.line_number < live_chain[0].line_number:
        return (
            linearize_chain(chain),
            "The cut is before a compaction, so the fork contains the conversation as it was before the compaction.",
        )
    return linearize_chain(
        chain
    ), "The cut is on an abandoned branch: the fork contains that branch."


def _find_last_conversation_node(nodes: Iterable[Node]) -> Node | None:
    return max(
        (node for node in nodes if _is_conversation_node(node)),
        key=lambda node: node.line_number,
        default=None,
    )


def _require_conversation_node(nodes: Sequence[Node], description: str) -> Node:
    """Return the last of ``nodes`` that belongs to the conversation.

    Raises UsageError if no node belongs to it.
    """
    node = next((node for node in reversed(nodes) if _is_conversation_node(node)), None)
    if node is None:
        if nodes and nodes[-1].is_sidechain:
            problem = "is a sub-agent's"
        else:
            problem = "is not part of the conversation"
        raise UsageError(
            f"{description.capitalize()} {problem}: nothing can be cut there",
            "Choose a message. resume-hooks outline and resume-hooks read show messages.",
        )
    return node


def _is_conversation_node(node: Node) -> bool:
    return not node.is_sidechain and not node.is_broken and node.kind != PROGRESS
