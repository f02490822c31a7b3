"""Copy the client's task list of a parent to its child, which the client looks for under the child's own id.

It is the client's own, of the same user, copied byte for byte, done tasks too; the parent's is only read. Invariant: a
child has the whole list or none, since it is written into a folder beside and renamed.
"""

from __future__ import annotations

import os
import re

import orjson

from resume_hooks.paths import TASKS, Where, is_session_id, open_regular
from resume_hooks.storage import state_file

MAX_TASKS = 1_000
"""Tasks that a list may have; of more nothing is copied."""

MAX_TASK = 1024 * 1024
"""Bytes of one task."""

_TASK = re.compile(r"[A-Za-z0-9_-]+\.json")
_HIGH_WATER = ".highwatermark"
"""The highest number that a deleted task had, so that none is given twice."""


def copy_tasks(parent: str, child: str, where: Where) -> list[str]:
    """Give a session that is there the task list of another, by their ids; a sentence on what could not be, or none."""
    home = os.path.join(where.config, TASKS)
    source = os.path.join(home, parent)
    if not is_session_id(parent) or not os.path.lexists(source):
        return []
    try:
        if found := _read(source):
            _write(found, home, child)
    except OSError as error:
        why = f"{error.filename or source}: {error.strerror}"
        return [f"The task list could not be copied ({why}); the parent's is as it was."]
    return []


def _read(folder: str) -> dict[str, bytes]:
    """The files of a task list; none where it has no task. OSError for what is no task list, or can't be read."""
    for path in (os.path.dirname(folder), folder):
        if os.path.islink(path):
            raise OSError(None, "it is a symbolic link", path)
    names = sorted(name for name in os.listdir(folder) if _TASK.fullmatch(name))
    if len(names) > MAX_TASKS:
        raise OSError(None, f"it has more than {MAX_TASKS:,} tasks", folder)
    found = {name: _read_file(os.path.join(folder, name)) for name in names}
    mark = os.path.join(folder, _HIGH_WATER)
    return found | {_HIGH_WATER: _read_file(mark)} if found and os.path.lexists(mark) else found


def _read_file(path: str) -> bytes:
    with open_regular(path, follow=False) as stream:
        content = stream.read(MAX_TASK + 1)
    if len(content) > MAX_TASK:
        raise OSError(None, f"it is larger than {MAX_TASK:,} bytes", path)
    try:
        orjson.loads(content)
    except ValueError as error:
        raise OSError(None, "it is damaged, or was just being written", path) from error
    return content


def _write(files: dict[str, bytes], home: str, session_id: str) -> None:
    """Make a session's task list of these files, whole or not at all. OSError."""
    state_file.sweep(home)
    temporary = state_file.temporary_in(home)
    os.mkdir(temporary, 0o700)
    try:
        for name, content in files.items():
            state_file.create(os.path.join(temporary, name), [content])
        os.rename(temporary, os.path.join(home, session_id))
    finally:
        state_file.discard(temporary)
    state_file.sync_folder(home)
