"""The way to the network: what is asked, what is followed, when it is given up. Nothing but 127.0.0.1 is reached."""

from __future__ import annotations

import gzip
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.errors import ImportFailed
from resume_hooks.system.download import MAX_REDIRECTS, FetchLimits, FetchPolicy, fetched
from resume_hooks.system.urls import parsed
from tests.web import Answer, Web, body, certificate, dripping, raw, status

BODY = b'{"type":"user"}\n' * 20_000
MOST = 1024 * 1024
QUICK = FetchLimits(connect=1, idle=0.3, total=1)
LOCAL = FetchPolicy(allow_private=True, limits=FetchLimits(connect=5, idle=5, total=20))


def leading_to(*ips: str) -> Callable[..., list[tuple[Any, ...]]]:
    """A resolver by which every name leads to these addresses."""

    def resolve(_host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        rows = ((socket.AF_INET6 if ":" in ip else socket.AF_INET, ip) for ip in ips)
        return [(family, socket.SOCK_STREAM, 6, "", (ip, port)) for family, ip in rows]

    return resolve


def get(address: str, way: FetchPolicy = LOCAL, most: int = MOST) -> bytes:
    """All bytes of an address."""
    with fetched(parsed(address), most, way) as found:
        return b"".join(found.chunks)


def fails(address: str, why: str, way: FetchPolicy = LOCAL, most: int = MOST) -> ImportFailed:
    """The failure of fetching an address."""
    with pytest.raises(ImportFailed, match=why) as failed:
        get(address, way, most)
    return failed.value


def one(answer: Answer) -> Web:
    """A server that answers ``/x`` so."""
    return Web({"/x": answer})


def test_what_is_asked() -> None:
    """The path and its query, who asks, and nothing of the user's."""
    with Web({"/a/x?key=1": body(BODY)}) as web:
        assert get(web.at("/a/x?key=1#part")) == BODY
    ((path, headers),) = web.asked
    assert path == "/a/x?key=1"
    assert headers.pop("User-Agent").startswith("resume-hooks/")
    assert headers == {
        "Host": f"127.0.0.1:{web.port}",
        "Accept": "application/jsonl, application/x-ndjson, */*",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }


def test_progress_is_told() -> None:
    """Bytes done, and all there are."""
    told: list[tuple[int, int]] = []
    with one(body(BODY)) as web, fetched(parsed(web.at("/x")), MOST, LOCAL, lambda *row: told.append(row)) as found:
        assert found.length == len(BODY)
        assert b"".join(found.chunks) == BODY
    assert told[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_body_of_unknown_length() -> None:
    """In chunks, or up to the end of the connection."""
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (BODY[:5], BODY[5:])) + b"0\r\n\r\n"
    for answer in (chunked(chunks), raw(b"HTTP/1.1 200 OK\r\n\r\n" + BODY)):
        with one(answer) as web:
            assert get(web.at("/x")) == BODY


@pytest.mark.parametrize(
    ("address", "ip"),
    [
        ("http://localhost/x", "127.0.0.1"),
        ("http://metadata.example/x", "169.254.169.254"),
        ("https://intranet.example/x", "10.0.0.7"),
        ("https://mapped.example/x", "::ffff:192.168.0.1"),
        ("https://six.example/x", "fd00::1"),
    ],
)
def test_private_places(monkeypatch: pytest.MonkeyPatch, address: str, ip: str) -> None:
    """Refused by the address that the name leads to, before any connection; one such place among others is enough."""
    monkeypatch.setattr(socket, "socket", lambda *_: pytest.fail("a connection was made"))
    for ips in ((ip,), ("93.184.216.34", ip)):
        failure = fails(address, f"leads to {ip}, which is no public address", FetchPolicy(resolve=leading_to(*ips)))
        assert "--allow-private" in failure.remedy


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "0"])
def test_private_places_by_number(host: str) -> None:
    """In whatever form; the system's own resolver knows them all."""
    fails(f"http://{host}:9999/x", "no public address", FetchPolicy())


def test_a_name_is_looked_up_once() -> None:
    """What it leads to a moment later plays no part: the connection goes to the place that was checked."""
    asked: list[str] = []

    def resolve(host: str, port: int, **rest: object) -> list[tuple[Any, ...]]:
        asked.append(host)
        return leading_to("127.0.0.1" if len(asked) == 1 else "127.0.0.2")(host, port, **rest)

    with one(body(BODY)) as web:
        assert get(web.at("/x", "name.example"), LOCAL._replace(resolve=resolve)) == BODY
    assert asked == ["name.example"]
    assert web.asked[0][1]["Host"] == f"name.example:{web.port}"


