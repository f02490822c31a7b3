"""Reads that something later made stale: the same file read again as a whole, or changed."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.derive.trim.material import Material
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.rules.rule import Pick, Rule
from resume_hooks.transcripts.content import RESULT, Call

READERS = frozenset({"Read", "NotebookRead"})
WRITERS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
WHOLE_LINES = 2_000
"""Lines that a read without a part shows at most; what lies behind them it doesn't."""


def choose(material: Material, options: Options) -> Iterator[Pick]:  # noqa: ARG001 - the form of every rule
    """Every read of a file before its last whole read, before the same part was read again, or before a change."""
    latest: dict[tuple[str, tuple[object, ...]], int] = {}
    changed: dict[str, int] = {}
    for call_id, call in material.calls.items():
        if call_id in material.failed or call_id not in material.answered or not call.target:
            continue
        place = material.places[call.number]
        if call.tool in WRITERS:
            changed[call.target] = max(place, changed.get(call.target, 0))
        elif call.tool in READERS:
            for extent in {call.extent, () if _is_whole(call) else call.extent}:
                latest[call.target, extent] = max(place, latest.get((call.target, extent), 0))
    for piece in material.pieces:
        read = material.calls.get(piece.call)
        if piece.kind != RESULT or read is None or read.tool not in READERS or piece.call in material.failed:
            continue
        place = material.places[read.number]
        if changed.get(read.target, -1) > place:
            yield Pick(piece, "the file was changed later")
        elif max(latest.get((read.target, extent), -1) for extent in _covered_by(read)) > place:
            yield Pick(piece, "the file was read again later")


def _covered_by(read: Call) -> tuple[tuple[object, ...], ...]:
    """The extents whose reading shows all that ``read`` did: its own, and the whole where that reaches so far."""
    offset, limit, pages = read.extent
    lines = (offset if isinstance(offset, int) else 1) + (limit if isinstance(limit, int) else WHOLE_LINES) - 1
    return (read.extent, ()) if pages is None and lines <= WHOLE_LINES else (read.extent,)


def _is_whole(call: Call) -> bool:
    return all(part is None for part in call.extent)


RULE = Rule("superseded", "files that were read again or changed later", choose)
