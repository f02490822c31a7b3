"""Tests of ``scan_live_records``.

The function returns the same conversation as a scan of the whole file, but reads less of the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.generate import generate_session
from resume_hooks.transcripts.chain import MIN_SKIPPED_FILE_BYTES
from resume_hooks.transcripts.transcript import (
    is_live_part_within_bytes,
    scan_live_records,
    scan_transcript,
)
from tests.builders import (
    SESSION,
    Record,
    assistant,
    boundary,
    conversation,
    last_prompt,
    summary,
    user,
    write_session,
)
from tests.needs import corpus

FILLER_RECORD = user("x" * 1_000_000, uuid="filler", parent="r3", ts=4)
FILLER_RECORDS = [
    {**FILLER_RECORD, "uuid": f"f{n}", "parentUuid": f"f{n - 1}" if n else "r3"} for n in range(6)
]
LONG_OLD_RECORDS = [*conversation(2), *FILLER_RECORDS]


class _ScanComparison(NamedTuple):
    whole_scan_chain: list[Any]
    live_part_chain: list[Any]
    has_live_scan_read_less: bool


def compare_scans(path: str) -> _ScanComparison:
    """Return the chain of a whole scan, the chain of ``scan_live_records``, and whether the latter read less."""
    whole = scan_transcript(path)
    part, (observer,) = scan_live_records(path, lambda: (_LineNumberCollector(),))
    assert observer.numbers == [node.line_number for node in part.nodes]
    rows = [
        [(n.uuid, n.line_number, n.offset, n.line_length) for n in found.chain]
        for found in (whole, part)
    ]
    return _ScanComparison(rows[0], rows[1], not part.is_whole)


class _LineNumberCollector:
    def __init__(self) -> None:
        self.numbers: list[int] = []

    def __call__(self, line: Any, record: Record, node: Any) -> None:
        if node is not None:
            self.numbers.append(node.line_number)


def long_compacted_session(*later_records: Record, **metadata: Any) -> list[Record]:
    """Return the records of a long conversation, the records of its compaction, and ``later_records``."""
    row = [
        boundary(uuid="b", before="f5", ts=10, **metadata),
        summary("told", uuid="s", parent="b", ts=11),
    ]
    return [*LONG_OLD_RECORDS, *row, *later_records]


LATER_TURN = [
    user("next", uuid="n", parent="s", ts=12),
    assistant("yes", uuid="m", parent="n", ts=13),
]
KEPT_SEGMENT = {"anchorUuid": "s", "headUuid": "r2", "tailUuid": "r3"}
KEPT_UUIDS = {"anchorUuid": "s", "uuids": ["r2", "r3"]}
COMPACTION_CASES: dict[str, tuple[list[Record], bool]] = {
    "never compacted": (LONG_OLD_RECORDS, False),
    "compacted": (long_compacted_session(*LATER_TURN), True),
    "compacted, and nothing since": (long_compacted_session(), True),
    "hinted": (long_compacted_session(*LATER_TURN, last_prompt("m")), True),
    "hinted to the old part": (long_compacted_session(*LATER_TURN, last_prompt("r1")), False),
    "some messages kept": (long_compacted_session(*LATER_TURN, segment=KEPT_SEGMENT), True),
    "listed messages kept": (long_compacted_session(*LATER_TURN, preserved=KEPT_UUIDS), True),
    "marks that lead nowhere": (
        long_compacted_session(*LATER_TURN, segment={**KEPT_SEGMENT, "headUuid": "zz"}),
        False,
    ),
    "a boundary that hangs on the old part": (
        long_compacted_session(*LATER_TURN, parent="f5"),
        False,
    ),
    "a boundary that is only spoken of": (
        [*LONG_OLD_RECORDS, user('"subtype":"compact_boundary"', uuid="q", parent="f5")],
        False,
    ),
    "spoken of after a true one": (
        long_compacted_session(
            *LATER_TURN, user('say "compact_boundary"', uuid="q", parent="m", ts=14)
        ),
        True,
    ),
}


@pytest.mark.parametrize("name", COMPACTION_CASES)
def test_the_live_part_equals_the_whole_scan(name: str, tmp_path: Path) -> None:
    """``scan_live_records`` returns the same chain as the whole scan.

    If the end of the file is not sufficient, it reads the whole file.
    """
    records, less = COMPACTION_CASES[name]
    path = write_session(tmp_path, SESSION, records)
    assert Path(path).stat().st_size > MIN_SKIPPED_FILE_BYTES
    whole, part, read_less = compare_scans(path)
    assert part == whole
    assert read_less == less


def test_a_small_file_is_read_completely(tmp_path: Path) -> None:
    """A small file is read completely.

    In files of up to five mebibytes, clients also read the records before a compaction.
    """
    row = [
        boundary(uuid="b", before="r3", ts=10),
        summary("told", uuid="s", parent="b", ts=11),
        *LATER_TURN,
    ]
    path = write_session(tmp_path, SESSION, [*conversation(2), *row])
    assert not compare_scans(path).has_live_scan_read_less


def test_the_live_part_of_random_sessions_equals_the_whole_scan(tmp_path: Path) -> None:
    """In random long sessions, ``scan_live_records`` finds the same live part as a scan of the whole file."""
    corpus()
    for seed in range(3):
        path = tmp_path / f"{seed}.jsonl"
        generate_session(str(path), 8_000_000, seed, compacted_bytes=1_500_000)
        whole, part, read_less = compare_scans(str(path))
        assert part == whole
        assert read_less


def test_the_size_of_the_live_part_is_compared_with_a_limit(tmp_path: Path) -> None:
    """``is_live_part_within_bytes`` checks whether the live part has at most ``limit`` bytes.

    If there was no compaction, the whole file is the live part.
    """
    path = write_session(tmp_path, SESSION, long_compacted_session(*LATER_TURN))
    size = Path(path).stat().st_size
    live = size - next(node.offset for node in scan_transcript(path).nodes if node.is_boundary)
    assert [is_live_part_within_bytes(path, limit) for limit in (10, live - 1, live, size)] == [
        False,
        False,
        True,
        True,
    ]
    kept = write_session(
        tmp_path, SESSION, long_compacted_session(*LATER_TURN, segment=KEPT_SEGMENT)
    )
    assert [is_live_part_within_bytes(kept, limit) for limit in (live + 1_000, size + 1_000)] == [
        False,
        True,
    ]
    whole = write_session(tmp_path, SESSION, LONG_OLD_RECORDS)
    size = Path(whole).stat().st_size
    assert [is_live_part_within_bytes(whole, limit) for limit in (size - 1, size)] == [False, True]
