"""Find credentials in notations that can be recognised without a name.

Examples are addresses, cookies, npm settings, password hashes and private keys.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Generator, Iterator

from resume_hooks.redaction.false_positives import (
    is_likely_password,
    is_placeholder,
    is_random_key,
    is_random_letters,
    is_uuid,
    is_word_password,
)
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.redaction.spans import GENERIC, SHAPE, Span

_USERINFO_PATTERN = compile_lazily(
    rb"://[^\s:/?#\"'`@\\<>\[\]]{0,100}:(?!pserver:)([^\s/\"'`@\\<>]{3,200})@[\w.\[$-]"
)
_PLACEHOLDER_LAST_WORD_PATTERN = compile_lazily(rb"[._-](?:key|pass|password|pwd|secret|token)\Z")
"""Matches the last word of a placeholder that describes a secret. An example of a placeholder is
``application_key``."""

_TOKEN_USER_PATTERN = compile_lazily(rb"://([\w-]{20,200}):?@[\w.\[$-]")
_PUBLIC_USER_SCHEME_PATTERN = compile_lazily(rb"\b(?:enode|enrtree|ssh)\Z")
"""Matches the schemes of addresses that contain a public user: the key of an Ethereum node, or the
user name in an SSH address."""

_SIGNATURE_PATTERN = compile_lazily(rb"(?i)sig(?:nature)?=([\w%+/~-]{20,400}+(?:%3d|=){0,2})")
_GO_DRIVER_USERINFO_PATTERN = compile_lazily(rb"[^\s:/@\"'`]{1,60}:([^\s/\"'`@\\<>]{3,200})@\Z")
_NPM_AUTH_PATTERN = compile_lazily(
    rb"(?i)_auth(?P<token>token)?[\"'\\]{0,4}[ \t]{0,4}[=:][ \t]{0,4}[\"'\\]{0,4}(?P<value>[\w+/=.~-]{8,400})"
)

_COOKIE_HEADER_PATTERN = compile_lazily(
    rb"(?i)cookie(?:[\"'\\]{0,4}[ \t]{0,4}:|(?P<flag>[ \t=]))[ \t]{0,4}=?[ \t]{0,4}[\"'\\]{0,4}"
)
_COOKIE_PATTERN = compile_lazily(
    rb"([\w.!%-]{1,80}+)=([^\s;\"'\\,<>=\x7f-\xff]{1,4000}+(?:=[^\s;\"'\\,<>\x7f-\xff]{0,200}+)?)(?:;[ \t]?|(?!>))"
)
"""Matches a single cookie. The part after a second ``=`` has a maximum length, so that the search
does not read the same text repeatedly."""

_SESSION_COOKIE_NAME_PATTERN = compile_lazily(
    rb"(?i)sess|sid|auth|token|jwt|logged|login|remember|credential|cookies|secret"
)
_CSRF_COOKIE_NAME_PATTERN = compile_lazily(rb"(?i)csrf|xsrf")
MAX_COOKIES = 60

_PASSWORD_HASH_PATTERN = compile_lazily(
    rb"\$(?:2[abxy]\$\d\d\$[./A-Za-z0-9]{53}"
    rb"|6\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./+A-Za-z0-9]{80,90}"
    rb"|5\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{40,46}"
    rb"|\$(?:apr1|2[aby]|[156])\$\$[^\s\"']{20,120}"
    rb"|(?:1|apr1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}"
    rb"|y\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}"
    rb"|argon2(?:id|[id])\$v=\d{1,3}\$m=\d{1,9},t=\d{1,4},p=\d{1,4}\$[A-Za-z0-9+/]{8,86}\$[A-Za-z0-9+/]{16,128}"
    rb"|(?<=pbkdf2_sha256\$)\d{4,8}\$[\w.+/-]{1,64}\$[A-Za-z0-9+/]{43}=)(?![./A-Za-z0-9])"
)

MAX_PRIVATE_KEY_BYTES = 20_000
"""Maximum number of bytes in a private key. No other kind of secret is longer."""

_KEY_NAME_EXPRESSION = (
    rb" (?:(?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----"
)
_BEGIN_MARKER_PATTERN = compile_lazily(rb"(?i)-----BEGIN" + _KEY_NAME_EXPRESSION)
_END_MARKER_PATTERN = compile_lazily(rb"(?i)-----END" + _KEY_NAME_EXPRESSION)
_KEY_TEXT_PATTERN = compile_lazily(
    rb"(?:\s\d{1,6}\xe2\x86\x92|[A-Za-z0-9+/=\s:,.-]|\\(?=\s)){0,16000}"
)
_BASE64_RUN_PATTERN = compile_lazily(rb"[A-Za-z0-9+/]{24}")
_LINE_NUMBER_EXPRESSION = rb"\s*(?:\d{1,6}(?:\xe2\x86\x92|[\t:|])\s*)?"
_BODY_LINE_PATTERN = compile_lazily(_LINE_NUMBER_EXPRESSION + rb"[A-Za-z0-9+/]{16,76}={0,2}\s*")
"""Matches a line of a key's body, with or without a line number from a tool."""

