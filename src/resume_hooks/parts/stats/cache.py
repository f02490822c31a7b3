"""Cache the counts of every transcript of a config home in a small file in the state folder.

A file is read again only if its size or time has changed. The counts of a deleted transcript are
kept, since its tokens were used all the same. If the cache is lost, so are those counts; all others
are computed again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from resume_hooks import clock
from resume_hooks.errors import SessionNotFound
from resume_hooks.parts.stats.count import Counts, count_transcript, counts_from_row, counts_to_row
from resume_hooks.paths import Where, project_key, read_regular
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import all_files, name_at, readable_briefly, row_of
from resume_hooks.sessions.lineage import Family
from resume_hooks.sessions.transcript_files import TranscriptFile, owning_session
from resume_hooks.storage import state_file
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts.context_size import size_at_end
from resume_hooks.transcripts.head_tail import HeadTail

FILE_NAME = "stats.json"
VERSION = 1  # of the cache; another version is discarded
MAX_KEPT = 256 * 1024 * 1024  # maximum bytes of the cache
MOST_GONE = 20_000  # maximum number of deleted transcripts whose counts are kept

Progress = Callable[[int, int], None]


class TranscriptCounts(NamedTuple):
    """A transcript and its counts; ``there`` is false if the transcript itself is deleted.

    ``folder`` is the name of its project folder, ``program`` its agent, ``path`` its current or
    last path.
    """

    session_id: str
    agent: str
    folder: str
    size: int
    there: bool
    counts: Counts
    program: str
    path: str = ""


class AllCounts(NamedTuple):
    """The counts of all transcripts; ``read`` is the number of transcripts that had to be read."""

    transcripts: list[TranscriptCounts]
    read: int


class _Kept(NamedTuple):
    stamp: tuple[str, int, int]
    counts: Counts


def gather_counts(where: Where, progress: Progress = lambda _done, _total: None) -> AllCounts:
    """Return the counts of every transcript; ``progress`` is called with the bytes read so far and the total."""
    kept, files = _read_counts(where), _files_by_key(where)
    family = Family(where)
    # Rows from an older version have no stretches.
    current = set()
    for key, row in kept.items():
        if row.counts.stretches is not None:
            current.add(key)
    due = {}
    for key, file in files.items():
        if key not in current or kept[key].stamp != _stamp_of_file(file):
            due[key] = file
    total, done, fresh = sum(file.size for file in due.values()), 0, dict(kept)
    for key, file in due.items():
        progress(done, total)
        done += file.size
        with contextlib.suppress(SessionNotFound):  # deleted since it was listed
            with readable_briefly(file.path, where) as path:
                counts = count_transcript(
                    path,
                    agent=bool(file.agent),
                    linked=None if file.agent else family.parent_of(file.path),
                )
            fresh[key] = _Kept(_stamp_of_file(file), _with_size_of_parent(counts, file, family))
    if due:
        _save_counts(fresh, files.keys(), where)
    found = []
    for key, row in fresh.items():
        found.append(_counts_of_transcript(key, row, where, family, there=key in files))
    return AllCounts(found, len(due))


def _files_by_key(where: Where) -> dict[str, TranscriptFile]:
    """Return every transcript by session and agent, the newest of several copies."""
    found: dict[str, TranscriptFile] = {}
    for file in sorted(all_files(where), key=lambda file: file.mtime):
        if row_of(name_at(file.path, where)).left:
            continue  # counted while its transcript existed
        session_id = file.session_id or owning_session(file.path) or ""
        found[f"{session_id}/{file.agent}"] = file
    return found


def _stamp_of_file(file: TranscriptFile) -> tuple[str, int, int]:
    return (file.path, file.size, file.mtime)


def _with_size_of_parent(counts: Counts, file: TranscriptFile, family: Family) -> Counts:
    """Return a child's counts with the size of its parent's context then, if the parent's file ends with it."""
    child = counts.child
    if child is None or child.before:
        return counts
    parent = family.parent_of(file.path)
    located = family.locate(parent, file.path) if parent else None
    if located is None:
        return counts
    with contextlib.suppress(SessionNotFound):
        rows = HeadTail(located).last_records
        context = size_at_end(
            [row for row in rows if clock.normalize_timestamp(row.get("timestamp")) <= child.at]
        )
        if context is not None:
            before = context.tokens - context.added
            return counts._replace(child=child._replace(before=before))
    return counts


def _counts_of_transcript(
    key: str, row: _Kept, where: Where, family: Family, *, there: bool
) -> TranscriptCounts:
    session_id, _, agent = key.partition("/")
    path, size, _ = row.stamp
    program = name_at(path, where)
    folder = path.removeprefix(where.projects + os.sep).partition(os.sep)[0]
    if program != NAME:
        folder = next(map(project_key, row.counts.folders), "")
    gave_way = there and row.counts.child is not None and family.is_superseded(path)
    if gave_way:
        counts = row.counts._replace(child=None)
    else:
        counts = row.counts
    return TranscriptCounts(session_id, agent, folder, size, there, counts, program, path)


def _path_of_counts(where: Where) -> str:
    return os.path.join(where.state, FILE_NAME)


def _read_counts(where: Where) -> dict[str, _Kept]:
    """Return the cached counts; invalid rows are skipped, and computed again if their transcript exists."""
    try:
        found: Any = orjson.loads(read_regular(_path_of_counts(where), MAX_KEPT))
        if found["version"] == VERSION:
            rows = found["transcripts"].items()
        else:
            rows = ()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    kept = {}
    for key, row in rows:
        with contextlib.suppress(ValueError, TypeError, AttributeError, IndexError):
            path, size, mtime, *counts = row
            kept[str(key)] = _Kept((str(path), int(size), int(mtime)), counts_from_row(counts))
    return kept


def _save_counts(kept: Mapping[str, _Kept], there: Iterable[str], where: Where) -> None:
    """Save the counts atomically; if that fails, the next run only takes longer."""
    known = set(there)
    gone = sorted((key for key in kept if key not in known), key=lambda key: kept[key].stamp[2])[
        -MOST_GONE:
    ]
    rows = {
        replace_surrogates(key): [*kept[key].stamp, *counts_to_row(kept[key].counts)]
        for key in [*gone, *known & kept.keys()]
    }
    with contextlib.suppress(OSError):
        state_file.replace_state_file(
            _path_of_counts(where),
            orjson.dumps({"version": VERSION, "transcripts": rows}, option=orjson.OPT_NON_STR_KEYS),
            where,
        )
