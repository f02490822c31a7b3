"""Plan which files to restore, with the current and the future content of each file.

No files are written here. A file that cannot be restored safely is in the plan with the reason, and
will not be changed.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from resume_hooks.errors import RestoreFailed, WriteFailed
from resume_hooks.parts.rewind_files.history import hash_content_ignoring_line_ends
from resume_hooks.parts.rewind_files.safe_paths import ProjectPath, ProjectRoot
from resume_hooks.storage import project_files, safe_tree
from resume_hooks.storage.state_file import remove_stale_temporaries
from resume_hooks.system.text import plain_line

MAX_COMPARED_BYTES = 400_000
"""Maximum number of bytes of a text that is compared line by line."""

MAX_COMPARED_LINES = 5_000
MAX_SHOWN_LINES = 60
"""Maximum number of lines to show of a file's difference."""

MAX_SHOWN_LINE_CHARACTERS = 240
"""Maximum number of characters that are shown of each line in a difference."""


class Difference(NamedTuple):
    """The difference between two versions of a file.

    ``added_line_count`` and ``removed_line_count`` are None if the file is not text. ``lines`` are
    the lines to show, and ``hidden_line_count`` is the number of lines that are not shown.
    """

    added_line_count: int | None
    removed_line_count: int | None
    lines: tuple[str, ...] = ()
    hidden_line_count: int = 0


def compare_texts(before: bytes | None, after: bytes | None) -> Difference:
    """Return the difference between two versions of a file.

    ``before`` or ``after`` is None if the file does not exist in that version.
    """
    old_lines, new_lines = _split_text_lines(before), _split_text_lines(after)
    if old_lines is None or new_lines is None:
        return Difference(
            None, None, (f"@@ not text: {_format_size(before)} -> {_format_size(after)} @@",)
        )
    if (
        max(len(before or b""), len(after or b"")) > MAX_COMPARED_BYTES
        or max(len(old_lines), len(new_lines)) > MAX_COMPARED_LINES
    ):
        common_count = (Counter(old_lines) & Counter(new_lines)).total()
        return Difference(
            len(new_lines) - common_count,
            len(old_lines) - common_count,
            ("@@ too long to be shown @@",),
        )
    diff_lines = list(islice(difflib.unified_diff(old_lines, new_lines, n=2, lineterm=""), 2, None))
    added_count = sum(line.startswith("+") for line in diff_lines)
    removed_count = sum(line.startswith("-") for line in diff_lines)
    shown_lines = tuple(
        line if len(line) <= MAX_SHOWN_LINE_CHARACTERS else f"{line[:MAX_SHOWN_LINE_CHARACTERS]}…"
        for line in diff_lines[:MAX_SHOWN_LINES]
    )
    return Difference(added_count, removed_count, shown_lines, len(diff_lines) - len(shown_lines))


def _split_text_lines(content: bytes | None) -> list[str] | None:
    """Return the lines of a text, or None if the content is not text."""
    if content is None or not content:
        return []
    if b"\0" in content:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    lines = text.split("\n")
    if lines[-1]:
        return [*lines[:-1], f"{lines[-1]}  (no line break at the end)"]
    return lines[:-1]


def _format_size(content: bytes | None) -> str:
    if content is None:
        return "no file"
    return f"{len(content):,} bytes"


MAX_FILE_BYTES = 64 * 1024 * 1024
"""Maximum number of bytes of a file that is restored or replaced."""

PERMISSION_BITS = 0o777
"""The bits of a file's mode that are restored. Set-user-id and similar bits are never restored."""


class StoredFilePath(NamedTuple):
    """Content that is stored in the file with the path ``path_parts`` below the folder ``root_folder``."""

    root_folder: str
    path_parts: tuple[str, ...]


class ExpectedFile(NamedTuple):
    """The last state of a file that the session recorded.

    The state is described by the digest of the file's text, by the digest of the file's bytes, or
    by ``source``, a stored copy. If all of these are empty, the file did not exist.
    """

    text_digest: str = ""
    content_digest: str = ""
    source: StoredFilePath | None = None


