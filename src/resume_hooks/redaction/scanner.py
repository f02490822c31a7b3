"""Secrets in bytes: long runs and telling words, each looked at by the rules that it calls for."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.redaction.assignments import ENDS, INDENTS, is_named, pieces, run_values
from resume_hooks.redaction.long_runs import begin, promising
from resume_hooks.redaction.match_tokens import is_called, tokens
from resume_hooks.redaction.spans import Span, merged
from resume_hooks.redaction.telling_words import word_spans, word_suspects
from resume_hooks.redaction.unescape import ESCAPED, Views, beside_escapes, blanked, shown

_SHORTEST = 9
"""Bytes of the shortest text that holds a secret: a password of three characters in an address."""


def suspects(raw: bytes) -> Iterator[int]:
    """The places in raw bytes of any kind at or shortly after which a secret may stand, in no order.

    This is the first pass, fast, and letting no secret by. Escapes of any depth stand in these bytes, so what parts a
    name from its value may hold backslashes, and what is looked for is looser than a rule.
    """
    lower = raw.lower()
    coloured = raw.find(b"\x1b")
    if coloured >= 0:
        yield coloured
    yield from (found.start() for found in ESCAPED.finditer(lower))
    yield from word_suspects(lower)
    for start, end in promising(raw):
        if is_called(raw, lower, start, end) or is_named(lower, begin(raw, start)):
            yield start


def seen(raw: bytes, *, in_json: bool = False) -> list[Span]:
    """Every secret in UTF-8 text, through each layer of its escapes, in places of ``raw``; none over another.

    ``in_json``: the text is the one that a string of JSON says, of which ``raw`` are the bytes.
    """
    if len(raw) < _SHORTEST:
        return []
    views = Views(raw, in_json=in_json)
    found: list[Span] = []
    for depth, text in views:
        for span in _coloured(text):
            start, end = beside_escapes(text, span.start, span.end) if b"\\" in text else span[1:3]
            found.append(Span(span.kind, *views.traced(depth, start, end), span.rank))
    return merged(found)


def _coloured(raw: bytes) -> Iterator[Span]:
    """Every secret in ``raw``, whatever a terminal's control sequences stand before, behind or inside it."""
    yield from _each(blanked(raw))
    view = shown(raw)
    if view:
        yield from (Span(span.kind, *view.origin(span.start, span.end), span.rank) for span in _each(view.text))


def _each(raw: bytes) -> Iterator[Span]:
    """Every secret that a rule finds in ``raw`` as it stands, in no order; one may stand in another."""
    lower = raw.lower()
    runs = promising(raw)
    yield from tokens(raw, lower, runs)
    for start, _ in runs:
        first = begin(raw, start)
        found = run_values(raw, lower, first)
        yield from found
        if found and (raw[found[0].end : found[0].end + 1] in ENDS or raw[first - 2 : first] in INDENTS):
            yield from pieces(raw, first, found[0])
    yield from word_spans(raw, lower)
