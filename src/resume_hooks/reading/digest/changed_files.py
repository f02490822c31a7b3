"""List the files that a session changed or read, the steps in its plan, and its artefacts.

Artefacts are commits, pull requests and releases.
"""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from resume_hooks.reading.digest import shell
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.commits import Commit
from resume_hooks.reading.digest.entries import DigestEntry, make_entry
from resume_hooks.reading.digest.facts import FileChange, RecordPosition
from resume_hooks.reading.digest.file_states import (
    NOT_COMMITTED_STATE,
    POSSIBLY_UNCOMMITTED_STATES,
    FileEdit,
    FileStates,
)
from resume_hooks.reading.digest.git_seen import FolderRemoval
from resume_hooks.reading.digest.repository import RepositoryState
from resume_hooks.reading.digest.script_writes import find_files_written_by_scripts
from resume_hooks.reading.digest.session_commands import TEMPORARY_PATH_PATTERN, ShellCommand
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import format_count, plain_line

# The maximum number of characters of a displayed path. Only the end of a longer path is shown.
MAX_PATH_CHARACTERS = 300
# The note on a file if only the output of git shows that the file was changed.
NAMED_BY_GIT_NOTE = "named by git only"
# The note on a file if only a sub-agent's report says that the file was changed.
NOTE_ON_FILE_NAMED_IN_REPORT = "according to a sub-agent's report"
# The note on a file if the command that changes it failed, perhaps before it wrote the file.
COMMAND_FAILED_NOTE = "its command failed"
REMOVED_NOTE = "removed"
MOVED_NOTE = "moved to a path that contains a variable"
# At most this many changed files are read from a single command.
MAX_FILES_PER_COMMAND = 60
# The maximum number of files listed that are known to be changed only from git's output.
MAX_FILES_KNOWN_ONLY_FROM_GIT = 8
# At most this many characters in a program's output are searched for the names of the files that
# the program wrote.
MAX_SEARCHED_OUTPUT_CHARACTERS = 20_000
# At most this many changed files are read from a single output of git.
MAX_FILES_IN_GIT_OUTPUT = 300


def is_temporary(path: str, checkouts: Sequence[str] = ()) -> bool:
    """Check whether a path is temporary, for example in ``/tmp``.

    If the path is in one of the session's checkouts, only its part inside the checkout is checked,
    because work in a checkout is not temporary, even if the checkout is in a temporary folder.
    """
    for folder in checkouts:
        if path.startswith(f"{folder}/"):
            path = path[len(folder) + 1 :]
            break
    return TEMPORARY_PATH_PATTERN.search(path) is not None


_WINDOWS_PATH_PATTERN = compile_lazily(r"[A-Za-z]:[\\/]|\\\\")
_URL_PATTERN = compile_lazily(r"https://[^\s\"'<>)\]]{1,500}")
_ARTEFACT_LINK_PATTERN = compile_lazily(
    r"https://.*/(?:(?:pull|merge_requests|issues|runs)/\d+|releases/tag/[\w.-]+)"
)
_ARTEFACT_COMMAND_PATTERN = compile_lazily(
    r"\b(?:gh|glab|hub)\s+(?:pr|mr|issue|release)\s+(?:create|new)\b|\bgit\s+(?:-\S+\s+\S+\s+)*push\b"
)
_FORCED_REMOVAL_PATTERN = compile_lazily(
    r"\brm\s+-(?:[a-zA-Z]*[rR][a-zA-Z]*f|[a-zA-Z]*f[a-zA-Z]*[rR])"
)


class FileTouch(NamedTuple):
    """One change to a file, in the record at ``position``.

    ``doubt_note`` says why the change is uncertain, or is ``""``. ``is_removed`` means that a
    successful command removed the file. ``is_new`` means that the file did not exist before.
    """

    position: RecordPosition
    doubt_note: str = ""
    is_removed: bool = False
    is_new: bool = False


