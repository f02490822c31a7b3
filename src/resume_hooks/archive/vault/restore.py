"""Restore an archived or deleted session for the client, byte for byte if its original path is free.

Existing files are never overwritten. The transcript is restored last, so that no client sees an
incomplete session. An interrupted restore can be repeated.

If another session now has the original path of a session from the vault, the restored session gets
a new id, which depends only on the old id and the content. The vault keeps its copy. A session from
the trash is removed from the trash after it has been restored. If its original path is not free,
the restore fails.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import time
import uuid
from collections.abc import Iterable
from typing import NamedTuple

from resume_hooks.archive.vault import commit, trash
from resume_hooks.archive.vault.packs import split_lines
from resume_hooks.clock import DAY
from resume_hooks.errors import (
    CheckFailed,
    PathTaken,
    SessionNotFound,
    WriteFailed,
)
from resume_hooks.paths import Where, find_session, make_private_folder, open_regular
from resume_hooks.sessions.archived.layout import (
    FOLDERS_WITH_ID_SUBFOLDERS,
    PROJECTS_FOLDER,
    path_in_archive,
    path_in_config_home,
)
from resume_hooks.sessions.archived.manifest import ArchivedFile, ArchivedSession
from resume_hooks.sessions.archived.unpack import (
    hash_and_yield,
    read_chunks,
    sha256_of_file,
    verified_transcript,
)
from resume_hooks.sessions.transcript_files import SUBAGENTS_FOLDER as SUBAGENTS
from resume_hooks.storage import removal
from resume_hooks.storage.append_carryover import begins_with_copy
from resume_hooks.storage.atomic import create_session
from resume_hooks.storage.hard_links import has_same_bytes, hash_file, is_empty_file, link_or_copy
from resume_hooks.storage.state_file import remove_stale_temporaries, sync_folder
from resume_hooks.system.claude_settings import read_retention_days
from resume_hooks.system.text import format_count, plain_line, replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.raw_edit import set_session_id

MIN_DAYS_UNTIL_DELETION = 7
"""The minimum number of days that the client keeps a restored session before it may delete the
session as too old."""

RESTORED_SESSION_TOO_OLD_WARNING = (
    "It is older than the {kept} for which the client keeps sessions, so its files got a later "
    "time. The client keeps it for {left} more."
)
LOST_FILE_WARNING = (
    "{place} is neither in the trash nor at its original path, so it was not restored."
)
CHANGED_FILE_WARNING = "{name} was changed in the trash since the session was deleted."
DUPLICATE_ID_WARNING = (
    "{path} has the same session id. Clients since 2.1.223 do not resume a session whose id exists "
    "in two folders: delete one of the two files."
)
REMOVED_FROM_TRASH_NOTE = (
    "The session was already at its original path, byte for byte; it is no longer in the trash."
)
UNCHANGED_SESSION_NOTE = (
    "The client already has the session's transcript, byte for byte; it was not changed."
)
CONTINUED_SESSION_NOTE = (
    "The client already has the session's transcript, and it was continued after it was archived; "
    "it was not changed."
)
NEW_ID_WARNING = "{path} is a different session now, so the archived copy gets a new id."
DIFFERENT_FILE_WARNING = "{path} exists with different content; it was not changed."


class RestoredFile(NamedTuple):
    """A file to restore. Its content is read from ``source_path`` and written to ``target_path``."""

    archived_file: ArchivedFile
    source_path: str
    target_path: str


class RestorePlan(NamedTuple):
    """A plan to restore a session.

    ``session_id`` is the id that the restored session will have. If ``files`` is empty, no file
    needs to be restored. ``unrestored_files`` contains a sentence about each file that
    can't be restored because another file has its path.
    """

    archived_session: ArchivedSession
    session_id: str
    target_path: str
    files: tuple[RestoredFile, ...]
    warnings: tuple[str, ...]
    unrestored_files: tuple[str, ...] = ()


def plan_restore(archived: ArchivedSession, where: Where) -> RestorePlan:
    """Plan how to restore an archived session.

    No files are written, except for unpacked copies. Raises SessionNotFound and WriteFailed if the
    archived files cannot be read. Raises PathTaken if the project folder is a link or not a
    folder, or if a deleted session's path is taken by another file.
    """
    if not archived.deleted_at:
        return _plan_restore_from_vault(archived, where)
    try:
        return _plan_restore_from_trash(archived, where)
    except (SessionNotFound, WriteFailed):
        current_entry = trash.read_trash_entry(archived.folder, where)
        if current_entry is None or current_entry == archived:
            raise
        # Another command has packed the session since the caller looked it up.
        return _plan_restore_from_trash(current_entry, where)


def _plan_restore_from_vault(archived: ArchivedSession, where: Where) -> RestorePlan:
    """Plan a restore from the vault.

    If another session has taken the original path or the id, the restored session gets a new id.
    """
    source = verified_transcript(archived, where)
    # The manifest contains the title of the current state. An earlier state may have a different
    # title.
    title = replace_surrogates(plain_line(HeadTail(source).title))
    archived = archived._replace(title=title)
    client_path = path_in_config_home(archived.place, where)
    warnings = []
    try:
        existing_path = find_session(archived.session_id, where) or _path_if_not_empty(client_path)
        session_id, path = archived.session_id, existing_path or client_path
        if existing_path and not _begins_with_archived_transcript(existing_path, archived):
            session_id = _make_restored_session_id(archived)
            path = os.path.join(os.path.dirname(client_path), f"{session_id}.jsonl")
            warnings.append(NEW_ID_WARNING.format(path=existing_path))
            existing_path = path if os.path.lexists(path) else ""
        if existing_path:
            is_same = os.path.getsize(existing_path) == archived.transcript.size
            warnings.append(UNCHANGED_SESSION_NOTE if is_same else CONTINUED_SESSION_NOTE)
        folder = os.path.dirname(path)
        _require_real_folder(folder, folder)
        parts = (*archived.parts[1:], archived.transcript)
        source_folder = os.path.dirname(source)
        files, differences = _select_files_to_restore(
            archived, parts, session_id, folder, source_folder, where
        )
    except OSError as error:
        raise _make_read_error(error, client_path) from error
    if files:
        warnings += _make_age_warnings(archived, where)
    return RestorePlan(
        archived, session_id, path, tuple(files), (*warnings, *differences), tuple(differences)
    )


def _path_if_not_empty(path: str) -> str:
    """Return ``path`` if there is a non-empty file at this path, else ``""``."""
    if os.path.lexists(path) and not is_empty_file(path):
        return path
    return ""


def _begins_with_archived_transcript(path: str, archived: ArchivedSession) -> bool:
    """Check whether a file begins with exactly the bytes of the archived transcript."""
    size, sha256 = archived.transcript.size, archived.transcript.sha256
    return os.path.getsize(path) >= size and sha256_of_file(path, size) == sha256


def _make_restored_session_id(archived: ArchivedSession) -> str:
    """Return a new id for a session, which depends only on its old id and its content."""
    content = f"{archived.session_id} {archived.transcript.sha256}"
    digest_of_content = hashlib.sha256(content.encode()).digest()
    return str(uuid.UUID(bytes=digest_of_content[:16], version=4))


def _plan_restore_from_trash(entry: ArchivedSession, where: Where) -> RestorePlan:
    """Plan a restore from the trash. Only missing files are restored."""
    client_path = path_in_config_home(entry.place, where)
    notes = _make_age_warnings(entry, where)
    try:
        folder, parts = os.path.dirname(client_path), (*entry.parts[1:], entry.transcript)
        source_folder = _find_source_folder(entry, where)
        files, differences = _select_files_to_restore(
            entry, parts, entry.session_id, folder, source_folder, where
        )
        files, warnings = _select_files_in_trash(files, entry)
    except OSError as error:
        raise _make_read_error(error, client_path) from error
    if not files and not differences:
        notes.append(REMOVED_FROM_TRASH_NOTE)
    other_path = find_session(entry.session_id, where)
    if other_path is not None and other_path != client_path:
        notes.append(DUPLICATE_ID_WARNING.format(path=other_path))
    sentences = (*notes, *warnings, *differences)
    return RestorePlan(
        entry, entry.session_id, client_path, tuple(files), sentences, tuple(differences)
    )


def _select_files_in_trash(
    files: Iterable[RestoredFile], entry: ArchivedSession
) -> tuple[list[RestoredFile], list[str]]:
    """Return the files whose content is still in the trash, and warnings about lost or changed files.

    Raises SessionNotFound if the transcript is missing.
    """
    available_files, warnings = [], []
    for file in files:
        if os.path.lexists(file.source_path):
            available_files.append(file)
            if (
                file.archived_file.sha256
                and hash_file(file.source_path) != file.archived_file.sha256
            ):
                warnings.append(
                    CHANGED_FILE_WARNING.format(name=path_in_archive(file.archived_file.place))
                )
        elif file.archived_file == entry.transcript:
            raise SessionNotFound(
                f"{file.source_path} is gone from the trash",
                f"It is not at {file.target_path} either: somebody removed it.",
            )
        else:
            warnings.append(LOST_FILE_WARNING.format(place=file.target_path))
    return available_files, warnings


def _make_read_error(error: OSError, path: str) -> WriteFailed:
    return WriteFailed(
        f"{error.filename or path} can't be read: {error.strerror}",
        "Check its permissions.",
    )


def _find_source_folder(entry: ArchivedSession, where: Where) -> str:
    """Return the folder from which the files of a deleted session can be read.

    If the files are packed, unpack them.
    """
    if entry.transcript.where:
        return os.path.dirname(verified_transcript(entry, where))
    return entry.folder


def _make_age_warnings(archived: ArchivedSession, where: Where) -> list[str]:
    """Return a warning if the restored files must get a later time because the session is too old."""
    days = read_retention_days(archived.cwd, where)
    if days is None:
        return []
    written_time = archived.transcript.mtime_ns / 1e9
    if written_time >= _find_earliest_safe_mtime(archived.cwd, where):
        return []
    return [
        RESTORED_SESSION_TOO_OLD_WARNING.format(
            kept=format_count(days, "day"),
            left=format_count(_choose_min_days_until_deletion(days), "day"),
        )
    ]


def execute_restore_plan(plan: RestorePlan, where: Where) -> RestorePlan:
    """Restore an archived session. Return the plan that was carried out.

    A deleted session is then removed from the trash, unless a file could not be restored because
    its path was taken by another file.

    Raises WriteFailed if a file cannot be written, and PathTaken if its path has been taken since
    the plan was made. The files that were already restored are kept, and the command can be
    repeated. Raises SessionNotFound if another command has removed the session from the trash.
    """
    if not plan.archived_session.deleted_at:
        return _restore_planned_files(plan, where)
    with commit.lock_trash(where):
        entry = trash.read_trash_entry(plan.archived_session.folder, where)
        if entry is None:
            raise _make_gone_error(plan)
        restored = _restore_planned_files(plan_restore(entry, where), where)
        if not restored.unrestored_files:
            # If this fails, the session is restored, but the trash still lists it.
            with contextlib.suppress(OSError):
                trash.remove_from_trash(entry.folder, where)
    return restored


def _make_gone_error(plan: RestorePlan) -> SessionNotFound:
    if os.path.lexists(plan.target_path):
        remedy = f"The session is in its place again: {plan.target_path}"
    else:
        remedy = "The session is not at its original path either: was the trash emptied?"
    return SessionNotFound(
        f"{plan.archived_session.locator} is no longer in the trash: another command restored or removed it first",
        remedy,
    )


def restore_files_stored_by_id(entry: ArchivedSession, where: Where) -> None:
    """Restore the files that a deleted session shares with a copy of it in another project.

    These are the file backups and tasks, which are stored under the session's id. They must be
    restored before the entry is removed from the trash. Existing files are kept.

    Raises SessionNotFound if the entry cannot be read, WriteFailed if a file cannot be written, and
    PathTaken if a folder's path is taken by a link or a file.
    """
    if find_session(entry.session_id, where) is not None:
        path = path_in_config_home(entry.place, where)
        shared_parts = []
        for part in entry.parts:
            if part.place.split("/")[0] in FOLDERS_WITH_ID_SUBFOLDERS:
                shared_parts.append(part)
        source_folder = _find_source_folder(entry, where) if shared_parts else ""
        folder = os.path.dirname(path)
        files, _ = _select_files_to_restore(
            entry, shared_parts, entry.session_id, folder, source_folder, where
        )
        _restore_planned_files(RestorePlan(entry, entry.session_id, path, tuple(files), ()), where)


def _restore_planned_files(plan: RestorePlan, where: Where) -> RestorePlan:
    """Write all files of a plan. For a deleted session, the caller must have locked the trash."""
    archived, folder = plan.archived_session, os.path.dirname(plan.target_path)
    earliest_time = _find_earliest_safe_mtime(archived.cwd, where)
    targets = []
    for part in archived.parts:
        target = _build_target_path(part, archived.session_id, plan.session_id, folder, where)
        targets.append(target)
    for target_folder in {os.path.dirname(target) for target in targets}:
        remove_stale_temporaries(target_folder)
    if archived.deleted_at:
        for target in targets:
            _ensure_minimum_mtime(target, earliest_time)
    for file in plan.files:
        try:
            _restore_file(file, plan, earliest_time, where)
        except OSError as error:
            raise _make_restore_error(error, file, plan) from error
    changed_folders = set()
    for file in plan.files:
        file_folder = os.path.dirname(file.target_path)
        changed_folders |= {file_folder, os.path.dirname(file_folder)}
    # The files must be durably on disk before the entry is removed from the trash.
    for changed_folder in changed_folders:
        sync_folder(changed_folder)
    return plan


def _restore_file(
    file: RestoredFile, plan: RestorePlan, earliest_time: float, where: Where
) -> None:
    """Write one file to its target path, with a time that is not earlier than ``earliest_time``.

    Raises OSError or CheckFailed if the file cannot be restored, and PathTaken if its path is
    taken.
    """
    folder = os.path.dirname(file.target_path)
    earliest_time_ns = int(earliest_time * 1e9)
    make_private_folder(folder, where)
    if is_empty_file(file.target_path):
        removal.remove_file(file.target_path, folder, follow_root=True)
    if not file.archived_file.where:
        _ensure_minimum_mtime(file.source_path, earliest_time)
        link_or_copy(file.source_path, file.target_path)
    elif file.archived_file.is_link:
        os.symlink(os.readlink(file.source_path), file.target_path)
        new_mtime_ns = max(file.archived_file.mtime_ns, earliest_time_ns)
        os.utime(file.target_path, ns=(new_mtime_ns, new_mtime_ns), follow_symlinks=False)
    else:
        is_renamed = plan.session_id != plan.archived_session.session_id
        _write_file(file, plan.session_id if is_renamed else "", earliest_time_ns)


def _make_restore_error(error: OSError, file: RestoredFile, plan: RestorePlan) -> WriteFailed:
    """Return the error for a file that cannot be restored.

    If a file is lost, the message says which one. Otherwise it says that the command can be
    repeated.
    """
    archived = plan.archived_session
    message = (
        f"{error.filename or file.target_path} could not be restored: {error.strerror or error}"
    )
    for other_file in plan.files:
        if not os.path.lexists(other_file.target_path) and not os.path.lexists(
            other_file.source_path
        ):
            lost_message = f"{other_file.target_path} is neither in {archived.folder} nor at its original path."
            return WriteFailed(message, lost_message)
    name = archived.locator if archived.deleted_at else archived.session_id
    retry_command = f"run it again: resume-hooks restore {name}"
    return WriteFailed(message, f"Nothing is lost. After fixing the cause, {retry_command}")


def _ensure_minimum_mtime(path: str, earliest_time: float) -> None:
    """If a file's modification time is earlier than ``earliest_time``, set it to ``earliest_time``.

    With an earlier time, the client might soon delete the file because of its age.
    """
    with contextlib.suppress(FileNotFoundError):
        status = os.lstat(path)
        if status.st_mtime < earliest_time:
            os.utime(path, (status.st_atime, earliest_time), follow_symlinks=False)


def _write_file(file: RestoredFile, new_id: str, earliest_time_ns: int) -> None:
    """Write one file, read it back and check its hash.

    If ``new_id`` is given, it replaces the session's id in the lines of a transcript. The content
    is first written under a temporary name. The mode and the modification time are set before the
    file is renamed. The time is at least ``earliest_time_ns``.
    """
    new_digest, old_digest = hashlib.sha256(), hashlib.sha256()
    content = hash_and_yield(
        read_chunks(file.source_path, os.path.getsize(file.source_path)), old_digest
    )
    if new_id and file.target_path.endswith(".jsonl"):
        content = (
            set_session_id(body, new_id) + line[len(body) :]
            for line in split_lines(content)
            for body in [line.rstrip(b"\r\n")]
        )

    def check_written_file(temporary_path: str) -> None:
        if old_digest.hexdigest() != file.archived_file.sha256:
            raise CheckFailed(
                f"{file.source_path} has changed since it was stored: its hash differs",
                "No part of the file was written.",
            )
        if (
            sha256_of_file(temporary_path, os.path.getsize(temporary_path))
            != new_digest.hexdigest()
        ):
            raise CheckFailed(
                f"{file.target_path} differs from what was written",
                "No part of the file was left there.",
            )
        os.chmod(temporary_path, file.archived_file.mode & 0o777)
        os.utime(
            temporary_path, ns=(time.time_ns(), max(file.archived_file.mtime_ns, earliest_time_ns))
        )

    create_session(file.target_path, hash_and_yield(content, new_digest), check_written_file)


def _select_files_to_restore(
    archived: ArchivedSession,
    archived_files: Iterable[ArchivedFile],
    session_id: str,
    folder: str,
    source_folder: str,
    where: Where,
) -> tuple[list[RestoredFile], list[str]]:
    """Return the files to restore, and a sentence for each existing file that differs.

    For a deleted session, raises PathTaken if a different file exists at the path of a file in the
    project folder.
    """
    files, differences = [], []
    for part in archived_files:
        is_transcript = part is archived.transcript
        path = _build_target_path(part, archived.session_id, session_id, folder, where)
        file = RestoredFile(
            part, os.path.join(source_folder, *path_in_archive(part.place).split("/")), path
        )
        is_free = not os.path.lexists(path) or is_empty_file(path)
        if is_free or archived.deleted_at:
            own_folder = os.path.dirname(path)
            _require_real_folder(
                own_folder, folder if part.place.startswith(PROJECTS_FOLDER) else own_folder
            )
        if is_free and (part.size or not os.path.lexists(path)):
            files.append(file)
        elif archived.deleted_at and part.place.startswith(PROJECTS_FOLDER):
            _require_same_content(file, archived)
        elif (
            is_transcript
            or session_id != archived.session_id
            or not os.path.lexists(file.source_path)
        ):
            continue
        elif not has_same_bytes(file.source_path, path):
            differences.append(DIFFERENT_FILE_WARNING.format(path=path))
    return files, differences


def _require_same_content(file: RestoredFile, entry: ArchivedSession) -> None:
    """Raise PathTaken if the file at the target path differs from the file that would be restored.

    If the deletion was interrupted, the client may have appended to that file since then. This is
    not an error.
    """
    if os.path.lexists(file.source_path) and not has_same_bytes(file.source_path, file.target_path):
        if not entry.complete and not file.archived_file.is_link:
            with open_regular(file.target_path, follow=False) as stream:
                if begins_with_copy(stream.fileno(), file.source_path):
                    return
        if file.archived_file == entry.transcript:
            instruction = "First: resume-hooks delete"
        else:
            instruction = "First move that away:"
        raise PathTaken(
            f"{file.target_path} exists again, with different content",
            f"{instruction} {shlex.quote(file.target_path)}, then: resume-hooks restore {entry.locator}",
        )


def _build_target_path(
    archived_file: ArchivedFile, old_id: str, new_id: str, folder: str, where: Where
) -> str:
    """Return the path to which a file is restored.

    The path contains the new id in place of the old id. If the ids differ, a sub-agent's file that
    was next to the transcript is moved to the new session's folder.
    """
    first, _, rest = archived_file.place.partition("/")
    steps = rest.split("/")
    if first in FOLDERS_WITH_ID_SUBFOLDERS:
        return path_in_config_home("/".join([first, new_id, *steps[1:]]), where)
    steps_in_project = steps[1:]
    if steps_in_project[0] == f"{old_id}.jsonl":
        steps_in_project = [f"{new_id}.jsonl"]
    elif steps_in_project[0] == old_id:
        steps_in_project = [new_id, *steps_in_project[1:]]
    elif new_id != old_id:
        steps_in_project = [new_id, SUBAGENTS, *steps_in_project]
    return os.path.join(folder, *steps_in_project)


def _require_real_folder(folder: str, topmost_folder: str) -> None:
    """Raise PathTaken if ``folder`` or a parent of it, up to ``topmost_folder``, is a link or not a folder."""
    if os.path.lexists(folder) and (os.path.islink(folder) or not os.path.isdir(folder)):
        raise PathTaken(
            f"{folder} is a symbolic link, or not a folder", "Move it away, then try again."
        )
    if folder != topmost_folder:
        _require_real_folder(os.path.dirname(folder), topmost_folder)


def _choose_min_days_until_deletion(retention_days: int) -> int:
    """Return the minimum number of days that a restored session has before the client deletes it.

    ``retention_days`` is the number of days for which the client keeps a session.
    """
    return min(MIN_DAYS_UNTIL_DELETION, (retention_days + 1) // 2)


def _find_earliest_safe_mtime(cwd: str, where: Where) -> float:
    """Return the earliest time that a restored file may have, in seconds since the epoch.

    Return 0 if the client never deletes sessions.
    """
    retention = read_retention_days(cwd, where)
    if retention is None:
        return 0.0
    return time.time() - (retention - _choose_min_days_until_deletion(retention)) * DAY
