"""Passwords of any length by the name that they are set to: ``password:``, ``--passphrase``, ``<password>``, netrc."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

from resume_hooks.redaction.false_positives import is_password, is_phrase
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.spans import GENERIC, Span

QUOTED = rb"(?P<quote>\\{0,3}[\"'`])(?P<quoted>[^\"'`\r\n\\]{6,200})(?P=quote)"
LETTER = rb"[\xc3-\xdf][\x80-\xbf]|\xe1[\xb8-\xbb][\x80-\xbf]"
"""A letter beyond ASCII, or an accent, whole. A dash, an arrow or a picture is none: it stands beside a value."""


def but(signs: bytes) -> bytes:
    """A character of a value: any but white space and these signs of ASCII, or a letter beyond it."""
    return rb"(?:[^\s\x7f-\xff" + re.escape(signs) + rb"]|" + LETTER + rb")"


_BARE = rb"(?P<bare>" + but(b"\"'`,;<>(){}|\\") + rb"{6,200}+)"
VALUE = rb"(?:" + QUOTED + rb"|(?:\xe2\x80[\x98-\x9f])?" + _BARE + rb"(?![(]))"
_GAP = rb"(?:\s|\d{1,6}\xe2\x86\x92)"
"""White space, or the number of a line as the client's tools print it."""

_PASS = (
    rb"(?-i:(?<![A-Za-z0-9])pass(?![A-Za-z])|(?<=[a-z])Pass(?![a-z])|(?<=[A-Z]_)PASS(?![A-Z])|(?<=SSH)PASS(?==)|(?<!\w)PASS(?==)|(?<=[a-z][_.-])pass(?![A-Za-z])"
    rb"|(?:(?<=store)|(?<=key)|(?<=smtp)|(?<=mail)|(?<=user)|(?<=db)|(?<=bind))pass(?![A-Za-z]))"
)
"""The short form, which names many other things: what passed a test, what is passed on."""

_NAME = late(
    rb"(?i)(?:pass(?:w(?:or)?d|phrase|code)|pwd|secret(?:[_-]?(?:access[_-]?)?(?:key|token))?|" + _PASS + rb")"
    rb"(?:[_-]?(?:\d{1,2}|value|prod|production|dev|staging|test|live|base))?"
)
_TYPE = rb"(?::[ \t]{0,3}[&A-Za-z][\w.<>&]{0,20}[ \t]{0,10}(?==))?"
_SIGN = rb"[ \t]{0,30}" + _TYPE + rb"(?:=>|:=|={1,2}|:)[ \t]{0,30}"
_SET = late(rb"(?:(?:[\"'`\\]{1,4}\]?|\](?=[ \t]*=))?" + _SIGN + rb"|[ \t]+is:?[ \t]+)" + VALUE)
_OF_A_TYPE = late(rb"(?:[\d*}:]:)\Z")
"""What stands before a name that is a type of a program, or part of what AWS calls a secret by."""

_WORD = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_LONGEST_NAME = 64
BEFORE_PASS = 160
"""Bytes before a word that are looked at for what it belongs to."""

PAIRED = rb"(?:value|default|content|secretstring|plaintext|body)"
"""How the field is called that holds the value, where another one before it holds the name."""

_PAIR = late(
    rb"[\"'`]{0,2}[ \t]{0,4}(?:,?"
    + _GAP
    + rb"{1,40}|\{[^{}]{0,200}?\s)[\"'`-]{0,3}(?i:"
    + PAIRED
    + rb")[\"'`]{0,2}\s{0,10}[:=]\s{0,4}"
    + VALUE
)

