"""Secrets of any length that a word tells: ``password:``, ``mysql -p``, netrc, cookies, addresses, hashes of passwords.

Each word has a loose expression for the first pass, which sees bytes with escapes of any depth, and a function that
says which secrets there are where the word stands in a text.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from resume_hooks.redaction.false_positives import is_id, is_key, is_password, stands_for
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.private_keys import private_keys
from resume_hooks.redaction.spans import GENERIC, SHAPE, Span

_QUOTED = rb"(?P<quote>\\{0,3}[\"'`])(?P<quoted>[^\"'`\r\n\\]{6,200})(?P=quote)"
_LETTER = rb"[\xc3-\xdf][\x80-\xbf]|\xe1[\xb8-\xbb][\x80-\xbf]"
"""A letter beyond ASCII, or an accent, whole. A dash, an arrow or a picture is none: it stands beside a value."""


def _but(signs: bytes) -> bytes:
    """A character of a value: any but white space and these signs of ASCII, or a letter beyond it."""
    return rb"(?:[^\s\x7f-\xff" + re.escape(signs) + rb"]|" + _LETTER + rb")"


_BARE = rb"(?P<bare>" + _but(b"\"'`,;<>(){}|\\") + rb"{6,200}+)"
_VALUE = rb"(?:" + _QUOTED + rb"|(?:\xe2\x80[\x98-\x9f])?" + _BARE + rb"(?![(]))"
_GAP = rb"(?:\s|\d{1,6}\xe2\x86\x92)"
"""White space, or the number of a line as the client's tools print it."""

_NAME = rb"(?i)(?:passw(?:or)?d|passphrase|pwd|secret(?:[_-]?(?:access[_-]?)?(?:key|token))?)"
_SET = late(
    _NAME + rb"(?:[_-]?(?:\d{1,2}|value|prod|production|dev|staging|test|live|base))?"
    rb"(?:[\"'`\\]{0,4}\]?[ \t]{0,4}(?:=>|:=|={1,2}|:)[ \t]{0,4}|[ \t]+is:?[ \t]+)" + _VALUE
)
_BEFORE_PASS = 160
"""Bytes before a word that are looked at for what it belongs to."""


_ASSIGNMENTS: list[tuple[re.Pattern[bytes], re.Pattern[bytes]]] = [
    (_SET, late(rb"")),
    (late(_NAME + rb"[ \t]+" + _VALUE), late(rb"--\Z")),
    (
        late(
            _NAME
            + rb"[\w.-]{0,20}>"
            + _GAP
            + rb"{0,20}(?P<bare>"
            + _but(b"<>")
            + rb"{6,200})\s{0,20}"
            + _GAP
            + rb"{0,20}</"
        ),
        late(rb"<[\w.:-]{0,40}\Z"),
    ),
    (late(rb"password\s{1,20}" + _VALUE), late(rb"\blogin\s{1,20}\S{1,100}" + _GAP + rb"{1,20}\Z")),
    (late(rb"pass[ \t=]" + _VALUE), late(rb"redis-cli[^\n;|&]{0,120} --\Z")),
    (late(rb"pass:" + _VALUE), late(rb"-pass(?:in|out)?[ \t]+[\"']?\Z")),
]
"""How a password is written and what stands before: set, option, element of XML, netrc, redis-cli, openssl."""


_ARGUMENTS: list[tuple[bytes, re.Pattern[bytes], re.Pattern[bytes]]] = [
    (b" -p", late(rb"(?:mysql|mariadb)[\w-]{0,12}(?:\s|\Z)"), late(rb" -p" + _VALUE)),
    (b" -p", late(rb"(?:[ \t]login|sshpass)(?:\s|\Z)"), late(rb" -p[ \t=]{0,4}" + _VALUE)),
    (b" -w", late(rb"ldap[a-z]{3,8}(?:\s|\Z)"), late(rb" -w[ \t]{0,4}" + _VALUE)),
    (b" -a", late(rb"redis-cli(?:\s|\Z)"), late(rb" -a[ \t]{1,4}" + _VALUE)),
    (
        b"-u",
        late(rb"curl\s"),
        late(rb"-u(?:ser)?[ =]?\\{0,3}[\"']?[^\s:/\"'\\]{1,64}:(?P<bare>" + _but(b"\"'\\") + rb"{6,200})"),
    ),
]
"""Options that take a password, the programs whose they are, and how it stands there."""


_BEFORE_ARGUMENT = 300
"""Bytes before an option in which its program stands."""

_COMMAND_ENDS = (b"\n", b";", b"|", b"&")
_NET_USE = late(rb"(?i)net use[ \t]+(?:[a-z*]:?[ \t]+)?\\{2,8}\S{1,200}(?:[ \t]+/\S{1,100}+){0,4}[ \t]+(?!/)" + _VALUE)
_SECURE_STRING = late(rb"(?i)securestring(?:[ \t]+-(?:string|asplaintext|force))*[ \t]+" + _QUOTED)

