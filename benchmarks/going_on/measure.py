"""Make tables: how many labelled items each way leaves in context, and how many tokens it sends.

``judge`` has the same rule for all ways: an item is in context if the next request contains it
verbatim, or if a line of the request contains it in another form. An item is one read away if the
request names the record that states it, or if the whole digest contains it.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from benchmarks.going_on.judge import collapse_spaces, row_contains_item, text_contains_item
from benchmarks.going_on.truth import ITEM_KINDS, Item, find_transcript, read_labelled_items
from benchmarks.going_on.ways import (
    Remainder,
    copy_session,
    format_token_count,
    run_ways_at_compaction,
    run_ways_on_session,
)
from resume_hooks.reading.digest.opening import DEFAULT_OPENING_TOKENS

IN, NEAR, OUT = "in context", "one read away", "out of reach"
COLUMN_HEADINGS = (
    "way",
    "request, tokens",
    *(f"{kind}s" for kind in ITEM_KINDS),
    "all",
    "or one read away",
)
USUAL_HANDOFF_NAME = f"handoff, {format_token_count(DEFAULT_OPENING_TOKENS)}"


@dataclass
class WayTotals:
    """The results of a way in all sessions.

    ``request_tokens`` are the tokens of the first request in each session. ``place_counts_by_kind``
    counts the items of each kind by the place where they are: in context, one read away, or out of reach.
    """

    request_tokens: list[int] = field(default_factory=list)
    place_counts_by_kind: dict[str, Counter[str]] = field(
        default_factory=lambda: {kind: Counter() for kind in ITEM_KINDS}
    )

    def add_result(self, remainder: Remainder | None, labelled_items: Iterable[Item]) -> None:
        """Count what a way keeps of one session. If the remainder is None, count nothing."""
        if remainder is None:
            return
        self.request_tokens.append(remainder.request_tokens)
        for item in labelled_items:
            self.place_counts_by_kind[item.kind][locate_item_after_way(item, remainder)] += 1


def locate_item_after_way(item: Item, remainder: Remainder) -> str:
    """Return where an item is after a way: in context, one read away, or out of reach."""
    if text_contains_item(item, remainder.text, remainder.rows):
        return IN
    return (
        NEAR
        if item.record_number in remainder.named_record_numbers
        or row_contains_item(item, remainder.readable_rows)
        else OUT
    )


def format_tables(*label_sets: str) -> Iterator[str]:
    """Yield the lines of two tables: for all items, and for the items before a compaction."""
    found = [item for label_set in label_sets for item in read_labelled_items(label_set)]
    by_session: dict[str, list[Item]] = {}
    for item in found:
        by_session.setdefault(item.session_path, []).append(item)
    sessions = {find_transcript(session): labelled for session, labelled in by_session.items()}
    yield f"{', '.join(label_sets)}: {len(sessions)} sessions, {_format_item_counts(found)}"
    yield from _format_table(_sum_ways(sessions))
    covered = [item for item in found if item.is_in_summary is not None]
    if covered:
        summarized = {
            source: [item for item in labelled if item in covered]
            for source, labelled in sessions.items()
        }
        summarized = {source: labelled for source, labelled in summarized.items() if labelled}
        yield ""
        yield (
            f"{', '.join(label_sets)}, summarized by a compaction: {len(summarized)} sessions, "
            f"{_format_item_counts(covered)}"
        )
        yield from _format_table(_sum_ways_at_compaction(summarized))
        yield build_readers_row(covered)


def measure_own_sessions(paths: Sequence[Path]) -> Iterator[str]:
    """Yield the lines of a table with the tokens of each way, for sessions without labels."""
    yield f"{len(paths)} sessions of this home"
    yield from _format_table(_sum_ways(dict.fromkeys(paths, ())))


def list_missed_items(*label_sets: str) -> Iterator[str]:
    """Yield a line for each item that a handoff of the usual size does not contain."""
    for item in (item for label_set in label_sets for item in read_labelled_items(label_set)):
        if (
            locate_item_after_way(item, _measure_usual_handoff(find_transcript(item.session_path)))
            != IN
        ):
            text = collapse_spaces(item.text)[:150]
            short_id = item.session_path[-36:][:8]
            yield f"  missed {item.kind:10} {short_id}:{item.record_number} {text}"


def format_row(way_name: str, totals: WayTotals) -> str:
    """Return the row of a way: the median of the tokens, and percentages of the items.

    A cell is empty if the way_name was not measured or if there are no labels.
    """
    if not totals.request_tokens:
        return f"| {way_name} |{' |' * (len(COLUMN_HEADINGS) - 1)}"
    counts = [totals.place_counts_by_kind[kind] for kind in ITEM_KINDS]
    whole = sum(counts, Counter[str]())
    cells = [way_name, f"{statistics.median(totals.request_tokens):,.0f}"]
    cells += [_format_percent(each[IN], each.total()) for each in (*counts, whole)]
    cells.append(_format_percent(whole[IN] + whole[NEAR], whole.total()))
    return f"| {' | '.join(cells)} |"


def build_readers_row(summarized_items: Sequence[Item]) -> str:
    """Return a row with the percentages of items that readers found in the client's summary."""
    kept = Counter(item.kind for item in summarized_items if item.is_in_summary)
    whole = Counter(item.kind for item in summarized_items)
    cells = ["the client's summary, as readers judge it", ""]
    cells += [_format_percent(kept[kind], whole[kind]) for kind in ITEM_KINDS]
    return f"| {' | '.join([*cells, _format_percent(kept.total(), whole.total())])} | |"


@cache
def _measure_usual_handoff(source: Path) -> Remainder:
    with copy_session(source) as path:
        return next(
            went.remainder
            for went in run_ways_on_session(path)
            if went.way_name == USUAL_HANDOFF_NAME and went.remainder is not None
        )


def _sum_ways(sessions: Mapping[Path, Sequence[Item]]) -> dict[str, WayTotals]:
    sums: dict[str, WayTotals] = {}
    for source, labelled in sessions.items():
        with copy_session(source) as path:
            for way, remainder in run_ways_on_session(path):
                sums.setdefault(way, WayTotals()).add_result(remainder, labelled)
    return sums


def _sum_ways_at_compaction(sessions: Mapping[Path, Sequence[Item]]) -> dict[str, WayTotals]:
    sums: dict[str, WayTotals] = {}
    for source, labelled in sessions.items():
        with copy_session(source) as path:
            for way, remainder in run_ways_at_compaction(path):
                sums.setdefault(way, WayTotals()).add_result(remainder, labelled)
    return sums


def _format_table(totals_by_way: Mapping[str, WayTotals]) -> Iterator[str]:
    yield ""
    yield f"| {' | '.join(COLUMN_HEADINGS)} |"
    yield f"|{'---|' * len(COLUMN_HEADINGS)}"
    yield from (format_row(way, one) for way, one in totals_by_way.items())


def _format_item_counts(labelled_items: Sequence[Item]) -> str:
    by_kind = Counter(item.kind for item in labelled_items)
    return f"{len(labelled_items)} items: " + ", ".join(
        f"{by_kind[kind]} {kind}s" for kind in ITEM_KINDS
    )


def _format_percent(count: int, whole: int) -> str:
    return f"{100 * count / whole:.0f}" if whole else ""
