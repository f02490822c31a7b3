"""Secrets that a command prints, or that stand in a column under a name."""

from __future__ import annotations

import re
from collections.abc import Generator

from resume_hooks.redaction.false_positives import is_key, is_password
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.passwords import counts
from resume_hooks.redaction.spans import GENERIC, Span
from resume_hooks.redaction.ways import but

_PRINTED = late(
    rb"\$ (?=[^\n]{0,160}(?:pass|secret|token|key|cred|\brand\b|pwgen))(?=[^\n]{0,160}\b"
    rb"(?:cat|get|show|read|print|gen\w{0,12}|find-\w+-password|pwgen|rand|reveal|view|output|access|decrypt"
    rb"|pass|\w{0,12}-(?:password|token)|\w{0,8}:generate)\b)"
    rb"[^\n]{3,200}\n(?:\s{0,6}\d{1,6}\xe2\x86\x92)?[ \t]{0,8}(?:base64:)?(?P<bare>"
    + but(b"\"'`,;<>(){}|\\")
    + rb"{8,200})[ \t]{0,4}(?=[\n\"\x80-\xff]|\Z)"
)
"""A command after a prompt that prints a secret, and a line that holds nothing else."""

_MOST_ROWS = 40
_LONGEST_ROW = 400
_HEAD = re.compile(
    rb"[\w \t.*-]{1,40}(?:[|\t][\w \t.*-]{1,40}){1,20}|[A-Za-z_]\w{0,30}(?:([,;])[A-Za-z_][\w ]{0,30}){1,20}"
)
_FRONT = late(rb"(?:\s{0,6}\d{1,6}\xe2\x86\x92|(?:[^\n\"]{0,20}\"\w{1,20}\": ?)?\")?[\x80-\xff]{0,12}")
"""What stands before a line's text: a number, the name of a field of JSON."""

_VALUE = late(but(b"\"'`") + rb"{1,200}")
_RULE = re.compile(rb"[\s|+:=-]{3,400}")
_BEFORE = frozenset([b",", b"|", b"\t", b";", b"("])
_BEHIND = frozenset([b",", b"|", b";", b")"])
_INSERTED = late(rb"(?i)[^()\n]{0,300}\)\s{0,20}values\s{0,20}\((?P<row>[^()\n]{1,400})\)")


def printed(raw: bytes, place: int) -> Generator[Span, None, None]:
    """What the command behind the prompt at ``place`` prints, if it is a secret; at most one."""
    found = _PRINTED.match(raw, place)
    if found and (is_key(found["bare"]) or is_password(found["bare"]) or counts(b"password", found["bare"])):
        yield Span("password", *found.span("bare"), GENERIC)


def cells(raw: bytes, start: int, end: int) -> Generator[Span, None, None]:
    """The secrets in the column of a table or of values apart by commas that has a telling name."""
    if raw[start - 1 : start] not in _BEFORE and raw[end : end + 2].strip()[:1] not in _BEHIND:
        return
    inserted = _INSERTED.match(raw, end)
    opened = raw.rfind(b"(", max(0, start - _LONGEST_ROW), start)
    if inserted and opened >= 0:
        row = inserted["row"].split(b",")
        yield from _cell(raw, (start, end), row, raw.count(b",", opened, start), inserted.start("row"))
        return
    line = _behind_front(raw, raw.rfind(b"\n", max(0, start - _LONGEST_ROW), start) + 1)
    stop = raw.find(b"\n", end, end + _LONGEST_ROW)
    if stop < 0 or start - line > _LONGEST_ROW:
        return
    head = raw[line:stop].strip(b"\r")
    sign = b"|" if b"|" in head else b"," if b"," in head else b"\t" if b"\t" in head else b";"
    if sign not in head or not _HEAD.fullmatch(head.strip(b"| \r") if sign == b"|" else head):
        return
    column, number = raw.count(sign, line, start), head.count(sign)
    for _ in range(_MOST_ROWS):
        line, stop = _behind_front(raw, stop + 1), raw.find(b"\n", stop + 1, stop + 1 + _LONGEST_ROW)
        stop = len(raw) if stop < 0 and len(raw) - line < _LONGEST_ROW else stop
        if stop > line and _RULE.fullmatch(raw, line, stop):
            continue
        row = raw[line:stop].split(sign) if stop > line else []
        if len(row) != number + 1:
            return
        yield from _cell(raw, (start, end), row, column, line)


def _behind_front(raw: bytes, line: int) -> int:
    """Where the text of a line begins that begins at ``line``."""
    front = _FRONT.match(raw, line)
    return front.end() if front else line


def _cell(raw: bytes, name: tuple[int, int], row: list[bytes], column: int, start: int) -> Generator[Span, None, None]:
    """The value in a column of a row that begins at ``start``, if its name makes it a secret."""
    if column < len(row):
        found = _VALUE.search(row[column])
        value = found[0] if found else b""
        if value and counts(raw[slice(*name)], value):
            at = start + sum(len(each) + 1 for each in row[:column]) + row[column].index(value)
            yield Span("password", at, at + len(value), GENERIC)
