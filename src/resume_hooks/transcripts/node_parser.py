"""Records into nodes: one pass over a record, since a 50 MB transcript is read within a prompt.

Nothing here raises on odd input: what a client would refuse to load is marked ``broken``.
"""

from __future__ import annotations

import sys

from resume_hooks import clock
from resume_hooks.transcripts import records
from resume_hooks.transcripts.attachments import sent_texts
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node, Segment
from resume_hooks.transcripts.records import Record, string


def node_of(record: Record, line: Line) -> Node:
    """What the chain needs of a record of a linked kind that has a ``uuid``."""
    get = record.get
    kind: str = record["type"]
    parent = get("parentUuid")
    node = Node(record["uuid"], parent if isinstance(parent, str) and parent else None, kind)
    node.number, node.offset, node.length = line.number, line.offset, len(line.raw)
    node.time_ms = clock.milliseconds(get("timestamp"))
    node.sidechain = bool(get("isSidechain"))
    session_id = get("sessionId")
    node.session_id = sys.intern(session_id) if isinstance(session_id, str) else None
    if kind in {"assistant", "user"}:
        _take_message(node, record)
    elif kind == "attachment":
        node.characters = sum(len(text) for _, text in sent_texts(record))
    elif kind == "system":
        node.subtype = string(record, "subtype")
        if node.boundary:
            node.segment = _segment(get("compactMetadata"))
    return node


def _take_message(node: Node, record: Record) -> None:
    message = record.get("message")
    if not isinstance(message, dict):
        node.broken = True
        return
    content = message.get("content")
    if isinstance(content, list):
        node.broken = not _take_blocks(node, content) and bool(content)
    elif isinstance(content, str):
        node.characters = len(content)
        node.broken = node.kind == "assistant" and not content.strip()
    else:
        node.broken = True
    if node.kind == "assistant":
        node.message_id = string(message, "id")
        node.input_tokens, node.context_tokens = records.counted_tokens(record)
    else:
        node.meta = bool(record.get("isMeta"))
        node.summary = bool(record.get("isCompactSummary"))
        node.prompt = not node.results and records.is_prompt(record)


def _take_blocks(node: Node, content: list[object]) -> bool:
    """Count and note the blocks of a message; false where not one of them is a block."""
    calls: list[str] = []
    results: list[str] = []
    characters = 0
    sound = False
    for block in content:
        if not isinstance(block, dict) or not isinstance(kind := block.get("type"), str):
            continue
        sound = True
        if kind == "tool_use" and node.kind == "assistant":
            calls.append(string(block, "id"))
        elif kind == "tool_result" and node.kind == "user":
            results.append(string(block, "tool_use_id"))
        characters += _characters(kind, block)
    node.calls, node.results, node.characters = tuple(calls), tuple(results), characters
    return sound


def _characters(kind: str, block: Record) -> int:
    """Characters of a block that reach the API: texts, tool inputs, tool results.

    Images and documents count nothing here; their cost has nothing to do with the length of their encoding.
    """
    if kind == "tool_use":
        return _text_within(block.get("input"))
    if kind == "tool_result":
        content = block.get("content")
        if isinstance(content, list):
            return sum(len(string(inner, "text")) for inner in content if isinstance(inner, dict))
        return len(content) if isinstance(content, str) else 0
    return len(string(block, "text")) + len(string(block, "thinking"))


def _text_within(value: object) -> int:
    """Characters of all strings in a tool's input; no recursion, since a hostile file may nest without end."""
    total = 0
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            total += len(inner)
        elif isinstance(inner, dict):
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
    return total


def _segment(metadata: object) -> Segment | None:
    """The messages that a boundary says it kept; a list of them counts before the ends of a walk."""
    if not isinstance(metadata, dict):
        return None
    listed, walked = metadata.get("preservedMessages"), metadata.get("preservedSegment")
    if isinstance(listed, dict):
        uuids = listed.get("uuids")
        order = tuple(uuid for uuid in uuids if isinstance(uuid, str)) if isinstance(uuids, list) else ()
        return Segment(string(listed, "anchorUuid"), "", "", order)
    if isinstance(walked, dict):
        return Segment(string(walked, "anchorUuid"), string(walked, "headUuid"), string(walked, "tailUuid"), None)
    return None
