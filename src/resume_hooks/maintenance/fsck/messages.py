"""Messages in a form that the API or a client refuses: no content, blank texts, plain strings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from resume_hooks.derive.originals import is_marked
from resume_hooks.maintenance.fsck.findings import Defect, Kind
from resume_hooks.transcripts import records
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record, string

NO_MESSAGE = Kind(
    "message-missing", "error", "Clients 2.1.42 and 2.1.112 refuse the whole session; 2.1.329 steps over the record."
)
PLAIN_ANSWER = Kind("answer-plain-string", "error", "Clients before 2.1.220 refuse the whole session.")
BLANK_PROMPT = Kind(
    "prompt-blank", "error", "It is sent as it is, and the API refuses the whole conversation from then on."
)
BLANK_BLOCK = Kind("text-blank", "error", "Clients up to 2.1.112 send it, and the API refuses; 2.1.329 leaves it out.")
EMPTY_MESSAGE = Kind("message-empty", "warning", "Clients drop it, or put '(no content)' in its place.")
BLANK_ANSWER = Kind("answer-blank", "note", "Clients drop it; they write such records themselves.")
EMPTY_ANSWER = Kind(
    "answer-empty", "note", "Clients send the answer's other records; where it has none, '(no content)' in its place."
)


def of_broken(record: Record, node: Node) -> Iterator[Defect]:
    """What is wrong with a message that no chain can hold."""
    content = records.message(record).get("content")
    if node.broken and not isinstance(content, str):
        yield NO_MESSAGE.at(node, f"The {node.kind} record has no message")
    if node.kind == records.ASSISTANT and isinstance(content, str):
        yield PLAIN_ANSWER.at(node, "The answer is a plain string, not blocks")


def of_content(record: Record, node: Node) -> Iterator[Defect]:
    """Blank texts in a message that is sent; a trim that took a thought out leaves an empty one, and says so."""
    content = records.message(record).get("content")
    if isinstance(content, str):
        if node.kind == records.USER and not content.strip():
            yield BLANK_PROMPT.at(node, "The prompt is empty")
        return
    if not isinstance(content, list):
        return
    blank = [block for block in content if _is_blank(block)]
    if len(blank) < len(content):
        if blank:
            yield BLANK_BLOCK.at(node, f"A text among {len(content)} blocks is empty")
    elif blank and node.kind == records.USER:
        yield BLANK_PROMPT.at(node, "The prompt holds nothing but empty text")
    elif blank:
        yield BLANK_ANSWER.at(node, "The answer holds nothing but empty text")
    elif node.kind == records.USER:
        yield EMPTY_MESSAGE.at(node, "The user message holds nothing")
    elif not is_marked(record):
        yield EMPTY_ANSWER.at(node, "The answer holds nothing")


def _is_blank(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == records.TEXT and not string(block, "text").strip()


UNSIGNED = Kind(
    "thinking-unsigned", "error", "It is sent as it is; the API refuses every request of the session from then on."
)
TEXTLESS = Kind("thinking-textless", "error", "Client 2.1.112 refuses the whole session, and the API what others send.")
REDACTED = Kind(
    "thinking-redacted-empty", "error", "Client 2.1.112 refuses the whole session, and the API what others send."
)
ALTERED = Kind(
    "thinking-altered",
    "error",
    "A signature fits one text only: the API refuses the other one, and every request with it.",
)
ALONE = Kind("thinking-alone", "note", "Clients drop it: an answer that was interrupted while the model thought.")


class ThinkingCheck:
    """The thinking of a file; ``alone`` are numbers of records that hold nothing else."""

    def __init__(self) -> None:
        self.alone: set[int] = set()
        self._signed: dict[str, tuple[int, Node]] = {}

    def take(self, record: Record, node: Node) -> Iterator[Defect]:
        """What is wrong with the thinking of one answer's record."""
        found = records.blocks(record)
        if found and all(string(block, "type") in records.THOUGHTS for block in found):
            self.alone.add(node.number)
        for block in found:
            if string(block, "type") in records.THOUGHTS:
                yield from self._of_block(block, node)

    def _of_block(self, block: Record, node: Node) -> Iterator[Defect]:
        if block["type"] == records.REDACTED_THINKING:
            if not string(block, "data"):
                yield REDACTED.at(node, "Redacted thinking without its data")
            return
        signature, text = string(block, "signature"), block.get("thinking")
        if not signature:
            how = "Empty thinking" if not text else "Thinking"
            yield UNSIGNED.at(node, f"{how} without a signature")
        elif not isinstance(text, str):
            yield TEXTLESS.at(node, "Thinking without its text")
        else:
            known, first = self._signed.setdefault(signature, (hash(text), node))
            if known != hash(text):
                for each, other in ((first, node), (node, first)):
                    told = f"The signature of this thinking stands under another text in record {other.number}"
                    yield ALTERED.at(each, told)


def of_alone(chain: Sequence[Node], alone: set[int]) -> Iterator[Defect]:
    """Answers of the live chain that are nothing but thinking."""
    answers: dict[str, list[Node]] = {}
    for node in chain:
        if node.kind == records.ASSISTANT:
            answers.setdefault(node.message_id or node.uuid, []).append(node)
    for nodes in answers.values():
        if all(node.number in alone for node in nodes):
            yield ALONE.at(nodes[0], "An answer of thinking alone")


def without_thinking(record: Record) -> Record | None:
    """The record with its thinking gone, whole blocks at once; None if it held nothing else."""
    kept = [block for block in records.blocks(record) if string(block, "type") not in records.THOUGHTS]
    return records.with_content(record, kept) if kept else None
