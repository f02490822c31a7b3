"""Mock the Messages API on 127.0.0.1.

The mock keeps the body of every request and sends nothing to other hosts.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler
from typing import Self

from tests.e2e.harness.api_requests import (
    Request,
    conversation_of_request,
    is_turn_request,
    last_user_text,
    message_text,
)
from tests.e2e.harness.loopback import LoopbackHandler, LoopbackServer
from tests.e2e.harness.replies import Message, Refusal, Reply, Usage, compose_message

__all__ = [
    "MockApi",
    "Refusal",
    "Request",
    "Usage",
    "conversation_of_request",
    "is_turn_request",
    "last_user_text",
    "message_text",
]

Script = Iterable[Reply] | Callable[[Request], Reply | None]


class MockApi:
    """A mock of the Messages API on 127.0.0.1, which runs inside a ``with`` block.

    ``script`` contains one reply for each main request, or is a function that gets the request's
    body and returns the reply. If the reply is None, and after the last reply, the mock answers
    "Mock reply N.". ``usage`` is the token usage that the next replies report, and can be changed
    at any time.
    """

    def __init__(self, script: Script = (), usage: Usage | None = None) -> None:
        """Prepare the API. It gets its port at the beginning of the ``with`` block."""
        self.usage = usage or Usage()
        self.released = threading.Event()
        self.closed = False
        self._lock = threading.RLock()
        self._requests: list[Request] = []
        self._refused: list[str] = []
        self._main_count = 0
        self._server: LoopbackServer | None = None
        self.script = script

    @property
    def script(self) -> Script:
        """The scripted replies."""
        return self._script

    @script.setter
    def script(self, script: Script) -> None:
        with self._lock:
            self._script = script
            self.released.clear()
            self._next = script if callable(script) else _replies_in_order(script)

    @property
    def base_url(self) -> str:
        """The value for ANTHROPIC_BASE_URL."""
        if self._server is None:
            msg = "the mock API is not running: use it in a with block"
            raise RuntimeError(msg)
        return f"http://127.0.0.1:{self._server.server_port}"

    def client_env(self) -> dict[str, str]:
        """Return the environment with which a client connects only to the mock.

        Old clients ask the host of the real API whether they are online, even if ANTHROPIC_BASE_URL
        is set. The mock is therefore also the client's proxy, and refuses these connections.
        """
        direct = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
        proxied = dict.fromkeys(
            ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"), self.base_url
        )
        return {"ANTHROPIC_BASE_URL": self.base_url} | proxied | direct

    @property
    def refused_targets(self) -> list[str]:
        """The targets ("host:port") of the connections that the proxy refused, oldest first."""
        with self._lock:
            return list(self._refused)

    def log_refused_target(self, target: str) -> None:
        """Add a refused connection's target to ``refused_targets``."""
        with self._lock:
            self._refused.append(target)

    @property
    def requests(self) -> list[Request]:
        """The bodies of all requests to POST /v1/messages so far, oldest first. The list is a copy."""
        with self._lock:
            return list(self._requests)

    def main_requests(self) -> list[Request]:
        """Return the requests that are turns of a conversation (see `is_turn_request`)."""
        return [request for request in self.requests if is_turn_request(request)]

    def clear_requests(self) -> None:
        """Delete the recorded requests. The script and the numbering of replies continue."""
        with self._lock:
            self._requests.clear()

    def release_delayed_replies(self) -> None:
        """Send delayed replies immediately, until the next script is set."""
        self.released.set()

    def answer(self, request: Request) -> Message | Refusal:
        """Record a request, and return the reply or the refusal from the script.

        Only main requests use the script. Other requests get a reply with the text ``{}``.
        """
        model = str(request.get("model", "mock"))
        with self._lock:
            self._requests.append(request)
            if not is_turn_request(request):
                return compose_message("{}", number=0, model=model, usage=Usage())
            self._main_count += 1
            number = self._main_count
            reply = self._next(request)
        if isinstance(reply, Refusal):
            return reply
        return compose_message(reply, number=number, model=model, usage=self.usage)

    def __enter__(self) -> Self:
        """Bind a free port and serve requests in a thread."""
        self.closed = False
        self._server = LoopbackServer(self, _Handler, "mock-api")
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server, without waiting for delayed replies."""
        self.closed = True
        self.release_delayed_replies()
        if self._server is not None:
            self._server.stop()
            self._server = None


def _replies_in_order(script: Iterable[Reply]) -> Callable[[Request], Reply | None]:
    replies = iter(script)
    return lambda _request: next(replies, None)


class _Handler(LoopbackHandler, BaseHTTPRequestHandler):
    def do_CONNECT(self) -> None:
        self.server.api.log_refused_target(self.path)
        self.reply(403, b"", "text/plain")

    def do_HEAD(self) -> None:
        self.reply(200, b"", "text/plain")

    def do_GET(self) -> None:
        self.reply(200 if self.path == "/" else 404, b"{}", "application/json")

    def do_POST(self) -> None:
        body = self.read_body()
        path = self.path.partition("?")[0]
        if path == "/v1/messages":
            self._answer(json.loads(body))
        elif path == "/v1/messages/count_tokens":
            self.reply(
                200, json.dumps({"input_tokens": len(body) // 4}).encode(), "application/json"
            )
        else:
            self.reply(404, b"{}", "application/json")

    def _answer(self, request: Request) -> None:
        api = self.server.api
        message = api.answer(request)
        if isinstance(message, Refusal):
            self.reply(message.status, message.as_json(), "application/json")
            return
        if message.delay_seconds:
            api.released.wait(message.delay_seconds)
            self.close_connection = api.closed
            if api.closed:
                return
        if request.get("stream"):
            self.reply(200, message.as_stream(), "text/event-stream")
        else:
            self.reply(200, message.as_json(), "application/json")
