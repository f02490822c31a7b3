"""The table: items in context, one read away and out of reach, tokens, price, lies, calls before the first edit.

One rule for all: an item is in context where the text that would be sent holds it word for word, or one of its rows
keeps it (``judge``); it is one read away where that text names the record that states it, or the full digest keeps it.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.going_on.judge import core, keeps
from benchmarks.going_on.truth import KINDS, Item, items, source_of
from benchmarks.going_on.ways import COMPACT, Left, Went, flat, gone, laid, opening, whole
from resume_hooks.parts.stats.cache import TranscriptCounts
from resume_hooks.parts.stats.count import COMPACTION, START, count
from resume_hooks.parts.stats.totals import Stretch, figures

BEGINS = {COMPACT: COMPACTION}
"""How transcripts call the stretch that a way begins, where that is not its own name."""

HEADS = ("way", "n", "tokens left", "first request", "seconds", *(f"{kind}s" for kind in KINDS))


@dataclass
class Sums:
    """What a way came to over sessions; ``found`` counts items by kind: in context, one read away, out of reach."""

    shares: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    found: dict[str, Counter[str]] = field(default_factory=lambda: {kind: Counter() for kind in KINDS})
    lies: list[tuple[int, int]] = field(default_factory=list)

    def add(self, went: Went, rows: Iterable[Item], before: int) -> None:
        """Count a session that had so many tokens ``before``."""
        if went.left is None:
            return
        self.seconds.append(went.seconds)
        self.costs.append(went.cost)
        self.shares.append(went.left.tokens / max(1, before))
        self.lies += [went.left.lies] if went.left.lies else []
        for item in rows:
            self.found[item.kind][place(item, went.left)] += 1


def place(item: Item, left: Left) -> str:
    """Where an item is after a way on."""
    wanted = core(item.text)[:200] if item.kind == "command" else flat(item.text)
    if wanted in left.text or (left.rows and keeps(item, left.rows)):
        return "in"
    return "near" if item.record in left.named or (left.more and keeps(item, left.more)) else "out"


def table(*halves: str) -> Iterator[str]:
    """The lines of the table over labelled sessions."""
    found = [item for half in halves for item in items(half)]
    by_session = {
        source_of(item.session): [other for other in found if other.session == item.session] for item in found
    }
    yield f"{' '.join(halves)}: {len(by_session)} sessions, {len(found)} items: in context/one read away/out of reach"
    yield from _table(by_session)


def own(paths: Sequence[Path]) -> Iterator[str]:
    """The same of sessions without labels."""
    yield f"{len(paths)} sessions of this home"
    yield from _table(dict.fromkeys(paths, ()))


def _table(sessions: Mapping[Path, Sequence[Item]]) -> Iterator[str]:
    sums: dict[str, Sums] = {}
    stretches = {stretch.kind: stretch for stretch in stretches_of(sessions)}
    for source, rows in sessions.items():
        with laid(source) as path:
            before = 0
            for went in gone(path, source):
                before = before or (went.left.tokens if went.left else 0)
                summed_up = [item for item in rows if item.in_summary is not None]
                sums.setdefault(went.way, Sums()).add(went, summed_up if went.way == COMPACT else rows, before)
                if went.way == "handoff" and summed_up:
                    sums.setdefault("handoff, what a compaction summed up", Sums()).add(went, summed_up, before)
    heads = [*HEADS, "not in the transcript", "calls before the first edit"]
    yield from ("", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}")
    yield from (row(way, one, stretches.get(BEGINS.get(way, way))) for way, one in sums.items())
    yield from ("", f"calls before the first edit after a start: {_calls(stretches.get(START))}")
    read = [item for rows in sessions.values() for item in rows if item.in_summary is not None]
    told = (f"{kind}s {sum(item.in_summary is True for item in rows)} of {len(rows)}" for kind, rows in _by_kind(read))
    yield from ("", f"recorded compactions, as a reader finds them: {', '.join(told)}") if read else ()


def _by_kind(found: Sequence[Item]) -> Iterator[tuple[str, list[Item]]]:
    return ((kind, [item for item in found if item.kind == kind]) for kind in KINDS)


def row(way: str, sums: Sums, stretch: Stretch | None) -> str:
    """A row: medians, and counts of items; empty where nobody ran the way, or labelled any."""
    if not sums.shares:
        return f"| {way} | 0 |{' |' * len(HEADS)}"
    cells = [way, str(len(sums.shares)), f"{100 * statistics.median(sums.shares):.0f} %"]
    cells += [f"{statistics.median(sums.costs):,.0f}", f"{statistics.median(sums.seconds):.2f}"]
    for kind in KINDS:
        counts = sums.found[kind]
        cells.append("/".join(str(counts[where]) for where in ("in", "near", "out")) if counts else "")
    cells.append("{} of {}".format(*map(sum, zip(*sums.lies, strict=True))) if sums.lies else "")
    cells.append(_calls(stretch))
    return f"| {' | '.join(cells)} |"


def _calls(stretch: Stretch | None) -> str:
    return f"{stretch.median} (75 %: {stretch.p75}) of {stretch.edited}" if stretch else ""


def stretches_of(paths: Iterable[Path]) -> list[Stretch]:
    """The calls before the first edit in these sessions, by what went before."""
    counts = [
        TranscriptCounts(path.stem, "", path.parent.name, 0, there=True, counts=count(str(path)), program="")
        for path in paths
    ]
    return figures(counts, "").stretches


def missed(*halves: str) -> Iterator[str]:
    """The items that neither the opening nor the full digest keeps."""
    for item in (item for half in halves for item in items(half)):
        source = source_of(item.session)
        if not keeps(item, opening(source)) and not keeps(item, whole(source)):
            yield f"  missed {item.kind:10} {source.stem[:8]}:{item.record} {flat(item.text)[:150]}"