class SessionPaths:
    """Converts paths to paths relative to the session's home folder, and looks up their state in git."""

    def __init__(self, folder: str, git: RepositoryState) -> None:
        self.folder = folder
        self._git = git
        self._relative: dict[tuple[str, str], str] = {}

    def make_relative_path(self, path: str, folder: str = "") -> str:
        """Return the path relative to the home folder, or the absolute path if it is outside that folder.

        A relative ``path`` starts at ``folder``, and a relative ``folder`` starts at the home
        folder.
        """
        relative_path = self._relative.get((path, folder))
        # Each result is cached, because a session mentions the same files many times.
        if relative_path is None:
            relative_path = self._relative[path, folder] = self._compute_relative_path(path, folder)
        return relative_path

    def _compute_relative_path(self, path: str, folder: str) -> str:
        home_folder = self.folder
        path_module = (
            ntpath
            if _WINDOWS_PATH_PATTERN.match(home_folder) or _WINDOWS_PATH_PATTERN.match(path)
            else posixpath
        )
        full_path = (
            path
            if path.startswith("~")
            else path_module.normpath(path_module.join(home_folder, folder, path))
        )
        is_inside = home_folder and full_path.startswith(path_module.join(home_folder, ""))
        return str(full_path[len(path_module.join(home_folder, "")) :] if is_inside else full_path)

    def find_git_root(self, folder: str) -> str:
        """Return the folder to which paths in git's output are relative if git ran in ``folder``.

        This folder is the root of the session's repository, or the home folder if the root is
        unknown. If ``folder`` is not inside that root, the result is ``folder`` itself.
        """
        known_root = self._git.root_folder or self.folder
        if f"{folder}/".startswith(f"{known_root}/"):
            return known_root
        return folder

    def is_in_repository(self, path: str) -> bool:
        """Check whether a relative path is inside the repository.

        The result is False if the root folder of the repository is unknown.
        """
        root = self._git.root_folder
        return bool(root) and f"{posixpath.join(self.folder, path)}/".startswith(f"{root}/")

    def is_dirty(self, path: str) -> bool:
        """Check whether the file at a relative path has uncommitted changes."""
        root, dirty = self._git.root_folder, self._git.dirty_paths
        return bool(dirty) and posixpath.relpath(posixpath.join(self.folder, path), root) in dirty


def collect_touched_files(
    changes: Sequence[FileChange], commands: Sequence[ShellCommand], paths: SessionPaths
) -> dict[str, list[FileTouch]]:
    """Return the changes to each file, by the file's relative path.

    A change is known from a tool call, from the text of a command, or from the output of git or
    another program.
    """
    touches_by_path: dict[str, list[FileTouch]] = {}
    for change in changes:
        doubt_note = NOTE_ON_FILE_NAMED_IN_REPORT if change.is_known_only_from_report else ""
        touches_by_path.setdefault(paths.make_relative_path(change.path, change.folder), []).append(
            FileTouch(change.position, doubt_note, is_new=change.is_new)
        )
    for command in commands:
        doubt_note = COMMAND_FAILED_NOTE if command.run.has_failed else ""
        removed_paths = _find_certainly_removed_paths(command)
        for path, is_gone in islice(shell.find_changed_paths(command.parts), MAX_FILES_PER_COMMAND):
            name = paths.make_relative_path(path, command.run.folder)
            is_removed = is_gone and (_proves_removal(command) or path in removed_paths)
            touch = FileTouch(command.run.position, "" if is_removed else doubt_note, is_removed)
            touches_by_path.setdefault(name, []).append(touch)
            if is_removed:
                _mark_files_removed_with_folder(touches_by_path, name, touch.position.order)
        for path in islice(_find_script_files(command), MAX_FILES_PER_COMMAND):
            touches_by_path.setdefault(paths.make_relative_path(path), []).append(
                FileTouch(command.run.position, doubt_note)
            )
    listed_paths = _add_listed_files(touches_by_path, changes, commands, paths)
    _add_reported_files(touches_by_path, commands, paths, listed_paths)
    return touches_by_path


