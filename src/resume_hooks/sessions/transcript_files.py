"""Which files there are to index, sessions and sub-agents' transcripts, with what tells whether they changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.paths import ENDING, Where, all_folders, is_session_id
from resume_hooks.sessions import subagents
from resume_hooks.system.text import encodable


class TranscriptFile(NamedTuple):
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


def all_files(where: Where) -> list[TranscriptFile]:
    """Every transcript of the config home; what can't be looked at is left out.

    So is a name that is no UTF-8: no client makes one, and SQLite holds none.
    """
    found = [file for folder in all_folders(where) for file in _files_in(folder)]
    return [file for file in found if file.path.isascii() or encodable(file.path) == file.path]


def _files_in(folder: str) -> Iterator[TranscriptFile]:
    name = os.path.basename(folder)
    try:
        with os.scandir(folder) as listed:
            entries = list(listed)
    except OSError:
        return
    for entry in entries:  # thousands, at every search: each costs what it must
        if not entry.name.endswith(ENDING):
            if is_session_id(entry.name) and not entry.is_symlink():  # a link could lead anywhere
                for agent in subagents.nested(entry.path, entry.name):
                    yield from _found(agent.path, name, agent.session_id, agent.name)
            continue
        stem = entry.name[: -len(ENDING)]
        if is_session_id(stem):
            yield from _found(entry, name, stem, "")
        elif subagents.name_of(entry.name):
            yield from _found(entry, name, "", stem)


def _found(file: os.DirEntry[str] | str, folder: str, session_id: str, agent: str) -> Iterator[TranscriptFile]:
    """The file, if it is one with something in it; a link is none."""
    try:
        status = os.stat(file, follow_symlinks=False)
    except OSError:
        return  # deleted since it was listed
    if status.st_size and stat.S_ISREG(status.st_mode):
        path = os.fspath(file)
        yield TranscriptFile(path, folder, session_id, agent, status.st_ino, status.st_size, status.st_mtime_ns)
