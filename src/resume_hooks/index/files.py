"""Which files there are to index, sessions and sub-agents' transcripts, with what tells whether they changed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from resume_hooks import subagents
from resume_hooks.paths import all_folders, is_session_id, session_id_of
from resume_hooks.plain import encodable


class Found(NamedTuple):
    """A transcript on disk.

    ``session_id`` is the session it belongs to, "" for a sub-agent's file beside its session, which must be opened to
    tell; ``agent`` is ``agent-<id>`` or "". ``mtime`` is in nanoseconds, ``size`` in bytes.
    """

    path: str
    folder: str
    session_id: str
    agent: str
    inode: int
    size: int
    mtime: int


def all_files(environ: Mapping[str, str]) -> list[Found]:
    """Every transcript of the config home; what can't be looked at is left out.

    So is a name that is no UTF-8: no client makes one, and SQLite holds none.
    """
    found = [file for folder in all_folders(environ) for file in _files_in(folder)]
    return [file for file in found if file.path.isascii() or encodable(file.path) == file.path]


def _files_in(folder: str) -> Iterator[Found]:
    name = os.path.basename(folder)
    try:
        with os.scandir(folder) as listed:
            entries = list(listed)
    except OSError:
        return
    for entry in entries:
        if is_session_id(entry.name):
            if entry.is_symlink():
                continue  # it could lead anywhere
            for agent in subagents.nested(entry.path, entry.name):
                yield from _found(agent.path, name, agent.session_id, agent.name)
            continue
        session_id, agent_name = session_id_of(entry.name), subagents.name_of(entry.name)
        if session_id is not None or agent_name is not None:
            with contextlib.suppress(OSError):  # deleted since it was listed
                if entry.is_file(follow_symlinks=False):
                    yield from _of(entry.stat(follow_symlinks=False), entry.path, name, session_id, agent_name)


def _found(path: str, folder: str, session_id: str, agent: str) -> Iterator[Found]:
    with contextlib.suppress(OSError):
        yield from _of(os.stat(path, follow_symlinks=False), path, folder, session_id, agent)


def _of(status: os.stat_result, path: str, folder: str, session_id: str | None, agent: str | None) -> Iterator[Found]:
    if status.st_size:
        yield Found(path, folder, session_id or "", agent or "", status.st_ino, status.st_size, status.st_mtime_ns)