_ASSIGNMENTS: list[tuple[re.Pattern[bytes], re.Pattern[bytes] | None]] = [
    (_SET, None),
    (_PAIR, None),
    (late(rb"[\"'][ \t]{0,4},[ \t]{0,4}" + QUOTED), late(rb"[\"']--?[a-z-]{0,20}\Z")),
    (late(rb"[ \t]+" + QUOTED + rb"[ \t]*(?:\n|\Z)"), late(rb"(?:\A|\n|\xe2\x86\x92)[ \t]*[a-z]{0,20}\Z")),
    (
        late(rb"[\"'`]{1,4}[ \t]{0,4},[ \t]{0,30}" + QUOTED),
        late(
            rb"(?i)(?:define|set|put|add|prop|param|header|append|with|env|const)\w{0,20}[ \t]{0,2}\([ \t]{0,2}"
            rb"[\"'`][\w.:-]{0,40}\Z"
        ),
    ),
    (late(rb"[ \t]+(?!(?:pass|env|file|fd):)" + VALUE), late(rb"(?i)(?<![\w-])--?[a-z][a-z-]{0,20}\Z|(?<!\w)--\Z")),
    (late(rb"[ \t]+(?=')" + VALUE), late(rb"(?i)\b(?:user|role|login|encrypted|with)\b[^\n;]{0,120}\Z")),
    (
        late(rb"[\"']?[ \t]+" + VALUE),
        late(rb"(?i)(?:setx|setenv|secrets set|(?:\A|\n)[ \t]*set|set -g?x|env)[ \t]+[\"']?[\w.:-]{0,40}\Z"),
    ),
    (late(rb"[ \t]+" + QUOTED), late(rb"(?i)define[ \t]+\w{0,40}\Z")),
    (late(rb"\(" + QUOTED + rb"\)"), late(rb"(?i)(?:set|with)[a-z_]{0,20}\Z")),
    (
        late(
            rb"[\w.-]{0,20}>"
            + _GAP
            + rb"{0,20}(?:<Value>)?(?P<bare>"
            + but(b"<>")
            + rb"{6,200})\s{0,20}"
            + _GAP
            + rb"{0,20}</"
        ),
        late(rb"<[\w.:-]{0,40}\Z"),
    ),
    (late(rb"\s{1,20}" + VALUE), late(rb"\blogin\s{1,20}\S{1,100}" + _GAP + rb"{1,20}\Z")),
    (late(rb"[ \t=]" + VALUE), late(rb"redis-cli[^\n;|&]{0,120} --\Z")),
    (late(rb":" + VALUE), late(rb"-pass(?:in|out)?[ \t]+[\"']?\Z")),
]
"""How a password is written behind its name, and what stands before that.

Set; in a field beside its name; by a function; as an option; in SQL; by a command that sets variables; by a method;
in an element of XML, netrc, redis-cli, openssl.
"""


_SECURE_STRING = late(rb"(?i)securestring(?:[ \t]+-(?:string|asplaintext|force))*[ \t]+" + QUOTED)


def assigned(raw: bytes, place: int) -> Generator[Span, None, int]:
    """The password or secret whose name begins at ``place``; at most one. Returns where what was looked at ends."""
    end = 0
    name = _NAME.match(raw, place)
    if not name:
        return 0
    for pattern, before in _ASSIGNMENTS:
        found = pattern.match(raw, name.end())
        if found and (before is None or before.search(raw, max(0, place - BEFORE_PASS), place)):
            end = found.end()
            sure = pattern is _SET and found[0][:1] == b"=" and name[0].isupper()
            for span in password_of(found, sure=sure):
                if not _OF_A_TYPE.search(raw[max(0, place - _LONGEST_NAME) : place].rstrip(_WORD)):
                    yield span
                return end
    return end


def is_password_name(name: bytes) -> bool:
    """Whether what is set to a name that ends so is a password."""
    text = name + b'zzzzzz"'
    return any(_SET.match(text, found.end()) for found in _NAME.finditer(text))


def after_sec(raw: bytes, place: int) -> Generator[Span, None, int]:
    """What a secret is set to, or PowerShell's ``ConvertTo-SecureString`` makes of plain text; as ``assigned``."""
    if found := _SECURE_STRING.match(raw, place):
        yield from password_of(found)
        return found.end()
    return (yield from assigned(raw, place))


def password_of(found: re.Match[bytes], *, sure: bool = False) -> Iterator[Span]:
    """The value of a match, if it is a password; what has spaces is a sentence about passwords.

    ``sure``: nothing else stands in that place, so that words alone are one, too.
    """
    groups = found.re.groupindex
    group = "quoted" if "quoted" in groups and found["quoted"] else "bare"
    value = found[group] if group == "quoted" else found[group].rstrip(b".:")
    if (is_password(value) or (sure and b"`" not in found[0] and is_phrase(value))) and b" " not in value:
        yield Span("password", found.start(group), found.start(group) + len(value), GENERIC)
