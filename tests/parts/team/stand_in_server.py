"""A stand-in for a PostgreSQL server, which answers every query with values that a test chooses.

The stand-in only speaks PostgreSQL's protocol and has no database. It can therefore send values of
any type and length and any number of rows, including ones that a real server cannot send.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

Value = bytes | None
Answer = Callable[[str], Iterable[list[Value]]]
"""A function that takes a query and returns the rows with which the server answers."""

_SSL, _GSS = 80877103, 80877104


class Refusal(Exception):
    """Raised by an answer function so that the server reports an error with this text."""


class StandInServer:
    """A server that listens on the loopback address until it is closed, and records the queries.

    ``asides`` are the bytes of unrequested protocol messages that the server sends before each
    answer.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.queries: list[str] = []
        self.asides = b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening for connections."""
        self._socket.close()

    def write_service_file(self, file: Path) -> str:
        """Write a libpq service file for this server and return the name of the service."""
        port = self._socket.getsockname()[1]
        file.write_text(f"[stand-in]\nhost=127.0.0.1\nport={port}\ndbname=d\nuser=alice\n")
        return "stand-in"

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                # Without this option, the small pieces of an answer would be delayed.
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._serve_client, args=(client,), daemon=True).start()

    def _serve_client(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, struct.error), client, client.makefile("rb") as stream:
            size, code = struct.unpack("!ii", stream.read(8))
            while code in {_SSL, _GSS}:
                client.sendall(b"N")
                size, code = struct.unpack("!ii", stream.read(8))
            stream.read(size - 8)
            client.sendall(
                _build_protocol_message(b"R", struct.pack("!i", 0))
                + _build_protocol_message(b"S", b"server_version\x0016.1\x00")
                + _build_protocol_message(b"S", b"client_encoding\x00UTF8\x00")
                + _build_protocol_message(b"K", struct.pack("!ii", 1, 1))
                + _READY_MESSAGE
            )
            # The driver sends the text of a prepared statement only once.
            statements: dict[bytes, str] = {}
            query = ""
            while kind := stream.read(1):
                body = stream.read(struct.unpack("!i", stream.read(4))[0] - 4)
                if kind == b"Q":
                    client.sendall(self._answer_query(body[:-1].decode()) + _READY_MESSAGE)
                elif kind == b"P":
                    name, text = body.split(b"\x00")[:2]
                    statements[name] = text.decode()
                    client.sendall(_build_protocol_message(b"1", b""))
                elif kind == b"B":
                    query = statements[body.split(b"\x00")[1]]
                    client.sendall(_build_protocol_message(b"2", b""))
                elif kind == b"E":
                    client.sendall(self._answer_query(query))
                elif kind == b"S":
                    client.sendall(_READY_MESSAGE)
                elif kind == b"X":
                    return

    def _answer_query(self, query: str) -> bytes:
        self.queries.append(query)
        try:
            rows = list(self.answer(query))
        except Refusal as refusal:
            text = refusal.args[0]
            return _build_protocol_message(
                b"E", b"SERROR\x00VERROR\x00CXX000\x00M" + text + b"\x00\x00"
            )
        width = len(rows[0]) if rows else 0
        columns = b"".join(
            b"c\x00" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 1) for _ in range(width)
        )
        head = self.asides + _build_protocol_message(b"T", struct.pack("!h", width) + columns)
        return (
            head
            + b"".join(map(_build_row_message, rows))
            + _build_protocol_message(b"C", b"SELECT 1\x00")
        )


def _build_row_message(values: list[Value]) -> bytes:
    cells = [
        struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
        for value in values
    ]
    return _build_protocol_message(b"D", struct.pack("!h", len(values)) + b"".join(cells))


def build_notification(payload: bytes) -> bytes:
    """Return a notification to the client, as PostgreSQL sends it after NOTIFY."""
    return _build_protocol_message(b"A", struct.pack("!i", 1) + b"channel\x00" + payload + b"\x00")


def _build_protocol_message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


_READY_MESSAGE = _build_protocol_message(b"Z", b"I")
