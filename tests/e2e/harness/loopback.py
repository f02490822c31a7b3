"""Owns the server that both mock APIs share: it listens on 127.0.0.1 and never prints an error."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LoopbackServer(ThreadingHTTPServer):
    """Passes its ``api`` to the handlers; their threads never delay the end of a test."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, api: Any, handler: type[LoopbackHandler], name: str) -> None:
        """Bind a free port and serve from a thread of that name."""
        super().__init__(("127.0.0.1", 0), handler)
        self.api = api
        threading.Thread(target=self.serve_forever, name=name, daemon=True).start()

    def stop(self) -> None:
        """Stop, and give the port back."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent: a client that was stopped in mid-reply is a test's business, not an error here."""


class LoopbackHandler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server: LoopbackServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Keep the test output clean; the bodies are kept by the API."""

    def reply(self, status: int, body: bytes, kind: str) -> None:
        """Send a whole answer."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def read_body(self) -> bytes:
        """Read the body of the request, and return it."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))
