"""Define ``Span``, the position of a secret in bytes, and merge overlapping spans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

SHAPE, ASSIGNED, GENERIC = 1, 2, 3
"""The ranks of secrets, most reliable first. A secret may be recognised by its own form, by a
vendor's name before it, or by a word such as ``password`` before it."""


class Span(NamedTuple):
    """The position of a secret in bytes.

    If two secrets overlap, the kind of the secret with the lower ``rank`` is used.
    """

    kind: str
    start: int
    end: int
    rank: int


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the spans sorted by position. Overlapping spans are merged into one."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            kind, rank = min((last.rank, last.kind), (span.rank, span.kind))[::-1]
            merged[-1] = Span(kind, last.start, max(last.end, span.end), rank)
        else:
            merged.append(span)
    return merged
