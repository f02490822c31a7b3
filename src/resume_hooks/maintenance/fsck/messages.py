"""Find messages that the API or a client refuses, for example empty messages or blank texts.

This module also checks the thinking in answers, and the tool calls of the live chain. Each call
must have exactly one result, in the next turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from resume_hooks.derive.originals import is_marked_as_trimmed
from resume_hooks.maintenance.fsck.damaged_bytes import LONE_SURROGATE_DEFECT
from resume_hooks.maintenance.fsck.findings import Defect, DefectKind, DefectReport
from resume_hooks.transcripts import records
from resume_hooks.transcripts.linearize import are_records_of_one_answer
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import ASSISTANT, USER, Record, get_string
from resume_hooks.transcripts.transcript import Transcript

MISSING_MESSAGE_DEFECT = DefectKind(
    "message-missing",
    "error",
    "Clients 2.1.42 and 2.1.112 refuse the whole session; client 2.1.329 skips the record.",
)
PLAIN_STRING_ANSWER_DEFECT = DefectKind(
    "answer-plain-string", "error", "Clients before 2.1.220 refuse the whole session."
)
BLANK_PROMPT_DEFECT = DefectKind(
    "prompt-blank",
    "error",
    "Clients send the prompt, and the API then refuses the whole conversation.",
)
BLANK_BLOCK_DEFECT = DefectKind(
    "text-blank",
    "error",
    "Clients up to 2.1.112 send the text, and the API refuses the request; client 2.1.329 omits the text.",
)
EMPTY_MESSAGE_DEFECT = DefectKind(
    "message-empty", "warning", "Clients omit the message, or replace it with '(no content)'."
)
BLANK_ANSWER_DEFECT = DefectKind(
    "answer-blank", "note", "Clients write such records themselves, and omit the answer."
)
EMPTY_ANSWER_DEFECT = DefectKind(
    "answer-empty",
    "note",
    "Clients send the answer's other records, or '(no content)' if there are no others.",
)


def defects_of_broken_message(record: Record, node: Node) -> Iterator[Defect]:
    """Yield the defects of a message that cannot be part of a conversation."""
    content = records.get_message(record).get("content")
    if node.is_broken and not isinstance(content, str):
        yield MISSING_MESSAGE_DEFECT.defect_in_node(node, f"The {node.kind} record has no message")
    if node.kind == records.ASSISTANT and isinstance(content, str):
        yield PLAIN_STRING_ANSWER_DEFECT.defect_in_node(
            node, "The answer is a plain string, not blocks"
        )


def defects_of_content(record: Record, node: Node) -> Iterator[Defect]:
    """Yield a defect for each blank text in a message that clients send.

    A blank text is not a defect if it was left when the thinking was trimmed. The record is then
    marked as trimmed.
    """
    content = records.get_message(record).get("content")
    if isinstance(content, str):
        if node.kind == records.USER and not content.strip():
            yield BLANK_PROMPT_DEFECT.defect_in_node(node, "The prompt is empty")
        return
    if not isinstance(content, list):
        return
    texts = [
        get_string(block, "text")
        for block in content
        if isinstance(block, dict) and block.get("type") == records.TEXT
    ]
    blank_texts = [text for text in texts if not text.strip()]
    if len(blank_texts) < len(content):
        if blank_texts:
            yield BLANK_BLOCK_DEFECT.defect_in_node(
                node, f"One of the {len(content)} blocks is an empty text"
            )
    elif blank_texts and node.kind == records.USER:
        yield BLANK_PROMPT_DEFECT.defect_in_node(node, "The prompt contains only empty text")
    elif blank_texts:
        yield BLANK_ANSWER_DEFECT.defect_in_node(node, "The answer contains only empty text")
    elif node.kind == records.USER:
        yield EMPTY_MESSAGE_DEFECT.defect_in_node(node, "The user message is empty")
    elif not is_marked_as_trimmed(record):
        yield EMPTY_ANSWER_DEFECT.defect_in_node(node, "The answer is empty")


UNSIGNED_THINKING_DEFECT = DefectKind(
    "thinking-unsigned",
    "error",
    "Clients send the thinking; the API then refuses every request of the session.",
)
TEXTLESS_THINKING_DEFECT = DefectKind(
    "thinking-textless",
    "error",
    "Client 2.1.112 refuses the whole session; the API refuses the requests of other clients.",
)
EMPTY_REDACTED_THINKING_DEFECT = DefectKind(
    "thinking-redacted-empty",
    "error",
    "Client 2.1.112 refuses the whole session; the API refuses the requests of other clients.",
)
ALTERED_THINKING_DEFECT = DefectKind(
    "thinking-altered",
    "error",
    "A signature is valid for one text: the API refuses every request in which it signs another text.",
)
THINKING_WITHOUT_ANSWER_DEFECT = DefectKind(
    "thinking-alone",
    "note",
    "Clients omit the thinking: the answer was interrupted while the model was thinking.",
)


class ThinkingCheck:
    """Checks the thinking in the records of a file. The records must be passed in order.

    ``thinking_only_lines`` are the line numbers of the records that contain only thinking.
    """

    def __init__(self) -> None:
        self.thinking_only_lines: set[int] = set()
        self._texts_by_signature: dict[str, tuple[int, Node]] = {}

    def check_thinking(self, record: Record, node: Node) -> Iterator[Defect]:
        """Yield the defects in the thinking blocks of a record that belongs to an answer."""
        blocks = records.list_blocks(record)
        if blocks and all(get_string(block, "type") in records.THINKING_TYPES for block in blocks):
            self.thinking_only_lines.add(node.line_number)
        for block in blocks:
            if get_string(block, "type") in records.THINKING_TYPES:
                yield from self._defects_of_block(block, node)

    def _defects_of_block(self, block: Record, node: Node) -> Iterator[Defect]:
        if block["type"] == records.REDACTED_THINKING:
            if not get_string(block, "data"):
                yield EMPTY_REDACTED_THINKING_DEFECT.defect_in_node(
                    node, "Redacted thinking without its data"
                )
            return
        signature, text = get_string(block, "signature"), block.get("thinking")
        if not signature:
            description = "Empty thinking" if not text else "Thinking"
            yield UNSIGNED_THINKING_DEFECT.defect_in_node(
                node, f"{description} without a signature"
            )
        elif not isinstance(text, str):
            yield TEXTLESS_THINKING_DEFECT.defect_in_node(node, "Thinking without its text")
        else:
            known_hash, first_node = self._texts_by_signature.setdefault(
                signature, (hash(text), node)
            )
            if known_hash != hash(text):
                for own_node, other_node in ((first_node, node), (node, first_node)):
                    message = (
                        "This thinking has the same signature as a different text in record "
                        f"{other_node.line_number}"
                    )
                    yield ALTERED_THINKING_DEFECT.defect_in_node(own_node, message)


def defects_of_lone_thinking(
    chain: Sequence[Node], thinking_only_lines: set[int]
) -> Iterator[Defect]:
    """Yield a defect for each answer of the live chain that contains only thinking."""
    answers: dict[str, list[Node]] = {}
    for node in chain:
        if node.kind == records.ASSISTANT:
            answers.setdefault(node.message_id or node.uuid, []).append(node)
    for nodes in answers.values():
        if all(node.line_number in thinking_only_lines for node in nodes):
            yield THINKING_WITHOUT_ANSWER_DEFECT.defect_in_node(
                nodes[0], "The answer contains only thinking"
            )


def remove_thinking(record: Record) -> Record | None:
    """Return the record without its thinking blocks, or None if it contains only thinking."""
    other_blocks = []
    for block in records.list_blocks(record):
        if get_string(block, "type") not in records.THINKING_TYPES:
            other_blocks.append(block)
    if other_blocks:
        return records.replace_content(record, other_blocks)
    return None


REPEATED_CALL_DEFECT = DefectKind(
    "tool-call-repeated",
    "error",
    (
        "Clients up to 2.1.42 send both calls, and the API refuses the request; later clients omit "
        "the second call with its result."
    ),
)
REPEATED_RESULT_DEFECT = DefectKind(
    "tool-result-repeated",
    "error",
    "Clients up to 2.1.42 send both results, and the API refuses the request; later clients omit the second.",
)
LATE_RESULT_DEFECT = DefectKind(
    "tool-result-late",
    "warning",
    "The result comes after a later answer: clients omit the result and send an error message instead.",
)
UNANSWERED_CALL_DEFECT = DefectKind(
    "tool-call-unanswered",
    "warning",
    "Clients omit the call on resume; programs that keep the call get error 400 from the API.",
)
ORPHAN_RESULT_DEFECT = DefectKind(
    "tool-result-orphan",
    "warning",
    "Clients omit the result on resume; programs that keep the result get error 400 from the API.",
)
OPEN_CALL_DEFECT = DefectKind(
    "tool-call-open",
    "note",
    "The session ended during the call; clients answer the call with an error.",
)


def defects_of_calls(chain: Sequence[Node]) -> Iterator[Defect]:
    """Yield a defect for each call without a result and each result without a call on the live chain."""
    ledger = _CallsAndResults()
    for node in chain:
        if node.is_message and not node.answered_call_ids:
            ledger.register_message(node)
        for call in node.call_ids:
            yield from ledger.add_call_and_find_defects(node, call)
        for call in node.answered_call_ids:
            yield from ledger.register_result(node, call)
    yield from ledger.report_unanswered_calls()


class _CallsAndResults:
    """The tool calls of a conversation, grouped by whether a result can still follow.

    The calls in ``open_calls`` have no result yet. The calls in ``late_calls`` have no result
    either, and another message has already followed them.
    """

    def __init__(self) -> None:
        self.open_calls: dict[str, Node] = {}
        self.late_calls: dict[str, Node] = {}
        self.calls_before_prompts: set[str] = set()
        self.answered_calls: set[str] = set()
        self.repeated_calls: set[str] = set()

    def register_message(self, node: Node) -> None:
        """Register a message that is not the result of a call."""
        for call, caller in list(self.open_calls.items()):
            if node.kind == USER:
                if not node.is_meta:
                    self.calls_before_prompts.add(call)
            elif node.message_id != caller.message_id or not node.message_id:
                self.late_calls[call] = self.open_calls.pop(call)

    def add_call_and_find_defects(self, node: Node, call_id: str) -> Iterator[Defect]:
        if (
            call_id in self.open_calls
            or call_id in self.late_calls
            or call_id in self.answered_calls
        ):
            self.repeated_calls.add(call_id)
            yield REPEATED_CALL_DEFECT.defect_in_node(
                node, f"An earlier record makes the same call {call_id}"
            )
        else:
            self.open_calls[call_id] = node

    def register_result(self, node: Node, call_id: str) -> Iterator[Defect]:
        if self.open_calls.pop(call_id, None) is not None:
            self.answered_calls.add(call_id)
        elif self.late_calls.pop(call_id, None) is not None:
            self.answered_calls.add(call_id)
            yield LATE_RESULT_DEFECT.defect_in_node(
                node, f"The result of {call_id} comes after a later answer"
            )
        elif call_id in self.repeated_calls:
            # This is the result of a repeated call. Clients omit it together with the call.
            self.repeated_calls.discard(call_id)
        elif call_id in self.answered_calls:
            yield REPEATED_RESULT_DEFECT.defect_in_node(
                node, f"The call {call_id} already has a result"
            )
        else:
            yield ORPHAN_RESULT_DEFECT.defect_in_node(node, f"There is no call {call_id}")

    def report_unanswered_calls(self) -> Iterator[Defect]:
        for call, node in {**self.late_calls, **self.open_calls}.items():
            if call in self.late_calls or call in self.calls_before_prompts:
                kind = UNANSWERED_CALL_DEFECT
            else:
                kind = OPEN_CALL_DEFECT
            yield kind.defect_in_node(node, f"The call {call} has no result")


EMPTY_CONVERSATION_DEFECT = DefectKind(
    "conversation-empty",
    "error",
    "Clients report that they found no conversation.",
    is_repairable=False,
)
MISSING_END_TIMESTAMP_DEFECT = DefectKind(
    "timestamp-missing-at-end", "error", "Client 2.1.329 reports that it found no conversation."
)
MISSING_TIMESTAMP_DEFECT = DefectKind(
    "timestamp-missing",
    "warning",
    "Client 2.1.42 ends the conversation at another record.",
)
BACKWARD_TIMESTAMP_DEFECT = DefectKind(
    "timestamp-backward", "note", "Harmless; Claude Code writes this."
)
LAST_RECORD_NOT_NEWEST_DEFECT = DefectKind(
    "end-not-latest",
    "warning",
    "Client 2.1.42 resumes at the record with the latest timestamp and loses the records after it.",
)
STARTS_WITHOUT_PROMPT_DEFECT = DefectKind(
    "starts-without-prompt",
    "error",
    "Client 2.1.329 sends the conversation, and the API refuses it, because its first message is not the user's.",
)
STARTS_WITH_RESULT_DEFECT = DefectKind(
    "starts-with-result",
    "error",
    "Client 2.1.42 sends the result, and the API refuses the request; client 2.1.329 sends a placeholder instead.",
)
REPEATED_ANSWER_DEFECT = DefectKind(
    "answer-after-answer",
    "warning",
    "Clients send both answers; the API merges them.",
    is_repairable=False,
)
INLINE_SIDECHAIN_DEFECT = DefectKind(
    "sidechain-inline",
    "note",
    "Old clients wrote sub-agents' records into the same file; clients do not load these records.",
)
OTHER_SESSION_ID_DEFECT = DefectKind(
    "session-id-foreign", "note", "Clients use the id in the file's name."
)


def defects_of_sequence(transcript: Transcript, session_id: str | None) -> Iterator[Defect]:
    """Yield the defects that concern the order of the messages.

    ``session_id`` is the id in the file's name, or None.
    """
    chain = transcript.chain
    spoken_messages = [node for node in chain if node.is_message]
    if not spoken_messages:
        if transcript.nodes or transcript.damaged_lines:
            yield Defect(
                EMPTY_CONVERSATION_DEFECT,
                f"None of the {transcript.line_count} lines belongs to a conversation",
            )
        return
    if spoken_messages[0].kind == ASSISTANT:
        yield STARTS_WITHOUT_PROMPT_DEFECT.defect_in_node(
            spoken_messages[0], "The conversation begins with an answer"
        )
    elif spoken_messages[0].answered_call_ids:
        yield STARTS_WITH_RESULT_DEFECT.defect_in_node(
            spoken_messages[0], "The conversation begins with a tool result"
        )
    for previous_node, node in pairwise(spoken_messages):
        if are_records_of_one_answer(previous_node, node):
            yield REPEATED_ANSWER_DEFECT.defect_in_node(
                node, f"It follows the answer in record {previous_node.line_number}"
            )
    yield from _defects_of_timestamps(transcript, spoken_messages)
    for node in transcript.nodes:
        if node.is_sidechain:
            yield INLINE_SIDECHAIN_DEFECT.defect_in_node(node, "A sub-agent's record")
        elif session_id and node.session_id and node.session_id != session_id:
            yield OTHER_SESSION_ID_DEFECT.defect_in_node(
                node, f"It names session {node.session_id}"
            )


def _defects_of_timestamps(transcript: Transcript, spoken_messages: list[Node]) -> Iterator[Defect]:
    last_message = spoken_messages[-1]
    if last_message.time_ms is None:
        yield MISSING_END_TIMESTAMP_DEFECT.defect_in_node(
            last_message, "The last message has no timestamp"
        )
    for node in spoken_messages[:-1]:
        if node.time_ms is None:
            yield MISSING_TIMESTAMP_DEFECT.defect_in_node(node, "The message has no timestamp")
    for previous, node in pairwise(node for node in transcript.chain if node.time_ms is not None):
        if node.line_number > previous.line_number and (node.time_ms or 0) < (
            previous.time_ms or 0
        ):
            yield BACKWARD_TIMESTAMP_DEFECT.defect_in_node(
                node, f"It is earlier than record {previous.line_number}"
            )
    candidates = (
        node
        for node in transcript.nodes
        if node.is_message and not node.is_sidechain and not node.is_broken
    )
    latest_message = max(candidates, key=lambda node: node.time_ms or 0, default=last_message)
    if last_message.time_ms is not None and (latest_message.time_ms or 0) > last_message.time_ms:
        yield LAST_RECORD_NOT_NEWEST_DEFECT.defect_in_node(
            latest_message,
            f"The conversation ends with record {last_message.line_number}, which has an earlier time",
        )


DEFECT_KINDS_BY_API_REFUSAL: tuple[tuple[tuple[str, ...], set[DefectKind]], ...] = (
    (
        ("thinking block", "redacted_thinking", "thinking.signature", "thinking.thinking"),
        {
            UNSIGNED_THINKING_DEFECT,
            TEXTLESS_THINKING_DEFECT,
            EMPTY_REDACTED_THINKING_DEFECT,
            ALTERED_THINKING_DEFECT,
        },
    ),
    (
        (
            "tool_use ids were found without tool_result",
            "unexpected tool_use_id",
            "tool_use ids must be unique",
            "tool_use must have a single result",
            # These are the messages of clients since 2.1.112 for the four defects above.
            "tool use concurrency issues",
            "orphaned tool_result",
            "duplicate tool_use id",
        ),
        {
            REPEATED_CALL_DEFECT,
            REPEATED_RESULT_DEFECT,
            LATE_RESULT_DEFECT,
            UNANSWERED_CALL_DEFECT,
            ORPHAN_RESULT_DEFECT,
            STARTS_WITH_RESULT_DEFECT,
        },
    ),
    (
        ("text content blocks must", "must have non-empty content"),
        {BLANK_PROMPT_DEFECT, BLANK_BLOCK_DEFECT, EMPTY_MESSAGE_DEFECT},
    ),
    (("surrogate", "not valid json"), {LONE_SURROGATE_DEFECT}),
    (
        ("first message must use the user role",),
        {STARTS_WITHOUT_PROMPT_DEFECT, STARTS_WITH_RESULT_DEFECT},
    ),
)
"""Phrases from the API's refusals of a conversation, with the defects that cause each refusal. The
phrases are in lower case and without backticks."""

_STATUS_400_PATTERN = re.compile(r"\b400\b")


def defects_causing_error(message: str) -> frozenset[DefectKind]:
    """Return the kinds of defects that may cause an API error. For other errors the result is empty."""
    text = message.lower().replace("`", "")
    if not _STATUS_400_PATTERN.search(text):
        return frozenset()
    return frozenset[DefectKind]().union(
        *(
            kinds
            for phrases, kinds in DEFECT_KINDS_BY_API_REFUSAL
            if any(phrase in text for phrase in phrases)
        )
    )


def findings_of_kinds(report: DefectReport, kinds: frozenset[DefectKind]) -> list[Defect]:
    """Return the defects in a report that have one of these kinds."""
    return [finding for group in report.groups if group.kind in kinds for finding in group.defects]