def test_the_next_place_is_tried() -> None:
    """A host may have several addresses, of which one does not answer."""
    with one(body(BODY)) as web:
        assert get(web.at("/x", "name.example"), LOCAL._replace(resolve=leading_to("127.0.0.9", "127.0.0.1"))) == BODY


def test_proxies_are_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would look the name up themselves."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with one(body(BODY)) as web:
        assert get(web.at("/x")) == BODY


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect(code: int) -> None:
    """Is followed, also where it is relative."""
    with Web({"/a/x": status(code, Location="../b/y"), "/b/y": body(BODY)}) as web:
        assert get(web.at("/a/x")) == BODY


def test_too_many_redirects() -> None:
    """Five, and no more."""
    row = {f"/{n}": status(302, Location=f"/{n + 1}") for n in range(MAX_REDIRECTS)}
    with Web({**row, f"/{MAX_REDIRECTS}": body(BODY), "/-1": status(302, Location="/0")}) as web:
        assert get(web.at("/0")) == BODY
        fails(web.at("/-1"), "redirects without end")


def test_a_redirect_to_a_private_place() -> None:
    """Each hop is checked like the first."""

    def resolve(host: str, port: int, **rest: object) -> list[tuple[Any, ...]]:
        # The first host counts as public here, since no test may reach one.
        return leading_to("127.0.0.1" if host == "127.0.0.1" else "169.254.169.254")(host, port, **rest)

    with one(status(302, Location="http://metadata.example/latest/")) as web:
        checked = FetchPolicy(resolve=resolve, allow_private=False, limits=LOCAL.limits)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("resume_hooks.system.download.is_private", lambda ip: ip.startswith("169.254."))
            fails(web.at("/x"), r"metadata.example leads to 169\.254\.169\.254", checked)


def test_private_is_allowed_for_the_named_host_alone() -> None:
    """A redirect to the same host goes on; one to another private host is refused before any connection."""
    way = LOCAL._replace(resolve=leading_to("127.0.0.1"))
    with Web({"/y": body(BODY)}) as web:
        web.answers["/near"] = status(302, Location=web.at("/y", "named.example"))
        web.answers["/far"] = status(302, Location=web.at("/y", "other.example"))
        assert get(web.at("/near", "named.example"), way) == BODY
        failure = fails(web.at("/far", "named.example"), r"other\.example leads to 127\.0\.0\.1", way)
    assert "only the host that you name" in failure.remedy
    assert [path for path, _ in web.asked] == ["/near", "/y", "/far"]


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("file:///etc/passwd", "Only http and https"),
        ("ftp://127.0.0.1/x", "Only http and https"),
        ("http://me:secret@127.0.0.1/x", "a user name or a password"),
        ("http://[::1/x", "malformed"),
        ("http://127.0.0.1:25/x", "Port 25"),
    ],
)
def test_redirects_that_are_not_followed(location: str, why: str) -> None:
    """A sentence that says which one it was, and why."""
    with Web({"/x?key=secret": status(302, Location=location)}) as web:
        assert "secret" not in fails(web.at("/x?key=secret"), rf"/x\?\.\.\. redirects to an address .*{why}").message


def test_a_redirect_without_encryption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From https to http nothing is followed; the other way it is."""
    path = certificate(tmp_path, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with one(body(BODY)) as web, Web({}, path) as safe:
        safe.answers["/x"] = status(301, Location=web.at("/x"))
        fails(safe.at("/x"), "redirects from https to http")
        assert web.asked == []
        safe.answers["/y"] = body(BODY)
        web.answers["/y"] = status(301, Location=safe.at("/y"))
        assert get(web.at("/y")) == BODY


def test_a_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has to hold for the name, whatever place that was found at; and somebody has to vouch for it."""
    path = certificate(tmp_path, "good.example")
    way = LOCAL._replace(resolve=leading_to("127.0.0.1"))
    with Web({"/x": body(BODY)}, path) as web:
        fails(web.at("/x", "good.example"), "certificate of good.example does not hold: self.signed", way)
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        assert get(web.at("/x", "good.example"), way) == BODY
        fails(web.at("/x", "evil.example"), "certificate of evil.example does not hold: Hostname mismatch", way)
    assert len(web.asked) == 1


def test_no_tls_there() -> None:
    """A server of http that is asked for https."""
    with one(body(BODY)) as web:
        fails(web.at("/x").replace("http:", "https:"), "speaks no TLS that is safe")


