"""Secrets whose name is in another field: ``{"value": "...", "name": "DB_PASSWORD"}``. Other fields may be in between.

This module also finds the values in the ``data`` of a Kubernetes Secret, which only the object's
kind identifies.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.passwords import is_secret_field, value_of_match
from resume_hooks.redaction.spans import GENERIC, Span
from resume_hooks.redaction.ways import GAP, PAIRED, VALUE, any_except

_REACH = 400
"""The number of bytes before a name to search for its value."""

_NAMES = rb"(?:parameter_?)?(?:name|key|variable|setting)"
NAME_FIELD = late(rb"(?i)(?<![a-z])" + _NAMES + rb"[\\\"']{0,12}\s{0,4}:[ \t]{0,4}[\\\"']{0,12}\Z")
"""The text before a name that is itself a field's value, with escapes of any depth."""

_NEXT = rb"[\"']?(?:," + GAP + rb"{0,60}|\n" + GAP + rb"{1,40})"
_OTHER = (
    _NEXT
    + rb"[\"']?\w{1,30}[\"']?[ \t]{0,4}:[ \t]{0,4}(?:[\w.-]{1,40}|[\"'][^\"'\n]{0,60}(?=[\"']))"
)
"""A field other than the name and the value."""

_HELD = rb"[\"']?(?i:" + PAIRED + rb")[\"']?[ \t]{0,4}:[ \t]{0,4}" + VALUE
_BEHIND = late(rb"(?:" + _OTHER + rb"){1,4}?" + _NEXT + _HELD)
_BEFORE = late(
    rb"(?<![\w.-])"
    + _HELD
    + rb"(?:"
    + _OTHER
    + rb"){0,4}?"
    + _NEXT
    + rb"[\"']?(?i:"
    + _NAMES
    + rb")[^:\n]{0,8}:\s?\S?\Z"
)

KIND = rb"kind[\\\"']{0,20}[ \t]{0,4}:[ \t]{0,4}[\\\"']{0,20}secret(?![\w-])"
"""The kind field of a Kubernetes Secret, in lower case and with escapes of any depth."""

_OBJECT = 20_000
"""The number of bytes on either side of the kind to search for the object's data."""

_LINE = rb"(?:\s{0,6}\d{1,6}\xe2\x86\x92)?"
_BLOCK = late(
    _LINE
    + rb"([ \t]{0,40})(?:string)?[dD]ata:[ \t]{0,8}\r?\n"
    + rb"((?:"
    + _LINE
    + rb"\1[ \t]{1,8}[\w.-]{1,250}:[ \t]{1,8}[^\n]{1,8000}(?:\n|\Z)){1,60})"
)
_BRACES = late(rb"\"(?:string)?[dD]ata\"\s{0,4}:\s{0,4}(\{[^{}]{1,16000}\})")
_TRIES = 6
"""The number of positions on either side of a kind to try as its data; ``metadata`` and annotations
also match."""

_ENTRY = late(
    rb"(?m)(?:^" + _LINE + rb"[ \t]*|[{,]\s*)\"?[\w.-]{1,250}\"?:[ \t]{0,8}"
    rb"[\"']?(?![\[{<$*&!\"'])(" + any_except(b"\"',") + rb"{6,8000})(?=[\"'\s,\x80-\xff]|\Z)"
)
"""A literal value: not a placeholder, a template or a reference."""


def paired_field_spans(raw: bytes, start: int, end: int) -> Iterator[Span]:
    """Yield the secret, if any, whose name is the field value from ``start`` to ``end``."""
    if NAME_FIELD.search(raw, max(0, start - 40), start) is None:
        return
    found = _BEHIND.match(raw, end) or _BEFORE.search(raw, max(0, start - _REACH), start)
    if found is None:
        return
    at, value = value_of_match(found)
    if is_secret_field(raw[start:end], value):
        yield Span("password", at, at + len(value), GENERIC)


def kubernetes_spans(raw: bytes, place: int) -> Generator[Span, None, None]:
    """Yield the values, base64 or plain, in the data of the Secret whose kind is at ``place``."""
    for pattern, word, before in ((_BLOCK, b"ata:", b"\n"), (_BRACES, b'ata"', b'"')):
        for at in _places_of_data(raw, place, word):
            start = max(0, raw.rfind(before, max(0, at - 60), at) + (before == b"\n"))
            block = pattern.match(raw, start)
            if block is not None:
                inner = block.lastindex or 0
                for entry in _ENTRY.finditer(raw, block.start(inner), block.end(inner)):
                    yield Span("kubernetes-secret", *entry.span(1), GENERIC)


def _places_of_data(raw: bytes, place: int, word: bytes) -> Iterator[int]:
    """Yield the positions of a word around the kind at ``place``, up to the kinds of neighbouring objects."""
    behind = place + len(b"kind")
    first = max(0, place - _OBJECT, raw.rfind(b"kind", max(0, place - _OBJECT), place))
    first = max(first, raw.rfind(b"\n---", first, place))
    ends = (
        place + _OBJECT,
        raw.find(b"kind", behind, place + _OBJECT),
        raw.find(b"\n---", behind, place + _OBJECT),
    )
    last = min(end for end in ends if end >= 0)
    at = place
    for _ in range(_TRIES):
        at = raw.rfind(word, first, at)
        if at < 0:
            break
        yield at
    at = behind
    for _ in range(_TRIES):
        at = raw.find(word, at + 1, last)
        if at < 0:
            break
        yield at
