"""Secrets in bytes: long runs and telling words, each looked at by the rules that it calls for."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.redaction.assignments import logins, passwords, run_values
from resume_hooks.redaction.prefilter_patterns import begin, promising, words
from resume_hooks.redaction.spans import Span, merged
from resume_hooks.redaction.token_patterns import private_keys, tokens, userinfo
from resume_hooks.redaction.unescape import Views, blanked, shown

_RULES = {b"://": userinfo, b"-----begin": private_keys, b" -u": logins, b" --user": logins}


def seen(raw: bytes) -> list[Span]:
    """Every secret in UTF-8 text, through each layer of its escapes, in places of ``raw``; none over another."""
    views = Views(raw)
    found: list[Span] = []
    for depth, text in views:
        found += (Span(span.kind, *views.traced(depth, span.start, span.end), span.rank) for span in _coloured(text))
    return merged(found)


def _coloured(raw: bytes) -> Iterator[Span]:
    """Every secret in ``raw``, whatever a terminal's control sequences stand before, behind or inside it."""
    yield from each(blanked(raw))
    view = shown(raw)
    if view:
        yield from (Span(span.kind, *view.origin(span.start, span.end), span.rank) for span in each(view.text))


def each(raw: bytes) -> Iterator[Span]:
    """Every secret that a rule finds in ``raw`` as it stands, in no order; one may stand in another."""
    lower = raw.lower()
    runs = promising(raw)
    yield from tokens(raw, lower, runs)
    for start, _ in runs:
        yield from run_values(raw, lower, begin(raw, start))
    for place, word in words(lower):
        yield from _RULES.get(word, passwords)(raw, place)
