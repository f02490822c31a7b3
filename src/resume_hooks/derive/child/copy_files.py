"""Copy the files that belong to a session: tool outputs, file backups and the task list.

The child's copies are stored under its own id, so they remain when the parent is deleted. Large
tool outputs are hard links if the file system supports these. File backups are copied, because
clients before 2.1.329 overwrite an existing backup. All tasks are copied, even finished ones. A
file that the client has deleted is copied from the vault. Files in the vault are never linked,
because the client might write to them.

Invariants: if the child's transcript cannot be written, the copied outputs and backups are removed.
A child gets the whole task list or none of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

import orjson

from resume_hooks.derive.child.draft import Draft, find_session_owning_folder
from resume_hooks.errors import SessionNotFound, WriteFailed
from resume_hooks.paths import (
    TASKS_FOLDER_NAME,
    TOOL_RESULTS_FOLDER_NAME,
    Where,
    is_session_id,
    make_private_folder,
    open_regular,
)
from resume_hooks.sessions.archived.layout import HISTORY_FOLDER, MAX_SESSION_FILES, PROJECTS_FOLDER
from resume_hooks.sessions.archived.manifest import ArchivedSession, find_archived
from resume_hooks.sessions.archived.sessions import is_archived_copy, open_archived
from resume_hooks.sessions.session_files import SessionFile, can_client_resume
from resume_hooks.storage import removal, state_file
from resume_hooks.storage.state_file import PRIVATE_MODE

MAX_TASKS = 1_000  # Maximum number of tasks in a task list. A longer list is not copied.
# Maximum size of a task file in bytes. If a task is larger, the whole list is not copied.
MAX_TASK_BYTES = 1024 * 1024
_TASK_FILE_PATTERN = re.compile(r"[A-Za-z0-9_-]+\.json")
_HIGHEST_TASK_NUMBER_FILE_NAME = (
    # The client writes the highest number of a deleted task to this file, so that it never reuses
    # the number.
    ".highwatermark"
)
# The name of a backup in a file snapshot record.
_BACKUP_NAME_PATTERN = re.compile(rb'"backupFileName":\s*"([^"\\/]+)"')


def copy_tasks(parent_id: str, child_id: str, where: Where) -> list[str]:
    """Copy the task list of the session with the id ``parent_id`` to the session with the id ``child_id``.

    Both sessions must exist. If the copy fails, return a list with one sentence about the failure.
    Otherwise, return an empty list.
    """
    tasks_home = os.path.join(where.config, TASKS_FOLDER_NAME)
    source = os.path.join(tasks_home, parent_id)
    if not is_session_id(parent_id) or not os.path.lexists(source):
        return []
    try:
        if task_files := _read_task_files(source):
            _write_task_list(task_files, tasks_home, child_id)
    except OSError as error:
        reason = f"{error.filename or source}: {error.strerror}"
        return [f"The task list could not be copied ({reason}); the parent's list is unchanged."]
    return []


def _read_task_files(folder: str) -> dict[str, bytes]:
    for path in (os.path.dirname(folder), folder):
        if os.path.islink(path):
            raise OSError(None, "it is a symbolic link", path)
    names = sorted(name for name in os.listdir(folder) if _TASK_FILE_PATTERN.fullmatch(name))
    if len(names) > MAX_TASKS:
        raise OSError(None, f"it has more than {MAX_TASKS:,} tasks", folder)
    files = {}
    for name in names:
        files[name] = _read_file(os.path.join(folder, name))
    high_water_path = os.path.join(folder, _HIGHEST_TASK_NUMBER_FILE_NAME)
    if files and os.path.lexists(high_water_path):
        return files | {_HIGHEST_TASK_NUMBER_FILE_NAME: _read_file(high_water_path)}
    return files


def _read_file(path: str) -> bytes:
    with open_regular(path, follow=False) as stream:
        content = stream.read(MAX_TASK_BYTES + 1)
    if len(content) > MAX_TASK_BYTES:
        raise OSError(None, f"it is larger than {MAX_TASK_BYTES:,} bytes", path)
    try:
        orjson.loads(content)
    except ValueError as error:
        raise OSError(None, "it is damaged, or was just being written", path) from error
    return content


def _write_task_list(files: dict[str, bytes], home: str, session_id: str) -> None:
    """Write all files of a session's task list, or none of them if an OSError occurs."""
    state_file.remove_stale_temporaries(home)
    temporary = state_file.temporary_path(home)
    os.mkdir(temporary, 0o700)
    try:
        for name, content in files.items():
            state_file.create_file(os.path.join(temporary, name), [content])
        os.rename(temporary, os.path.join(home, session_id))
    finally:
        state_file.discard_temporary(temporary)
    state_file.sync_folder(home)


def find_backup_names(lines: Iterable[bytes]) -> frozenset[str]:
    """Return the names of the file backups that a session's lines mention."""
    return frozenset(
        name.decode("utf-8", "replace")
        for line in lines
        for name in _BACKUP_NAME_PATTERN.findall(line)
    )


