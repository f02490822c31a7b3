"""Restore files according to a plan.

First, copies of all files that will be overwritten or removed are written to disk, with a manifest.
Then each file is written, unless it has changed since it was read. After a crash, each file is in
its old or its new state. Ctrl+C takes effect after the current file.

The manifest contains the old and the new digest of each file. After a crash, ``--undo`` needs only
the manifest, because the digest of a file shows whether the file was written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import re
from typing import Any

from resume_hooks import clock
from resume_hooks.errors import Interrupted, NoFileHistory, WriteFailed
from resume_hooks.parts.rewind_files import plan
from resume_hooks.parts.rewind_files.plan import (
    ExpectedFile,
    FileChange,
    FilesPlan,
    FileVersion,
    StoredFilePath,
    TargetFile,
)
from resume_hooks.parts.rewind_files.safe_paths import ProjectRoot
from resume_hooks.paths import Where, make_private_folder, read_json_object
from resume_hooks.storage import backups, project_files, removal, safe_tree, state_file
from resume_hooks.storage.state_file import remove_stale_temporaries, sync_folder
from resume_hooks.system.capture_output import catch_termination_signals
from resume_hooks.transcripts.records import Record, get_string

MANIFEST_FILE = "manifest.json"
MANIFEST_VERSION = 1
MAX_MANIFEST_BYTES = 64 * 1024 * 1024
"""Maximum number of bytes in a manifest. A manifest for ten thousand files takes up a few MB."""

MAX_RUNS_WITH_SAME_TIME = 1_000
"""Maximum number of runs that start at the same time. Each run has its own folder."""

_REWIND_RUN_FOLDER_NAME_PATTERN = re.compile(r"(\d{4}-\d\d-\d\dT[\d.-]+Z)(?:-(\d{3}))?")
"""Matches the name of a run's folder.

