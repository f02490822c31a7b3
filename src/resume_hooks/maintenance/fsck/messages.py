"""Messages that the API or a client refuses: no content, blank texts, plain strings, changed thinking.

This module also checks the tool calls of the live chain. Each call must have exactly one result, in
the next turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from resume_hooks.derive.originals import is_marked
from resume_hooks.maintenance.fsck.damaged_bytes import LONE_SURROGATE
from resume_hooks.maintenance.fsck.findings import Defect, DefectReport, Kind
from resume_hooks.transcripts import records
from resume_hooks.transcripts.linearize import are_adjacent_answers
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import ASSISTANT, USER, Record, string
from resume_hooks.transcripts.transcript import Transcript

MISSING_MESSAGE = Kind(
    "message-missing",
    "error",
    "Clients 2.1.42 and 2.1.112 refuse the whole session; 2.1.329 skips the record.",
)
PLAIN_ANSWER = Kind(
    "answer-plain-string", "error", "Clients before 2.1.220 refuse the whole session."
)
BLANK_PROMPT = Kind(
    "prompt-blank",
    "error",
    "Clients send it, and the API then refuses the whole conversation.",
)
BLANK_BLOCK = Kind(
    "text-blank",
    "error",
    "Clients up to 2.1.112 send it, and the API refuses; 2.1.329 leaves it out.",
)
EMPTY_MESSAGE = Kind(
    "message-empty", "warning", "Clients drop it, or replace it by '(no content)'."
)
BLANK_ANSWER = Kind("answer-blank", "note", "Clients drop it; they write such records themselves.")
EMPTY_ANSWER = Kind(
    "answer-empty",
    "note",
    "Clients send the answer's other records, or '(no content)' if it has none.",
)


def defects_of_broken(record: Record, node: Node) -> Iterator[Defect]:
    """Yield the defects of a message that cannot be on a chain."""
    content = records.message(record).get("content")
    if node.broken and not isinstance(content, str):
        yield MISSING_MESSAGE.in_node(node, f"The {node.kind} record has no message")
    if node.kind == records.ASSISTANT and isinstance(content, str):
        yield PLAIN_ANSWER.in_node(node, "The answer is a plain string, not blocks")


def defects_of_content(record: Record, node: Node) -> Iterator[Defect]:
    """Yield the blank texts of a sent message, except those that a trim of thinking leaves behind and marks."""
    content = records.message(record).get("content")
    if isinstance(content, str):
        if node.kind == records.USER and not content.strip():
            yield BLANK_PROMPT.in_node(node, "The prompt is empty")
        return
    if not isinstance(content, list):
        return
    texts = [
        string(block, "text")
        for block in content
        if isinstance(block, dict) and block.get("type") == records.TEXT
    ]
    blank = [text for text in texts if not text.strip()]
    if len(blank) < len(content):
        if blank:
            yield BLANK_BLOCK.in_node(node, f"A text among {len(content)} blocks is empty")
    elif blank and node.kind == records.USER:
        yield BLANK_PROMPT.in_node(node, "The prompt contains only empty text")
    elif blank:
        yield BLANK_ANSWER.in_node(node, "The answer contains only empty text")
    elif node.kind == records.USER:
        yield EMPTY_MESSAGE.in_node(node, "The user message is empty")
    elif not is_marked(record):
        yield EMPTY_ANSWER.in_node(node, "The answer is empty")


UNSIGNED_THINKING = Kind(
    "thinking-unsigned",
    "error",
    "Clients send it; the API then refuses every request of the session.",
)
TEXTLESS_THINKING = Kind(
    "thinking-textless",
    "error",
    "Client 2.1.112 refuses the whole session; the API refuses the requests of others.",
)
EMPTY_REDACTED_THINKING = Kind(
    "thinking-redacted-empty",
    "error",
    "Client 2.1.112 refuses the whole session; the API refuses the requests of others.",
)
ALTERED_THINKING = Kind(
    "thinking-altered",
    "error",
    "A signature belongs to one text: the API refuses every request with the other one.",
)
LONE_THINKING = Kind(
    "thinking-alone",
    "note",
    "Clients drop it: the answer was interrupted while the model was thinking.",
)


class ThinkingCheck:
    """A check of a file's thinking; ``alone`` contains the numbers of records that consist only of thinking."""

    def __init__(self) -> None:
        self.alone: set[int] = set()
        self._signed: dict[str, tuple[int, Node]] = {}

    def check_thinking(self, record: Record, node: Node) -> Iterator[Defect]:
        """Yield the defects in the thinking of a record that belongs to an answer."""
        blocks = records.blocks(record)
        if blocks and all(string(block, "type") in records.THOUGHTS for block in blocks):
            self.alone.add(node.number)
        for block in blocks:
            if string(block, "type") in records.THOUGHTS:
                yield from self._defects_of_block(block, node)

    def _defects_of_block(self, block: Record, node: Node) -> Iterator[Defect]:
        if block["type"] == records.REDACTED_THINKING:
            if not string(block, "data"):
                yield EMPTY_REDACTED_THINKING.in_node(node, "Redacted thinking without its data")
            return
        signature, text = string(block, "signature"), block.get("thinking")
        if not signature:
            description = "Empty thinking" if not text else "Thinking"
            yield UNSIGNED_THINKING.in_node(node, f"{description} without a signature")
        elif not isinstance(text, str):
            yield TEXTLESS_THINKING.in_node(node, "Thinking without its text")
        else:
            known_hash, first = self._signed.setdefault(signature, (hash(text), node))
            if known_hash != hash(text):
                for each, other in ((first, node), (node, first)):
                    message = (
                        "The signature of this thinking stands under another text in record "
                        f"{other.number}"
                    )
                    yield ALTERED_THINKING.in_node(each, message)


