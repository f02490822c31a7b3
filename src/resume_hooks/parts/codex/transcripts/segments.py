"""Find the files of a Codex thread: the newest file, and the older files that it continues.

A thread has several files after a fork or a rewind. The caller passes the function
``find_rollout``, which returns the path of the file with a given rollout id (the last id in a
file's name), or None.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.parts.codex.transcripts.lines import (
    COMPRESSED_SUFFIX,
    RolloutLine,
    read_rollout_lines,
)
from resume_hooks.parts.codex.transcripts.meta import (
    HistoryBase,
    ThreadMeta,
    parse_rollout_name,
    read_meta,
)

# The maximum number of files of a thread. Only a forged thread could have more files.
MAX_SEGMENTS = 1_000

RolloutFinder = Callable[[str], str | None]


class ThreadSegment(NamedTuple):
    """A file of a thread. Only the part up to ``branch_point`` belongs to the thread.

    If ``branch_point`` is None, the whole file belongs to the thread.
    """

    path: str
    meta: ThreadMeta
    branch_point: HistoryBase | None


def find_segments(path: str, find_rollout: RolloutFinder) -> list[ThreadSegment]:
    """Return the files of the thread whose newest file is ``path``, oldest first.

    Raise SessionNotFound if an older file is missing or too short. Raise NotATranscript if a file
    is not a rollout, or if it claims to continue itself.
    """
    segments, parsed_name = [ThreadSegment(path, read_meta(path), None)], parse_rollout_name(path)
    seen_ids = {parsed_name.rollout_id} if parsed_name else set()
    while (base := segments[-1].meta.base) is not None:
        if base.rollout_id in seen_ids or len(segments) >= MAX_SEGMENTS:
            raise NotATranscript(
                f"{path} continues itself",
                "A file's history_base was changed. Restore the original files.",
            )
        seen_ids.add(base.rollout_id)
        earlier_path = find_rollout(base.rollout_id)
        if earlier_path is None:
            raise SessionNotFound(
                f"{os.path.basename(path)} continues the rollout {base.rollout_id}, which is gone",
                (
                    "A session that was forked in Codex contains only its own part. Restore the file "
                    "of the session it was forked from."
                ),
            )
        _check_file_length(earlier_path, base)
        segments.append(ThreadSegment(earlier_path, read_meta(earlier_path), base))
    return segments[::-1]


def find_readable_segments(
    path: str, find_rollout: RolloutFinder
) -> tuple[list[ThreadSegment], str]:
    """Return the readable files of a thread, and the reason why an older file is unreadable.

    The reason is ``""`` if all files are readable. Otherwise only the newest file is returned.
    """
    try:
        return find_segments(path, find_rollout), ""
    except (SessionNotFound, NotATranscript) as error:
        return [ThreadSegment(path, read_meta(path), None)], error.message


def read_thread_lines(path: str, find_rollout: RolloutFinder) -> Iterator[RolloutLine]:
    """Yield the lines of a thread from all its files, oldest line first.

    Raise SessionNotFound if a file is missing or too short, and NotATranscript if a file is not a
    rollout.
    """
    for segment in find_segments(path, find_rollout):
        yield from read_segment_lines(segment)


def read_segment_lines(segment: ThreadSegment) -> Iterator[RolloutLine]:
    """Yield the lines of a segment's file that belong to the segment's thread."""
    end = segment.branch_point
    for line in read_rollout_lines(segment.path):
        if end is not None and _is_past_end(line, end):
            return
        yield line


def _is_past_end(line: RolloutLine, base: HistoryBase) -> bool:
    if base.end_ordinal is not None and line.ordinal is not None:
        return line.ordinal >= base.end_ordinal
    return bool(base.end_offset) and line.offset >= base.end_offset


def _check_file_length(path: str, base: HistoryBase) -> None:
    if path.endswith(COMPRESSED_SUFFIX):
        return  # The length of a compressed file is known only after decompression.
    try:
        is_too_short = os.path.getsize(path) < base.end_offset
    except OSError as error:
        raise SessionNotFound(
            f"{path} can't be read: {error.strerror}", "Check the path."
        ) from error
    if is_too_short:
        raise SessionNotFound(
            f"{path} is too short: a newer file of the session continues it from a later line",
            "Restore the original file. Codex refuses the shortened file too.",
        )
