"""Private keys, whole, or torn at either end."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.spans import SHAPE, Span

LONGEST = 20_000
"""Bytes of the longest private key, the longest secret that is looked for."""

_NAME = rb" (?:(?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----"
_BEGIN = late(rb"(?i)-----BEGIN" + _NAME)
_END = late(rb"(?i)-----END" + _NAME)
_TORN = late(rb"(?:\s\d{1,6}\xe2\x86\x92|[A-Za-z0-9+/=\s:,.-]|\\(?=\s)){0,16000}")
_BODY = late(rb"[A-Za-z0-9+/]{24}")
_NUMBERED = rb"\s*(?:\d{1,6}(?:\xe2\x86\x92|[\t:|])\s*)?"
_BODY_LINE = late(_NUMBERED + rb"[A-Za-z0-9+/]{16,76}={0,2}\s*")
"""A line of a key's body, with a number before it as tools print it."""

_LINE_END = late(rb"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{24,76}={0,2}\s*\Z")
"""What is left of a line of which the beginning was cut off."""

_LAST_LINE = late(_NUMBERED + rb"[A-Za-z0-9+/]{0,76}={0,2}\s*(?:\n" + _NUMBERED + rb")?")
"""The last one, which may be short, up to where the line behind it begins."""

_NEXT = late(rb"(?i)-----BEGIN|private-lines:")
_PUTTY = late(rb"(?i)private-lines: ?\d{1,4}")
_PUTTY_END = late(rb"(?i)private-(?:mac|hash): ?[0-9a-f]{40,64}")


def private_keys(raw: bytes, place: int) -> Generator[Span, None, None]:
    """The private key of which a line holds ``PRIVATE KEY``, or PuTTY's ``Private-Lines``, at ``place``; at most one.

    A key without its end goes as far as it looks like one, one without its beginning from where it begins to.
    """
    start = max(0, raw.rfind(b"-----", max(0, place - 64), place))
    if putty := _PUTTY.match(raw, place):
        yield from _whole(raw, putty.end(), putty.end(), _PUTTY_END)
    elif begin := _BEGIN.match(raw, start):
        yield from _whole(raw, start, begin.end(), _END)
    elif end := _END.match(raw, start):
        first = _first_line(raw, start)
        if _is_body(raw[first:start]):
            yield Span("private-key", first, end.end(), SHAPE)


def _whole(raw: bytes, start: int, body: int, last: re.Pattern[bytes]) -> Iterator[Span]:
    """A key from ``start`` up to its ``last`` line, or the next key, or as far as it looks like one."""
    following = _NEXT.search(raw, body, body + LONGEST)
    limit = following.start() if following else body + LONGEST
    end = last.search(raw, body, limit) or _TORN.match(raw, body, limit)
    if end and _is_body(raw[body : end.end()]):
        yield Span("private-key", start, end.end(), SHAPE)


def _first_line(raw: bytes, stop: int) -> int:
    """Where the lines of base64 begin that end at ``stop``."""
    least = max(0, stop - LONGEST)
    last = raw.rfind(b"\n", least, max(least, raw.rfind(b"\n", least, stop))) + 1
    stop = last if _LAST_LINE.fullmatch(raw, last, stop) else stop
    while stop > least:
        start = raw.rfind(b"\n", least, stop - 1) + 1 or least
        if not _BODY_LINE.fullmatch(raw, start, stop):
            torn = _LINE_END.search(raw, max(start, stop - 100), stop)
            return torn.start() if torn else stop
        stop = start
    return stop


def _is_body(raw: bytes) -> bool:
    """Whether what stands in a key's place may be one: no row of dots, no one letter over and over."""
    return _BODY.search(raw) is not None and len(set(raw)) >= 16