def _find_script_files(command: ShellCommand) -> Iterator[str]:
    """Yield the paths of the files that scripts in a command write.

    If the command works in several folders, the result is empty.
    """
    names = find_files_written_by_scripts(command.run.command)
    if not names:
        return
    folder = command.run_folder
    folder_changes = [
        part.words for part in command.parts if part.words[:1] in {("cd",), ("pushd",)}
    ]
    if folder and len(folder_changes) <= 1:
        for name in names:
            yield posixpath.join(folder, name)


def _proves_removal(command: ShellCommand) -> bool:
    """Check whether a successful command certainly removed the paths that it names."""
    if not command.has_worked:
        return False
    # With ``-f``, the command also succeeds if the path does not exist.
    is_forced = _FORCED_REMOVAL_PATTERN.search(command.run.command) is not None
    return is_forced or shell.does_status_cover_all_parts(command.run.command)


def _find_certainly_removed_paths(command: ShellCommand) -> frozenset[str]:
    """Return the paths that a command certainly removed, even if other parts of the command failed.

    The last part certainly worked if the whole command succeeded. A first part such as ``rm -f``
    certainly worked if ``rm`` printed no error message.
    """
    if "rm " not in command.run.command:
        return frozenset()
    start_parts = [part for part in command.parts if part.words[:1] == ("cd",)]
    parts = [part for part in command.parts if part not in start_parts]
    sure_parts = parts[-1:] if command.has_worked else []
    if (
        parts
        and "rm: " not in command.run.output
        and parts[0].words[:2] in _FORCED_REMOVAL_COMMANDS
    ):
        sure_parts.append(parts[0])
    removed_paths: set[str] = set()
    for part in sure_parts:
        for path, is_gone in shell.find_changed_paths((*start_parts, part)):
            if is_gone:
                removed_paths.add(path)
    return frozenset(removed_paths)


_FORCED_REMOVAL_COMMANDS = (("rm", "-f"), ("rm", "-rf"), ("rm", "-fr"))


def _mark_files_removed_with_folder(
    touches_by_path: dict[str, list[FileTouch]], folder: str, removal_order: int
) -> None:
    """Mark the files in a removed folder as removed, except those that were changed after its removal."""
    prefix = f"{folder.rstrip('/')}/"
    for path, touches in touches_by_path.items():
        if path.startswith(prefix):
            earlier_touches = [touch for touch in touches if touch.position.order < removal_order]
            if earlier_touches:
                last_touch = max(earlier_touches, key=lambda touch: touch.position.order)
                touches.append(last_touch._replace(is_removed=True))


def _add_listed_files(
    touches_by_path: dict[str, list[FileTouch]],
    changes: Sequence[FileChange],
    commands: Sequence[ShellCommand],
    paths: SessionPaths,
) -> set[str]:
    """Add the files that git listed as changed.

    Files that git already listed before the session's first change are left out. Return all files
    that git listed, including untracked files.
    """
    # A file that git listed before the first command that may change files was not changed by the
    # session.
    working_orders = (
        c.run.position.order
        for c in commands
        if c.program and not c.program.startswith(("git ", "gh "))
    )
    first_change = min(
        (*(change.position.order for change in changes[:1]), *working_orders), default=0
    )
    listed_before: set[str] = set()
    all_listed: set[str] = set()
    for command in commands:
        # A dict contains each file once, in git's order. The order of a set differs between
        # processes.
        listed_paths = dict.fromkeys(
            islice(_list_files_in_git_output(command, paths), MAX_FILES_IN_GIT_OUTPUT)
        )
        all_listed.update(listed_paths, _list_untracked_files(command, paths))
        if command.run.position.order < first_change:
            listed_before.update(listed_paths)
            continue
        for path in listed_paths:
            if path not in listed_before:
                touches_by_path.setdefault(path, []).append(
                    FileTouch(command.run.result_position, NAMED_BY_GIT_NOTE)
                )
    return all_listed


