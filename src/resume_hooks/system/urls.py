"""Web addresses as users type them: their parts, whether they are public, and how they may be shown.

Invariant: an ``Address`` holds nothing but printable ASCII, and neither a user name nor a password.
"""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import quote, urljoin, urlsplit

from resume_hooks.errors import UsageError

MAX_ADDRESS = 2_048  # characters; a longer one holds data
PORTS = {"http": 80, "https": 443}  # the schemes that are followed, each with its own port
FIRST_FREE_PORT = 1_024  # below it other services listen, which must not be sent what they could take for a command

_HOST = re.compile(r"[0-9A-Za-z._-]+|[0-9A-Fa-f:.]+")
_SAFE = "%/:=&?~#+!$,;'@()*[]"
"""What may stand in a path or a query as it is."""

_PAGES = (
    ("github.com", re.compile(r"(/[^/]+/[^/]+)/blob/(.+)"), r"\1/raw/\2"),
    ("gist.github.com", re.compile(r"(/[^/]+/[0-9a-f]+)/?"), r"\1/raw"),
    ("gitlab.com", re.compile(r"(/.+/-)/blob/(.+)"), r"\1/raw/\2"),
)
"""Pages that show a file, by host: the path of a page, and of the file itself."""

_GLOBAL6 = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class Address(NamedTuple):
    """One http(s) address; ``target`` is its path and query as they are asked for."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def shown(self) -> str:
        """The address as it may be shown and stored: of a query, which may hold a key, only that there is one."""
        path, asked, _ = self.target.partition("?")
        return f"{self._site}{path}{'?...' if asked else ''}"

    @property
    def file_behind(self) -> str:
        """The address of the file that a page of a well-known site shows; ``""`` for any other."""
        path = self.target.partition("?")[0]
        for host, page, file in _PAGES:
            if self.host == host and page.fullmatch(path):
                return self._site + page.sub(file, path)
        return ""

    def joined(self, location: str) -> Address:
        """Where a redirect leads from here. UsageError as ``parsed``."""
        return parsed(urljoin(f"{self._site}{self.target}", location))

    @property
    def _site(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


def is_address(text: str) -> bool:
    """Whether ``text`` is an address, of whatever scheme, rather than a file or a title."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) is not None


def parsed(text: str) -> Address:
    """An address in its parts. UsageError, which repeats no more of it than the host, if it can't be followed."""
    if len(text) > MAX_ADDRESS:
        raise UsageError(f"The address has more than {MAX_ADDRESS:,} characters", "Download the file and import that.")
    if re.search("[\x00-\x20\x7f\\\\]", text):
        raise UsageError("The address holds a space, a backslash or a control character", "Write a space as %20.")
    try:
        parts = urlsplit(text)
        port = parts.port
        host = (parts.hostname or "").removesuffix(".")
        host = host if host.isascii() else host.encode("idna").decode()
    except ValueError as error:  # brackets, a port that is no number, a name that no host can have
        raise UsageError("The address is malformed", "It has the form https://host/path/session.jsonl") from error
    if parts.scheme not in PORTS:
        raise UsageError("Only http and https addresses are followed", "Name a file by its path.")
    if "@" in parts.netloc:
        raise UsageError("The address holds a user name or a password", "Download the file and import that.")
    if not _HOST.fullmatch(host):
        raise UsageError("The address names no host", "It has the form https://host/path/session.jsonl")
    return Address(parts.scheme, host, _port(parts.scheme, port), _target(parts.path, parts.query))


def is_private(ip: str) -> bool:
    """Whether an IP address is anything but a public one of a single host; an IPv4 address inside another counts too.

    ValueError if it is no IP address.
    """
    place = ipaddress.ip_address(ip.partition("%")[0])
    if isinstance(place, ipaddress.IPv6Address):
        inner = place.ipv4_mapped or place.sixtofour
        if inner is None and place in _NAT64:
            inner = ipaddress.IPv4Address(int(place) & 0xFFFFFFFF)
        if inner is None:
            return place not in _GLOBAL6 or not place.is_global
        place = inner
    return not place.is_global or place.is_multicast or place.is_reserved


def _port(scheme: str, typed: int | None) -> int:
    port = PORTS[scheme] if typed is None else typed
    if port not in PORTS.values() and port < FIRST_FREE_PORT:
        raise UsageError(f"Port {port} is no web server's", f"Use 80, 443, or one from {FIRST_FREE_PORT:,} on.")
    return port


def _target(path: str, query: str) -> str:
    target = quote(path or "/", safe=_SAFE)
    return f"{target}?{quote(query, safe=_SAFE)}" if query else target
