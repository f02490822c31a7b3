"""Copy the client's files of a parent outside its transcript: large outputs, file backups, the task list.

A child gets them under its own id, so they outlive the parent. Outputs are hard links if the file
system supports them. Backups are copies, because clients before 2.1.329 overwrite an existing
backup. Tasks are copies, including finished ones. Files that the client has deleted come from the
vault, always as copies, because the client may write to them.

Invariants: if the child's file cannot be written, its sidecars are removed. A child has the whole
task list or none.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

import orjson

from resume_hooks.derive.child.draft import Draft, owner_of
from resume_hooks.errors import SessionNotFound, WriteFailed
from resume_hooks.paths import (
    TASKS,
    TOOL_RESULTS,
    Where,
    is_session_id,
    open_regular,
    private_folder,
)
from resume_hooks.sessions.archived.layout import HISTORY, MAX_FILES, PROJECTS
from resume_hooks.sessions.archived.manifest import ArchivedSession, archived_of_id
from resume_hooks.sessions.archived.sessions import archived_session_file, is_archived_copy
from resume_hooks.sessions.session_files import SessionFile, is_known
from resume_hooks.storage import removal, state_file
from resume_hooks.storage.state_file import MODE

MAX_TASKS = 1_000  # a longer task list is not copied
MAX_TASK = 1024 * 1024  # bytes of one task
_TASK = re.compile(r"[A-Za-z0-9_-]+\.json")
_HIGH_WATER = ".highwatermark"  # the highest number of a deleted task; the client does not reuse it
_BACKUP = re.compile(
    rb'"backupFileName":\s*"([^"\\/]+)"'
)  # the name of a backup in a file snapshot


def copy_tasks(parent: str, child: str, where: Where) -> list[str]:
    """Copy the task list of one existing session to another, both by id.

    Return a sentence if that failed, else an empty list.
    """
    home = os.path.join(where.config, TASKS)
    source = os.path.join(home, parent)
    if not is_session_id(parent) or not os.path.lexists(source):
        return []
    try:
        if found := _read_task_files(source):
            _write_task_list(found, home, child)
    except OSError as error:
        why = f"{error.filename or source}: {error.strerror}"
        return [f"The task list could not be copied ({why}); the parent's is unchanged."]
    return []


def _read_task_files(folder: str) -> dict[str, bytes]:
    for path in (os.path.dirname(folder), folder):
        if os.path.islink(path):
            raise OSError(None, "it is a symbolic link", path)
    names = sorted(name for name in os.listdir(folder) if _TASK.fullmatch(name))
    if len(names) > MAX_TASKS:
        raise OSError(None, f"it has more than {MAX_TASKS:,} tasks", folder)
    found = {}
    for name in names:
        found[name] = _read_file(os.path.join(folder, name))
    mark = os.path.join(folder, _HIGH_WATER)
    if found and os.path.lexists(mark):
        return found | {_HIGH_WATER: _read_file(mark)}
    return found


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


def _write_task_list(files: dict[str, bytes], home: str, session_id: str) -> None:
    """Write a session's task list, all files or none. Raises OSError."""
    state_file.sweep_spare_names(home)
    temporary = state_file.temporary_in(home)
    os.mkdir(temporary, 0o700)
    try:
        for name, content in files.items():
            state_file.create_file(os.path.join(temporary, name), [content])
        os.rename(temporary, os.path.join(home, session_id))
    finally:
        state_file.discard_spare(temporary)
    state_file.sync_folder(home)


def backups_named(lines: Iterable[bytes]) -> frozenset[str]:
    """Return the names of the backups in a session's file snapshots."""
    return frozenset(
        name.decode("utf-8", "replace") for line in lines for name in _BACKUP.findall(line)
    )


