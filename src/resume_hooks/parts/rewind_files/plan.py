"""Plan which files to restore: each file's current content, its future content, and the difference.

This module writes no files. If a file cannot be restored safely, it is listed with the reason and
left out.
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

from resume_hooks.errors import CantRestore, WriteFailed
from resume_hooks.parts.rewind_files.history import digest_of_text
from resume_hooks.parts.rewind_files.safe_paths import ProjectPath, ProjectRoot
from resume_hooks.storage import project_files, safe_tree
from resume_hooks.storage.state_file import remove_stale_temporaries
from resume_hooks.system.text import plain_line

LONGEST_COMPARED = 400_000
"""The maximum number of bytes per side in a line-by-line comparison."""

MOST_LINES = 5_000
SHOWN_LINES = 60
"""The maximum number of lines shown of a file's difference."""

SHOWN_WIDTH = 240
"""The maximum number of characters shown of a line."""


class Difference(NamedTuple):
    """The numbers of added and removed lines, or None for binary files.

    ``lines`` are the lines to show, and ``more`` is the number of other lines.
    """

    added: int | None
    removed: int | None
    lines: tuple[str, ...] = ()
    more: int = 0


def compare_texts(before: bytes | None, after: bytes | None) -> Difference:
    """Return the difference between two contents of a file.

    A content of None means that there is no file.
    """
    old, new = _text_lines(before), _text_lines(after)
    if old is None or new is None:
        return Difference(
            None, None, (f"@@ not text: {_size_text(before)} -> {_size_text(after)} @@",)
        )
    if (
        max(len(before or b""), len(after or b"")) > LONGEST_COMPARED
        or max(len(old), len(new)) > MOST_LINES
    ):
        common = (Counter(old) & Counter(new)).total()
        return Difference(len(new) - common, len(old) - common, ("@@ too long to be shown @@",))
    diff_lines = list(islice(difflib.unified_diff(old, new, n=2, lineterm=""), 2, None))
    added = sum(line.startswith("+") for line in diff_lines)
    removed = sum(line.startswith("-") for line in diff_lines)
    shown_lines = tuple(
        line if len(line) <= SHOWN_WIDTH else f"{line[:SHOWN_WIDTH]}…"
        for line in diff_lines[:SHOWN_LINES]
    )
    return Difference(added, removed, shown_lines, len(diff_lines) - len(shown_lines))


def _text_lines(content: bytes | None) -> list[str] | None:
    """Return the lines of a text, or None for binary content."""
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
        return [*lines[:-1], f"{lines[-1]}  (no line end)"]
    return lines[:-1]


def _size_text(content: bytes | None) -> str:
    if content is None:
        return "no file"
    return f"{len(content):,} bytes"


MAX_FILE_BYTES = 64 * 1024 * 1024
"""The maximum size in bytes of a file that is restored or replaced."""

PERMISSIONS = 0o777
"""The mode bits that are restored. Set-user-id and similar bits are never restored."""


class StoredContent(NamedTuple):
    """A stored content: the file at the path ``parts``, relative to ``root``."""

    root: str
    parts: tuple[str, ...]


class ExpectedFile(NamedTuple):
    """The last known state of a file: the digest of its ``text`` or of its ``exact`` bytes, or a source.

    If all are empty, there was no file.
    """

    text: str = ""
    exact: str = ""
    source: StoredContent | None = None


class TargetFile(NamedTuple):
    """The target state of a file: the content of its ``source``, or no file without a source.

    If ``mode`` is None, the source's mode is used. ``why`` explains why there is no source, or is
    ``""``. If ``expected`` is None, the last known state is unknown.
    """

    place: ProjectPath
    source: StoredContent | None = None
    mode: int | None = None
    why: str = ""
    expected: ExpectedFile | None = None
    folder: str = ""


class FileVersion(NamedTuple):
    """The digest of a file's content, and its mode."""

    digest: str
    size: int
    mode: int


class FileChange(NamedTuple):
    """The change of one file in a plan.

    ``action`` is restore, create, delete, or none. ``why`` is a sentence's end that explains why
    the file is left alone: its backup is ``missing``, or the change was refused. ``changed_since``
    is true if the file differs from the last state that the session knew.
    """

    place: ProjectPath
    action: str
    why: str = ""
    missing: bool = False
    source: StoredContent | None = None
    before: FileVersion | None = None
    after: FileVersion | None = None
    over: os.stat_result | None = None
    changed_since: bool | None = None
    difference: Difference = Difference(0, 0)

    @property
    def is_refused(self) -> bool:
        """Whether the file cannot be restored."""
        return bool(self.why)


@dataclass(frozen=True)
class FilesPlan:
    """The files to restore, relative to ``root``; an undo also removes ``folders`` that become empty.

    ``takes_back`` is the time of the run that an undo reverts. In any other plan it is ``""``.
    """

    session_id: str
    root: ProjectRoot
    changes: tuple[FileChange, ...]
    folders: tuple[str, ...] = ()
    takes_back: str = ""

    @property
    def changes_to_write(self) -> tuple[FileChange, ...]:
        """The changes that must be written."""
        return tuple(change for change in self.changes if change.action != "none")

    @property
    def refused_changes(self) -> tuple[FileChange, ...]:
        """The changes of files that cannot be restored."""
        return tuple(change for change in self.changes if change.is_refused)