def test_a_body_that_is_too_long() -> None:
    """Given up before it is read, where the server says so."""
    with one(body(BODY)) as web:
        fails(web.at("/x"), r"has 320,000 bytes, more than 1,000", most=1000)


def lengths(*values: bytes) -> Answer:
    """Twelve bytes with these lengths in the head."""
    return raw(b"HTTP/1.1 200 OK\r\n" + b"".join(b"Content-Length: %s\r\n" % v for v in values) + b"\r\nhello, world")


def chunked(content: bytes) -> Answer:
    """A body in chunks."""
    return raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + content)


NOWHERE, BREAKS_OFF, NO_LENGTH = "/x redirects without saying where to", "broke off before the end", "how long it is"
NO_HTTP = "answered nothing that is HTTP|could not be reached"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        *((status(302, **headers), NOWHERE) for headers in ({}, {"Location": ""}, {"Location": " "})),
        *((status(code), f"answered {code}") for code in (404, 403, 500, 204, 304)),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"), BREAKS_OFF),
        *((chunked(content), BREAKS_OFF) for content in (b"5\r\nhello\r\n", b"50\r\nhello", b"hello")),
        # Of two lengths the shorter would pass for the whole.
        *((lengths(*values), NO_LENGTH) for values in ((b"5", b"12"), (b"5, 12",), (b"-5",), (b"five",), (b"+5",))),
        *(
            (raw(text), NO_HTTP)
            for text in (b"", b"220 mail.example ESMTP\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\xff" * 100)
        ),
        (raw(b"HTTP/1.1 200 OK\r\n" + b"x" * 99_999), NO_HTTP),
        (raw(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000), NO_HTTP),
        (body(gzip.compress(BODY), Content_Encoding="br"), "packed in a way"),
    ],
)
def test_answers_that_are_refused(answer: Answer, why: str) -> None:
    """Redirects to nowhere, no file, half a body, no certain length, other protocols, other packings: once, and why."""
    with one(answer) as web:
        assert fails(web.at("/x"), why).remedy
    assert len(web.asked) == 1


@pytest.mark.parametrize("values", [(b"5", b"5"), (b"5",)])
def test_only_the_length_that_was_said_counts(values: tuple[bytes, ...]) -> None:
    """As for every client of the web; the same one twice is one, as proxies join it."""
    with one(lengths(*values)) as web:
        assert get(web.at("/x")) == b"hello"


def test_a_packed_body() -> None:
    """Packed by gzip it is unpacked later, by its first bytes."""
    packed = gzip.compress(BODY)
    with one(body(packed, Content_Encoding="gzip")) as web:
        assert get(web.at("/x")) == packed


def test_a_server_that_falls_silent() -> None:
    """Before the answer, in its head, in its body: the wait for the next byte has an end."""
    for opening in (b"", b"HTTP/1.1 200 OK\r\nContent-", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"):
        holder: list[Web] = []
        with one(dripping(opening, b"", lambda holder=holder: holder[0])) as web:  # type: ignore[misc]
            holder.append(web)
            fails(web.at("/x"), r"took longer than 0\.3 seconds", LOCAL._replace(limits=QUICK))


@pytest.mark.parametrize(
    ("opening", "drop"),
    [
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
)
def test_a_server_that_drips(opening: bytes, drop: bytes) -> None:
    """A byte now and then keeps no one waiting for ever."""
    holder: list[Web] = []
    began = time.monotonic()
    with one(dripping(opening, drop, lambda: holder[0])) as web:
        holder.append(web)
        fails(web.at("/x"), "took longer than 1 seconds", LOCAL._replace(limits=QUICK))
    assert time.monotonic() - began < 20  # a hang, not a speed


def test_a_handshake_that_drips() -> None:
    """The deadline holds there, too."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        limits = FetchLimits(connect=1, idle=5, total=0.3)
        fails(f"https://127.0.0.1:{port}/x", r"took longer than 0\.3 seconds", LOCAL._replace(limits=limits))


def test_nobody_there() -> None:
    """Refused connections, and names that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    fails(f"http://127.0.0.1:{port}/x", "could not be reached: Connection refused")

    def unknown(*_: object, **__: object) -> list[tuple[Any, ...]]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    fails("http://nobody.example/x", "No host is called nobody.example", LOCAL._replace(resolve=unknown))
    fails("http://nobody.example/x", "reached: It has no address", LOCAL._replace(resolve=leading_to()))