@contextlib.contextmanager
def sidecars_of(draft: Draft, backups: Collection[str], where: Where) -> Iterator[list[str]]:
    """Write the sidecars of a child's parent under the child's id while the child's file is written.

    ``backups`` names the backups to copy. Yields a sentence for each failure, because the
    conversation does not depend on these files. If the block fails, the sidecars are removed.
    """
    missed: list[str] = []
    made: list[str] = []
    parent = owner_of(draft.parent)
    history = where.file_history
    targets = _tasks_folder(draft.path), os.path.join(history, draft.session_id)
    if is_archived_copy(parent.path, where):
        steps = _copy_steps(parent.path, targets, None, backups)
    else:
        own = _tasks_folder(parent.path), os.path.join(history, parent.session_id)
        linked = os.path.islink(os.path.dirname(own[0]))  # a link could lead anywhere
        if linked:
            steps = []
        else:
            steps = [_Step(own[0], targets[0], None, _link_file)]
        steps.append(_Step(own[1], targets[1], backups, _copy_file))
        steps += _files_only_archived(parent, own, targets, backups, where, missed)
    done = False
    try:
        for step in steps:
            try:
                _put_files(step, made, where)
            except OSError as error:
                missed.append(
                    f"{step.source} could not be copied for the new session:  {error.strerror}."
                )
        yield missed
        done = True
    finally:
        for folder in () if done else (*made, draft.path.removesuffix(".jsonl")):
            removal.discard(folder, os.path.dirname(folder), follow_root=True)


class _Step(NamedTuple):
    """One folder's files to copy or link into another folder. ``wanted`` None means all files."""

    source: str
    target: str
    wanted: Collection[str] | None
    put: Callable[[str, str], None]


_Both = tuple[str, str]  # a session's folder of outputs and its folder of backups


def _copy_steps(
    copy: str, targets: _Both, outputs: Collection[str] | None, backups: Collection[str]
) -> list[_Step]:
    sources = _tasks_folder(copy), os.path.join(os.path.dirname(copy), HISTORY)
    return [
        _Step(sources[0], targets[0], outputs, _copy_file),
        _Step(sources[1], targets[1], backups, _copy_file),
    ]


def _files_only_archived(
    parent: SessionFile,
    own: _Both,
    targets: _Both,
    backups: Collection[str],
    where: Where,
    missed: list[str],
) -> list[_Step]:
    """Return the steps for files of an existing session that only the vault still has."""
    if is_known(parent, where):
        archived = archived_of_id(parent.session_id, where)
    else:
        archived = None
    if archived is None:
        return []
    outputs = _names_only_archived(
        archived, f"{PROJECTS}/{archived.project}/{archived.session_id}/{TOOL_RESULTS}/", own[0]
    )
    lost = _names_only_archived(archived, f"{HISTORY}/{archived.session_id}/", own[1]) & set(
        backups
    )
    if not outputs and not lost:
        return []
    try:
        return _copy_steps(archived_session_file(archived, where).path, targets, outputs, lost)
    except (SessionNotFound, WriteFailed) as error:
        missed.append(
            f"Files of {archived.session_id} that the client deleted could not be restored: "
            f"{error.message}."
        )
        return []


def _names_only_archived(archived: ArchivedSession, below: str, own: str) -> frozenset[str]:
    """Return the names of a folder's archived files that the client has deleted."""
    places = (
        part.place.removeprefix(below) for part in archived.parts if part.place.startswith(below)
    )
    return frozenset(
        name for name in places if "/" not in name and not os.path.lexists(os.path.join(own, name))
    )


def _tasks_folder(path: str) -> str:
    return os.path.join(path.removesuffix(".jsonl"), TOOL_RESULTS)


def _put_files(step: _Step, made: list[str], where: Where) -> None:
    """Copy or link a folder's regular files into a new folder, which is added to ``made``.

    Links and subfolders are skipped, because they could lead anywhere.
    """
    source, target, wanted, put = step
    try:
        with os.scandir(source) as entries:
            wanted_entries = (entry for entry in entries if wanted is None or entry.name in wanted)
            names = [
                entry.name for entry in wanted_entries if entry.is_file(follow_symlinks=False)
            ][:MAX_FILES]
    except OSError:
        return
    if not names or os.path.islink(source):
        return
    if target not in made:
        private_folder(os.path.dirname(target), where)
        os.mkdir(target, 0o700)  # the id is new, so an existing folder is not ours
        made.append(target)
    for name in names:
        put(os.path.join(source, name), os.path.join(target, name))


def _link_file(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system, or one without hard links
        _copy_file(source, target)


def _copy_file(source: str, target: str) -> None:
    """Copy a file with its mode and times.

    The client restores both, and treats an older file as unchanged.
    """
    with open_regular(source, follow=False) as old:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(target, flags, MODE), "wb") as new:
            while piece := old.read(1024 * 1024):
                new.write(piece)
        was = os.fstat(old.fileno())
        os.chmod(target, stat.S_IMODE(was.st_mode))
        os.utime(target, ns=(was.st_atime_ns, was.st_mtime_ns))
