"""Trim the conversation in a running client: make the new list of its messages.

Tests with the client showed a problem with answers and tool results that are kept unchanged: the
next request is correct, but a resume reads the original record again. So this module rebuilds all
answers and results, and keeps only the user's messages. Consecutive answers or results become one
message. A rebuilt message contains texts and calls, but no thinking and no pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from resume_hooks.derive.trim.options import MIN_SAVED_TOKENS, MIN_WORTHWHILE_SAVED_TOKENS, Options
from resume_hooks.derive.trim.plan import SessionScan, TrimDecision, make_decision
from resume_hooks.derive.trim.rules import OfferedPiece
from resume_hooks.derive.trim.selection import choose_pieces, make_trim_choice, make_trim_edits
from resume_hooks.errors import PlanOutdated
from resume_hooks.paths import Where
from resume_hooks.transcripts import placeholders, records
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.placeholders import OriginalReference
from resume_hooks.transcripts.records import Record, get_string
from resume_hooks.transcripts.tokens import media_tokens
from resume_hooks.transcripts.trimmable_pieces import (
    ATTACHMENT_PIECE,
    MEDIA_PIECE,
    PROMPT_PIECE,
    THINKING_PIECE,
)

KEPT_PIECE_KINDS = frozenset({PROMPT_PIECE, ATTACHMENT_PIECE})
"""The kinds of content that a trim in a running client keeps: the user's messages and their
attachments."""


MAX_SAVINGS_DIFFERENCE_FRACTION = 0.1
"""If the savings of a trimmed copy and of a trim in place differ by more than this fraction of the
larger savings, both are shown."""


class ShownMessage(NamedTuple):
    """A message that the client shows.

    ``record_uuid`` is the uuid of the message's record. ``call_ids`` contains the ids of the calls in the
    message, and ``result_ids`` contains the ids of the calls whose results are in the message.
    """

    record_uuid: str
    role: str
    call_ids: tuple[str, ...]
    result_ids: tuple[str, ...]

    @property
    def is_user_message(self) -> bool:
        """Whether the user wrote the message."""
        return self.role == records.USER and not self.result_ids


class MessageRange(NamedTuple):
    """The range of messages to rebuild.

    Messages before the index ``start_index`` are removed, and messages from the index ``end_index`` on are
    kept.
    """

    start_index: int
    end_index: int


class ClientTrim(NamedTuple):
    """The new conversation for the client.

    Each item of ``kept_and_joined_indexes`` is the index of a message to keep, or a tuple with the indexes of
    messages to join into one. ``new_texts`` maps the record uuids of answers to their new texts.
    ``new_results`` and ``new_inputs`` map the ids of calls to their new results and inputs.
    ``unpaired_call_ids`` contains the ids of calls without a result, and of results without a call.
    """

    kept_and_joined_indexes: tuple[int | tuple[int, ...], ...]
    new_texts: Mapping[str, str]
    new_results: Mapping[str, str]
    new_inputs: Mapping[str, Any]
    unpaired_call_ids: tuple[str, ...]
    decision: TrimDecision


def plan_trim_in_client(
    session_scan: SessionScan,
    messages_shown: Sequence[ShownMessage],
    options: Options,
    where: Where,
    message_range: MessageRange | None = None,
) -> ClientTrim:
    """Plan the client's new conversation from the messages that the client shows.

    Only messages in ``message_range`` are rebuilt. If it is None, all messages are rebuilt. Raises
    PlanOutdated if the client's messages differ from its file, and UsageError for invalid options.
    """
    nodes = {node.uuid: node for node in session_scan.transcript.chain}
    start, end = message_range or MessageRange(0, len(messages_shown))
    rebuilt_messages = messages_shown[start:end]
    _require_messages_match_file(rebuilt_messages, nodes)
    rebuilt_numbers = {
        nodes[message.record_uuid].line_number
        for message in rebuilt_messages
        if not message.is_user_message
    }
    decision = _make_decision(session_scan, options, where, rebuilt_numbers)
    edits = make_trim_edits(decision.choices, decision.origins)
    texts: dict[str, str] = {}
    results: dict[str, str] = {}
    inputs: dict[str, Any] = {}
    silent_record_uuids: set[str] = set()
    for message in rebuilt_messages:
        if message.is_user_message:
            continue
        node = nodes[message.record_uuid]
        record = session_scan.transcript.read_record(node)
        edit = edits.get(node.line_number)
        edited = (edit(record) if edit else None) or record
        if message.role == records.ASSISTANT:
            text = records.join_text_blocks(edited).strip()
            if record.get("isApiErrorMessage") is True or not (text or message.call_ids):
                silent_record_uuids.add(message.record_uuid)
            elif edit and text:
                texts[message.record_uuid] = text
            if edit:
                for call in records.list_calls(edited):
                    inputs[get_string(call, "id")] = call.get("input")
        else:
            reference = decision.origins.find_origin_of_record(node.line_number).original_reference
            for block in records.list_results(edited):
                results[get_string(block, "tool_use_id")] = _format_result(block, reference)
    has_thinking = _has_thinking(session_scan, messages_shown[end:])
    return ClientTrim(
        kept_and_joined_indexes=(
            *_group_message_indexes(messages_shown, range(start, end), silent_record_uuids),
            *_group_message_indexes(
                messages_shown, range(end, len(messages_shown)), set(), keeps_answers=has_thinking
            ),
        ),
        new_texts=texts,
        new_results=results,
        new_inputs=inputs,
        unpaired_call_ids=_list_unpaired_call_ids(messages_shown[start:]),
        decision=decision,
    )


def _require_messages_match_file(
    messages: Sequence[ShownMessage], nodes: Mapping[str, Node]
) -> None:
    """Raise PlanOutdated if the client's messages differ from the records in its file.

    ``nodes`` maps the uuids of the file's records to their nodes.
    """
    for message in messages:
        node = nodes.get(message.record_uuid)
        if node is None or (node.kind, node.call_ids, node.answered_call_ids) != message[1:]:
            raise PlanOutdated(
                "The conversation in Claude Code differs from the session's file",
                "Nothing was changed.",
            )


def _list_unpaired_call_ids(messages: Sequence[ShownMessage]) -> tuple[str, ...]:
    """Return the ids of calls without results, and of results without calls."""
    called: set[str] = set()
    answered: set[str] = set()
    for message in messages:
        called.update(message.call_ids)
        answered.update(message.result_ids)
    return tuple(sorted(called ^ answered))


def decide_trim_in_client(
    session_scan: SessionScan, options: Options, where: Where
) -> TrimDecision:
    """Choose the pieces for a trim of all messages, and count the savings.

    The result is the same as that of ``plan_trim_in_client`` for a client whose messages match its
    file. Raises UsageError for invalid options.
    """
    rebuilt_numbers = set()
    for node in session_scan.transcript.chain:
        if node.kind == records.ASSISTANT or (node.kind == records.USER and node.answered_call_ids):
            rebuilt_numbers.add(node.line_number)
    return _make_decision(session_scan, options, where, rebuilt_numbers)


def is_worthwhile_in_client(decision: TrimDecision, options: Options) -> bool:
    """Check whether a trim in place saves enough tokens.

    A trim in place must save more than a trimmed copy, because it removes the whole conversation
    from the API's cache. The user can explicitly request a smaller trim.
    """
    if options.min_savings == MIN_SAVED_TOKENS:
        min_savings = MIN_WORTHWHILE_SAVED_TOKENS
    else:
        min_savings = options.min_savings
    return decision.savings.tokens >= min_savings


def do_savings_differ(freed_by_trimmed_copy: int, freed_in_place: int) -> bool:
    """Check whether a preview must show the savings of a copy and of a trim in place separately."""
    return abs(freed_by_trimmed_copy - freed_in_place) > MAX_SAVINGS_DIFFERENCE_FRACTION * max(
        freed_by_trimmed_copy, freed_in_place
    )


def _make_decision(
    session_scan: SessionScan, options: Options, where: Where, line_numbers: set[int]
) -> TrimDecision:
    """Choose the pieces to remove from the records with these line numbers, and count the savings.

    Besides the pieces that the rules choose, all thinking and media are removed, because rebuilt
    messages cannot contain them.
    """
    origins, trimmable = (
        session_scan.find_origins(where),
        session_scan.collect_trim_material(options),
    )
    chosen = choose_pieces(
        trimmable, options, origins, session_scan.scale, session_scan.context.tokens
    )
    choices = []
    for choice_by_rule in chosen:
        if (
            choice_by_rule.piece.line_number in line_numbers
            and choice_by_rule.piece.kind not in KEPT_PIECE_KINDS
        ):
            choices.append(choice_by_rule)
    chosen_keys = {(choice.piece.line_number, choice.piece.address) for choice in choices}
    for piece in trimmable.pieces:
        cannot_be_rebuilt = (
            piece.kind in {THINKING_PIECE, MEDIA_PIECE} and piece.line_number in line_numbers
        )
        if cannot_be_rebuilt and (piece.line_number, piece.address) not in chosen_keys:
            rule = "thinking" if piece.kind == THINKING_PIECE else "media"
            choice = make_trim_choice(trimmable, OfferedPiece(piece), rule, origins)
            choices += [choice] if choice is not None else []
    return make_decision(session_scan, options, trimmable, choices, origins)


def _format_result(block: Record, original: OriginalReference) -> str:
    parts = []
    for part in records.result_blocks(block):
        kind = get_string(part, "type")
        if kind == records.TEXT:
            parts.append(get_string(part, "text"))
        elif kind in records.MEDIA_TYPES:
            parts.append(placeholders.media_placeholder(media_tokens(part), original))
        else:
            parts.append(get_string(part, "tool_name"))
    return "\n".join(filter(None, parts)) or "(nothing)"


def _group_message_indexes(
    shown_messages: Sequence[ShownMessage],
    indexes: range,
    silent_record_uuids: set[str],
    *,
    keeps_answers: bool = False,
) -> Iterator[int | tuple[int, ...]]:
    """Yield the index of each message to keep, and a tuple with the indexes of messages to join.

    The user's messages are kept. If ``keeps_answers`` is true, answers are kept too. Other
    consecutive messages of the same role are joined. Messages whose ``record_uuid`` is in ``silent_record_uuids``
    are omitted.
    """
    rows = [
        index for index in indexes if shown_messages[index].record_uuid not in silent_record_uuids
    ]

    def is_kept(message: ShownMessage) -> bool:
        return message.is_user_message or (keeps_answers and message.role == records.ASSISTANT)

    for (is_unchanged, _), group in groupby(
        rows, key=lambda index: (is_kept(shown_messages[index]), shown_messages[index].role)
    ):
        if is_unchanged:
            yield from group
        else:
            yield tuple(group)


def _has_thinking(session_scan: SessionScan, messages_of_turn: Sequence[ShownMessage]) -> bool:
    """Check whether an answer of the current turn contains thinking.

    The next request must return this thinking to the API. An answer that has no record in the file
    may contain thinking, so it counts as an answer with thinking.
    """
    nodes_by_uuid = session_scan.transcript.nodes_by_uuid
    answers = []
    for message in messages_of_turn:
        if message.role == records.ASSISTANT:
            answers.append(nodes_by_uuid.get(message.record_uuid))
    return any(
        node is None or node.line_number in session_scan.piece_collector.answers_of_thinking
        for node in answers
    )
