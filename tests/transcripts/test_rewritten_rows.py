"""Tests of records that a file contains twice after a compaction that a plugin performed."""

from __future__ import annotations

from typing import Any

import pytest

from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.transcript import CopyDetector

NOON_TIME = "2026-11-22T12:00:00.000Z"
EARLIER_TIME, LATER_TIME = "2026-01-20T14:57:02.445Z", "2026-11-22T12:00:00.001Z"
MORNING_TIME = "2026-11-22T06:00:00.000Z"


def record_at(kind: str, at: str, **fields: Any) -> Record:
    """Return a record of type ``kind`` with the timestamp ``at``."""
    return {"type": kind, "timestamp": at, **fields}


def boundary_at_noon(**metadata: Any) -> Record:
    """Return the boundary of a compaction at noon."""
    return record_at("system", NOON_TIME, subtype="compact_boundary", compactMetadata=metadata)


@pytest.mark.parametrize(
    ("rows", "copied"),
    [
        ([record_at("user", EARLIER_TIME), record_at("assistant", NOON_TIME)], ""),
        (
            [
                boundary_at_noon(),
                record_at("user", EARLIER_TIME),
                record_at("assistant", NOON_TIME),
                record_at("attachment", EARLIER_TIME),
            ],
            "234",
        ),
        (
            [
                boundary_at_noon(),
                record_at("user", EARLIER_TIME),
                record_at("user", LATER_TIME),
                record_at("assistant", EARLIER_TIME),
            ],
            "2",
        ),
        (
            [
                boundary_at_noon(),
                record_at("user", NOON_TIME, isCompactSummary=True),
                record_at("user", LATER_TIME),
                record_at("user", EARLIER_TIME),
            ],
            "",
        ),
        (
            [
                boundary_at_noon(),
                record_at("user", NOON_TIME, isCompactSummary=True),
                record_at("user", NOON_TIME),
                record_at("user", LATER_TIME),
            ],
            "3",
        ),
        (
            [
                record_at("assistant", MORNING_TIME),
                boundary_at_noon(),
                record_at("user", EARLIER_TIME, isCompactSummary=True),
                record_at("user", EARLIER_TIME),
            ],
            "34",
        ),
        (
            [
                record_at("assistant", EARLIER_TIME),
                boundary_at_noon(),
                record_at("user", MORNING_TIME, isCompactSummary=True),
                record_at("user", EARLIER_TIME),
            ],
            "",
        ),
        (
            [
                record_at("user", MORNING_TIME),
                *[boundary_at_noon(), record_at("user", EARLIER_TIME, isCompactSummary=True)] * 2,
            ],
            "35",
        ),
        ([boundary_at_noon(preservedSegment={}), record_at("user", EARLIER_TIME)], ""),
        (
            [
                boundary_at_noon(),
                record_at("attachment", LATER_TIME),
                record_at("user", EARLIER_TIME),
                record_at("user", EARLIER_TIME, isSidechain=True),
            ],
            "3",
        ),
        (
            [
                boundary_at_noon(),
                record_at("last-prompt", EARLIER_TIME),
                record_at("user", ""),
                record_at("user", EARLIER_TIME),
            ],
            "34",
        ),
        ([boundary_at_noon() | {"timestamp": 7}, record_at("user", EARLIER_TIME)], ""),
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
def test_records_older_than_the_boundary_are_copies(rows: list[Record], copied: str) -> None:
    """Records after a boundary are copies if they are not newer than the boundary.

    The first newer message ends the copies. The client's own compactions, which have a summary or
    kept messages, make no copies.
    """
    copies = CopyDetector()
    assert (
        "".join(
            str(at) for at, record in enumerate(rows, 1) if copies.is_copy_of_earlier_record(record)
        )
        == copied
    )