_CUT_BODY_LINE_PATTERN = compile_lazily(rb"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{24,76}={0,2}\s*\Z")
"""Matches the rest of a line whose beginning was cut off."""

_LAST_BODY_LINE_PATTERN = compile_lazily(
    _LINE_NUMBER_EXPRESSION
    + rb"[A-Za-z0-9+/]{0,76}={0,2}\s*(?:\n"
    + _LINE_NUMBER_EXPRESSION
    + rb")?"
)
"""Matches the last line of a key's body, which may be short, and a line number after it."""

_NEXT_KEY_PATTERN = compile_lazily(rb"(?i)-----BEGIN|private-lines:")
_PUTTY_HEADER_PATTERN = compile_lazily(rb"(?i)private-lines: ?\d{1,4}")
_PUTTY_MAC_PATTERN = compile_lazily(rb"(?i)private-(?:mac|hash): ?[0-9a-f]{40,64}")


def userinfo_spans(raw: bytes, position: int) -> Generator[Span, None, None]:
    """Yield the span of the secret in the address whose ``://`` is at ``position``, if there is one.

    The secret is the password. If the address has no password, its user name may be a token.
    """
    match = _USERINFO_PATTERN.match(raw, position)
    if match and (
        _is_address_password(match[1].replace(b":", b"_"))
        or (len(match[1]) >= 12 and is_random_key(match[1]))
    ):
        yield Span("password-in-address", match.start(1), match.end(1), SHAPE)
        return
    user = _TOKEN_USER_PATTERN.match(raw, position)
    if (
        user
        and is_random_key(user[1])
        and not _PUBLIC_USER_SCHEME_PATTERN.search(raw, max(0, position - 8), position)
    ):
        yield Span("token-in-address", user.start(1), user.end(1), SHAPE)


def _is_address_password(value: bytes) -> bool:
    """Check whether the text at the password's place in an address really is a password.

    A password in an address may consist only of letters.
    """
    if is_likely_password(value) or is_random_letters(value):
        return True
    return (
        is_word_password(value)
        and value.islower()
        and not _PLACEHOLDER_LAST_WORD_PATTERN.search(value)
    )


def signature_spans(raw: bytes, position: int) -> Generator[Span, None, None]:
    """Yield the signature that gives access to an address, after ``sig=`` or ``Signature=``.

    At most one secret is yielded.
    """
    match = _SIGNATURE_PATTERN.match(raw, position)
    if (
        match
        and raw[position - 1 : position] in {b"?", b"&", b";", b"-"}
        and is_random_key(match[1])
    ):
        yield Span("signature", match.start(1), match.end(1), SHAPE)


def driver_address_spans(raw: bytes, position: int) -> Generator[Span, None, None]:
    """Yield the password in a database address in Go's notation. ``position`` is that of ``@tcp(``.

    At most one secret is yielded.
    """
    match = _GO_DRIVER_USERINFO_PATTERN.search(raw, max(0, position - 260), position + 1)
    if match and _is_address_password(match[1]):
        yield Span("password-in-address", match.start(1), match.end(1), SHAPE)


def registry_auth_spans(raw: bytes, position: int) -> Generator[Span, None, None]:
    """Yield the value of ``_auth`` or ``_authToken`` at ``position`` in npm settings.

    The value of ``_authToken`` may be a UUID.
    """
    match = _NPM_AUTH_PATTERN.match(raw, position)
    if not match or raw[max(0, position - 1) : position].isalnum():
        return
    value = match["value"]
    if (is_uuid(value) or is_random_key(value)) if match["token"] else is_basic_auth(value):
        yield Span("npm-auth", match.start("value"), match.end("value"), GENERIC)