@contextlib.contextmanager
def copy_sidecar_files(
    draft: Draft, backup_names: Collection[str], where: Where
) -> Iterator[list[str]]:
    """Copy the parent's tool outputs and file backups to folders that are named after the child's id.

    This is a context manager. It copies the files before the ``with`` block runs, and removes the
    copies if the block fails. Only the backups whose names are in ``backup_names`` are copied.
    Yields a list with one sentence for each failure. The child is written in spite of a failure,
    because the conversation does not depend on these files.
    """
    failures: list[str] = []
    new_folders: list[str] = []
    parent = find_session_owning_folder(draft.parent)
    history_home = where.file_history
    target_folders = _get_outputs_folder(draft.path), os.path.join(history_home, draft.session_id)
    if is_archived_copy(parent.path, where):
        steps = _plan_copies(parent.path, target_folders, None, backup_names)
    else:
        source_folders = (
            _get_outputs_folder(parent.path),
            os.path.join(history_home, parent.session_id),
        )
        # A symbolic link could lead to any folder, so files behind a link are not hard-linked.
        is_link = os.path.islink(os.path.dirname(source_folders[0]))
        if is_link:
            steps = []
        else:
            steps = [_CopyStep(source_folders[0], target_folders[0], None, _link_file)]
        steps.append(_CopyStep(source_folders[1], target_folders[1], backup_names, _copy_file))
        steps += _plan_copies_from_vault(
            parent, source_folders, target_folders, backup_names, where, failures
        )
    succeeded = False
    try:
        for step in steps:
            try:
                _transfer_files(step, new_folders, where)
            except OSError as error:
                failures.append(
                    f"{step.source_folder} could not be copied for the new session: {error.strerror}."
                )
        yield failures
        succeeded = True
    finally:
        for folder in () if succeeded else (*new_folders, draft.path.removesuffix(".jsonl")):
            removal.remove_if_possible(folder, os.path.dirname(folder), follow_root=True)


class _CopyStep(NamedTuple):
    """The files to copy or link from ``source_folder`` to ``target_folder``.

    If ``file_names`` is None, all files are transferred. ``transfer`` copies or links one file.
    """

    source_folder: str
    target_folder: str
    file_names: Collection[str] | None
    transfer: Callable[[str, str], None]


_FolderPair = tuple[str, str]  # A session's folder of tool outputs, and its folder of file backups.


def _plan_copies(
    archived_path: str,
    target_folders: _FolderPair,
    output_names: Collection[str] | None,
    backup_names: Collection[str],
) -> list[_CopyStep]:
    source_folders = (
        _get_outputs_folder(archived_path),
        os.path.join(os.path.dirname(archived_path), HISTORY_FOLDER),
    )
    return [
        _CopyStep(source_folders[0], target_folders[0], output_names, _copy_file),
        _CopyStep(source_folders[1], target_folders[1], backup_names, _copy_file),
    ]


def _plan_copies_from_vault(
    parent: SessionFile,
    source_folders: _FolderPair,
    target_folders: _FolderPair,
    backup_names: Collection[str],
    where: Where,
    failures: list[str],
) -> list[_CopyStep]:
    """Plan to copy files that the client deleted and that only the vault still contains.

    If the vault cannot be read, add a sentence about the failure to ``failures``.
    """
    if can_client_resume(parent, where):
        archived = find_archived(parent.session_id, where)
    else:
        archived = None
    if archived is None:
        return []
    output_names = _list_deleted_names(
        archived,
        f"{PROJECTS_FOLDER}/{archived.project}/{archived.session_id}/{TOOL_RESULTS_FOLDER_NAME}/",
        source_folders[0],
    )
    deleted_backup_names = _list_deleted_names(
        archived, f"{HISTORY_FOLDER}/{archived.session_id}/", source_folders[1]
    ) & set(backup_names)
    if not output_names and not deleted_backup_names:
        return []
    try:
        return _plan_copies(
            open_archived(archived, where).path, target_folders, output_names, deleted_backup_names
        )
    except (SessionNotFound, WriteFailed) as error:
        failures.append(
            f"Files of {archived.session_id} that the client deleted could not be restored: "
            f"{error.message}."
        )
        return []


def _list_deleted_names(archived: ArchivedSession, prefix: str, folder: str) -> frozenset[str]:
    """Return the names of archived files under ``prefix`` that no longer exist in ``folder``."""
    names = (
        part.place.removeprefix(prefix) for part in archived.parts if part.place.startswith(prefix)
    )
    return frozenset(
        name
        for name in names
        if "/" not in name and not os.path.lexists(os.path.join(folder, name))
    )


def _get_outputs_folder(path: str) -> str:
    return os.path.join(path.removesuffix(".jsonl"), TOOL_RESULTS_FOLDER_NAME)


def _transfer_files(step: _CopyStep, new_folders: list[str], where: Where) -> None:
    """Copy or link a folder's regular files to a new folder, and add the new folder to ``new_folders``.

    Symbolic links and subfolders are skipped, because a link could lead to any folder.
    """
    source, target, wanted_names, transfer = step
    try:
        with os.scandir(source) as entries:
            wanted_entries = (
                entry for entry in entries if wanted_names is None or entry.name in wanted_names
            )
            names = [
                entry.name for entry in wanted_entries if entry.is_file(follow_symlinks=False)
            ][:MAX_SESSION_FILES]
    except OSError:
        return
    if not names or os.path.islink(source):
        return
    if target not in new_folders:
        make_private_folder(os.path.dirname(target), where)
        # The child's id is new, so if a folder with this id already exists, it belongs to another
        # program.
        os.mkdir(target, 0o700)
        new_folders.append(target)
    for name in names:
        transfer(os.path.join(source, name), os.path.join(target, name))


def _link_file(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # The target is on another file system, or the file system has no hard links.
        _copy_file(source, target)


def _copy_file(source: str, target: str) -> None:
    """Copy a file with its permissions and times.

    When the client restores a backup, the file gets the permissions and times of the backup. The
    client considers a file unchanged if it is older than its backup.
    """
    with open_regular(source, follow=False) as source_file:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(target, flags, PRIVATE_MODE), "wb") as target_file:
            while chunk := source_file.read(1024 * 1024):
                target_file.write(chunk)
        status = os.fstat(source_file.fileno())
        os.chmod(target, stat.S_IMODE(status.st_mode))
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
