"""Messages in a form that the API or a client refuses: no content, blank texts, plain strings."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.derive.originals import is_marked
from resume_hooks.maintenance.fsck.findings import Finding, Kind
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


def of_broken(record: Record, node: Node) -> Iterator[Finding]:
    """What is wrong with a message that no chain can hold."""
    content = records.message(record).get("content")
    if node.broken and not isinstance(content, str):
        yield Finding(NO_MESSAGE, f"The {node.kind} record has no message", node.number, node.uuid)
    if node.kind == records.ASSISTANT and isinstance(content, str):
        yield Finding(PLAIN_ANSWER, "The answer is a plain string, not blocks", node.number, node.uuid)


def of_content(record: Record, node: Node) -> Iterator[Finding]:
    """Blank texts in a message that is sent; a trim that took a thought out leaves an empty one, and says so."""
    content = records.message(record).get("content")
    if isinstance(content, str):
        if node.kind == records.USER and not content.strip():
            yield Finding(BLANK_PROMPT, "The prompt is empty", node.number, node.uuid)
        return
    if not isinstance(content, list):
        return
    blank = [block for block in content if _is_blank(block)]
    if len(blank) < len(content):
        if blank:
            yield Finding(BLANK_BLOCK, f"A text among {len(content)} blocks is empty", node.number, node.uuid)
    elif blank and node.kind == records.USER:
        yield Finding(BLANK_PROMPT, "The prompt holds nothing but empty text", node.number, node.uuid)
    elif blank:
        yield Finding(BLANK_ANSWER, "The answer holds nothing but empty text", node.number, node.uuid)
    elif node.kind == records.USER:
        yield Finding(EMPTY_MESSAGE, "The user message holds nothing", node.number, node.uuid)
    elif not is_marked(record):
        yield Finding(EMPTY_ANSWER, "The answer holds nothing", node.number, node.uuid)


def _is_blank(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == records.TEXT and not string(block, "text").strip()
