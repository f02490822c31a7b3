"""Find the edit that left a line by its text, and if that is not enough, by the lines around it.

The last edit of a file proves nothing. An edit wrote a line if it left more copies of its text than
before, and if nothing shows that the text disappeared later. Lines by people, formatters and merges
are in no edit, so no session is named: a wrong name is worse than none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from operator import ne
from typing import Generic, NamedTuple, TypeVar

from resume_hooks.parts.attribution.edits import Hunk, split_lines

REACH = 4
"""The number of lines on each side that are compared.

A place that needs more to be unique is repeated or generated.
"""

TELLING = 12  # letters and digits of a distinctive line; `return None` has fewer
MOST_COMPARED = 2_000
"""The maximum lines of a change to compare one by one; in a longer change, neighbours prove nothing."""

NOWHERE = "no edit of a session wrote a line of this text"
NEIGHBOURS = "sessions wrote lines of this text, but none between these neighbours"
GONE = "a session wrote a line of this text, but the file was seen without it since"

R = TypeVar("R")


class Edit(NamedTuple, Generic[R]):
    """An edit of the file by a ``session``, in its checkout at ``path`` on a ``branch``.

    ``time`` orders edits. ``record`` is the caller's key. ``blind`` is true if the text before it
    is unknown.
    """

    record: R
    session: str
    path: str
    branch: str
    time: str
    hunks: tuple[Hunk, ...]
    blind: bool = False


class Verdict(NamedTuple, Generic[R]):
    """The record of the edit that wrote a line, or None if that is not proved; ``why`` explains it."""

    record: R | None
    why: str


class _Trace(NamedTuple, Generic[R]):
    """The effect of an edit on a line's text: ``more`` is the change in the number of copies.

    ``gone`` is true if the file is known to have lacked the text, before or after. ``others`` is
    true if there were copies before. ``fits`` is true if it wrote a copy between the same
    neighbours.
    """

    edit: Edit[R]
    more: int
    gone: bool
    others: bool
    fits: bool


class _Asked(NamedTuple):
    """A line's ``text``, and the unique ``block`` of lines around it, or ``[]``; ``place`` is its index in the block.

    None in the block stands for the start or the end of the file.
    """

    text: str
    alone: bool
    block: Sequence[str | None]
    place: int


def find_writer(lines: Sequence[str], number: int, edits: Iterable[Edit[R]]) -> Verdict[R]:
    """Find the edit that wrote line ``number``, from 1, of the current ``lines``; ``edits`` may be in any order."""
    asked = _describe_line(lines, number - 1)
    traces = sorted(
        (_trace_of_edit(edit, asked) for edit in edits), key=lambda trace: trace.edit.time
    )
    wrote = [place for place, trace in enumerate(traces) if trace.more > 0]
    why = NEIGHBOURS if wrote else NOWHERE
    for place in reversed(wrote):
        trace = traces[place]
        alone = asked.alone and not trace.others
        if _may_have_been_there(trace, traces[:place]) or not (alone or trace.fits):
            continue
        lost = set()
        for other in traces[place + 1 :]:
            if other.gone and other.edit.path == trace.edit.path:
                lost.add(other.edit.branch)
        if trace.edit.branch in lost:
            why = GONE
        elif trace.fits or not lost:  # a merge also brings the neighbours from another branch
            return Verdict(
                trace.edit.record, "by its text" if alone else "by its text and its neighbours"
            )
    return Verdict(None, why)


def _describe_line(lines: Sequence[str], at: int) -> _Asked:
    text, framed = lines[at], [None, *lines, None]
    alone = (
        _is_telling(text) and sum(line.strip() == text.strip() for line in lines) == 1
    )  # the same text with another indent is not distinctive
    for reach in range(1, REACH + 1):
        start = max(0, at + 1 - reach)
        block = framed[start : at + 2 + reach]
        if (
            any(map(_is_telling, filter(None, block)))
            and len(list(_places_of_block(block, framed))) == 1
        ):
            return _Asked(text, alone, block, at + 1 - start)
    return _Asked(text, alone, [], 0)


def _is_telling(line: str) -> bool:
    return sum(map(str.isalnum, line)) >= TELLING


def _places_of_block(block: Sequence[str | None], lines: Sequence[str | None]) -> Iterator[int]:
    at = -1
    with contextlib.suppress(ValueError):
        while True:
            at = lines.index(block[0], at + 1)
            if lines[at : at + len(block)] == block:
                yield at


def _trace_of_edit(edit: Edit[R], asked: _Asked) -> _Trace[R]:
    found = []
    for hunk in edit.hunks:
        found.append((split_lines(hunk.before), split_lines(hunk.after), hunk.whole))
    before = sum(old.count(asked.text) for old, _, _ in found)
    after = sum(new.count(asked.text) for _, new, _ in found)
    whole = any(known for *_, known in found)
    if whole:
        gone = not (after and (before or edit.blind))
    else:
        gone = after < before
    fits = after > before and any(_fits_neighbours(*texts, asked) for texts in found)
    return _Trace(edit, after - before, gone, before > 0, fits)


def _fits_neighbours(before: list[str], after: list[str], whole: bool, asked: _Asked) -> bool:
    framed = [None, *after, None] if whole else after
    if asked.block:
        places = []
        for at in _places_of_block(asked.block, framed):
            places.append(at + asked.place - whole)
    else:
        places = []
    return bool(places) and not _new_lines(before, after).isdisjoint(places)


def _new_lines(before: list[str], after: list[str]) -> frozenset[int]:
    start = _count_alike(before, after)
    end = _count_alike(before[:start:-1], after[:start:-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if max(len(old), len(new)) > MOST_COMPARED:
        if old:
            return frozenset()
        return frozenset(range(start, start + len(new)))
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    numbers: set[int] = set()
    for kind, _, _, first, last in steps:
        if kind != "equal":
            numbers.update(range(start + first, start + last))
    return frozenset(numbers)


def _count_alike(one: list[str], other: list[str]) -> int:
    """Return the number of equal lines at the beginning of two texts."""
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if ne(*pair)),
        min(len(one), len(other)),
    )


def _may_have_been_there(trace: _Trace[R], earlier: Sequence[_Trace[R]]) -> bool:
    """Check whether the text may be older.

    That is so if the session had removed it before, or overwrote the file without reading it.
    """
    if trace.edit.blind and earlier:
        return True
    own = (
        other.more for other in earlier if other.edit.session == trace.edit.session and other.more
    )
    return next(own, 0) < 0
