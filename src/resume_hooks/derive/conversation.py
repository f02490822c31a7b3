"""A conversation as text, for an agent that it was not held in: who said what, calls in short, no thinking.

The form of calls is the one in which one of them shows its models what another did.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import NamedTuple

import orjson

from resume_hooks import clock
from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.fresh_child import FreshLines
from resume_hooks.sessions.opening_layout import lineage_line, spoken_line
from resume_hooks.sessions.record_references import SHORT
from resume_hooks.system.text import encodable
from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record, string
from resume_hooks.transcripts.transcript import Transcript

MOST_OF_CALL, MOST_OF_RESULT = 600, 1_500  # characters of a call and of its result; the whole is a reference away


class SpokenText(NamedTuple):
    """What one side said in a turn, when it began, and the id of its first record."""

    role: str
    text: str
    at: str
    uuid: str


def conversation(transcript: Transcript, session_id: str) -> list[SpokenText]:
    """The live conversation of a session, the sides by turns; what the client added by itself is left out."""
    told: list[SpokenText] = []
    tools: dict[str, str] = {}
    for node in transcript.chain:
        record = transcript.read(node)
        if node.sidechain or record.get("isMeta") is True or not node.spoken:
            continue
        reference = f"{session_id[: 13 if session_id[14:15] == '7' else SHORT]}:{node.number}"
        answers = bool(records.results(record))
        role = records.ASSISTANT if answers or node.kind == records.ASSISTANT else records.USER
        texts = (_text(block, tools, reference) for block in records.blocks(record))
        text = "\n\n".join(filter(None, texts))
        if not text.strip():
            continue
        if told and told[-1].role == role:
            told[-1] = told[-1]._replace(text=f"{told[-1].text}\n\n{text}")
        else:
            told.append(SpokenText(role, encodable(text), string(record, "timestamp"), node.uuid))
    return told


def conversation_lines(child: Draft, head: bytes, told: str, said: Sequence[SpokenText]) -> FreshLines:
    """The lines of a child of this client that holds it; ``told`` stands before, where the screen doesn't show it."""
    setting, last = child.setting, str(uuid.uuid4())
    bodies = [head, lineage_line(setting, None, last, told)]
    for one in said:
        setting = setting._replace(at=clock.later(setting.at))
        own = str(uuid.uuid4())
        bodies.append(spoken_line(setting, last, own, one.role, one.text))
        last = own
    return FreshLines(tuple(bodies))


def _text(block: Record, tools: dict[str, str], reference: str) -> str:
    kind = string(block, "type")
    if kind == records.TEXT:
        return string(block, "text")
    if kind == records.CALL:
        tools[string(block, "id")] = name = string(block, "name")
        given = orjson.dumps(block.get("input")).decode()
        return (
            f"[external_agent_tool_call: {name}]\n{_cut(given, MOST_OF_CALL, reference)}\n[/external_agent_tool_call]"
        )
    if kind == records.RESULT:
        told = block.get("content")
        parts = [string(part, "text") or f"[{string(part, 'type')}]" for part in records.objects(told)]
        said = _cut(told if isinstance(told, str) else "\n".join(parts), MOST_OF_RESULT, reference)
        return f"[external_agent_tool_result]\n{said}\n[/external_agent_tool_result]"
    return f"[{kind}, see {reference}]" if kind in records.MEDIA else ""


def _cut(text: str, most: int, reference: str) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters, whole: {reference})"