def _add_reported_files(
    touches_by_path: dict[str, list[FileTouch]],
    commands: Sequence[ShellCommand],
    paths: SessionPaths,
    listed_paths: Collection[str],
) -> None:
    """Add the files that a program reported as written, if git listed them as changed at any time."""
    if not listed_paths:
        return
    for command in commands:
        if not command.program or not command.may_have_succeeded:
            continue
        output = command.run.output[:MAX_SEARCHED_OUTPUT_CHARACTERS]
        lower_output = output.lower()
        if not any(stem in lower_output for stem in _WRITING_WORD_STEMS):
            continue  # Checking for a few words first is faster than searching with the pattern.
        folder = command.run.folder
        announced = dict.fromkeys(_WRITTEN_FILE_IN_OUTPUT_PATTERN.findall(output))
        names = (paths.make_relative_path(path, folder) for path in announced)
        # Only files that git listed as changed count, because a code generator may print the names
        # of hundreds of files that it did not change.
        changed_names = (name for name in names if name in listed_paths)
        for name in islice(changed_names, MAX_FILES_PER_COMMAND):
            touches_by_path.setdefault(name, []).append(FileTouch(command.run.position))


_WRITING_WORD_STEMS = ("creat", "updat", "writ", "generat", "sav", "wrote")
_WRITTEN_FILE_IN_OUTPUT_PATTERN = compile_lazily(
    r"(?i:\b(?:creat|updat|writ|generat|sav)(?:ed|ing|ten)|\bwrote)\b[^\n/'\"`]{0,80}?[\s'\"`]"
    r"(/?[\w@.-]{1,80}(?:/[\w@.-]{1,80}){0,20}\.\w{1,10})(?![\w/])"
)


def _list_files_in_git_output(command: ShellCommand, paths: SessionPaths) -> Iterator[str]:
    if (
        "git" not in command.run.command
        or (target_folder := shell.find_start_folder(command.parts)) is None
    ):
        return
    folder = posixpath.join(command.run.folder, target_folder)
    git_listing = shell.parse_git_listing(command.parts, command.run.output)
    yield from (paths.make_relative_path(path, folder) for path in git_listing.relative_paths)
    yield from (
        paths.make_relative_path(path, paths.find_git_root(folder))
        for path in git_listing.root_paths
    )


def _list_untracked_files(command: ShellCommand, paths: SessionPaths) -> Iterator[str]:
    """Yield the untracked files in the output of ``git status --short``."""
    if "status" not in command.run.command or "git" not in command.run.command:
        return
    folder = command.run_folder
    for path in islice(
        _UNTRACKED_ROW_PATTERN.findall(f"\n{command.run.output}"), MAX_FILES_IN_GIT_OUTPUT
    ):
        yield paths.make_relative_path(path, folder)


_UNTRACKED_ROW_PATTERN = compile_lazily(r"\n\?\? ([^\n\"]{1,300})")


def find_missing_files(
    touches_by_path: Mapping[str, Sequence[FileTouch]],
    commands: Sequence[ShellCommand],
    paths: SessionPaths,
) -> set[str]:
    """Return the changed files that a later command could not find, including those in missing folders."""
    missing_paths: set[str] = set()
    for command in commands:
        if "No such file" not in command.run.output:
            continue
        target_folder = shell.find_start_folder(command.parts)
        for name in _MISSING_FILE_PATTERN.findall(f"\n{command.run.output}"):
            if target_folder is None and not name.startswith("/"):
                continue
            missing_path = paths.make_relative_path(
                name, posixpath.join(command.run.folder, target_folder or "")
            )
            for path, touches in touches_by_path.items():
                last_order = max(touch.position.order for touch in touches)
                if (
                    f"{path}/".startswith(f"{missing_path}/")
                    and last_order < command.run.position.order
                ):
                    missing_paths.add(path)
    return missing_paths


_MISSING_FILE_PATTERN = compile_lazily(
    r"\n(?:ls|cat|stat|sed|head|tail|wc): (?:cannot (?:access|open|stat) |can't read )?"
    r"['\"]?([^\n:'\"]{1,300})['\"]?(?: for reading)?: No such file or directory"
)