def plan_files(session_id: str, root: ProjectRoot, targets: Iterable[TargetFile]) -> FilesPlan:
    """Compare each target state with the disk.

    Raise CantRestore if the project's folder cannot be opened.
    """
    if not safe_tree.HAS_DIR_FD:
        raise CantRestore(
            "This system can't open a file without following links", "Use the client's own /rewind."
        )
    try:
        with safe_tree.open_root(root.real) as root_descriptor:
            changes = tuple(_plan_change(root, root_descriptor, target) for target in targets)
    except OSError as error:
        raise CantRestore(
            f"The session's folder can't be opened: {root.folder} ({error.strerror})",
            "Was the project moved?",
        ) from error
    return FilesPlan(session_id, root, changes)


def read_project_file(
    root: ProjectRoot, root_descriptor: int, place: ProjectPath
) -> tuple[bytes | None, os.stat_result | None]:
    """Return the content and state of a file, without following links, or (None, None) if there is no file.

    Raise WriteFailed if the file must not be changed.

    A read-only file can be restored, because only the folder's permission matters, as in git.
    """
    path = os.path.join(root.real, place.path)
    try:
        with safe_tree.open_folder(root_descriptor, place.parts[:-1]) as folder:
            content, state = project_files.read_file_and_state(path, MAX_FILE_BYTES, folder)
            if state is not None and state.st_nlink > 1:
                remove_stale_temporaries(
                    os.path.dirname(path)
                )  # the second name may remain from a killed run
                content, state = project_files.read_file_and_state(path, MAX_FILE_BYTES, folder)
    except FileNotFoundError:
        return None, None
    except OSError as error:
        raise project_files.write_error(path, error) from error
    if state is not None and state.st_nlink > 1:
        raise WriteFailed(f"{path} has other names (hard links), so it was left alone")
    return (content if state else None), state


def check_folder_writable(root_descriptor: int, place: ProjectPath) -> None:
    """Raise WriteFailed if we cannot write to the folder of a file, or to the folder in which it would be created."""
    if not safe_tree.is_writable_folder(root_descriptor, place.parts[:-1]):
        raise WriteFailed(
            f"nothing can be written to the folder of {plain_line(place.path)}",
            "No file was changed. Make the folder writable.",
        )


def read_stored(source: StoredContent) -> tuple[bytes, int]:
    """Return a stored content and its mode.

    Raise OSError or WriteFailed if it is gone or not a regular file.
    """
    content, state = safe_tree.read_file_below(source.root, source.parts, MAX_FILE_BYTES)
    return content, state.st_mode


def version_of(content: bytes, mode: int) -> FileVersion:
    """Return a content's version, which consists of its digest and mode."""
    return FileVersion(
        hashlib.sha256(content).hexdigest(), len(content), stat.S_IMODE(mode) & PERMISSIONS
    )


def _plan_change(root: ProjectRoot, root_descriptor: int, target: TargetFile) -> FileChange:
    place = target.place
    if place.why or root.was_behind_link(place, target.folder):
        return FileChange(place, "none", why=place.why or "it was behind a link")
    if target.why:
        return FileChange(place, "none", why=target.why, missing=True)
    try:
        current, state = read_project_file(root, root_descriptor, place)
    except WriteFailed as error:
        return FileChange(place, "none", why=failure_reason(error))
    try:
        content, mode = _read_source(target.source)
    except (OSError, WriteFailed) as error:
        return FileChange(
            place,
            "none",
            why=f"its backup can't be read ({failure_reason(error)})",
            missing=True,
        )
    before = version_of(current, state.st_mode) if current is not None and state else None
    after = (
        version_of(content, mode if target.mode is None else target.mode)
        if content is not None
        else None
    )
    changed_since = _has_changed(current, target.expected)
    if before == after:
        return FileChange(place, "none", before=before, after=after, changed_since=changed_since)
    try:
        check_folder_writable(root_descriptor, place)
    except (OSError, WriteFailed) as error:
        return FileChange(place, "none", why=failure_reason(error))
    action = "create" if before is None else "delete" if after is None else "restore"
    return FileChange(
        place,
        action,
        source=target.source,
        before=before,
        after=after,
        over=state,
        changed_since=changed_since,
        difference=compare_texts(current, content),
    )


def _read_source(source: StoredContent | None) -> tuple[bytes | None, int]:
    if source is not None:
        return read_stored(source)
    return (None, 0)


def _has_changed(current: bytes | None, expected: ExpectedFile | None) -> bool | None:
    """Check whether a file differs from its last state in the session. Return None if that state is unknown."""
    if expected is None:
        return None
    if expected.text:
        return current is None or digest_of_text(current) != expected.text
    if expected.exact:
        return current is None or version_of(current, 0).digest != expected.exact
    try:
        return current != _read_source(expected.source)[0]
    except (OSError, WriteFailed):
        return None


def failure_reason(error: OSError | WriteFailed) -> str:
    """Return the reason why a file cannot be read or written."""
    if isinstance(error, WriteFailed):
        return error.message
    return error.strerror or str(error)
