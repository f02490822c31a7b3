"""Read the metadata of a Codex thread from the first line and the file name of its rollout."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.parts.codex.transcripts.lines import (
    COMPRESSED_SUFFIX,
    MAX_ORDINAL,
    META_LINE,
    ROLLOUT_SUFFIX,
    RolloutLine,
    read_first_lines,
)
from resume_hooks.paths import is_session_id
from resume_hooks.transcripts.records import Record, get_mapping, get_string, parse_positive_count

_ID_PATTERN = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ROLLOUT_NAME_PATTERN = re.compile(
    rf"rollout-\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-({_ID_PATTERN})(?:_({_ID_PATTERN}))?\.jsonl(?:\.zst)?"
)

REQUIRED_FIRST_LINE_FIELD_NAMES = ("id", "timestamp", "cwd", "originator", "cli_version")
"""The fields that a first line must contain. No version of Codex accepts a file in which one of
them is missing."""


class RolloutName(NamedTuple):
    """The ids in the file name of a rollout.

    In the file name, the id of the thread comes first, and the id of the rollout comes last.
    """

    thread_id: str
    rollout_id: str
    is_compressed: bool


class HistoryBase(NamedTuple):
    """The line at which a fork or a rewound thread branches off from an older rollout.

    The thread consists of the older rollout's lines before this line, and of its own lines.
    ``end_ordinal`` is the number of this line in the older thread, or None if it is unknown.
    ``end_offset`` is the offset of this line's first byte.
    """

    rollout_id: str
    end_ordinal: int | None
    end_offset: int


class ThreadMeta(NamedTuple):
    """The metadata of a rollout. ``payload`` contains all fields of its first line.

    If the thread is a fork, ``forked_from_id`` is the id of the thread from which it was forked. If
    the thread belongs to a sub-agent, ``spawning_thread_id`` is the id of the thread that started
    the sub-agent. Otherwise, these ids are ``""``. ``source`` is the name of the front end, for
    example ``cli``, ``exec`` or ``vscode``.
    """

    thread_id: str
    forked_from_id: str
    spawning_thread_id: str
    base: HistoryBase | None
    created_at: str
    cwd: str
    cli_version: str
    source: str
    git_branch: str
    is_paginated: bool
    payload: Record


def parse_rollout_name(path: str) -> RolloutName | None:
    """Return the ids in the file name of a rollout, or None if Codex would not list a file with this name."""
    match = _ROLLOUT_NAME_PATTERN.fullmatch(os.path.basename(path))
    if match is None:
        return None
    thread_id, rollout_id = match.groups()
    return RolloutName(thread_id, rollout_id or thread_id, path.endswith(COMPRESSED_SUFFIX))


def format_rollout_name(thread_id: str, start_time: str) -> str:
    """Return the file name of a thread's rollout.

    ``start_time`` is a local time such as ``2026-11-22T09-39-56``.
    """
    return f"rollout-{start_time}-{thread_id}{ROLLOUT_SUFFIX}"


def read_meta(path: str) -> ThreadMeta:
    """Return the metadata of a rollout.

    Raise NotATranscript if the file is not a rollout, and SessionNotFound if it cannot be opened.
    """
    return parse_first_lines(read_first_lines(path), path)


def parse_first_lines(lines: Sequence[RolloutLine], path: str = "") -> ThreadMeta:
    """Return the metadata in the first lines of a rollout.

    The second line is needed for forks by old clients, because only that line contains the parent's
    id.
    """
    lines = [line for line in lines if line.kind == META_LINE]
    meta = parse_meta(lines[0].payload if lines else {}, path)
    copied_id = _read_id(lines[1].payload, "id") if len(lines) > 1 else ""
    if copied_id != meta.thread_id and not meta.forked_from_id:
        return meta._replace(forked_from_id=copied_id)
    return meta


def parse_meta(payload: Record, path: str = "") -> ThreadMeta:
    """Return the metadata in a ``session_meta`` line.

    If the name of the file ``path`` contains a thread id, that id replaces the id in the line.
    """
    name = parse_rollout_name(path)
    source = payload.get("source")
    if isinstance(source, dict):
        spawn_fields = get_mapping(get_mapping(source, "subagent"), "thread_spawn")
    else:
        spawn_fields = {}
    base_record, base = get_mapping(payload, "history_base"), None
    if rollout_id := _read_id(base_record, "thread_id"):
        end_ordinal = base_record.get("end_ordinal_exclusive")
        if isinstance(end_ordinal, int) and end_ordinal is not True and end_ordinal >= 0:
            ordinal = end_ordinal
        else:
            ordinal = None
        base = HistoryBase(
            rollout_id,
            ordinal,
            parse_positive_count(base_record.get("end_byte_offset"), MAX_ORDINAL),
        )
    return ThreadMeta(
        thread_id=name.thread_id if name else _read_id(payload, "id"),
        forked_from_id=_read_id(payload, "forked_from_id"),
        spawning_thread_id=_read_id(payload, "parent_thread_id")
        or _read_id(spawn_fields, "parent_thread_id"),
        base=base,
        created_at=get_string(payload, "timestamp"),
        cwd=get_string(payload, "cwd"),
        cli_version=get_string(payload, "cli_version"),
        source=source
        if isinstance(source, str)
        else next(iter(source), "")
        if isinstance(source, dict)
        else "",
        git_branch=get_string(get_mapping(payload, "git"), "branch"),
        is_paginated=get_string(payload, "history_mode") == "paginated",
        payload=payload,
    )


def _read_id(record: Record, key: str) -> str:
    value = record.get(key)
    if is_session_id(value):
        return str(value)
    return ""
