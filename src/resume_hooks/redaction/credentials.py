"""Credentials in recognisable notations: addresses, cookies, npm's settings, password hashes, private keys."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Generator, Iterator

from resume_hooks.redaction.false_positives import (
    is_id,
    is_key,
    is_password,
    is_phrase,
    is_random_letters,
    stands_for,
)
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.spans import GENERIC, SHAPE, Span

_USERINFO = late(rb"://[^\s:/?#\"'`@\\<>\[\]]{0,100}:([^\s/\"'`@\\<>]{3,200})@[\w.\[$-]")
_NAMES_A_SECRET = late(rb"[._-](?:key|pass|password|pwd|secret|token)\Z")
"""The last word of a placeholder that describes a secret: ``application_key``."""

_TOKEN_USER = late(rb"://([\w-]{20,200}):?@[\w.\[$-]")
_PUBLIC_USER = late(rb"\b(?:enode|enrtree)\Z")
"""Schemes of addresses with a public key as their user, such as those of Ethereum nodes."""

_SIGNED = late(rb"(?i)sig(?:nature)?=([\w%+/~-]{20,400}+(?:%3d|=){0,2})")
_DRIVER = late(rb"[^\s:/@\"'`]{1,60}:([^\s/\"'`@\\<>]{3,200})@\Z")
_AUTH = late(
    rb"(?i)_auth(?P<token>token)?[\"'\\]{0,4}[ \t]{0,4}[=:][ \t]{0,4}[\"'\\]{0,4}(?P<value>[\w+/=.~-]{8,400})"
)

_COOKIES = late(
    rb"(?i)cookie(?:[\"'\\]{0,4}[ \t]{0,4}:|(?P<flag>[ \t=]))[ \t]{0,4}=?[ \t]{0,4}[\"'\\]{0,4}"
)
_COOKIE = late(
    rb"([\w.!%-]{1,80}+)=([^\s;\"'\\,<>=\x7f-\xff]{1,4000}+(?:=[^\s;\"'\\,<>\x7f-\xff]{0,200}+)?)(?:;[ \t]?|(?!>))"
)
"""One cookie. The part after a second ``=`` is limited, so that no text is scanned repeatedly."""

_SESSION = late(rb"(?i)sess|sid|auth|token|jwt|logged|login|remember|credential|cookies|secret")
_NO_SESSION = late(rb"(?i)csrf|xsrf")
MOST_COOKIES = 60

_HASHED = late(
    rb"\$(?:2[abxy]\$\d\d\$[./A-Za-z0-9]{53}"
    rb"|6\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./+A-Za-z0-9]{80,90}"
    rb"|5\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{40,46}"
    rb"|\$(?:apr1|2[aby]|[156])\$\$[^\s\"']{20,120}"
    rb"|(?:1|apr1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}"
    rb"|y\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}"
    rb"|argon2(?:id|[id])\$v=\d{1,3}\$m=\d{1,9},t=\d{1,4},p=\d{1,4}\$[A-Za-z0-9+/]{8,86}\$[A-Za-z0-9+/]{16,128}"
    rb"|(?<=pbkdf2_sha256\$)\d{4,8}\$[\w.+/-]{1,64}\$[A-Za-z0-9+/]{43}=)(?![./A-Za-z0-9])"
)

LONGEST = 20_000
"""The size in bytes of the longest private key, which is the longest kind of secret."""

_NAME = rb" (?:(?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----"
_BEGIN = late(rb"(?i)-----BEGIN" + _NAME)
_END = late(rb"(?i)-----END" + _NAME)
_TORN = late(rb"(?:\s\d{1,6}\xe2\x86\x92|[A-Za-z0-9+/=\s:,.-]|\\(?=\s)){0,16000}")
_BODY = late(rb"[A-Za-z0-9+/]{24}")
_NUMBERED = rb"\s*(?:\d{1,6}(?:\xe2\x86\x92|[\t:|])\s*)?"
_BODY_LINE = late(_NUMBERED + rb"[A-Za-z0-9+/]{16,76}={0,2}\s*")
"""A line of a key's body, possibly with a line number from a tool."""

_LINE_END = late(rb"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{24,76}={0,2}\s*\Z")
"""The rest of a line whose beginning was cut off."""

_LAST_LINE = late(_NUMBERED + rb"[A-Za-z0-9+/]{0,76}={0,2}\s*(?:\n" + _NUMBERED + rb")?")
"""The last line, which may be short, and the line number after it."""

_NEXT = late(rb"(?i)-----BEGIN|private-lines:")
_PUTTY = late(rb"(?i)private-lines: ?\d{1,4}")
_PUTTY_END = late(rb"(?i)private-(?:mac|hash): ?[0-9a-f]{40,64}")


def userinfo_spans(raw: bytes, place: int) -> Generator[Span, None, None]:
    """Yield at most one secret: the password in an address whose ``://`` is at ``place``."""
    found = _USERINFO.match(raw, place)
    if found and (
        _is_in_address(found[1].replace(b":", b"_")) or (len(found[1]) >= 12 and is_key(found[1]))
    ):
        yield Span("password-in-address", found.start(1), found.end(1), SHAPE)
        return
    user = _TOKEN_USER.match(raw, place)
    if user and is_key(user[1]) and not _PUBLIC_USER.search(raw, max(0, place - 8), place):
        yield Span("token-in-address", user.start(1), user.end(1), SHAPE)


