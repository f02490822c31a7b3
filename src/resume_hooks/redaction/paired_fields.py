"""Find secrets whose name is in a different field of the same object.

An example is ``{"value": "...", "name": "DB_PASSWORD"}``. Other fields may be between these fields.
This module also finds the values in the ``data`` of a Kubernetes Secret, which are secret only
because of the object's kind.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.redaction.notations import (
    LINE_GAP_EXPRESSION,
    VALUE_EXPRESSION,
    VALUE_FIELD_NAME_EXPRESSION,
    any_character_except,
)
from resume_hooks.redaction.passwords import is_secret_field, start_and_value_of_match
from resume_hooks.redaction.spans import GENERIC, Span

_VALUE_SEARCH_BYTES = 400
"""The number of bytes before a name in which its value is searched for."""

_NAME_FIELD_NAME_EXPRESSION = rb"(?:parameter_?)?(?:name|key|variable|setting)"
NAME_FIELD_PATTERN = compile_lazily(
    rb"(?i)(?<![a-z])"
    + _NAME_FIELD_NAME_EXPRESSION
    + rb"[\\\"']{0,12}\s{0,4}:[ \t]{0,4}[\\\"']{0,12}\Z"
)
"""Matches the text before a name that is the value of a field, with escapes of any depth."""

_FIELD_SEPARATOR_EXPRESSION = (
    rb"[\"']?(?:," + LINE_GAP_EXPRESSION + rb"{0,60}|\n" + LINE_GAP_EXPRESSION + rb"{1,40})"
)
_OTHER_FIELD_EXPRESSION = (
    _FIELD_SEPARATOR_EXPRESSION
    + rb"[\"']?\w{1,30}[\"']?[ \t]{0,4}:[ \t]{0,4}(?:[\w.-]{1,40}|[\"'][^\"'\n]{0,60}(?=[\"']))"
)
"""Matches a field that contains neither the name nor the value."""

_VALUE_FIELD_EXPRESSION = (
    rb"[\"']?(?i:"
    + VALUE_FIELD_NAME_EXPRESSION
    + rb")[\"']?[ \t]{0,4}:[ \t]{0,4}"
    + VALUE_EXPRESSION
)
_VALUE_AFTER_NAME_PATTERN = compile_lazily(
    rb"(?:"
    + _OTHER_FIELD_EXPRESSION
    + rb"){1,4}?"
    + _FIELD_SEPARATOR_EXPRESSION
    + _VALUE_FIELD_EXPRESSION
)
_VALUE_BEFORE_NAME_PATTERN = compile_lazily(
    rb"(?<![\w.-])"
    + _VALUE_FIELD_EXPRESSION
    + rb"(?:"
    + _OTHER_FIELD_EXPRESSION
    + rb"){0,4}?"
    + _FIELD_SEPARATOR_EXPRESSION
    + rb"[\"']?(?i:"
    + _NAME_FIELD_NAME_EXPRESSION
    + rb")[^:\n]{0,8}:\s?\S?\Z"
)

SECRET_KIND_EXPRESSION = rb"kind[\\\"']{0,20}[ \t]{0,4}:[ \t]{0,4}[\\\"']{0,20}secret(?![\w-])"
"""Matches the ``kind`` field of a Kubernetes Secret, in lower case and with escapes of any depth.
"""

_DATA_SEARCH_BYTES = 20_000
"""The number of bytes on each side of the ``kind`` field in which the object's data is searched
for."""

_LINE_NUMBER_EXPRESSION = rb"(?:\s{0,6}\d{1,6}\xe2\x86\x92)?"
_YAML_DATA_PATTERN = compile_lazily(
    _LINE_NUMBER_EXPRESSION
    + rb"([ \t]{0,40})(?:string)?[dD]ata:[ \t]{0,8}\r?\n"
    + rb"((?:"
    + _LINE_NUMBER_EXPRESSION
    + rb"\1[ \t]{1,8}[\w.-]{1,250}:[ \t]{1,8}[^\n]{1,8000}(?:\n|\Z)){1,60})"
)
_JSON_DATA_PATTERN = compile_lazily(rb"\"(?:string)?[dD]ata\"\s{0,4}:\s{0,4}(\{[^{}]{1,16000}\})")
_MAX_DATA_POSITIONS = 6
"""Maximum number of occurrences of ``data`` that are examined on each side of the ``kind`` field.
Occurrences in ``metadata`` and in annotations are counted too."""

_DATA_ENTRY_PATTERN = compile_lazily(
    rb"(?m)(?:^" + _LINE_NUMBER_EXPRESSION + rb"[ \t]*|[{,]\s*)\"?[\w.-]{1,250}\"?:[ \t]{0,8}"
    rb"[\"']?(?![\[{<$*&!\"'])("
    + any_character_except(b"\"',")
    + rb"{6,8000})(?=[\"'\s,\x80-\xff]|\Z)"
)
"""Matches an entry whose value is literal, and not a placeholder, a template or a reference."""


def paired_field_spans(raw: bytes, start: int, end: int) -> Iterator[Span]:
    """Yield the secret that belongs to a name, if there is one.

    The name is the value of the field from ``start`` to ``end``.
    """
    if NAME_FIELD_PATTERN.search(raw, max(0, start - 40), start) is None:
        return
    match = _VALUE_AFTER_NAME_PATTERN.match(raw, end) or _VALUE_BEFORE_NAME_PATTERN.search(
        raw, max(0, start - _VALUE_SEARCH_BYTES), start
    )
    if match is None:
        return
    value_start, value = start_and_value_of_match(match)
    if is_secret_field(raw[start:end], value):
        yield Span("password", value_start, value_start + len(value), GENERIC)


def kubernetes_secret_spans(raw: bytes, position: int) -> Generator[Span, None, None]:
    """Yield the values in the data of the Kubernetes Secret whose ``kind`` is at ``position``.

    The values may be encoded in base64.
    """
    for pattern, word, start_mark in (
        (_YAML_DATA_PATTERN, b"ata:", b"\n"),
        (_JSON_DATA_PATTERN, b'ata"', b'"'),
    ):
        for word_start in _positions_of_data(raw, position, word):
            start = max(
                0,
                raw.rfind(start_mark, max(0, word_start - 60), word_start) + (start_mark == b"\n"),
            )
            block = pattern.match(raw, start)
            if block is not None:
                data_group = block.lastindex or 0
                for entry in _DATA_ENTRY_PATTERN.finditer(
                    raw, block.start(data_group), block.end(data_group)
                ):
                    yield Span("kubernetes-secret", *entry.span(1), GENERIC)


def _positions_of_data(raw: bytes, position: int, word: bytes) -> Iterator[int]:
    """Yield the positions of ``word`` in the object whose ``kind`` field is at ``position``.

    The search extends from the previous object's ``kind`` to the next object's ``kind``.
    """
    after_kind = position + len(b"kind")
    search_start = max(
        0,
        position - _DATA_SEARCH_BYTES,
        raw.rfind(b"kind", max(0, position - _DATA_SEARCH_BYTES), position),
    )
    search_start = max(search_start, raw.rfind(b"\n---", search_start, position))
    search_ends = (
        position + _DATA_SEARCH_BYTES,
        raw.find(b"kind", after_kind, position + _DATA_SEARCH_BYTES),
        raw.find(b"\n---", after_kind, position + _DATA_SEARCH_BYTES),
    )
    search_end = min(end for end in search_ends if end >= 0)
    word_start = position
    for _ in range(_MAX_DATA_POSITIONS):
        word_start = raw.rfind(word, search_start, word_start)
        if word_start < 0:
            break
        yield word_start
    word_start = after_kind
    for _ in range(_MAX_DATA_POSITIONS):
        word_start = raw.find(word, word_start + 1, search_end)
        if word_start < 0:
            break
        yield word_start