def defects_of_lone_thinking(chain: Sequence[Node], alone: set[int]) -> Iterator[Defect]:
    """Yield the answers of the live chain that contain only thinking."""
    answers: dict[str, list[Node]] = {}
    for node in chain:
        if node.kind == records.ASSISTANT:
            answers.setdefault(node.message_id or node.uuid, []).append(node)
    for nodes in answers.values():
        if all(node.number in alone for node in nodes):
            yield LONE_THINKING.in_node(nodes[0], "The answer contains only thinking")


def without_thinking(record: Record) -> Record | None:
    """Return the record without its thinking blocks, or None if it contains only thinking."""
    other_blocks = []
    for block in records.blocks(record):
        if string(block, "type") not in records.THOUGHTS:
            other_blocks.append(block)
    if other_blocks:
        return records.with_content(record, other_blocks)
    return None


REPEATED_CALL = Kind(
    "tool-call-repeated",
    "error",
    (
        "Clients up to 2.1.42 send both, and the API refuses; later ones drop the second "
        "call with its result."
    ),
)
REPEATED_RESULT = Kind(
    "tool-result-repeated",
    "error",
    "Clients up to 2.1.42 send both, and the API refuses; later ones drop the second.",
)
LATE_RESULT = Kind(
    "tool-result-late",
    "warning",
    "It comes after a later answer: clients drop it and send an error message instead.",
)
UNANSWERED_CALL = Kind(
    "tool-call-unanswered",
    "warning",
    "Clients drop the call on resume; programs that keep it get error 400 from the API.",
)
ORPHAN_RESULT = Kind(
    "tool-result-orphan",
    "warning",
    "Clients drop the result on resume; programs that keep it get error 400 from the API.",
)
OPEN_CALL = Kind(
    "tool-call-open", "note", "The session ended during the call; clients answer it with an error."
)


def defects_of_pairs(chain: Sequence[Node]) -> Iterator[Defect]:
    """Walk the live chain once, and yield every call and result without its counterpart."""
    ledger = _CallLedger()
    for node in chain:
        if node.spoken and not node.results:
            ledger.note_message(node)
        for call in node.calls:
            yield from ledger.note_call(node, call)
        for call in node.results:
            yield from ledger.note_result(node, call)
    yield from ledger.name_unanswered()