def list_edits(touches_by_path: Mapping[str, Sequence[FileTouch]]) -> list[FileEdit]:
    """Return the changes that tools and commands made, including those that a sub-agent reported.

    Uncertain changes are left out.
    """
    edits: list[FileEdit] = []
    for path, touches in touches_by_path.items():
        for touch in touches:
            if touch.doubt_note in {"", NOTE_ON_FILE_NAMED_IN_REPORT}:
                edits.append(FileEdit(path, touch.position.order, touch.is_new, touch.is_removed))
    return edits


def find_files_only_git_lists(touches_by_path: Mapping[str, Sequence[FileTouch]]) -> list[str]:
    """Return the files that only git's listings show as changed."""
    paths: list[str] = []
    for path, touches in touches_by_path.items():
        if all(touch.doubt_note == NAMED_BY_GIT_NOTE for touch in touches):
            paths.append(path)
    return paths


def list_changed_files(
    touches_by_path: Mapping[str, list[FileTouch]],
    paths: SessionPaths,
    states: FileStates,
    branch: str,
    removals: Sequence[FolderRemoval],
    checkouts: Sequence[str] = (),
) -> Iterator[DigestEntry]:
    """Yield the changed files, each with its state at the session's end.

    Files in the home folder come before other files, certain changes before uncertain ones,
    uncommitted files before committed ones, and recent changes before older ones. ``removals``
    contains each removed folder with the sequence number of the command that removed it. Temporary
    files are left out, except in the session's ``checkouts``.

    For some files, only git's output shows that they were changed. If there are many of them,
    somebody else may have changed them. In that case, only those that the session committed are
    listed.
    """

    def make_path_sort_key(path: str) -> tuple[bool, bool, bool, int, str]:
        latest = max(touch.position.order for touch in touches_by_path[path])
        is_outside = (
            path.startswith(("/", "~", "..")) or _WINDOWS_PATH_PATTERN.match(path) is not None
        )
        is_unsure = all(touch.doubt_note for touch in touches_by_path[path])
        is_settled = (
            _format_state_note(path, paths, states, branch) not in POSSIBLY_UNCOMMITTED_STATES
        )
        return is_outside, is_unsure, is_settled, -latest, path

    contents = _collect_folder_contents(touches_by_path)
    removed_folders = {
        path for path in contents if _find_last_touch(touches_by_path[path]).is_removed
    }
    removed_with_folder = {
        inner
        for path in removed_folders
        for inner in contents[path]
        if _find_last_touch(touches_by_path[inner]).is_removed
    }
    foreign_files = _find_files_changed_by_others(touches_by_path, paths, states, branch)
    listed_only = set(find_files_only_git_lists(touches_by_path)) - foreign_files
    listed_count = 0
    for path in sorted(touches_by_path, key=make_path_sort_key):
        if is_temporary(path, checkouts) or path in removed_with_folder or path in foreign_files:
            continue
        # The path is a folder that a command changed, and changed files in the folder are listed
        # too.
        if path in contents:
            if path in removed_folders:
                files = format_count(
                    sum(inner in removed_with_folder for inner in contents[path]), "file"
                )
                removal_note = _format_removal_note(path, states, touches_by_path)
                position = str(_find_last_touch(touches_by_path[path]).position)
                yield DigestEntry(
                    f"{_shorten_path(path)}/", position, f"{removal_note} with {files}"
                )
            continue
        last_touch = _find_last_touch(touches_by_path[path])
        is_removed = last_touch.is_removed or path in states.removed_paths
        if states.was_reverted(path) and not is_removed:
            continue
        listed_count += path in listed_only
        if listed_count > MAX_FILES_KNOWN_ONLY_FROM_GIT:
            continue  # Git may have listed hundreds of files.
        if is_removed:
            state = _format_removal_note(path, states, touches_by_path)
        else:
            state = _format_state_note(path, paths, states, branch)
        entry = _make_file_entry(path, last_touch, state, removals)
        if path in listed_only and listed_count == MAX_FILES_KNOWN_ONLY_FROM_GIT < len(listed_only):
            other_files = format_count(len(listed_only) - MAX_FILES_KNOWN_ONLY_FROM_GIT, "other")
            entry = entry._replace(note=f"{entry.note}, as are {other_files}")
        yield entry


