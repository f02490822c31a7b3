"""The positions of secrets in bytes, and the merging of overlapping positions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

SHAPE, ASSIGNED, GENERIC = 1, 2, 3
"""How reliably the kind is known: by the secret's own shape, by a vendor's name, or by a word such as ``password``."""


class Span(NamedTuple):
    """A secret from ``start`` to ``end``.

    If two secrets overlap, the one with the lower ``rank`` determines the kind.
    """

    kind: str
    start: int
    end: int
    rank: int


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, with overlapping spans merged."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            kind, rank = min((last.rank, last.kind), (span.rank, span.kind))[::-1]
            merged[-1] = Span(kind, last.start, max(last.end, span.end), rank)
        else:
            merged.append(span)
    return merged