def cookie_spans(raw: bytes, position: int) -> Generator[Span, None, int]:
    """Yield the values of session cookies in the header or curl option at ``position``.

    Return the end of the last cookie, or 0 if there is no header.
    """
    header = _COOKIE_HEADER_PATTERN.match(raw, position)
    if not header or (
        header["flag"]
        and raw[max(0, position - 2) : position] != b"--"
        and raw[position - 1 : position] != b"."
    ):
        return 0
    end = header.end()
    for _ in range(MAX_COOKIES):
        match = _COOKIE_PATTERN.match(raw, end)
        if not match:
            break
        end = match.end()
        if (
            _SESSION_COOKIE_NAME_PATTERN.search(match[1])
            and not _CSRF_COOKIE_NAME_PATTERN.search(match[1])
            and (is_uuid(match[2]) or is_random_key(match[2]))
        ):
            yield Span("session-cookie", match.start(2), match.end(2), GENERIC)
    return end


def password_hash_spans(raw: bytes, position: int) -> Generator[Span, None, None]:
    """Yield the password hash that begins at ``position``, if there is one."""
    match = _PASSWORD_HASH_PATTERN.match(raw, position)
    # ``is_placeholder`` is not used, because a hash may contain a word such as "todo" by chance.
    if match and len(set(match[0])) >= 16:
        yield Span("password-hash", match.start(), match.end(), SHAPE)


def is_basic_auth(value: bytes) -> bool:
    """Check whether a value is ``user:password`` in base64, as in basic authentication."""
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
        and not is_placeholder(password or user)
    )


def private_key_spans(raw: bytes, position: int) -> Generator[Span, None, None]:
    """Yield the private key around the words ``PRIVATE KEY`` or ``Private-Lines`` at ``position``.

    PuTTY uses the second form. If the marker at the beginning or at the end of the key is missing,
    all adjacent text that looks like part of a key is included.
    """
    start = max(0, raw.rfind(b"-----", max(0, position - 64), position))
    if putty := _PUTTY_HEADER_PATTERN.match(raw, position):
        yield from _whole_key_spans(raw, putty.end(), putty.end(), _PUTTY_MAC_PATTERN)
    elif begin := _BEGIN_MARKER_PATTERN.match(raw, start):
        yield from _whole_key_spans(raw, start, begin.end(), _END_MARKER_PATTERN)
    elif end := _END_MARKER_PATTERN.match(raw, start):
        body_start = _start_of_key_body(raw, start)
        if _is_key_body(raw[body_start:start]):
            yield Span("private-key", body_start, end.end(), SHAPE)


def _whole_key_spans(
    raw: bytes, start: int, body_start: int, end_marker: re.Pattern[bytes]
) -> Iterator[Span]:
    """Yield the key that begins at ``start``.

    The key ends at its end marker, before the next key, or where the text no longer looks like a
    key.
    """
    next_key = _NEXT_KEY_PATTERN.search(raw, body_start, body_start + MAX_PRIVATE_KEY_BYTES)
    search_end = next_key.start() if next_key else body_start + MAX_PRIVATE_KEY_BYTES
    key_end = end_marker.search(raw, body_start, search_end) or _KEY_TEXT_PATTERN.match(
        raw, body_start, search_end
    )
    if key_end and _is_key_body(raw[body_start : key_end.end()]):
        yield Span("private-key", start, key_end.end(), SHAPE)


def _start_of_key_body(raw: bytes, end: int) -> int:
    """Return the start of the base64 lines that end at ``end``."""
    search_start = max(0, end - MAX_PRIVATE_KEY_BYTES)
    last_line_start = (
        raw.rfind(b"\n", search_start, max(search_start, raw.rfind(b"\n", search_start, end))) + 1
    )
    end = last_line_start if _LAST_BODY_LINE_PATTERN.fullmatch(raw, last_line_start, end) else end
    while end > search_start:
        line_start = raw.rfind(b"\n", search_start, end - 1) + 1 or search_start
        if not _BODY_LINE_PATTERN.fullmatch(raw, line_start, end):
            cut_line = _CUT_BODY_LINE_PATTERN.search(raw, max(line_start, end - 100), end)
            if cut_line:
                return cut_line.start()
            return end
        end = line_start
    return end


def _is_key_body(raw: bytes) -> bool:
    """Check whether a text may be the body of a key.

    A row of dots or of a single repeated letter is not the body of a key.
    """
    return _BASE64_RUN_PATTERN.search(raw) is not None and len(set(raw)) >= 16