def _is_in_address(value: bytes) -> bool:
    """Check whether the text at a password's position in an address is a password. It may consist only of letters."""
    if is_password(value) or is_random_letters(value):
        return True
    return is_phrase(value) and value.islower() and not _NAMES_A_SECRET.search(value)


def signature_spans(raw: bytes, place: int) -> Generator[Span, None, None]:
    """Yield the signature with which anyone can use an address: ``sig=``, ``X-Amz-Signature=``.

    There is at most one.
    """
    found = _SIGNED.match(raw, place)
    if found and raw[place - 1 : place] in {b"?", b"&", b";", b"-"} and is_key(found[1]):
        yield Span("signature", found.start(1), found.end(1), SHAPE)


def driver_address_spans(raw: bytes, place: int) -> Generator[Span, None, None]:
    """Yield at most one secret: the password before the ``@tcp(`` of a database address in Go's notation."""
    found = _DRIVER.search(raw, max(0, place - 260), place + 1)
    if found and _is_in_address(found[1]):
        yield Span("password-in-address", found.start(1), found.end(1), SHAPE)


def registry_auth_spans(raw: bytes, place: int) -> Generator[Span, None, None]:
    """Yield the value of ``_auth`` or ``_authToken`` in npm's settings at ``place``.

    A token may be a UUID.
    """
    found = _AUTH.match(raw, place)
    if not found or raw[max(0, place - 1) : place].isalnum():
        return
    value = found["value"]
    if (is_id(value) or is_key(value)) if found["token"] else is_basic(value):
        yield Span("npm-auth", found.start("value"), found.end("value"), GENERIC)


def cookie_spans(raw: bytes, place: int) -> Generator[Span, None, int]:
    """Yield the values of session cookies in a header, or in an option of curl, at ``place``.

    Return the end of the cookies.
    """
    header = _COOKIES.match(raw, place)
    if not header or (
        header["flag"]
        and raw[max(0, place - 2) : place] != b"--"
        and raw[place - 1 : place] != b"."
    ):
        return 0
    end = header.end()
    for _ in range(MOST_COOKIES):
        found = _COOKIE.match(raw, end)
        if not found:
            break
        end = found.end()
        if (
            _SESSION.search(found[1])
            and not _NO_SESSION.search(found[1])
            and (is_id(found[2]) or is_key(found[2]))
        ):
            yield Span("session-cookie", found.start(2), found.end(2), GENERIC)
    return end


def password_hash_spans(raw: bytes, place: int) -> Generator[Span, None, None]:
    """Yield the password hash that begins at ``place``, if any."""
    found = _HASHED.match(raw, place)
    if found and len(set(found[0])) >= 16 and not stands_for(found[0]):
        yield Span("password-hash", found.start(), found.end(), SHAPE)


def is_basic(value: bytes) -> bool:
    """Check whether a value is base64 of ``user:password`` for basic authentication."""
    try:
        text = base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
        printable = text.decode().isprintable()
    except (binascii.Error, ValueError):
        return False
    user, colon, password = text.partition(b":")
    return (
        printable
        and bool(colon)
        and len(password or user) >= 4
        and not stands_for(password or user)
    )


def private_key_spans(raw: bytes, place: int) -> Generator[Span, None, None]:
    """Yield the private key, if any, around the words ``PRIVATE KEY`` or ``Private-Lines`` (PuTTY) at ``place``.

    A key without an end marker extends as far as the text looks like a key. The same applies to a
    missing start marker.
    """
    start = max(0, raw.rfind(b"-----", max(0, place - 64), place))
    if putty := _PUTTY.match(raw, place):
        yield from _whole_key_spans(raw, putty.end(), putty.end(), _PUTTY_END)
    elif begin := _BEGIN.match(raw, start):
        yield from _whole_key_spans(raw, start, begin.end(), _END)
    elif end := _END.match(raw, start):
        first = _first_body_line(raw, start)
        if _is_key_body(raw[first:start]):
            yield Span("private-key", first, end.end(), SHAPE)


def _whole_key_spans(raw: bytes, start: int, body: int, last: re.Pattern[bytes]) -> Iterator[Span]:
    """Yield a key from ``start`` to its ``last`` line, to the next key, or as far as the text looks like a key."""
    following = _NEXT.search(raw, body, body + LONGEST)
    limit = following.start() if following else body + LONGEST
    end = last.search(raw, body, limit) or _TORN.match(raw, body, limit)
    if end and _is_key_body(raw[body : end.end()]):
        yield Span("private-key", start, end.end(), SHAPE)


def _first_body_line(raw: bytes, stop: int) -> int:
    """Return the start of the base64 lines that end at ``stop``."""
    least = max(0, stop - LONGEST)
    last = raw.rfind(b"\n", least, max(least, raw.rfind(b"\n", least, stop))) + 1
    stop = last if _LAST_LINE.fullmatch(raw, last, stop) else stop
    while stop > least:
        start = raw.rfind(b"\n", least, stop - 1) + 1 or least
        if not _BODY_LINE.fullmatch(raw, start, stop):
            torn = _LINE_END.search(raw, max(start, stop - 100), stop)
            if torn:
                return torn.start()
            return stop
        stop = start
    return stop


def _is_key_body(raw: bytes) -> bool:
    """Check whether a key's body may be real. A row of dots or of one repeated letter is not."""
    return _BODY.search(raw) is not None and len(set(raw)) >= 16