class TargetFile(NamedTuple):
    """The state to which a file is to be restored.

    ``source`` is the stored content, or None if the file is to be deleted. If ``mode`` is None, the
    file gets the mode of the stored file. If ``refusal_reason`` is not empty, it explains why the
    file cannot be restored. ``expected_file`` is the last state that the session recorded, or None
    if it is unknown. ``recorded_folder`` is the file's folder without symbolic links at the time of
    the backup, or ``""`` if it is unknown.
    """

    path_in_project: ProjectPath
    source: StoredFilePath | None = None
    mode: int | None = None
    refusal_reason: str = ""
    expected_file: ExpectedFile | None = None
    recorded_folder: str = ""


class FileVersion(NamedTuple):
    """The digest, the size and the mode of a file."""

    content_digest: str
    byte_count: int
    mode: int


class FileChange(NamedTuple):
    """The planned change to one file.

    ``action`` is ``restore``, ``create``, ``delete`` or ``none``. If the file cannot be restored,
    ``refusal_reason`` is the end of a sentence that says why. ``is_missing`` is true if the file's
    backup is missing. ``differs_from_known_state`` is true if the file differs from the last state
    that the session knew, and None if that state is unknown.
    """

    path_in_project: ProjectPath
    action: str
    refusal_reason: str = ""
    is_missing: bool = False
    source: StoredFilePath | None = None
    old_version: FileVersion | None = None
    new_version: FileVersion | None = None
    replaced_file_status: os.stat_result | None = None
    differs_from_known_state: bool | None = None
    difference: Difference = Difference(0, 0)

    @property
    def is_refused(self) -> bool:
        """Whether the file cannot be restored."""
        return bool(self.refusal_reason)


@dataclass(frozen=True)
class FilesPlan:
    """A plan to restore the files below ``root``.

    ``folders_to_remove`` are removed after an undo if they are empty. ``time_of_undone_run`` is
    the time of the run that an undo reverts, or ``""`` if the plan is not an undo.
    """

    session_id: str
    root: ProjectRoot
    changes: tuple[FileChange, ...]
    folders_to_remove: tuple[str, ...] = ()
    time_of_undone_run: str = ""

    @property
    def changes_to_write(self) -> tuple[FileChange, ...]:
        """The changes that must be written to disk."""
        return tuple(change for change in self.changes if change.action != "none")

    @property
    def refused_changes(self) -> tuple[FileChange, ...]:
        """The files that cannot be restored, each with the reason."""
        return tuple(change for change in self.changes if change.is_refused)


def plan_file_changes(
    session_id: str, root: ProjectRoot, targets: Iterable[TargetFile]
) -> FilesPlan:
    """Plan the change of each file by comparing its target state with the file on disk.

    Raises RestoreFailed if the project's folder cannot be opened.
    """
    if not safe_tree.CAN_OPEN_RELATIVE_PATHS:
        raise RestoreFailed(
            "This system can't open a file without following links", "Use the client's own /rewind."
        )
    try:
        with safe_tree.open_root(root.real_path) as root_descriptor:
            changes = tuple(_plan_change(root, root_descriptor, target) for target in targets)
    except OSError as error:
        raise RestoreFailed(
            f"The session's folder can't be opened: {root.folder} ({error.strerror})",
            "Was the project moved?",
        ) from error
    return FilesPlan(session_id, root, changes)


def read_project_file(
    root: ProjectRoot, root_descriptor: int, path_in_project: ProjectPath
) -> tuple[bytes | None, os.stat_result | None]:
    """Return the content and the status of a file, following no symbolic links.

    If the file does not exist, return None and None. Raises WriteFailed if the file must not be
    changed. A read-only file may be changed: as in git, replacing a file requires only the
    permission to write to its folder.
    """
    path = os.path.join(root.real_path, path_in_project.path)
    try:
        with safe_tree.open_folder(root_descriptor, path_in_project.parts[:-1]) as folder:
            content, state = project_files.read_file_and_state(path, MAX_FILE_BYTES, folder)
            if state is not None and state.st_nlink > 1:
                # A killed run may have left a hard link to this file, with the name of a temporary
                # file.
                remove_stale_temporaries(os.path.dirname(path))
                content, state = project_files.read_file_and_state(path, MAX_FILE_BYTES, folder)
    except FileNotFoundError:
        return None, None
    except OSError as error:
        raise project_files.make_write_error(path, error) from error
    if state is not None and state.st_nlink > 1:
        raise WriteFailed(f"{path} has other names (hard links), so it was left alone")
    return (content if state else None), state


