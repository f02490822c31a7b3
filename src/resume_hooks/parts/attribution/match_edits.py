"""Find the edit that wrote a line, using the text of the line and of the lines around it.

The last edit of a file need not be the one that wrote the line. An edit wrote a line if it
increased the number of lines with the same text, and if the text has not disappeared since. People,
formatters and merges also write lines, without an edit in a session. For such a line no session is
returned, because a wrong session is worse than none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from operator import ne
from typing import Generic, NamedTuple, TypeVar

from resume_hooks.parts.attribution.edits import EditHunk, split_lines

MAX_CONTEXT_LINES = 4
"""Maximum number of lines to compare on each side of the line.

If these lines do not show which edit wrote the line, the text is probably repeated or generated.
"""

# Minimum number of letters and digits in a distinctive line. The line `return None` has fewer.
MIN_DISTINCTIVE_LETTERS = 12
MAX_COMPARED_LINES = 2_000
"""Maximum number of lines in a change. In a larger change, the lines around the written line are
not compared, and do not count as evidence."""

NO_EDIT_FOUND_REASON = "no edit in any session wrote a line with this text"
DIFFERENT_CONTEXT_REASON = (
    "sessions wrote lines with this text, but with other lines around them than now"
)
LINE_NO_LONGER_PRESENT_REASON = (
    "a session wrote a line with this text, but the file was later seen without it"
)

EditRecordT = TypeVar("EditRecordT")


class FileEdit(NamedTuple, Generic[EditRecordT]):
    """An edit of a file in a session.

    ``path`` is the file's path in the session's checkout, and ``branch`` is the checkout's branch.
    Edits are sorted by ``time``. ``record`` identifies the edit for the caller.
    ``is_content_unknown`` is true if the text before the edit is unknown.
    """

    record: EditRecordT
    session_id: str
    path: str
    branch: str
    time: str
    hunks: tuple[EditHunk, ...]
    is_content_unknown: bool = False


class Verdict(NamedTuple, Generic[EditRecordT]):
    """The result of the search for the edit that wrote a line.

    ``record`` identifies the edit, and is None if nothing proves which edit wrote the line.
    ``reason`` is an explanation for the user.
    """

    edit_record: EditRecordT | None
    reason: str


class _EditEffect(NamedTuple, Generic[EditRecordT]):
    """The effect of an edit on the lines that have a given text.

    ``added_line_count`` is the number of these lines after the edit minus the number before the
    edit. ``removes_text`` is true if the file certainly contained no line with this text before the
    edit, or contains none after it. ``had_line_before_edit`` is true if the file contained a line
    with this text before the edit. ``matches_surrounding_lines`` is true if the edit wrote a line
    with this text between the same lines as in the current file.
    """

    edit: FileEdit[EditRecordT]
    added_line_count: int
    removes_text: bool
    had_line_before_edit: bool
    matches_surrounding_lines: bool


class _LineInContext(NamedTuple):
    """A line of the current file, and the lines around it.

    ``surrounding_block`` contains the line and some lines around it, and occurs only once in the
    file. It is empty if there is no such block. An element None stands for the start or the end of
    the file. ``line_index`` is the index of the line in the block.
    """

    text: str
    is_unique: bool
    surrounding_block: Sequence[str | None]
    line_index: int


def find_edit_that_wrote_line(
    lines: Sequence[str], line_number: int, edits: Iterable[FileEdit[EditRecordT]]
) -> Verdict[EditRecordT]:
    """Find the edit that wrote a line of the current file. ``line_number`` counts from 1.

    ``edits`` may be in any order.
    """
    line = _build_line_context(lines, line_number - 1)
    effects = sorted(
        (_find_edit_effect_on_line(edit, line) for edit in edits),
        key=lambda effect: effect.edit.time,
    )
    writing_indexes = [index for index, effect in enumerate(effects) if effect.added_line_count > 0]
    reason = DIFFERENT_CONTEXT_REASON if writing_indexes else NO_EDIT_FOUND_REASON
    for index in reversed(writing_indexes):
        effect = effects[index]
        is_unique = line.is_unique and not effect.had_line_before_edit
        if _may_predate_edit(effect, effects[:index]) or not (
            is_unique or effect.matches_surrounding_lines
        ):
            continue
        lost_branches = set()
        for later_effect in effects[index + 1 :]:
            if later_effect.removes_text and later_effect.edit.path == effect.edit.path:
                lost_branches.add(later_effect.edit.branch)
        if effect.edit.branch in lost_branches:
            reason = LINE_NO_LONGER_PRESENT_REASON
        elif (
            effect.matches_surrounding_lines or not lost_branches
            # The neighbouring lines are weaker evidence, because a merge may copy them from another
            # branch.
        ):
            return Verdict(
                effect.edit.record,
                "by its text" if is_unique else "by its text and the lines around it",
            )
    return Verdict(None, reason)


def _build_line_context(lines: Sequence[str], index: int) -> _LineInContext:
    text, framed_lines = lines[index], [None, *lines, None]
    # A line that also occurs with a different indentation is not distinctive.
    is_unique = _is_distinctive(text) and sum(line.strip() == text.strip() for line in lines) == 1
    for reach in range(1, MAX_CONTEXT_LINES + 1):
        start = max(0, index + 1 - reach)
        block = framed_lines[start : index + 2 + reach]
        if (
            any(map(_is_distinctive, filter(None, block)))
            and len(list(_find_block_positions(block, framed_lines))) == 1
        ):
            return _LineInContext(text, is_unique, block, index + 1 - start)
    return _LineInContext(text, is_unique, [], 0)


def _is_distinctive(line: str) -> bool:
    return sum(map(str.isalnum, line)) >= MIN_DISTINCTIVE_LETTERS


def _find_block_positions(
    block: Sequence[str | None], lines: Sequence[str | None]
) -> Iterator[int]:
    index = -1
    with contextlib.suppress(ValueError):
        while True:
            index = lines.index(block[0], index + 1)
            if lines[index : index + len(block)] == block:
                yield index


def _find_edit_effect_on_line(
    edit: FileEdit[EditRecordT], line: _LineInContext
) -> _EditEffect[EditRecordT]:
    hunks = []
    for hunk in edit.hunks:
        hunks.append((split_lines(hunk.old_text), split_lines(hunk.new_text), hunk.is_whole_file))
    count_before = sum(old.count(line.text) for old, _, _ in hunks)
    count_after = sum(new.count(line.text) for _, new, _ in hunks)
    is_whole = any(is_whole_hunk for *_, is_whole_hunk in hunks)
    if is_whole:
        is_gone = not (count_after and (count_before or edit.is_content_unknown))
    else:
        is_gone = count_after < count_before
    fits = count_after > count_before and any(
        _writes_line_in_same_context(*texts, line) for texts in hunks
    )
    return _EditEffect(edit, count_after - count_before, is_gone, count_before > 0, fits)


def _writes_line_in_same_context(
    old_lines: list[str], new_lines: list[str], is_whole_file: bool, line: _LineInContext
) -> bool:
    framed_lines = [None, *new_lines, None] if is_whole_file else new_lines
    if line.surrounding_block:
        indexes = []
        for index in _find_block_positions(line.surrounding_block, framed_lines):
            indexes.append(index + line.line_index - is_whole_file)
    else:
        indexes = []
    return bool(indexes) and not _find_new_lines(old_lines, new_lines).isdisjoint(indexes)


def _find_new_lines(old_lines: list[str], new_lines: list[str]) -> frozenset[int]:
    start = _count_equal_lines(old_lines, new_lines)
    end = _count_equal_lines(old_lines[:start:-1], new_lines[:start:-1])
    old_middle, new_middle = (
        old_lines[start : len(old_lines) - end],
        new_lines[start : len(new_lines) - end],
    )
    if max(len(old_middle), len(new_middle)) > MAX_COMPARED_LINES:
        if old_middle:
            return frozenset()
        return frozenset(range(start, start + len(new_middle)))
    steps = SequenceMatcher(None, old_middle, new_middle, autojunk=False).get_opcodes()
    line_indexes: set[int] = set()
    for kind, _, _, first, last in steps:
        if kind != "equal":
            line_indexes.update(range(start + first, start + last))
    return frozenset(line_indexes)


def _count_equal_lines(first_lines: list[str], second_lines: list[str]) -> int:
    """Return the number of equal lines at the beginning of two texts."""
    return next(
        (
            index
            for index, pair in enumerate(zip(first_lines, second_lines, strict=False))
            if ne(*pair)
        ),
        min(len(first_lines), len(second_lines)),
    )


def _may_predate_edit(
    effect: _EditEffect[EditRecordT], earlier_effects: Sequence[_EditEffect[EditRecordT]]
) -> bool:
    """Check whether the line that an edit wrote may be older than this edit.

    This is possible if the session had removed the line's text before the edit, or if the edit
    overwrote a file of unknown content.
    """
    if effect.edit.is_content_unknown and earlier_effects:
        return True
    own_changes = (
        earlier_effect.added_line_count
        for earlier_effect in earlier_effects
        if earlier_effect.edit.session_id == effect.edit.session_id
        and earlier_effect.added_line_count
    )
    return next(own_changes, 0) < 0
