"""Cache the counts of all transcripts in a small file in the state folder.

A transcript is read again only if its size or modification time has changed. The counts of a
deleted transcript are kept, because the user's statistics still include it. If the cache is lost,
the counts of deleted transcripts are lost, and all other transcripts are counted again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from resume_hooks import clock
from resume_hooks.errors import SessionNotFound
from resume_hooks.parts.stats.count import (
    TranscriptTotals,
    count_transcript,
    parse_totals,
    serialise_totals,
)
from resume_hooks.paths import Where, project_key, read_regular_file
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import (
    agent_name_of_path,
    list_all_transcripts,
    readable_path,
    row_of_agent,
)
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.transcript_files import TranscriptFile, read_owning_session_id
from resume_hooks.storage import state_file
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts.context_size import measure_last_records
from resume_hooks.transcripts.head_tail import HeadTail

CACHE_FILE = "stats.json"
CACHE_VERSION = 1  # The version of the cache. A cache with a different version is discarded.
MAX_CACHE_BYTES = 256 * 1024 * 1024  # Maximum number of bytes of the cache.
MAX_DELETED_TRANSCRIPTS_IN_CACHE = (
    20_000  # Maximum number of deleted transcripts whose counts are kept.
)

ProgressReporter = Callable[[int, int], None]


class TranscriptCounts(NamedTuple):
    """The counts of a transcript.

    ``exists`` is false if the transcript was deleted. ``agent_id`` is the id of a sub-agent, or
    ``""``. ``folder`` is the name of the project folder, ``agent_name`` is the agent that wrote the
    transcript, and ``path`` is its current or last path.
    """

    session_id: str
    agent_id: str
    folder: str
    byte_count: int
    exists: bool
    totals: TranscriptTotals
    agent_name: str
    path: str = ""


class AllCounts(NamedTuple):
    """The counts of all transcripts, and the number of transcripts that were read for them.

    A transcript is read only if the cache does not contain its counts.
    """

    transcripts: list[TranscriptCounts]
    newly_read_transcript_count: int


class _FileState(NamedTuple):
    path: str
    byte_count: int
    modified_at_ns: int


class _CachedCounts(NamedTuple):
    file_state: _FileState
    totals: TranscriptTotals


def gather_counts(
    where: Where, progress: ProgressReporter = lambda _done, _total: None
) -> AllCounts:
    """Return the counts of all transcripts.

    ``progress`` is called with the number of bytes that were read and the total number of bytes to
    read.
    """
    cached_counts, files = _read_cache(where), _find_files_by_key(where)
    lineage_finder = LineageFinder(where)
    # Counts from the cache of an older version contain no stretches, so they are computed again.
    current_keys = set()
    for key, row in cached_counts.items():
        if row.totals.stretches is not None:
            current_keys.add(key)
    outdated_files = {}
    for key, file in files.items():
        if key not in current_keys or cached_counts[key].file_state != _get_file_state(file):
            outdated_files[key] = file
    total, done_bytes, updated_counts = (
        sum(file.size for file in outdated_files.values()),
        0,
        dict(cached_counts),
    )
    for key, file in outdated_files.items():
        progress(done_bytes, total)
        done_bytes += file.size
        # The transcript was deleted after it was listed.
        with contextlib.suppress(SessionNotFound):
            with readable_path(file.path, where) as path:
                counts = count_transcript(
                    path,
                    is_subagent=bool(file.agent_name),
                    linked_parent=None
                    if file.agent_name
                    else lineage_finder.find_parent(file.path),
                )
            updated_counts[key] = _CachedCounts(
                _get_file_state(file), _add_parent_size(counts, file, lineage_finder)
            )
    if outdated_files:
        _save_cache(updated_counts, files.keys(), where)
    transcripts = []
    for key, row in updated_counts.items():
        transcripts.append(
            _build_transcript_counts(key, row, where, lineage_finder, exists=key in files)
        )
    return AllCounts(transcripts, len(outdated_files))


def _find_files_by_key(where: Where) -> dict[str, TranscriptFile]:
    """Return all transcripts by their keys, which consist of a session id and a sub-agent's id.

    If several transcripts have the same key, the newest of them is returned.
    """
    files: dict[str, TranscriptFile] = {}
    for file in sorted(list_all_transcripts(where), key=lambda file: file.mtime_ns):
        if row_of_agent(agent_name_of_path(file.path, where)).loss_note:
            # This agent's files contain only the prompts of deleted transcripts. These transcripts
            # were counted before they were deleted.
            continue
        session_id = file.session_id or read_owning_session_id(file.path) or ""
        files[f"{session_id}/{file.agent_name}"] = file
    return files


def _get_file_state(file: TranscriptFile) -> _FileState:
    return _FileState(file.path, file.size, file.mtime_ns)


def _add_parent_size(
    counts: TranscriptTotals, file: TranscriptFile, lineage_finder: LineageFinder
) -> TranscriptTotals:
    """Return the counts of a child, with the context size of its parent added.

    The size is taken from the last records of the parent's file before the child was created. If
    these records contain no size, return ``counts`` unchanged.
    """
    child = counts.child
    if child is None or child.parent_tokens:
        return counts
    parent = lineage_finder.find_parent(file.path)
    parent_path = lineage_finder.locate_parent(parent, file.path) if parent else None
    if parent_path is None:
        return counts
    with contextlib.suppress(SessionNotFound):
        rows = HeadTail(parent_path).last_records
        context = measure_last_records(
            [
                row
                for row in rows
                if clock.normalize_timestamp(row.get("timestamp")) <= child.created_at
            ]
        )
        if context is not None:
            parent_tokens = context.tokens - context.added_tokens
            return counts._replace(child=child._replace(parent_tokens=parent_tokens))
    return counts


def _build_transcript_counts(
    key: str,
    cached_counts: _CachedCounts,
    where: Where,
    lineage_finder: LineageFinder,
    *,
    exists: bool,
) -> TranscriptCounts:
    session_id, _, agent = key.partition("/")
    path, size, _ = cached_counts.file_state
    agent_name = agent_name_of_path(path, where)
    folder = path.removeprefix(where.projects + os.sep).partition(os.sep)[0]
    if agent_name != CLAUDE_NAME:
        folder = next(map(project_key, cached_counts.totals.folders), "")
    is_superseded = (
        exists and cached_counts.totals.child is not None and lineage_finder.is_superseded(path)
    )
    if is_superseded:
        counts = cached_counts.totals._replace(child=None)
    else:
        counts = cached_counts.totals
    return TranscriptCounts(session_id, agent, folder, size, exists, counts, agent_name, path)


def _build_cache_path(where: Where) -> str:
    return os.path.join(where.state, CACHE_FILE)


def _read_cache(where: Where) -> dict[str, _CachedCounts]:
    """Return the cached counts. Invalid rows are skipped, so that their transcripts are counted again."""
    try:
        document: Any = orjson.loads(read_regular_file(_build_cache_path(where), MAX_CACHE_BYTES))
        if document["version"] == CACHE_VERSION:
            rows = document["transcripts"].items()
        else:
            rows = ()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    cached_counts = {}
    for key, row in rows:
        with contextlib.suppress(ValueError, TypeError, AttributeError, IndexError):
            path, size, mtime, *counts = row
            cached_counts[str(key)] = _CachedCounts(
                _FileState(str(path), int(size), int(mtime)), parse_totals(counts)
            )
    return cached_counts


def _save_cache(
    cached_counts: Mapping[str, _CachedCounts], existing_keys: Iterable[str], where: Where
) -> None:
    """Replace the cache file. If that fails, the only effect is that the next run takes longer."""
    existing_set = set(existing_keys)
    deleted_keys = [key for key in cached_counts if key not in existing_set]
    deleted_keys.sort(key=lambda key: cached_counts[key].file_state.modified_at_ns)
    rows = {}
    for key in [
        *deleted_keys[-MAX_DELETED_TRANSCRIPTS_IN_CACHE:],
        *existing_set & cached_counts.keys(),
    ]:
        counts = serialise_totals(cached_counts[key].totals)
        rows[replace_surrogates(key)] = [*cached_counts[key].file_state, *counts]
    with contextlib.suppress(OSError):
        state_file.replace_state_file(
            _build_cache_path(where),
            orjson.dumps(
                {"version": CACHE_VERSION, "transcripts": rows}, option=orjson.OPT_NON_STR_KEYS
            ),
            where,
        )