def require_writable_folder(root_descriptor: int, path_in_project: ProjectPath) -> None:
    """Raise WriteFailed if the permissions of a file's folder do not allow writing the file.

    If the folder does not exist, the folder in which it would be created is checked.
    """
    if not safe_tree.is_writable_folder(root_descriptor, path_in_project.parts[:-1]):
        raise WriteFailed(
            f"nothing can be written to the folder of {plain_line(path_in_project.path)}",
            "No file was changed. Make the folder writable.",
        )


def read_content_and_mode(source: StoredFilePath) -> tuple[bytes, int]:
    """Return the stored bytes of a file, and the mode of the file that stores them.

    Raise OSError or WriteFailed if the file does not exist or is not a regular file.
    """
    content, state = safe_tree.read_file_below(
        source.root_folder, source.path_parts, MAX_FILE_BYTES
    )
    return content, state.st_mode


def make_file_version(content: bytes, mode: int) -> FileVersion:
    """Return the digest, the size and the permission bits of a file with this content and mode."""
    return FileVersion(
        hashlib.sha256(content).hexdigest(), len(content), stat.S_IMODE(mode) & PERMISSION_BITS
    )


def _plan_change(root: ProjectRoot, root_descriptor: int, target: TargetFile) -> FileChange:
    place = target.path_in_project
    if place.refusal_reason or root.was_reached_through_link(place, target.recorded_folder):
        return FileChange(
            place, "none", refusal_reason=place.refusal_reason or "it was behind a link"
        )
    if target.refusal_reason:
        return FileChange(place, "none", refusal_reason=target.refusal_reason, is_missing=True)
    try:
        current_content, state = read_project_file(root, root_descriptor, place)
    except WriteFailed as error:
        return FileChange(place, "none", refusal_reason=format_failure_reason(error))
    try:
        content, mode = _read_content_and_mode(target.source)
    except (OSError, WriteFailed) as error:
        return FileChange(
            place,
            "none",
            refusal_reason=f"its backup can't be read ({format_failure_reason(error)})",
            is_missing=True,
        )
    current_version = (
        make_file_version(current_content, state.st_mode)
        if current_content is not None and state
        else None
    )
    target_version = (
        make_file_version(content, mode if target.mode is None else target.mode)
        if content is not None
        else None
    )
    differs_from_known_state = _has_changed(current_content, target.expected_file)
    if current_version == target_version:
        return FileChange(
            place,
            "none",
            old_version=current_version,
            new_version=target_version,
            differs_from_known_state=differs_from_known_state,
        )
    try:
        require_writable_folder(root_descriptor, place)
    except (OSError, WriteFailed) as error:
        return FileChange(place, "none", refusal_reason=format_failure_reason(error))
    action = (
        "create" if current_version is None else "delete" if target_version is None else "restore"
    )
    return FileChange(
        place,
        action,
        source=target.source,
        old_version=current_version,
        new_version=target_version,
        replaced_file_status=state,
        differs_from_known_state=differs_from_known_state,
        difference=compare_texts(current_content, content),
    )


def _read_content_and_mode(source: StoredFilePath | None) -> tuple[bytes | None, int]:
    if source is not None:
        return read_content_and_mode(source)
    return (None, 0)


def _has_changed(current: bytes | None, expected: ExpectedFile | None) -> bool | None:
    """Check whether a file differs from the last state that the session recorded.

    Return None if that state is unknown.
    """
    if expected is None:
        return None
    if expected.text_digest:
        return current is None or hash_content_ignoring_line_ends(current) != expected.text_digest
    if expected.content_digest:
        return (
            current is None
            or make_file_version(current, 0).content_digest != expected.content_digest
        )
    try:
        return current != _read_content_and_mode(expected.source)[0]
    except (OSError, WriteFailed):
        return None


def format_failure_reason(error: OSError | WriteFailed) -> str:
    """Return the end of a sentence that says why a file cannot be read or written."""
    if isinstance(error, WriteFailed):
        return error.message
    return error.strerror or str(error)