The name is the time of the run. If another run's folder already has this time or a later one, a
number is added. This happens, for example, if the clock was set back.
"""


def get_file_copies_folder(session_id: str, where: Where) -> str:
    """Return the path of the folder that contains the copies of a session's files.

    The folder contains a subfolder for each run. It does not exist before the first run.
    """
    return os.path.join(
        where.state, backups.BACKUPS_FOLDER, backups.REWIND_COPIES_FOLDER, session_id
    )


def back_up_files(files_plan: FilesPlan, root_descriptor: int, where: Where) -> str:
    """Copy the files that a plan overwrites or removes, and return the folder of the copies.

    Raises WriteFailed if a file has changed, cannot be copied, or is in a folder that is not
    writable. In this case no copies remain.
    """
    parent, now = get_file_copies_folder(files_plan.session_id, where), clock.now()
    folder = ""
    is_complete = False
    try:
        make_private_folder(parent, where)
        folder = _create_run_folder(parent, now.replace(":", "-"))
        rows = []
        for number, change in enumerate(files_plan.changes_to_write):
            rows.append(_copy_file(files_plan.root, root_descriptor, change, folder, number))
        parent_folders = []
        for change in files_plan.changes_to_write:
            if change.action == "create":
                parent_folders.append(change.path_in_project.parts[:-1])
        created_folders: dict[str, None] = {}
        for folder_descriptor in parent_folders:
            for parts in safe_tree.list_missing_folders(root_descriptor, folder_descriptor):
                created_folders["/".join(parts)] = None
        manifest_fields = {
            "time": now,
            "version": MANIFEST_VERSION,
            "session_id": files_plan.session_id,
            "root": files_plan.root.real_path,
        }
        manifest_text = json.dumps(
            {**manifest_fields, "folders": list(created_folders), "files": rows}, indent=1
        )
        state_file.replace_state_file(
            os.path.join(folder, MANIFEST_FILE), manifest_text.encode(), where
        )
        sync_folder(parent)
        is_complete = True
    except OSError as error:
        raise WriteFailed(
            f"The files could not be copied to {folder or parent}: {error.strerror or error}",
            "No file was changed. Check free space and the permissions of the folder.",
        ) from error
    finally:
        if folder and not is_complete:
            removal.remove_if_possible(folder, where.state)
    return folder


def plan_undo(session_id: str, where: Where) -> FilesPlan:
    """Plan to undo the last run for a session. The last run may itself be an undo.

    The plan may contain no changes. Raises NoFileHistory if there is no run, or if the manifest of
    the last run cannot be read. In no case is an older run undone.
    """
    folder = get_file_copies_folder(session_id, where)
    name = _find_newest_run_name(folder)
    if not name:
        raise NoFileHistory(
            f"No files were restored for {session_id}, so there is nothing to undo",
            "resume-hooks rewind-files --to shows which files can be restored.",
        )
    manifest = read_json_object(os.path.join(folder, name, MANIFEST_FILE), MAX_MANIFEST_BYTES)
    if manifest.get("version") != MANIFEST_VERSION or not get_string(manifest, "root"):
        raise NoFileHistory(
            (
                f"The last run can't be undone: its manifest in {os.path.join(folder, name)} "
                "can't be read"
            ),
            "The files next to the manifest are copies of the overwritten files.",
        )
    root = ProjectRoot.from_folder(get_string(manifest, "root"), where)
    rows = []
    for row in _as_list(manifest.get("files")):
        rows.append(_parse_target(root, row, StoredFilePath(folder, (name,))))
    folders = tuple(path for path in _as_list(manifest.get("folders")) if isinstance(path, str))
    files_plan = plan.plan_file_changes(session_id, root, [row for row in rows if row])
    return dataclasses.replace(
        files_plan,
        folders_to_remove=folders,
        time_of_undone_run=get_string(manifest, "time") or name,
    )


def _find_newest_run_name(folder: str) -> str:
    """Return the name of the last run's folder, or ``""`` if there is none.

    A run without a manifest is ignored, because it has changed no file.
    """
    try:
        names = sorted(os.listdir(folder), reverse=True)
    except OSError:
        return ""
    return next(
        (name for name in names if os.path.lexists(os.path.join(folder, name, MANIFEST_FILE))), ""
    )


def _create_run_folder(parent: str, instant: str) -> str:
    """Create the folder of a run.

    Its name sorts after the names of all earlier runs' folders, even if the clock went back.
    """
    for _ in range(MAX_RUNS_WITH_SAME_TIME):
        runs = (
            run.groups(default="000")
            for name in os.listdir(parent)
            if (run := _REWIND_RUN_FOLDER_NAME_PATTERN.fullmatch(name))
        )
        last_run = max(runs, default=())
        if last_run and last_run[0] >= instant:
            next_name = f"{last_run[0]}-{int(last_run[1]) + 1:03}"
        else:
            next_name = instant
        path = os.path.join(parent, next_name)
        # Another run with the same time may create the folder first.
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
            return path
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), parent)


def _copy_file(
    root: ProjectRoot, root_descriptor: int, change: FileChange, folder: str, copy_number: int
) -> Record:
    """Copy one file, and return its row for the manifest.

    A file that will be created has no copy.
    """
    plan.require_writable_folder(root_descriptor, change.path_in_project)
    content, state = plan.read_project_file(root, root_descriptor, change.path_in_project)
    if content is not None and state:
        current_version = plan.make_file_version(content, state.st_mode)
    else:
        current_version = None
    if current_version != change.old_version or not project_files.is_same_state(
        state, change.replaced_file_status
    ):
        raise WriteFailed(
            f"{change.path_in_project.path} changed while it was read",
            "No file was changed. Run the command again.",
        )
    name = None
    if content is not None:
        name = str(copy_number)
        state_file.create_file(os.path.join(folder, name), [content])
    return {
        "path": change.path_in_project.path,
        "before": _format_version_row(change.old_version, name),
        "after": _format_version_row(change.new_version, None),
    }


def _format_version_row(version: FileVersion | None, name: str | None) -> Record | None:
    if version is None:
        return None
    return {
        "sha256": version.content_digest,
        "size": version.byte_count,
        "mode": version.mode,
        "copy": name,
    }


def _parse_target(root: ProjectRoot, row: Any, run_folder: StoredFilePath) -> TargetFile | None:
    """Return the state to which an undo restores a file: the file's state before the run.

    ``row`` is the file's row in the manifest of the run, and ``run_folder`` is the run's folder. The
    expected state is the file's state after the run. Return None if the row names no file.
    """
    path = get_string(row, "path") if isinstance(row, dict) else ""
    if not path:
        return None
    before_row, after_row = row.get("before"), row.get("after")
    if isinstance(before_row, dict):
        name, mode = (before_row.get("copy"), before_row.get("mode"))
    else:
        name, mode = (None, None)
    if isinstance(name, str) and name.isdecimal():
        source = StoredFilePath(run_folder.root_folder, (*run_folder.path_parts, name))
    else:
        source = None
    if isinstance(after_row, dict):
        expected_digest = get_string(after_row, "sha256")
    else:
        expected_digest = ""
    if before_row is not None and source is None:
        reason = "its copy has no name"
    else:
        reason = ""
    return TargetFile(
        root.resolve_path(path),
        source,
        mode if isinstance(mode, int) else None,
        reason,
        ExpectedFile(content_digest=expected_digest),
    )


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return []


def write_files(files_plan: FilesPlan, where: Where) -> str:
    """Restore the files of a plan, and return the folder with the copies of the replaced files.

    If WriteFailed or Interrupted is raised, its message contains the number of files that were
    already written. Each of these files was copied first.
    """
    root = files_plan.root.real_path
    try:
        with safe_tree.open_root(root) as root_descriptor:
            return _write_changes_and_get_copies_path(files_plan, root_descriptor, where)
    except OSError as error:
        raise project_files.make_write_error(root, error) from error


def _write_changes_and_get_copies_path(
    files_plan: FilesPlan, root_descriptor: int, where: Where
) -> str:
    root = files_plan.root.real_path
    copies_path = back_up_files(files_plan, root_descriptor, where)
    written_count = 0
    with catch_termination_signals() as stop_request:
        for folder in {
            os.path.dirname(os.path.join(root, change.path_in_project.path))
            for change in files_plan.changes_to_write
        }:
            remove_stale_temporaries(folder)
        try:
            for change in files_plan.changes_to_write:
                if stop_request.is_set():
                    raise Interrupted(
                        *_build_failure_report(
                            files_plan, copies_path, written_count, "it was interrupted"
                        )
                    )
                _apply_change(root, root_descriptor, change)
                written_count += 1
        except (OSError, WriteFailed) as error:
            raise WriteFailed(
                *_build_failure_report(
                    files_plan, copies_path, written_count, plan.format_failure_reason(error)
                )
            ) from error
    for folder in sorted(files_plan.folders_to_remove, key=len, reverse=True):
        place = files_plan.root.resolve_path(folder)
        # The folder was created for a file that does not exist any more.
        if place.parts:
            with (
                contextlib.suppress(OSError, WriteFailed),
                safe_tree.open_folder(root_descriptor, place.parts[:-1]) as folder_descriptor,
            ):
                removal.remove_empty_subfolder(place.parts[-1], folder_descriptor)
    return copies_path


def _apply_change(root: str, root_descriptor: int, change: FileChange) -> None:
    path = os.path.join(root, change.path_in_project.path)
    with safe_tree.open_folder(
        root_descriptor, change.path_in_project.parts[:-1], create=change.action == "create"
    ) as folder_descriptor:
        if change.source is None or change.new_version is None:
            if change.replaced_file_status is not None:
                project_files.remove_project_file(
                    path, change.replaced_file_status, folder_descriptor
                )
            return
        content, _ = plan.read_content_and_mode(change.source)
        if plan.make_file_version(content, change.new_version.mode) != change.new_version:
            raise WriteFailed(
                f"The backup of {change.path_in_project.path} changed while it was read"
            )
        has_same_mode = (
            change.old_version is not None and change.old_version.mode == change.new_version.mode
        )
        # With a mode of None, the file keeps its mode, including the set-group-id bit and similar
        # bits, which a backup does not contain.
        mode = None if has_same_mode else change.new_version.mode
        project_files.write_project_file(
            path, content, change.replaced_file_status, mode=mode, dir_fd=folder_descriptor
        )


def _build_failure_report(
    files_plan: FilesPlan, copies_path: str, written_count: int, reason: str
) -> tuple[str, str]:
    """Return the message and the remedy for a run that failed. If no file was written, remove the copies."""
    if not written_count:
        removal.remove_if_possible(copies_path, os.path.dirname(copies_path))
    undo = (
        f"resume-hooks rewind-files {files_plan.session_id} --undo undoes this; copies are "
        f"in {copies_path}."
    )
    return (
        f"{written_count:,} of {len(files_plan.changes_to_write):,} files were put back, then: {reason}",
        undo if written_count else "No file was changed. Run the command again.",
    )
