"""Fetch one address that a user typed: our only way to the network. Nothing of the user's is sent.

Invariant: a connection is made only to an IP address that was checked, so that a name that leads elsewhere a moment
later, or a redirect, gets nowhere. Proxies are not used: they would look names up themselves, unchecked.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

from resume_hooks.errors import ImportFailed, UsageError
from resume_hooks.system.text import plain_line
from resume_hooks.system.urls import PORTS, Address, is_private
from resume_hooks.version import __version__

MAX_REDIRECTS = 5
MAX_PLACES = 4  # IP addresses of one host that are tried
PIECE = 64 * 1024  # bytes that are read at a time

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ENCODINGS = frozenset({"", "identity", "gzip", "x-gzip"})
"""What a body may be packed as; it is looked at itself, since servers err."""

_REMEDIES = {
    401: "It is for those who are signed in: download the file and import that.",
    403: "It is for those who are signed in: download the file and import that.",
    404: "Check the address. A private place says so, too, to those who are not signed in.",
    410: "It was taken away.",
}
_HEADERS = {
    "User-Agent": f"resume-hooks/{__version__}",
    "Accept": "application/jsonl, application/x-ndjson, */*",
    "Accept-Encoding": "identity",
    "Connection": "close",
}


class FetchLimits(NamedTuple):
    """Seconds that are waited: for a connection, for the next byte, for everything."""

    connect: float = 10
    idle: float = 30
    total: float = 300


class Fetched(NamedTuple):
    """An answer that is about to be read; ``length`` in bytes, 0 if the server did not say."""

    chunks: Iterator[bytes]
    length: int


Progress = Callable[[int, int], None]
Resolve = Callable[..., list[tuple[Any, ...]]]  # ``socket.getaddrinfo`` or a replacement


class FetchPolicy(NamedTuple):
    """How an address is gone to: whether its host may be a private one, how long, and who looks names up."""

    allow_private: bool = False
    limits: FetchLimits = FetchLimits()
    resolve: Resolve = socket.getaddrinfo


@contextlib.contextmanager
def fetched(
    address: Address, most: int, policy: FetchPolicy, progress: Progress = lambda _done, _total: None
) -> Iterator[Fetched]:
    """Ask for ``address``, through at most five redirects, each of them checked like the first.

    ImportFailed, also while the chunks are read, unless a body of at most ``most`` bytes comes in time.
    """
    deadline, named = _Deadline(policy.limits), address.host
    for _ in range(MAX_REDIRECTS + 1):
        allowed = policy.allow_private and address.host == named
        with _Connection(address, policy, deadline, may_be_private=allowed) as connection:
            answer = connection.asked()
            if answer.status not in _REDIRECTS:
                yield connection.body(answer, most, progress)
                return
            address = _redirected(address, answer.getheader("Location", ""))
    raise ImportFailed(f"{address.shown} redirects without end", "Check the address.")


class _Deadline:
    """When everything has to be over."""

    def __init__(self, limits: FetchLimits) -> None:
        self.limits = limits
        self._end = time.monotonic() + limits.total

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def end(self) -> None:
        """Have everything be over now."""
        self._end = 0.0

    def failure(self, address: Address, idle: float) -> ImportFailed:
        waited = idle if self.left else self.limits.total
        return ImportFailed(f"{address.host} took longer than {waited:g} seconds", "Try again later.")


class _Connection:
    """One connection to one checked place, closed at the end of the block, cut at the deadline."""

    def __init__(self, address: Address, policy: FetchPolicy, deadline: _Deadline, *, may_be_private: bool) -> None:
        self._address, self._deadline = address, deadline
        places = _places(address, policy, may_be_private=may_be_private)
        with self._failures(deadline.limits.connect):
            self._socket = _connected(places, deadline)
        self._answer: http.client.HTTPResponse | None = None
        # A server that sends a byte now and then would pass every limit on waiting for the next one.
        self._watch = threading.Timer(deadline.left, self._cut)
        self._watch.daemon = True
        self._watch.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.cancel()
        if self._answer is not None:
            self._answer.close()
        self._socket.close()

    def asked(self) -> http.client.HTTPResponse:
        """The answer to a GET, its body unread."""
        address = self._address
        with self._failures(self._deadline.limits.idle):
            if address.scheme == "https":
                self._secure()
            connection = http.client.HTTPConnection(address.host, address.port)
            connection.default_port = PORTS[address.scheme]  # which the Host header leaves out
            connection.auto_open = 0  # never by itself, to whatever the name leads to by then
            connection.sock = self._socket
            connection.request("GET", address.target, headers=_HEADERS)
            self._answer = connection.getresponse()
            return self._answer

    def body(self, answer: http.client.HTTPResponse, most: int, progress: Progress) -> Fetched:
        """The body of an answer that is no redirect. ImportFailed if it can be no transcript."""
        shown = self._address.shown
        if answer.status != http.client.OK:
            why = f"{answer.status} {plain_line(answer.reason)[:80]}".rstrip()
            raise ImportFailed(f"{shown} answered {why}", _REMEDIES.get(answer.status, "Try again later."))
        if answer.getheader("Content-Encoding", "").strip().lower() not in _ENCODINGS:
            raise ImportFailed(f"{shown} is packed in a way that was not asked for", "Download it and import the file.")
        if not _has_one_length(answer):
            raise ImportFailed(
                f"{shown} does not say how long it is, in one number", "Download it and import the file."
            )
        length = answer.length or 0
        if length > most:
            raise ImportFailed(f"{shown} has {length:,} bytes, more than {most:,}", "--max-bytes allows more.")
        return Fetched(self._chunks(answer, length, progress), length)

    def _chunks(self, answer: http.client.HTTPResponse, length: int, progress: Progress) -> Iterator[bytes]:
        done = 0
        while True:
            with self._failures(self._deadline.limits.idle):
                chunk = answer.read1(PIECE)
                if not chunk and (done < length or not self._deadline.left):
                    raise http.client.IncompleteRead(b"", length - done)
            if not chunk:
                return
            done += len(chunk)
            progress(done, length)
            yield chunk

    def _secure(self) -> None:
        """Have the host prove its name: the certificate counts for that, not for the place it was found at."""
        context = ssl.create_default_context()
        host = self._address.host
        self._socket = context.wrap_socket(self._socket, server_hostname=host, do_handshake_on_connect=False)
        self._socket.do_handshake()

    def _cut(self) -> None:
        self._deadline.end()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)  # past TLS, which would be waited for

    @contextlib.contextmanager
    def _failures(self, idle: float) -> Iterator[None]:
        """Turn failures of the network into sentences."""
        address = self._address
        try:
            yield
        except TimeoutError as error:
            raise self._deadline.failure(address, idle) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            if not self._deadline.left:
                raise self._deadline.failure(address, idle) from error
            raise ImportFailed(
                _why(address, error), "Check the address, or download it and import the file."
            ) from error


def _places(address: Address, policy: FetchPolicy, *, may_be_private: bool) -> list[tuple[Any, ...]]:
    """Where a host leads to, looked up once. ImportFailed if a place is private, unless that is allowed."""
    try:
        found = policy.resolve(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ImportFailed(f"No host is called {address.host}", "Check the address and the network.") from error
    private = next((ip for *_, (ip, *_rest) in found if is_private(ip)), None)
    if private is not None and not may_be_private:
        remedy = "--allow-private, if you know what answers there."
        if policy.allow_private:
            remedy = "--allow-private allows only the host that you name, no other one that it redirects to."
        raise ImportFailed(f"{address.host} leads to {private}, which is no public address", remedy)
    return found[:MAX_PLACES]


def _connected(places: list[tuple[Any, ...]], deadline: _Deadline) -> socket.socket:
    """A connection to the first place that accepts one. OSError of the last one if none does."""
    failed: OSError = ConnectionError(errno.EADDRNOTAVAIL, "It has no address")
    for family, kind, protocol, _, place in places:
        opened = socket.socket(family, kind, protocol)
        try:
            opened.settimeout(max(0.001, min(deadline.limits.connect, deadline.left)))
            opened.connect(place)
        except OSError as error:
            opened.close()
            failed = error
        else:
            opened.settimeout(deadline.limits.idle)
            return opened
    raise failed


def _redirected(address: Address, location: str) -> Address:
    """The target of a redirect, which is as untrusted as its content."""
    if not location.strip():
        raise ImportFailed(f"{address.shown} redirects without saying where to", "Check the address.")
    try:
        following = address.joined(location)
    except (UsageError, ValueError) as error:
        why = error.message if isinstance(error, UsageError) else "It is malformed"
        raise ImportFailed(f"{address.shown} redirects to an address that is not followed: {why}") from error
    if address.scheme == "https" and following.scheme != "https":
        raise ImportFailed(f"{address.shown} redirects from https to http", "Nothing was fetched.")
    return following


def _has_one_length(answer: http.client.HTTPResponse) -> bool:
    """Whether a length is given as one number, or not at all: with two of them the shorter would pass for the whole."""
    lengths = {part.strip() for part in answer.getheader("Content-Length", "").split(",")}
    return answer.chunked or lengths == {""} or (len(lengths) == 1 and next(iter(lengths)).isdecimal())


def _why(address: Address, error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"The certificate of {address.host} does not hold: {plain_line(error.verify_message)}"
    if isinstance(error, http.client.IncompleteRead):
        return f"{address.host} broke off before the end"
    if isinstance(error, ssl.SSLError):
        return f"{address.host} speaks no TLS that is safe ({plain_line(error.reason or 'no reason given')})"
    if isinstance(error, OSError) and error.strerror:
        return f"{address.host} could not be reached: {error.strerror}"
    return f"{address.host} answered nothing that is HTTP"
