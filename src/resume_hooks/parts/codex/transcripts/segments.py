"""The files that a thread is made of: its own, and the beginnings of others that a fork or a rewind goes on from.

The caller finds files: ``find`` is given a rollout id (the last id in a file's name) and answers
with a path or None.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.parts.codex.transcripts.lines import PACKED, RolloutLine, rollout_lines
from resume_hooks.parts.codex.transcripts.meta import HistoryBase, ThreadMeta, parse_name, read_meta

MAX_DEPTH = 1_000  # segments of a thread; more can only be a forgery

Finder = Callable[[str], str | None]


class ThreadFile(NamedTuple):
    """A file of a thread, as far as it counts: ``end`` is where the next one leaves it, None for the newest."""

    path: str
    meta: ThreadMeta
    end: HistoryBase | None


def segments(path: str, find: Finder) -> list[ThreadFile]:
    """The files of the thread whose newest one lies at ``path``, in the order in which they count.

    SessionNotFound where one that it goes on from is missing or was shortened, NotATranscript for
    a file that is not a rollout or goes on from itself.
    """
    found, named = [ThreadFile(path, read_meta(path), None)], parse_name(path)
    seen = {named.rollout_id} if named else set()
    while (base := found[-1].meta.base) is not None:
        if base.rollout_id in seen or len(found) >= MAX_DEPTH:
            raise NotATranscript(
                f"{path} goes on from itself", "The file was changed: its history_base is a circle."
            )
        seen.add(base.rollout_id)
        earlier = find(base.rollout_id)
        if earlier is None:
            raise SessionNotFound(
                f"The rollout {base.rollout_id} that {os.path.basename(path)} goes on from is gone",
                (
                    "Codex keeps of a fork only what was said since. Restore the file of the "
                    "session it was forked from."
                ),
            )
        _require_length(earlier, base)
        found.append(ThreadFile(earlier, read_meta(earlier), base))
    return found[::-1]


def segments_left(path: str, find: Finder) -> tuple[list[ThreadFile], str]:
    """The same; where one is missing the newest file alone, and why."""
    try:
        return segments(path, find), ""
    except (SessionNotFound, NotATranscript) as error:
        return [ThreadFile(path, read_meta(path), None)], error.message


def chain_lines(path: str, find: Finder) -> Iterator[RolloutLine]:
    """The lines of a thread over all its segments, as far as each counts.

    Raises as ``segments``.
    """
    for segment in segments(path, find):
        yield from segment_lines(segment)


def segment_lines(segment: ThreadFile) -> Iterator[RolloutLine]:
    """The lines of a segment that count."""
    end = segment.end
    for line in rollout_lines(segment.path):
        if end is not None and _is_past(line, end):
            return
        yield line


def _is_past(line: RolloutLine, end: HistoryBase) -> bool:
    if end.end_ordinal is not None and line.ordinal is not None:
        return line.ordinal >= end.end_ordinal
    return bool(end.end_offset) and line.offset >= end.end_offset


def _require_length(path: str, base: HistoryBase) -> None:
    if path.endswith(PACKED):
        return  # its length is told by unpacking it alone
    try:
        short = os.path.getsize(path) < base.end_offset
    except OSError as error:
        raise SessionNotFound(
            f"{path} can't be read: {error.strerror}", "Check the path."
        ) from error
    if short:
        raise SessionNotFound(
            f"{path} is shorter than a session that goes on from it expects",
            "Restore it as it was: Codex refuses it, too.",
        )