_USERINFO = late(rb"://[^\s:/?#\"'`@\\<>\[\]]{0,100}:([^\s/?#\"'`@\\<>]{3,200})@[\w.\[$-]")
_ADDRESS = late(rb"://[^\s/@\"]{0,300}@")
_AUTH = late(rb"(?i)_auth(?P<token>token)?[\"'\\]{0,4}[ \t]{0,4}[=:][ \t]{0,4}[\"'\\]{0,4}(?P<value>[\w+/=.~-]{8,400})")

_COOKIES = late(rb"(?i)cookie(?:[\"'\\]{0,4}[ \t]{0,4}:|(?P<flag>[ \t=]))[ \t]{0,4}[\"'\\]{0,4}")
_COOKIE = late(rb"([\w.!%-]{1,80})=([^\s;\"'\\,<>\x7f-\xff]{1,4000})(?:;[ \t]?|(?=[\s\"'\\,<\x7f-\xff])|\Z)")
_SESSION = late(rb"(?i)sess|sid|auth|token|jwt|logged|login|remember|credential|cookies|secret")
_NO_SESSION = late(rb"(?i)csrf|xsrf")
MOST_COOKIES = 60

_HASHED = late(
    rb"\$(?:2[abxy]\$\d\d\$[./A-Za-z0-9]{53}"
    rb"|6\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{86}"
    rb"|5\$(?:rounds=\d{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43}"
    rb"|(?:1|apr1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}"
    rb"|y\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}"
    rb"|argon2(?:id|[id])\$v=\d{1,3}\$m=\d{1,9},t=\d{1,4},p=\d{1,4}\$[A-Za-z0-9+/]{8,86}\$[A-Za-z0-9+/]{16,128}"
    rb"|(?<=pbkdf2_sha256\$)\d{4,8}\$[\w.+/-]{1,64}\$[A-Za-z0-9+/]{43}=)(?![./A-Za-z0-9])"
)


def assigned(raw: bytes, place: int) -> Iterator[Span]:
    """The password or secret whose name begins at ``place``; at most one."""
    for pattern, before in _ASSIGNMENTS:
        found = pattern.match(raw, place)
        if found and before.search(raw, max(0, place - _BEFORE_PASS), place):
            yield from _password(found)
            return


def is_password_name(name: bytes) -> bool:
    """Whether what is set to a name that ends so is a password."""
    return _SET.search(name + b'zzzzzz"') is not None


def arguments(raw: bytes, place: int) -> Iterator[Span]:
    """The password that the option at ``place`` gives to a program; at most one."""
    for option, program, argument in _ARGUMENTS:
        found = argument.match(raw, place) if raw.startswith(option, place) else None
        if found and program.search(_command(raw, place)):
            yield from _password(found)
            return


def _may_be_argument(lower: bytes, place: int) -> bool:
    command = _command(lower, place)
    return any(lower.startswith(option, place) and program.search(command) for option, program, _ in _ARGUMENTS)


def _command(raw: bytes, place: int) -> bytes:
    """What stands before an option in the same command."""
    before = raw[max(0, place - _BEFORE_ARGUMENT) : place]
    return before[max(before.rfind(sign) for sign in _COMMAND_ENDS) + 1 :]


def after_sec(raw: bytes, place: int) -> Iterator[Span]:
    """What a secret is set to, or PowerShell's ``ConvertTo-SecureString`` makes of plain text; at most one."""
    if found := _SECURE_STRING.match(raw, place):
        yield from _password(found)
    else:
        yield from assigned(raw, place)


def net_use(raw: bytes, place: int) -> Iterator[Span]:
    """The password of ``net use`` on Windows; at most one."""
    if found := _NET_USE.match(raw, place):
        yield from _password(found)


def userinfo(raw: bytes, place: int) -> Iterator[Span]:
    """The password in an address, before the ``@`` at ``place``; at most one."""
    found = _USERINFO.match(raw, max(0, raw.rfind(b"://", max(0, place - _BEFORE_ARGUMENT), place)))
    if found and found.end(1) == place and (is_password(found[1]) or (len(found[1]) >= 12 and is_key(found[1]))):
        yield Span("password-in-address", found.start(1), found.end(1), SHAPE)


def _may_be_userinfo(lower: bytes, place: int) -> object:
    start = lower.rfind(b"://", max(0, place - _BEFORE_ARGUMENT), place)
    return start >= 0 and _ADDRESS.match(lower, start)


def registry_auth(raw: bytes, place: int) -> Iterator[Span]:
    """What ``_auth`` or ``_authToken`` is set to in npm's settings, at ``place``; a token may be a UUID there."""
    found = _AUTH.match(raw, place)
    if not found or raw[max(0, place - 1) : place].isalnum():
        return
    value = found["value"]
    if (is_id(value) or is_key(value)) if found["token"] else is_basic(value):
        yield Span("npm-auth", found.start("value"), found.end("value"), GENERIC)


