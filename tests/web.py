"""Owns the web server of the tests: on 127.0.0.1 alone, over http or https, answering each path as a test says."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from tests.needs import need

Answer = Callable[[BaseHTTPRequestHandler], None]


class Web:
    """A server for the length of a ``with`` block; ``asked`` are the requests so far, as (path, headers)."""

    def __init__(self, answers: dict[str, Answer], certificate: Path | None = None) -> None:
        self.answers = answers
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.ended = threading.Event()
        self._scheme = "https" if certificate else "http"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = False
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._server.server_port

    def at(self, path: str, host: str = "127.0.0.1") -> str:
        """The address of a path."""
        return f"{self._scheme}://{host}:{self.port}{path}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                web.asked.append((self.path, dict(self.headers)))
                self.close_connection = True
                try:
                    web.answers.get(self.path, status(404))(self)
                except OSError:
                    return  # whoever asked has gone

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


def body(content: bytes, **headers: str) -> Answer:
    """A whole answer; of a header's name ``_`` stands for ``-``, and ``""`` leaves one out."""
    given = {"Content-Length": str(len(content))} | {name.replace("_", "-"): value for name, value in headers.items()}

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        for name, value in given.items():
            if value:
                handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def status(code: int, **headers: str) -> Answer:
    """An answer without a body."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def raw(content: bytes) -> Answer:
    """Bytes that need not be HTTP."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(content)

    return answer


def dripping(opening: bytes, drop: bytes, web: Callable[[], Web], seconds: float = 0.02) -> Answer:
    """An answer that goes on with a ``drop`` now and then, until nobody listens or the server ends."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(opening)
        while not web().ended.wait(seconds):
            handler.wfile.write(drop)

    return answer


def certificate(folder: Path, *names: str) -> Path:
    """A certificate of our own for these names, with its key, in one file."""
    found = subprocess.run(["openssl", "version"], capture_output=True, check=False) if _openssl() else None
    need("openssl", found is not None and found.returncode == 0, "install the system package openssl")
    path = folder / "certificate.pem"
    alternatives = ",".join(f"{'IP' if name[0].isdigit() else 'DNS'}:{name}" for name in names)
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    command += ["-addext", f"subjectAltName={alternatives}", "-keyout", str(path), "-out", str(folder / "only.pem")]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    path.write_bytes(path.read_bytes() + (folder / "only.pem").read_bytes())
    return path


def _openssl() -> bool:
    import shutil

    return shutil.which("openssl") is not None
