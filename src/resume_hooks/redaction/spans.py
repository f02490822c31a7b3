"""Where secrets stand in bytes, and how those that overlap become one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

SHAPE, ASSIGNED, GENERIC = 1, 2, 3
"""How sure a kind is: by its own shape, by a vendor's name before it, by a word such as ``password``."""


class Span(NamedTuple):
    """A secret at ``start`` up to ``end``.

    Of two that overlap the lower ``rank`` gives the kind.
    """

    kind: str
    start: int
    end: int
    rank: int


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, those that overlap as one that covers both."""
    done: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if done and span.start < done[-1].end:
            last = done[-1]
            kind, rank = min((last.rank, last.kind), (span.rank, span.kind))[::-1]
            done[-1] = Span(kind, last.start, max(last.end, span.end), rank)
        else:
            done.append(span)
    return done