def cookies(raw: bytes, place: int) -> Iterator[Span]:
    """The values of session cookies in a header, or an option of curl, that begins at ``place``."""
    header = _COOKIES.match(raw, place)
    if not header or (header["flag"] and raw[max(0, place - 2) : place] != b"--"):
        return
    end = header.end()
    for _ in range(MOST_COOKIES):
        found = _COOKIE.match(raw, end)
        if not found:
            return
        end = found.end()
        if _SESSION.search(found[1]) and not _NO_SESSION.search(found[1]) and (is_id(found[2]) or is_key(found[2])):
            yield Span("session-cookie", found.start(2), found.end(2), GENERIC)


def hashes(raw: bytes, place: int) -> Iterator[Span]:
    """The hash of a password that begins at ``place``; at most one."""
    found = _HASHED.match(raw, place)
    if found and len(set(found[0])) >= 16 and not stands_for(found[0]):
        yield Span("password-hash", found.start(), found.end(), SHAPE)


def is_basic(value: bytes) -> bool:
    """Whether a value is the ``user:password`` of basic authentication in base64."""
    try:
        user, colon, password = base64.b64decode(value + b"=" * (-len(value) % 4), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return False
    return bool(colon) and len(password or user) >= 4 and not stands_for(password or user)


def _password(found: re.Match[bytes]) -> Iterator[Span]:
    """The value of a match, if it is a password; what has spaces is a sentence about passwords."""
    groups = found.re.groupindex
    group = "quoted" if "quoted" in groups and found["quoted"] else "bare"
    value = found[group] if group == "quoted" else found[group].rstrip(b".:")
    if is_password(value) and b" " not in value:
        yield Span("password", found.start(group), found.start(group) + len(value), GENERIC)


class _Word(NamedTuple):
    """What a word calls for: whether a place in raw lower-case bytes may tell a secret, and which ones it tells."""

    may_tell: Callable[[bytes, int], object]
    spans: Callable[[bytes, int], Iterator[Span]]


_ASSIGNED = late(rb"[a-z]{3,12}[\w-]{0,24}(?:[\\\"'`]{0,20}\]?[ \t]{0,4}[=:>]|[ \t]+is[: \t])")


def _may_be_set(lower: bytes, place: int) -> bool:
    """Whether a name may tell a secret: by a sign, as an option, after a login in netrc."""
    return bool(
        _ASSIGNED.match(lower, place)
        or lower[max(0, place - 2) : place] == b"--"
        or (lower.startswith(b"password", place) and b"login" in lower[max(0, place - _BEFORE_PASS) : place])
    )


def _may_be_secret(lower: bytes, place: int) -> bool:
    return lower.startswith(b"securestring", place) or (
        lower.startswith(b"secret", place) and _may_be_set(lower, place)
    )


def _matching(text: bytes) -> Callable[[bytes, int], object]:
    pattern = late(text)
    return lambda lower, place: pattern.match(lower, place)  # noqa: PLW0108 - .match alone would compile it now


_PASS = _Word(_may_be_set, assigned)
_OPTION = _Word(_may_be_argument, arguments)

_WORDS: dict[bytes, _Word] = {
    b"pass": _PASS,
    b"pwd": _PASS,
    b"sec": _Word(_may_be_secret, after_sec),
    b" -p": _OPTION,
    b" -w": _OPTION,
    b" -a": _OPTION,
    b"-u": _OPTION,
    b"net use": _Word(_matching(rb"net use"), net_use),
    b"_auth": _Word(_matching(rb"_auth(?:token)?[\\\"']{0,20}[ \t]{0,4}[=:]"), registry_auth),
    b"cookie": _Word(_matching(rb"cookie(?:[\\\"' \t]{0,20}[:=]|[ =])"), cookies),
    b"private": _Word(_matching(rb"private(?: key|-lines)"), private_keys),
    b"@": _Word(_may_be_userinfo, userinfo),
    b"$": _Word(_matching(rb"\$(?:(?:2[abxy]|[156y]|apr1|argon2)[^\s\"]{24}|\d{4,8}\$)"), hashes),
}
"""What may stand before a secret of any length, lower-case; few enough to be searched for one by one."""


def word_spans(raw: bytes, lower: bytes) -> Iterator[Span]:
    """Every secret that a word tells; ``lower`` is ``raw`` in lower case."""
    for word, places in _places(lower):
        for place in places:
            yield from word.spans(raw, place)


def word_suspects(lower: bytes) -> Iterator[int]:
    """The places in lower-case bytes, with escapes of any depth, at which a word may tell a secret."""
    for word, places in _places(lower):
        for place in places:
            if word.may_tell(lower, place):
                yield place


def _places(lower: bytes) -> Iterator[tuple[_Word, Iterator[int]]]:
    for text, word in _WORDS.items():
        if text in lower:
            yield word, _find(lower, text)


def _find(raw: bytes, text: bytes) -> Iterator[int]:
    place = raw.find(text)
    while place >= 0:
        yield place
        place = raw.find(text, place + len(text))