def _make_file_entry(
    path: str, last_touch: FileTouch, state: str, removals: Sequence[FolderRemoval]
) -> DigestEntry:
    """Return the entry for a file.

    If the file's folder was removed, the path in the entry is relative to that folder.
    """
    notes = [last_touch.doubt_note, state]
    folder = _find_removed_folder(path, last_touch, removals)
    if folder:
        path = path[len(folder) + 1 :]
        notes.append(f"in {posixpath.basename(folder)}, a folder that was removed")
    return DigestEntry(
        _shorten_path(path), str(last_touch.position), ", ".join(filter(None, notes))
    )


def _find_files_changed_by_others(
    touches_by_path: Mapping[str, list[FileTouch]],
    paths: SessionPaths,
    states: FileStates,
    branch: str,
) -> frozenset[str]:
    """Return the files that another person or program may have changed.

    These are files that git lists as changed but that the session did not commit. If there are at
    most MAX_FILES_KNOWN_ONLY_FROM_GIT of them, return nothing, because so few files may be the session's
    own work.
    """
    listed_only: list[str] = []
    for path in find_files_only_git_lists(touches_by_path):
        if _format_state_note(path, paths, states, branch) in {"", *POSSIBLY_UNCOMMITTED_STATES}:
            listed_only.append(path)
    if len(listed_only) > MAX_FILES_KNOWN_ONLY_FROM_GIT:
        return frozenset(listed_only)
    return frozenset()


def _find_removed_folder(
    path: str, last_touch: FileTouch, removals: Sequence[FolderRemoval]
) -> str:
    """Return the removed folder outside the home folder that contained a file, or ``""``."""
    for folder, order in removals:
        if path.startswith(f"{folder}/") and last_touch.position.order < order:
            return folder
    return ""


def _format_removal_note(
    path: str, states: FileStates, touches_by_path: Mapping[str, list[FileTouch]]
) -> str:
    """Return the note on a path that a command removed or moved.

    If a file was moved several times, the note contains its last path and says whether the file was
    removed from there.
    """
    new_path = states.new_paths.get(path)
    if new_path is None:
        return REMOVED_NOTE
    passed_paths = {path}
    while new_path in states.new_paths and new_path not in passed_paths:
        passed_paths.add(new_path)
        new_path = states.new_paths[new_path]
    if not new_path:
        return MOVED_NOTE
    note = f"moved to {_shorten_path(new_path)}"
    if _is_removed_with_folder(new_path, states, touches_by_path):
        return f"{note}, {REMOVED_NOTE} since"
    return note


def _is_removed_with_folder(
    path: str, states: FileStates, touches_by_path: Mapping[str, list[FileTouch]]
) -> bool:
    """Check whether a path was removed, either directly or together with its folder.

    The folder is the nearest parent folder that the session changed.
    """
    if path in states.removed_paths:
        return True
    while path not in {"", "/"}:
        if path in touches_by_path:
            return _find_last_touch(touches_by_path[path]).is_removed
        path = posixpath.dirname(path)
    return False


def _format_state_note(path: str, paths: SessionPaths, states: FileStates, branch: str) -> str:
    """Return the state of a file according to git or, if git cannot run, to the session's own commands."""
    if paths.is_dirty(path):
        return NOT_COMMITTED_STATE
    note = states.describe_file(path, branch)
    if note in POSSIBLY_UNCOMMITTED_STATES and paths.is_in_repository(path):
        return ""
    return note


def _find_last_touch(touches: Sequence[FileTouch]) -> FileTouch:
    """Return the last certain change to a file or, if no change is certain, the last change."""
    return max(
        reversed(_select_touches_without_doubt(touches) or touches),
        key=lambda touch: touch.position.order,
    )


def _select_touches_without_doubt(touches: Sequence[FileTouch]) -> list[FileTouch]:
    return [touch for touch in touches if not touch.doubt_note]


