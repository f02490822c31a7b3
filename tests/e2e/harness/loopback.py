"""Run the HTTP server of a mock API on 127.0.0.1. The server prints no errors."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LoopbackServer(ThreadingHTTPServer):
    """An HTTP server whose request handlers find the mock API in its attribute ``api``.

    When the server stops, it does not wait for handlers that are still running.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, api: Any, handler: type[LoopbackHandler], name: str) -> None:
        """Bind a free port, and serve requests in a thread called ``name``."""
        super().__init__(("127.0.0.1", 0), handler)
        self.api = api
        threading.Thread(target=self.serve_forever, name=name, daemon=True).start()

    def stop(self) -> None:
        """Stop the server and free its port."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore an error in a request: a test may stop its client in the middle of a reply."""


class LoopbackHandler(BaseHTTPRequestHandler):
    """Handles the requests of one connection."""

    protocol_version = "HTTP/1.1"
    server: LoopbackServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Ignore the message, because the mock API already keeps the requests' bodies."""

    def reply(self, status: int, body: bytes, content_type: str) -> None:
        """Send a complete HTTP response with ``content_type`` as its content type."""
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def read_body(self) -> bytes:
        """Read the body of the request and return it."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))
