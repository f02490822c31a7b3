"""How much of what matters in a session a digest keeps, beside what a compaction's summary kept of the same session.

Run: ``python -m benchmarks.recovery.measure [tune|final|all] [--missed]``. Figures are in docs/figures.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache

from benchmarks.recovery.judge import Row, keeps, rows_of
from benchmarks.recovery.truth import HALVES, KINDS, Item, items, summary
from resume_hooks.paths import Where
from resume_hooks.reading.digest import as_text
from resume_hooks.reading.digest.build import digest_of
from resume_hooks.reading.digest.entries import Digest
from resume_hooks.sessions.locate import SessionFile
from tests.needs import corpus

Text = Callable[[str], Sequence[Row]]


@cache
def digest(session: str) -> Digest:
    """The digest of a session of the corpus, in an empty config home."""
    path = corpus() / f"{session}.jsonl"
    status = path.stat()
    name = session.rpartition("/")[2]
    with tempfile.TemporaryDirectory() as home:
        environ = {"HOME": home, "CLAUDE_CONFIG_DIR": home, "PATH": os.environ["PATH"]}
        return digest_of(SessionFile(name, str(path), status.st_size, status.st_mtime_ns), Where(environ))


@cache
def full(session: str) -> Sequence[Row]:
    """The full digest."""
    return rows_of(as_text.full(digest(session)))


@cache
def opening(session: str) -> Sequence[Row]:
    """The tier that a child opens with."""
    return rows_of(as_text.opening(digest(session), session.rpartition("/")[2], 3))


@cache
def compaction(session: str) -> Sequence[Row]:
    """The client's own summary."""
    return [Row("", row) for row in summary(session).split("\n")]


def share(kept: int, count: int) -> str:
    """A count and what part that is."""
    return f"{kept:3}/{count:<3} {100 * kept / count:3.0f} %" if count else "  -        "


def main(half: str, *, missed: bool) -> None:
    """Print the table of a half."""
    found = items(half)
    sessions = {item.session for item in found}
    print(f"{half}: {len(sessions)} sessions, {len(found)} items")
    print(f"{'':12}{'full digest':>16}{'opening':>16}", end="")
    print(f"{'| before a compaction: digest':>34}{'summary, by words':>20}{'by reading':>16}")
    for kind in KINDS:
        rows = [item for item in found if item.kind == kind]
        before = [item for item in rows if item.in_summary is not None]
        cells = [_kept(rows, full), _kept(rows, opening)]
        beside = [
            _kept(before, full),
            _kept(before, compaction),
            share(sum(item.in_summary is True for item in before), len(before)),
        ]
        print(f"{kind:12}{cells[0]:>16}{cells[1]:>16}  | {'':26}{beside[0]:>14}{beside[1]:>20}{beside[2]:>16}")
    for name, text in (("full digest", full), ("opening", opening)):
        sizes = sorted(sum(len(row.text) for row in text(session)) for session in sessions)
        print(f"{name}: {sizes[0]:,} to {sizes[-1]:,} characters, median {sizes[len(sizes) // 2]:,}")
    for item in found if missed else ():
        if not keeps(item, full(item.session)):
            print(f"  missed {item.kind:10} {item.session[-36:][:8]}:{item.record} {' '.join(item.text.split())[:150]}")


def _kept(rows: Sequence[Item], text: Text) -> str:
    return share(sum(keeps(item, text(item.session)) for item in rows), len(rows))


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--missed"]
    if not set(words) <= {*HALVES, "all"}:
        sys.exit(f"Usage: python -m benchmarks.recovery.measure [{'|'.join(HALVES)}|all] [--missed]")
    main(words[0] if words else "tune", missed="--missed" in sys.argv)