class _CallLedger:
    """``waiting`` are calls that may still get a result; ``late`` are calls that were followed by another message."""

    def __init__(self) -> None:
        self.waiting: dict[str, Node] = {}
        self.late: dict[str, Node] = {}
        self.passed: set[str] = set()
        self.done: set[str] = set()
        self.repeated: set[str] = set()

    def note_message(self, node: Node) -> None:
        """Record a message that does not answer a call."""
        for call, caller in list(self.waiting.items()):
            if node.kind == USER:
                if not node.meta:
                    self.passed.add(call)
            elif node.message_id != caller.message_id or not node.message_id:
                self.late[call] = self.waiting.pop(call)

    def note_call(self, node: Node, call: str) -> Iterator[Defect]:
        if call in self.waiting or call in self.late or call in self.done:
            self.repeated.add(call)
            yield REPEATED_CALL.in_node(node, f"The call {call} was made before")
        else:
            self.waiting[call] = node

    def note_result(self, node: Node, call: str) -> Iterator[Defect]:
        if self.waiting.pop(call, None) is not None:
            self.done.add(call)
        elif self.late.pop(call, None) is not None:
            self.done.add(call)
            yield LATE_RESULT.in_node(node, f"The result of {call} comes after a later answer")
        elif call in self.repeated:
            # the result of the repeated call, which is dropped together with the call
            self.repeated.discard(call)
        elif call in self.done:
            yield REPEATED_RESULT.in_node(node, f"The call {call} was answered before")
        else:
            yield ORPHAN_RESULT.in_node(node, f"There is no call {call}")

    def name_unanswered(self) -> Iterator[Defect]:
        for call, node in {**self.late, **self.waiting}.items():
            if call in self.late or call in self.passed:
                kind = UNANSWERED_CALL
            else:
                kind = OPEN_CALL
            yield kind.in_node(node, f"The call {call} has no result")


EMPTY_CONVERSATION = Kind(
    "conversation-empty",
    "error",
    "Clients report that they found no conversation.",
    repairable=False,
)
MISSING_END_TIMESTAMP = Kind(
    "timestamp-missing-at-end", "error", "Client 2.1.329 reports that it found no conversation."
)
MISSING_TIMESTAMP = Kind(
    "timestamp-missing",
    "warning",
    "Client 2.1.42 ends the conversation at another record.",
)
BACKWARD_TIMESTAMP = Kind("timestamp-backward", "note", "Harmless; Claude Code writes this.")
END_NOT_LATEST = Kind(
    "end-not-latest",
    "warning",
    "Client 2.1.42 resumes at the record with the latest timestamp and loses what follows it.",
)
STARTS_WITHOUT_PROMPT = Kind(
    "starts-without-prompt",
    "error",
    "The API refuses a conversation that doesn't begin with the user (2.1.329 sends it).",
)
STARTS_WITH_RESULT = Kind(
    "starts-with-result",
    "error",
    "Client 2.1.42 sends it, and the API refuses; 2.1.329 sends a placeholder instead.",
)
REPEATED_ANSWER = Kind(
    "answer-after-answer",
    "warning",
    "Clients send both; the API merges them.",
    repairable=False,
)
INLINE_SIDECHAIN = Kind(
    "sidechain-inline",
    "note",
    "Old clients wrote sub-agents into the same file; clients do not load them.",
)
FOREIGN_ID = Kind("session-id-foreign", "note", "Clients use the id in the file's name.")


