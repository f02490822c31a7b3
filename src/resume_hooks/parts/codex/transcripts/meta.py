"""What the first line of a rollout says of its thread, and what the name of the file does."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.parts.codex.transcripts.lines import (
    ENDING,
    MAX_ORDINAL,
    META,
    PACKED,
    RolloutLine,
    first_lines,
)
from resume_hooks.paths import is_session_id
from resume_hooks.transcripts.records import Record, mapping, positive, string

_ID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_NAME = re.compile(
    rf"rollout-\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-({_ID})(?:_({_ID}))?\.jsonl(?:\.zst)?"
)

REQUIRED = ("id", "timestamp", "cwd", "originator", "cli_version")
"""What a first line must tell: without one of these every version refuses the file."""


class RolloutName(NamedTuple):
    """What a name tells: ``thread_id`` is the first id in it, ``rollout_id`` the last."""

    thread_id: str
    rollout_id: str
    packed: bool


class HistoryBase(NamedTuple):
    """Where a fork or a rewound segment goes on: before this ordinal (None: not told) and byte of another rollout."""

    rollout_id: str
    end_ordinal: int | None
    end_offset: int


class ThreadMeta(NamedTuple):
    """What a rollout says of itself.

    ``forked_from`` is the thread that it is a fork of, ``spawned_by`` the one that a sub-agent was
    started by, each ``""`` for none; ``source`` how it was started: cli, exec, vscode, subagent...
    ``payload`` is all that was said.
    """

    thread_id: str
    forked_from: str
    spawned_by: str
    base: HistoryBase | None
    created: str
    cwd: str
    version: str
    source: str
    branch: str
    paginated: bool
    payload: Record


def parse_name(path: str) -> RolloutName | None:
    """What the name of a rollout tells; None for a file that Codex would not find."""
    match = _NAME.fullmatch(os.path.basename(path))
    if match is None:
        return None
    thread_id, rollout_id = match.groups()
    return RolloutName(thread_id, rollout_id or thread_id, path.endswith(PACKED))


def name_of(thread_id: str, started: str) -> str:
    """The name of a thread's file; ``started`` as ``2026-11-22T09-39-56``, local time."""
    return f"rollout-{started}-{thread_id}{ENDING}"


def read_meta(path: str) -> ThreadMeta:
    """What a rollout says of itself. NotATranscript, SessionNotFound as ``first_lines``."""
    return meta_in(first_lines(path), path)


def meta_in(lines: Sequence[RolloutLine], path: str = "") -> ThreadMeta:
    """What the first lines of a rollout say: forks of old clients tell their parent in the second alone."""
    lines = [line for line in lines if line.kind == META]
    meta = meta_of(lines[0].payload if lines else {}, path)
    copied = _id(lines[1].payload, "id") if len(lines) > 1 else ""
    if copied != meta.thread_id and not meta.forked_from:
        return meta._replace(forked_from=copied)
    return meta


def meta_of(payload: Record, path: str = "") -> ThreadMeta:
    """What a ``session_meta`` says; where the name of the file has another id, that decides."""
    named = parse_name(path)
    source = payload.get("source")
    if isinstance(source, dict):
        spawn = mapping(mapping(source, "subagent"), "thread_spawn")
    else:
        spawn = {}
    told, base = mapping(payload, "history_base"), None
    if rollout_id := _id(told, "thread_id"):
        end = told.get("end_ordinal_exclusive")
        if isinstance(end, int) and end is not True and end >= 0:
            ordinal = end
        else:
            ordinal = None
        base = HistoryBase(rollout_id, ordinal, positive(told.get("end_byte_offset"), MAX_ORDINAL))
    return ThreadMeta(
        thread_id=named.thread_id if named else _id(payload, "id"),
        forked_from=_id(payload, "forked_from_id"),
        spawned_by=_id(payload, "parent_thread_id") or _id(spawn, "parent_thread_id"),
        base=base,
        created=string(payload, "timestamp"),
        cwd=string(payload, "cwd"),
        version=string(payload, "cli_version"),
        source=source
        if isinstance(source, str)
        else next(iter(source), "")
        if isinstance(source, dict)
        else "",
        branch=string(mapping(payload, "git"), "branch"),
        paginated=string(payload, "history_mode") == "paginated",
        payload=payload,
    )


def _id(record: Record, key: str) -> str:
    value = record.get(key)
    if is_session_id(value):
        return str(value)
    return ""