def _collect_folder_contents(
    touches_by_path: Mapping[str, list[FileTouch]],
) -> dict[str, list[str]]:
    """Return the changed paths in each folder that is itself listed as changed."""
    contents: dict[str, list[str]] = {}
    for path in touches_by_path:
        folder = posixpath.dirname(path)
        while folder not in {"", "/"}:
            if folder in touches_by_path:
                contents.setdefault(folder, []).append(path)
            folder = posixpath.dirname(folder)
    return contents


def list_todo_comments(
    facts: LineageFacts, touches_by_path: Mapping[str, list[FileTouch]], paths: SessionPaths
) -> Iterator[DigestEntry]:
    """Yield the TODO comments that the session wrote and that still exist, the latest first."""
    for mark in facts.marks.list_comments():
        path = paths.make_relative_path(mark.path, mark.folder)
        if (
            TEMPORARY_PATH_PATTERN.search(path)
            or _find_last_touch(touches_by_path[path]).is_removed
        ):
            continue
        yield make_entry(f"{mark.text} ({_shorten_path(path)})", mark.position)


def list_unchecked_plan_steps(
    facts: LineageFacts, touches_by_path: Mapping[str, list[FileTouch]], paths: SessionPaths
) -> Iterator[DigestEntry]:
    """Yield the unchecked boxes of the plan file that the session wrote last.

    A plan that a command changed or removed later is left out, because its current text is unknown.
    """
    for step in facts.marks.list_open_steps():
        path = paths.make_relative_path(step.path, step.folder)
        touches = touches_by_path.get(path, ())
        is_changed = any(touch.position.order > step.position.order for touch in touches)
        if TEMPORARY_PATH_PATTERN.search(path) is None and not is_changed:
            yield make_entry(step.text, step.position, f"not checked off in {_shorten_path(path)}")


def list_read_files(
    facts: LineageFacts, paths: SessionPaths, touches_by_path: dict[str, list[FileTouch]]
) -> Iterator[DigestEntry]:
    """Yield the files that were read but not changed, the latest first."""
    changed_path_ends = {_get_last_path_parts(name) for name in touches_by_path}
    for (path, folder), position in reversed(facts.read_files.items()):
        name = paths.make_relative_path(path, folder)
        if (
            _get_last_path_parts(name) not in changed_path_ends
            and TEMPORARY_PATH_PATTERN.search(name) is None
        ):
            yield DigestEntry(_shorten_path(name), str(position))


def _get_last_path_parts(path: str) -> str:
    """Return the last two components of a path, which are the same in each worktree of a project."""
    return "/".join(path.split("/")[-2:])


def list_artefacts(facts: LineageFacts, commits: Sequence[Commit]) -> Iterator[DigestEntry]:
    """Yield the commits, pull requests and other links to the session's work, the latest first.

    The links that the client itself recorded come last.
    """
    rows: list[tuple[int, DigestEntry]] = []
    for commit in reversed(commits):
        rows.append((commit.position.order, _make_commit_entry(commit)))
    for run in facts.runs:
        if (
            not run.has_failed
            and "https://" in run.output
            and _ARTEFACT_COMMAND_PATTERN.search(run.command)
        ):
            for url in _URL_PATTERN.findall(run.output):
                if link := _ARTEFACT_LINK_PATTERN.match(url):
                    rows.append(
                        (run.result_position.order, make_entry(link[0], run.result_position))
                    )
    rows.sort(key=lambda row: -row[0])
    yield from (entry for _, entry in rows)
    yield from (
        make_entry(link, position) for link, position in reversed(facts.pull_request_links.items())
    )


def _make_commit_entry(commit: Commit) -> DigestEntry:
    """Return the entry of a commit: its subject and, if they are known, its hash and its branch."""
    label = f"commit {commit.hash}" if commit.hash else "commit:"
    notes = [f"on {commit.branch}"] if commit.branch else []
    if commit.is_rebased:
        notes.append("rebased since, so its hash has changed")
    return make_entry(f"{label} {commit.subject}", commit.position, ", ".join(notes))


def _shorten_path(path: str) -> str:
    return plain_line(
        path if len(path) <= MAX_PATH_CHARACTERS else f"…{path[-MAX_PATH_CHARACTERS:]}"
    )
