"""A local mock of the Responses API for Codex, which records every request body."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any, Self

from tests.e2e.harness.loopback import LoopbackHandler, LoopbackServer

Item = dict[str, Any]
Script = Callable[[dict[str, Any]], list[Item] | None]

_CLIENT_FIELD_NAMES = ("id", "metadata", "status", "internal_chat_message_metadata_passthrough")
"""Fields that Codex adds to an item and does not show to the model."""


def strip_hidden_fields(item: Item) -> Item:
    """Return an item as the model sees it."""
    return {
        key: value
        for key, value in item.items()
        if key not in _CLIENT_FIELD_NAMES and value is not None
    }


def item_text(item: Item) -> str:
    """Return the text of a message, a call or an output."""
    said = (
        item.get("content")
        or item.get("output")
        or item.get("arguments")
        or item.get("input")
        or ""
    )
    if isinstance(said, str):
        return said
    return "\n".join(str(part.get("text", "")) for part in said)


def join_input_texts(items: list[Item]) -> str:
    """Return all texts of a request's input."""
    return "\n".join(map(item_text, items))


class MockResponses:
    """A Responses API on 127.0.0.1 that runs in a ``with`` block.

    ``script`` returns the items of a reply, or None for a default reply.
    """

    def __init__(self, script: Script | None = None) -> None:
        """Prepare the API. The port is bound when the ``with`` block starts."""
        self.requests: list[dict[str, Any]] = []
        self.script = script
        self.tokens = 1000  # The number of input tokens that each reply reports.
        self._lock = threading.Lock()
        self._server: LoopbackServer | None = None

    @property
    def address(self) -> str:
        """The address of the server."""
        assert self._server is not None, "the mock is not running: use it in a with block"
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def inputs(self) -> list[list[Item]]:
        """Return the items of each request, oldest first, as the model sees them."""
        with self._lock:
            return [
                [strip_hidden_fields(item) for item in request.get("input", [])]
                for request in self.requests
            ]

    def answer(self, request: dict[str, Any]) -> bytes:
        """Store a request, and return its reply as a stream of events."""
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
        items = (self.script(request) if self.script else None) or [
            message_item(f"Mock reply {number}.")
        ]
        usage = {
            "input_tokens": self.tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 20,
        }
        usage |= {
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self.tokens + 20,
        }
        reply: dict[str, Any] = {
            "id": f"resp_{number}",
            "status": "completed",
            "output": [],
            "usage": usage,
        }
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {"id": f"resp_{number}"}},
            *(
                {"type": "response.output_item.done", "output_index": at, "item": it}
                for at, it in enumerate(items)
            ),
            {"type": "response.completed", "response": reply},
        ]
        return "".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events
        ).encode()

    def __enter__(self) -> Self:
        """Bind a free port and serve from a thread."""
        self._server = LoopbackServer(self, _Handler, "mock-responses")
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.stop()


def message_item(text: str) -> Item:
    """Return an answer that consists of a text."""
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "id": "msg_1", "content": content}


class _Handler(LoopbackHandler, BaseHTTPRequestHandler):
    def do_CONNECT(self) -> None:
        self.reply(403, b"", "text/plain")

    def do_GET(self) -> None:
        self.reply(404, b"{}", "application/json")

    def do_POST(self) -> None:
        body = self.read_body()
        if not self.path.endswith("/responses"):
            self.reply(404, b"{}", "application/json")
            return
        self.reply(200, self.server.api.answer(json.loads(body)), "text/event-stream")
