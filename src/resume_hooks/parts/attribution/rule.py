"""Find the edit that wrote a line by comparing the line's text and, if that is not enough, the lines around it.

The last edit of a file proves nothing. An edit wrote a line if it increased the number of copies of
the line's text, and if nothing shows that the text disappeared later. Lines that people, formatters
and merges wrote are in no edit. For such a line, no session is named, because a wrong name is worse
than none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from operator import ne
from typing import Generic, NamedTuple, TypeVar

from resume_hooks.parts.attribution.edits import EditHunk, split_lines

NEIGHBOUR_LINES = 4
"""The number of lines to compare on each side of the line.

If more lines are needed, the text is repeated or generated.
"""

# the minimum number of letters and digits in a distinctive line; `return None` has fewer
DISTINCTIVE_LETTERS = 12
MOST_COMPARED = 2_000
"""The maximum number of lines to compare in a change. In a longer change, neighbours prove nothing."""

NO_EDIT = "no edit of a session wrote a line of this text"
OTHER_NEIGHBOURS = "sessions wrote lines of this text, but none between these neighbours"
TEXT_GONE = "a session wrote a line of this text, but the file was seen without it since"

R = TypeVar("R")


class FileEdit(NamedTuple, Generic[R]):
    """An edit of the file by a ``session``, in the checkout at ``path`` on a ``branch``.

    ``time`` is the sort key. ``record`` is any value that identifies the edit for the caller.
    ``blind`` is true if the previous text is unknown.
    """

    record: R
    session: str
    path: str
    branch: str
    time: str
    hunks: tuple[EditHunk, ...]
    blind: bool = False


class Verdict(NamedTuple, Generic[R]):
    """The record of the edit that wrote a line, or None if there is no proof; ``why`` is the explanation."""

    record: R | None
    why: str


class _EditEffect(NamedTuple, Generic[R]):
    """The effect of an edit on a line's text: ``more`` is the change in the number of copies.

    ``gone`` is true if the file certainly did not contain the text, before or after the edit.
    ``others`` is true if the text existed before. ``fits`` is true if the edit wrote a copy between
    the same neighbouring lines.
    """

    edit: FileEdit[R]
    more: int
    gone: bool
    others: bool
    fits: bool


class _LineInContext(NamedTuple):
    """A line's ``text``, and a unique ``block`` of lines around it or ``[]``; ``place`` is the line's index in it.

    In the block, None means the start or the end of the file.
    """

    text: str
    alone: bool
    block: Sequence[str | None]
    place: int


def find_writer(lines: Sequence[str], number: int, edits: Iterable[FileEdit[R]]) -> Verdict[R]:
    """Find the edit that wrote line ``number``, from 1, of the current ``lines``; ``edits`` may be in any order."""
    line = _describe_line(lines, number - 1)
    traces = sorted((_edit_effect(edit, line) for edit in edits), key=lambda trace: trace.edit.time)
    wrote = [index for index, trace in enumerate(traces) if trace.more > 0]
    why = OTHER_NEIGHBOURS if wrote else NO_EDIT
    for index in reversed(wrote):
        trace = traces[index]
        is_unique = line.alone and not trace.others
        if _may_be_older(trace, traces[:index]) or not (is_unique or trace.fits):
            continue
        lost_branches = set()
        for later_trace in traces[index + 1 :]:
            if later_trace.gone and later_trace.edit.path == trace.edit.path:
                lost_branches.add(later_trace.edit.branch)
        if trace.edit.branch in lost_branches:
            why = TEXT_GONE
        elif (
            trace.fits or not lost_branches
        ):  # a merge may also copy the neighbouring lines from another branch
            return Verdict(
                trace.edit.record, "by its text" if is_unique else "by its text and its neighbours"
            )
    return Verdict(None, why)


def _describe_line(lines: Sequence[str], index: int) -> _LineInContext:
    text, framed = lines[index], [None, *lines, None]
    is_unique = (
        _is_distinctive(text) and sum(line.strip() == text.strip() for line in lines) == 1
    )  # the same text with a different indent is not distinctive
    for reach in range(1, NEIGHBOUR_LINES + 1):
        start = max(0, index + 1 - reach)
        block = framed[start : index + 2 + reach]
        if (
            any(map(_is_distinctive, filter(None, block)))
            and len(list(_find_block(block, framed))) == 1
        ):
            return _LineInContext(text, is_unique, block, index + 1 - start)
    return _LineInContext(text, is_unique, [], 0)


def _is_distinctive(line: str) -> bool:
    return sum(map(str.isalnum, line)) >= DISTINCTIVE_LETTERS


def _find_block(block: Sequence[str | None], lines: Sequence[str | None]) -> Iterator[int]:
    index = -1
    with contextlib.suppress(ValueError):
        while True:
            index = lines.index(block[0], index + 1)
            if lines[index : index + len(block)] == block:
                yield index


def _edit_effect(edit: FileEdit[R], line: _LineInContext) -> _EditEffect[R]:
    hunks = []
    for hunk in edit.hunks:
        hunks.append((split_lines(hunk.before), split_lines(hunk.after), hunk.whole))
    count_before = sum(old.count(line.text) for old, _, _ in hunks)
    count_after = sum(new.count(line.text) for _, new, _ in hunks)
    is_whole = any(is_whole_hunk for *_, is_whole_hunk in hunks)
    if is_whole:
        is_gone = not (count_after and (count_before or edit.blind))
    else:
        is_gone = count_after < count_before
    fits = count_after > count_before and any(_fits_neighbours(*texts, line) for texts in hunks)
    return _EditEffect(edit, count_after - count_before, is_gone, count_before > 0, fits)


def _fits_neighbours(
    before: list[str], after: list[str], whole: bool, line: _LineInContext
) -> bool:
    framed = [None, *after, None] if whole else after
    if line.block:
        indexes = []
        for index in _find_block(line.block, framed):
            indexes.append(index + line.place - whole)
    else:
        indexes = []
    return bool(indexes) and not _new_lines(before, after).isdisjoint(indexes)


def _new_lines(before: list[str], after: list[str]) -> frozenset[int]:
    start = _count_equal_lines(before, after)
    end = _count_equal_lines(before[:start:-1], after[:start:-1])
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


def _count_equal_lines(one: list[str], other: list[str]) -> int:
    """Return the number of equal lines at the beginning of two texts."""
    return next(
        (index for index, pair in enumerate(zip(one, other, strict=False)) if ne(*pair)),
        min(len(one), len(other)),
    )


def _may_be_older(trace: _EditEffect[R], earlier: Sequence[_EditEffect[R]]) -> bool:
    """Check whether the text may be older than the edit.

    That is possible if the session had removed the text before, or overwrote the file without
    reading it.
    """
    if trace.edit.blind and earlier:
        return True
    own_changes = (
        earlier_trace.more
        for earlier_trace in earlier
        if earlier_trace.edit.session == trace.edit.session and earlier_trace.more
    )
    return next(own_changes, 0) < 0
