"""A transcript as a value: its lines scanned once, its live chain, turns, calls and results.

Reading never changes a file. Records stay on disk; ``read`` fetches one by its node.
"""

from __future__ import annotations

import gc
import os
from functools import cached_property
from typing import NamedTuple

from resume_hooks import clock, records
from resume_hooks.chain import Node, Segment, live_chain
from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.lines import Line, read_lines, read_tail


class Turn(NamedTuple):
    """A prompt and everything up to the next one; ``number`` counts from 1 within the live chain."""

    number: int
    nodes: tuple[Node, ...]


class Transcript:
    """One scanned file. ``bad_lines`` are 0-based numbers of lines that hold no JSON object (blank ones aside)."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.nodes: list[Node] = []
        self.leaf_hints: list[str] = []
        self.bad_lines: list[int] = []
        self.bookkeeping: dict[str, int] = {}
        self.models: dict[str, int] = {}
        self.line_count = 0
        self.torn = False
        self.size = 0

    @cached_property
    def chain(self) -> list[Node]:
        """What the client would load on resume, oldest first."""
        return live_chain(self.nodes, self.leaf_hints)

    @cached_property
    def turns(self) -> list[Turn]:
        """The live chain cut at its prompts; what stands before the first prompt belongs to no turn."""
        starts = [index for index, node in enumerate(self.chain) if node.prompt]
        ends = [*starts[1:], len(self.chain)]
        return [Turn(n, tuple(self.chain[a:b])) for n, (a, b) in enumerate(zip(starts, ends, strict=False), 1)]

    @cached_property
    def pairs(self) -> dict[str, tuple[Node, Node | None]]:
        """Tool calls of the live chain by id: the record that calls and the one that answers, if any."""
        answers = {call: node for node in self.chain for call in node.results}
        return {call: (node, answers.get(call)) for node in self.chain for call in node.calls}

    def read(self, node: Node) -> records.Record:
        """The record behind a node, read from disk; SessionNotFound where the file changed or is gone."""
        try:
            with open(self.path, "rb") as stream:
                stream.seek(node.offset)
                raw = stream.read(node.length)
        except OSError as error:
            raise SessionNotFound(f"{self.path} can't be read: {error.strerror}") from error
        record = records.parse(Line(node.number, node.offset, raw).body)
        if record is None or records.string(record, "uuid") != node.uuid:
            raise SessionNotFound(f"{self.path} changed while it was read", "Run the command again.")
        return record


def scan(path: str, reach: int = 0) -> Transcript:
    """Read a transcript's lines once: all, or the whole ones within the last ``reach`` bytes.

    SessionNotFound where the file can't be read, NotATranscript for a file of another program.
    """
    transcript = Transcript(path)
    paused = gc.isenabled()
    gc.disable()  # thousands of short-lived trees without cycles: collecting them costs a third of the scan
    try:
        with open(path, "rb") as stream:
            for line in read_tail(stream, reach) if reach else read_lines(stream):
                _take(transcript, line)
    except OSError as error:
        raise SessionNotFound(f"{path} can't be read: {error.strerror}", "Check the path.") from error
    finally:
        if paused:
            gc.enable()
    return transcript


def _take(transcript: Transcript, line: Line) -> None:
    transcript.line_count = line.number + 1
    transcript.size = line.offset + len(line.raw)
    transcript.torn = line.torn
    record = records.parse(line.body)
    if record is None:
        if line.raw.strip():
            transcript.bad_lines.append(line.number)
        return
    refuse_foreign(record, transcript.path)
    kind = records.kind(record)
    if kind in records.CHAIN_KINDS and isinstance(record.get("uuid"), str):
        node = node_of(record, line)
        transcript.nodes.append(node)
        if node.context_tokens and (model := records.model(record)):
            transcript.models[model] = transcript.models.get(model, 0) + 1
        return
    transcript.bookkeeping[kind] = transcript.bookkeeping.get(kind, 0) + 1
    if kind == "last-prompt" and (leaf := records.string(record, "leafUuid")):
        transcript.leaf_hints.append(leaf)


def refuse_foreign(record: records.Record, path: str) -> None:
    """Raise NotATranscript for the first line of a Codex rollout file."""
    if record.get("type") == "session_meta" and isinstance(record.get("payload"), dict):
        raise NotATranscript(
            f"{os.path.basename(path)} is a Codex rollout file, not a Claude Code transcript",
            "Only sessions of Claude Code can be read.",
        )


def node_of(record: records.Record, line: Line) -> Node:
    """What the chain needs of a record."""
    parent = record.get("parentUuid")
    node = Node(record["uuid"], parent if isinstance(parent, str) and parent else None, records.kind(record))
    node.number, node.offset, node.length = line.number, line.offset, len(line.raw)
    node.subtype = records.string(record, "subtype")
    node.sidechain = bool(record.get("isSidechain"))
    node.summary = bool(record.get("isCompactSummary"))
    moment = clock.parse(record.get("timestamp"))
    node.time_ms = round(moment.timestamp() * 1000) if moment else None
    if node.kind == "progress":
        return node
    node.characters = records.characters(record)
    if node.kind == "assistant":
        node.message_id = records.string(records.message(record), "id")
        node.context_tokens = records.context_tokens(record)
        node.calls = tuple(records.call_ids(record))
    elif node.kind == "user":
        node.prompt = records.is_prompt(record)
        node.results = tuple(records.result_ids(record))
    elif node.boundary:
        node.segment = _segment(record.get("compactMetadata"))
    return node


def _segment(metadata: object) -> Segment | None:
    if not isinstance(metadata, dict):
        return None
    listed, walked = metadata.get("preservedMessages"), metadata.get("preservedSegment")
    listed = listed if isinstance(listed, dict) else {}
    walked = walked if isinstance(walked, dict) else {}
    uuids = listed.get("uuids")
    order = tuple(u for u in uuids if isinstance(u, str)) if isinstance(uuids, list) else ()
    anchor = records.string(walked, "anchorUuid") or records.string(listed, "anchorUuid")
    head = records.string(walked, "headUuid") or (order[0] if order else "")
    tail = records.string(walked, "tailUuid") or (order[-1] if order else "")
    return Segment(anchor, head, tail, order) if anchor and head and tail else None
