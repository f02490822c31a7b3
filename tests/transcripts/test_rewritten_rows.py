"""Rows that are in a file a second time, behind a compaction that a plugin answered."""

from __future__ import annotations

from typing import Any

import pytest

from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.transcript import CopyDetector

NOON = "2026-11-22T12:00:00.000Z"
EARLIER, LATER = "2026-01-20T14:57:02.445Z", "2026-11-22T12:00:00.001Z"
MORNING = "2026-11-22T06:00:00.000Z"


def row(kind: str, at: str, **fields: Any) -> Record:
    """A record of a kind at an instant."""
    return {"type": kind, "timestamp": at, **fields}


def boundary(**metadata: Any) -> Record:
    """Where a compaction happened, at noon."""
    return row("system", NOON, subtype="compact_boundary", compactMetadata=metadata)


@pytest.mark.parametrize(
    ("rows", "copied"),
    [
        ([row("user", EARLIER), row("assistant", NOON)], ""),
        (
            [boundary(), row("user", EARLIER), row("assistant", NOON), row("attachment", EARLIER)],
            "234",
        ),
        ([boundary(), row("user", EARLIER), row("user", LATER), row("assistant", EARLIER)], "2"),
        (
            [
                boundary(),
                row("user", NOON, isCompactSummary=True),
                row("user", LATER),
                row("user", EARLIER),
            ],
            "",
        ),
        (
            [
                boundary(),
                row("user", NOON, isCompactSummary=True),
                row("user", NOON),
                row("user", LATER),
            ],
            "3",
        ),
        (
            [
                row("assistant", MORNING),
                boundary(),
                row("user", EARLIER, isCompactSummary=True),
                row("user", EARLIER),
            ],
            "34",
        ),
        (
            [
                row("assistant", EARLIER),
                boundary(),
                row("user", MORNING, isCompactSummary=True),
                row("user", EARLIER),
            ],
            "",
        ),
        (
            [row("user", MORNING), *[boundary(), row("user", EARLIER, isCompactSummary=True)] * 2],
            "35",
        ),
        ([boundary(preservedSegment={}), row("user", EARLIER)], ""),
        (
            [
                boundary(),
                row("attachment", LATER),
                row("user", EARLIER),
                row("user", EARLIER, isSidechain=True),
            ],
            "3",
        ),
        ([boundary(), row("last-prompt", EARLIER), row("user", ""), row("user", EARLIER)], "34"),
        ([boundary() | {"timestamp": 7}, row("user", EARLIER)], ""),
    ],
    ids=[
        "none",
        "all",
        "goes-on",
        "summary",
        "summary-of-a-copy",
        "old-summary",
        "fresh-summary",
        "twice",
        "kept",
        "aside",
        "books",
        "undated",
    ],
)
def test_a_row_before_its_boundary_is_a_copy(rows: list[Record], copied: str) -> None:
    """Until the conversation continues.

    The client's own compactions have a summary, or say what they kept.
    """
    copies = CopyDetector()
    assert "".join(str(at) for at, record in enumerate(rows, 1) if copies.is_copy(record)) == copied
