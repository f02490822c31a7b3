"""Encode a scripted reply as a response of the Messages API, with or without streaming."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ReplyPart = str | float | Mapping[str, Any]
ReplyParts = ReplyPart | Sequence[ReplyPart]


@dataclass(frozen=True)
class Refusal:
    """An error response of the API."""

    status: int
    message: str
    error_type: str = "invalid_request_error"

    def as_json(self) -> bytes:
        """Return the body of the error response, which is the same with and without streaming."""
        error = {"type": self.error_type, "message": self.message}
        return json.dumps({"type": "error", "error": error, "request_id": "req_mock"}).encode()


Reply = ReplyParts | Refusal


@dataclass(frozen=True)
class Usage:
    """Token counts that the mock reports in a reply."""

    input_tokens: int = 10
    output_tokens: int = 5
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0

    def as_dict(self) -> dict[str, int]:
        """Return the ``usage`` object of a response."""
        return dict(vars(self))


@dataclass(frozen=True)
class Message:
    """An assistant message. ``delay_seconds`` is the time to wait before the first byte is sent."""

    id: str
    model: str
    usage: Usage
    blocks: list[dict[str, Any]] = field(default_factory=list)
    delay_seconds: float = 0.0

    @property
    def stop_reason(self) -> str:
        """Return the API's stop reason for these blocks."""
        return (
            "tool_use" if any(block["type"] == "tool_use" for block in self.blocks) else "end_turn"
        )

    def envelope(self) -> dict[str, Any]:
        """Return the message without its content, in the form of the ``message_start`` event."""
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self.usage.as_dict(),
        }

    def as_json(self) -> bytes:
        """Return the body of a response without streaming."""
        whole = self.envelope() | {"content": self.blocks, "stop_reason": self.stop_reason}
        return json.dumps(whole).encode()

    def as_stream(self) -> bytes:
        """Return the body of a streamed response: server-sent events in the API's order."""
        events: list[dict[str, Any]] = [{"type": "message_start", "message": self.envelope()}]
        for index, block in enumerate(self.blocks):
            events += _block_events(index, block)
        delta = {"stop_reason": self.stop_reason, "stop_sequence": None}
        usage = self.usage.as_dict()
        events += [
            {"type": "message_delta", "delta": delta, "usage": usage},
            {"type": "message_stop"},
        ]
        return "".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events
        ).encode()


def compose_message(reply: ReplyParts | None, *, number: int, model: str, usage: Usage) -> Message:
    """Turn a scripted reply into the message with this number.

    A string becomes a text block. A mapping with "name" and "input" becomes a tool call, and a
    mapping with "thinking" and "signature" a thinking block. A number is a delay in seconds. A
    sequence can contain all of these. If a reply has no block (it is None or only a delay), its
    text is "Mock reply <number>.".
    """
    parts: Sequence[ReplyPart]
    if reply is None:
        parts = []
    elif isinstance(reply, str | int | float | Mapping):
        parts = [reply]
    else:
        parts = reply
    delay = sum(part for part in parts if isinstance(part, int | float))
    blocks = [
        _block_of_part(part, f"toolu_mock_{number}_{at}")
        for at, part in enumerate(parts)
        if _is_block(part)
    ]
    blocks = blocks or [{"type": "text", "text": f"Mock reply {number}."}]
    return Message(
        id=f"msg_mock_{number}", model=model, usage=usage, blocks=blocks, delay_seconds=delay
    )


def _is_block(part: ReplyPart) -> bool:
    return not isinstance(part, int | float)


def _block_of_part(part: ReplyPart, tool_id: str) -> dict[str, Any]:
    if isinstance(part, Mapping) and "thinking" in part:
        return {"type": "thinking", **part}
    if isinstance(part, Mapping):
        return {
            "type": "tool_use",
            "id": tool_id,
            "name": part["name"],
            "input": dict(part["input"]),
        }
    return {"type": "text", "text": str(part)}


def _block_events(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of one block: start, one delta with the whole content, stop.

    The input of a tool call is sent as a JSON delta, which the client assembles.
    """
    if block["type"] == "tool_use":
        opening = block | {"input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    elif block["type"] == "thinking":
        opening = block | {"thinking": "", "signature": ""}
        delta = {"type": "thinking_delta", "thinking": block["thinking"]}
    else:
        opening = block | {"text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    deltas = [
        delta,
        *(
            [{"type": "signature_delta", "signature": block["signature"]}]
            if "signature" in block
            else []
        ),
    ]
    return [
        {"type": "content_block_start", "index": index, "content_block": opening},
        *({"type": "content_block_delta", "index": index, "delta": each} for each in deltas),
        {"type": "content_block_stop", "index": index},
    ]
