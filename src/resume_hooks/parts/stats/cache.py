"""Cache the counts of every transcript in a config home in a small file in the state folder.

A transcript is only read again if its size or time has changed. The counts of a deleted transcript
are kept, because its tokens were used. If the cache is lost, the counts of deleted transcripts are
lost, and all others are computed again.
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
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import (
    agent_name_of_path,
    all_files,
    readable_path,
    row_of_agent,
)
from resume_hooks.sessions.lineage import Family
from resume_hooks.sessions.transcript_files import TranscriptFile, owning_session
from resume_hooks.storage import state_file
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts.context_size import measure_last_records
from resume_hooks.transcripts.head_tail import HeadTail

CACHE_FILE = "stats.json"
CACHE_VERSION = 1  # the version of the cache; other versions are discarded
MAX_CACHE_BYTES = 256 * 1024 * 1024  # the maximum size of the cache in bytes
MOST_DELETED = 20_000  # the maximum number of deleted transcripts whose counts are kept

Progress = Callable[[int, int], None]


class TranscriptCounts(NamedTuple):
    """A transcript and its counts; ``there`` is false if the transcript was deleted.

    ``folder`` is the name of its project folder, ``program`` is its agent, and ``path`` is its
    current or last path.
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


class _CachedCounts(NamedTuple):
    stamp: tuple[str, int, int]
    counts: Counts


def gather_counts(where: Where, progress: Progress = lambda _done, _total: None) -> AllCounts:
    """Return the counts of every transcript; ``progress`` is called with the number of bytes read and the total."""
    cached, files = _read_cache(where), _files_by_key(where)
    family = Family(where)
    # Rows from an older version have no stretches.
    current = set()
    for key, row in cached.items():
        if row.counts.stretches is not None:
            current.add(key)
    outdated = {}
    for key, file in files.items():
        if key not in current or cached[key].stamp != _file_stamp(file):
            outdated[key] = file
    total, done_bytes, fresh = sum(file.size for file in outdated.values()), 0, dict(cached)
    for key, file in outdated.items():
        progress(done_bytes, total)
        done_bytes += file.size
        with contextlib.suppress(SessionNotFound):  # deleted after it was listed
            with readable_path(file.path, where) as path:
                counts = count_transcript(
                    path,
                    agent=bool(file.agent),
                    linked=None if file.agent else family.find_parent(file.path),
                )
            fresh[key] = _CachedCounts(_file_stamp(file), _add_parent_size(counts, file, family))
    if outdated:
        _save_cache(fresh, files.keys(), where)
    transcripts = []
    for key, row in fresh.items():
        transcripts.append(_transcript_counts(key, row, where, family, exists=key in files))
    return AllCounts(transcripts, len(outdated))


def _files_by_key(where: Where) -> dict[str, TranscriptFile]:
    """Return every transcript by session and agent. If there are several copies, return the newest."""
    files: dict[str, TranscriptFile] = {}
    for file in sorted(all_files(where), key=lambda file: file.mtime):
        if row_of_agent(agent_name_of_path(file.path, where)).loss_note:
            continue  # it was counted while its transcript existed
        session_id = file.session_id or owning_session(file.path) or ""
        files[f"{session_id}/{file.agent}"] = file
    return files


def _file_stamp(file: TranscriptFile) -> tuple[str, int, int]:
    return (file.path, file.size, file.mtime)


def _add_parent_size(counts: Counts, file: TranscriptFile, family: Family) -> Counts:
    """Return a child's counts, with its parent's context size if the parent's file ends with the child's start."""
    child = counts.child
    if child is None or child.before:
        return counts
    parent = family.find_parent(file.path)
    located = family.locate(parent, file.path) if parent else None
    if located is None:
        return counts
    with contextlib.suppress(SessionNotFound):
        rows = HeadTail(located).last_records
        context = measure_last_records(
            [row for row in rows if clock.normalize_timestamp(row.get("timestamp")) <= child.at]
        )
        if context is not None:
            before = context.tokens - context.added
            return counts._replace(child=child._replace(before=before))
    return counts


def _transcript_counts(
    key: str, cached: _CachedCounts, where: Where, family: Family, *, exists: bool
) -> TranscriptCounts:
    session_id, _, agent = key.partition("/")
    path, size, _ = cached.stamp
    program = agent_name_of_path(path, where)
    folder = path.removeprefix(where.projects + os.sep).partition(os.sep)[0]
    if program != CLAUDE_NAME:
        folder = next(map(project_key, cached.counts.folders), "")
    is_superseded = exists and cached.counts.child is not None and family.is_superseded(path)
    if is_superseded:
        counts = cached.counts._replace(child=None)
    else:
        counts = cached.counts
    return TranscriptCounts(session_id, agent, folder, size, exists, counts, program, path)


def _cache_path(where: Where) -> str:
    return os.path.join(where.state, CACHE_FILE)


def _read_cache(where: Where) -> dict[str, _CachedCounts]:
    """Return the cached counts. Invalid rows are skipped, and computed again if their transcripts exist."""
    try:
        document: Any = orjson.loads(read_regular(_cache_path(where), MAX_CACHE_BYTES))
        if document["version"] == CACHE_VERSION:
            rows = document["transcripts"].items()
        else:
            rows = ()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    cached = {}
    for key, row in rows:
        with contextlib.suppress(ValueError, TypeError, AttributeError, IndexError):
            path, size, mtime, *counts = row
            cached[str(key)] = _CachedCounts(
                (str(path), int(size), int(mtime)), counts_from_row(counts)
            )
    return cached


def _save_cache(
    cached: Mapping[str, _CachedCounts], existing_keys: Iterable[str], where: Where
) -> None:
    """Save the counts atomically. If that fails, the next run only takes longer."""
    existing = set(existing_keys)
    deleted = [key for key in cached if key not in existing]
    deleted.sort(key=lambda key: cached[key].stamp[2])
    rows = {}
    for key in [*deleted[-MOST_DELETED:], *existing & cached.keys()]:
        counts = counts_to_row(cached[key].counts)
        rows[replace_surrogates(key)] = [*cached[key].stamp, *counts]
    with contextlib.suppress(OSError):
        state_file.replace_state_file(
            _cache_path(where),
            orjson.dumps(
                {"version": CACHE_VERSION, "transcripts": rows}, option=orjson.OPT_NON_STR_KEYS
            ),
            where,
        )