def defects_of_sequence(transcript: Transcript, session_id: str | None) -> Iterator[Defect]:
    """Yield the defects in the order of messages; ``session_id`` is the id in the file's name, or None."""
    chain = transcript.chain
    spoken = [node for node in chain if node.spoken]
    if not spoken:
        if transcript.nodes or transcript.bad_lines:
            yield Defect(
                EMPTY_CONVERSATION,
                f"None of the {transcript.line_count} lines belongs to a conversation",
            )
        return
    if spoken[0].kind == ASSISTANT:
        yield STARTS_WITHOUT_PROMPT.in_node(spoken[0], "The conversation begins with an answer")
    elif spoken[0].results:
        yield STARTS_WITH_RESULT.in_node(spoken[0], "The conversation begins with a tool result")
    for previous, node in pairwise(spoken):
        if are_adjacent_answers(previous, node):
            yield REPEATED_ANSWER.in_node(
                node, f"It follows the answer in record {previous.number}"
            )
    yield from _defects_of_timestamps(transcript, spoken)
    for node in transcript.nodes:
        if node.sidechain:
            yield INLINE_SIDECHAIN.in_node(node, "A sub-agent's record")
        elif session_id and node.session_id and node.session_id != session_id:
            yield FOREIGN_ID.in_node(node, f"It names session {node.session_id}")


def _defects_of_timestamps(transcript: Transcript, spoken: list[Node]) -> Iterator[Defect]:
    end = spoken[-1]
    if end.time_ms is None:
        yield MISSING_END_TIMESTAMP.in_node(end, "The last message has no timestamp")
    for node in spoken[:-1]:
        if node.time_ms is None:
            yield MISSING_TIMESTAMP.in_node(node, "The message has no timestamp")
    for previous, node in pairwise(node for node in transcript.chain if node.time_ms is not None):
        if node.number > previous.number and (node.time_ms or 0) < (previous.time_ms or 0):
            yield BACKWARD_TIMESTAMP.in_node(node, f"It is earlier than record {previous.number}")
    messages = (
        node for node in transcript.nodes if node.spoken and not node.sidechain and not node.broken
    )
    latest = max(messages, key=lambda node: node.time_ms or 0, default=end)
    if end.time_ms is not None and (latest.time_ms or 0) > end.time_ms:
        yield END_NOT_LATEST.in_node(
            latest, f"Record {end.number}, where the conversation ends, is earlier"
        )


REFUSALS: tuple[tuple[tuple[str, ...], set[Kind]], ...] = (
    (
        ("thinking block", "redacted_thinking", "thinking.signature", "thinking.thinking"),
        {UNSIGNED_THINKING, TEXTLESS_THINKING, EMPTY_REDACTED_THINKING, ALTERED_THINKING},
    ),
    (
        (
            "tool_use ids were found without tool_result",
            "unexpected tool_use_id",
            "tool_use ids must be unique",
            "tool_use must have a single result",
            # the clients' messages since 2.1.112 for the four defects above
            "tool use concurrency issues",
            "orphaned tool_result",
            "duplicate tool_use id",
        ),
        {
            REPEATED_CALL,
            REPEATED_RESULT,
            LATE_RESULT,
            UNANSWERED_CALL,
            ORPHAN_RESULT,
            STARTS_WITH_RESULT,
        },
    ),
    (
        ("text content blocks must", "must have non-empty content"),
        {BLANK_PROMPT, BLANK_BLOCK, EMPTY_MESSAGE},
    ),
    (("surrogate", "not valid json"), {LONE_SURROGATE}),
    (("first message must use the user role",), {STARTS_WITHOUT_PROMPT, STARTS_WITH_RESULT}),
)
"""Phrases of the API's refusals of a conversation, in lower case and without backticks, each with
the defects that cause it."""

_STATUS_PATTERN = re.compile(r"\b400\b")


def defects_causing_error(message: str) -> frozenset[Kind]:
    """Return the defects that may cause an API error, or an empty result if no defect causes it."""
    text = message.lower().replace("`", "")
    if not _STATUS_PATTERN.search(text):
        return frozenset()
    return frozenset[Kind]().union(
        *(kinds for phrases, kinds in REFUSALS if any(phrase in text for phrase in phrases))
    )


def findings_of_kinds(report: DefectReport, kinds: frozenset[Kind]) -> list[Defect]:
    """Return the report's findings of these kinds."""
    return [finding for group in report.groups if group.kind in kinds for finding in group.findings]
