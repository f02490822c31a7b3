"""Find the prompt that ``--to`` names, and the state of each file at that prompt.

If ``--to`` names a record that is not a prompt, the error message lists the nearest prompts.

If the client started to track a file only after the prompt, the file's state before its first edit
is used. The client's /rewind does the same. Only backups in the session's own folder are used. A
child gets its own backups when it is created. The parent's backups are never used for a child,
because they may have the same names but different contents.
"""

from __future__ import annotations

import bisect
import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.errors import NoFileHistory, RestoreFailed, UsageError
from resume_hooks.parts.rewind_files.history import Backup, FileHistory, FilesAtPrompt, Prompt
from resume_hooks.parts.rewind_files.plan import (
    ExpectedFile,
    FilesPlan,
    StoredFilePath,
    TargetFile,
    plan_file_changes,
)
from resume_hooks.parts.rewind_files.safe_paths import ProjectRoot
from resume_hooks.paths import Where, is_session_id
from resume_hooks.sessions import record_references
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.project_folder import has_project_key, home_folder_of_session
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.nodes import iterate_ancestors

FIRST_BACKUP_VERSION = 1
"""The version of a file's first backup, which the client makes when it starts to track the file."""

NO_EARLY_COPY_REASON = "the client saved no copy of it before its first edit"

TARGET_HELP = (
    "--to takes the number of a turn as shown by outline, the word 'last', the uuid of a prompt, "
    "or <session>:<line>."
)
MAX_QUOTE_CHARACTERS = 60
"""Maximum number of characters that a message quotes from a prompt."""


class RewindTarget(NamedTuple):
    """The record that ``--to`` names.

    ``turn_number`` is the number of the turn that begins with the record. 0 stands for the last
    turn, and None means that ``line_or_uuid`` identifies the record. ``session_locator`` is None if
    the record is in the session given on the command line.
    """

    turn_number: int | None
    line_or_uuid: int | str
    session_locator: str | None


class PromptState(NamedTuple):
    """A prompt, and the state of the files at this prompt.

    If ``is_exact`` is false, ``files`` is the state at an earlier prompt, and files were edited
    between the two prompts. ``branch_states`` are the states on the prompt's own branch, and on the
    branches that continue from the prompt.
    """

    prompt: Prompt
    files: FilesAtPrompt
    is_exact: bool
    branch_states: tuple[FilesAtPrompt, ...]


def parse_target(text: str) -> RewindTarget:
    """Parse the value of ``--to``. Raises UsageError if the value does not name a record."""
    target_text = text.strip()
    number = target_text.lower().removeprefix("turn").strip()
    if (
        number.isascii()
        and number.isdigit()
        and len(number) <= record_references.MAX_LINE_NUMBER_DIGITS
        and int(number)
    ):
        return RewindTarget(int(number), 0, None)
    if target_text.lower() == "last":
        return RewindTarget(0, 0, None)
    if is_session_id(target_text.lower()):
        return RewindTarget(None, target_text, None)
    if ":" in target_text:
        reference = record_references.parse_reference(target_text)
        record = (
            reference.record.record_uuid
            if isinstance(reference.record, record_references.RecordOffset)
            else reference.record
        )
        if record != "":
            return RewindTarget(None, record, reference.session_locator)
    raise UsageError(f"'{collapse_line(plain_line(text), 60)}' names no message", TARGET_HELP)


def find_prompt_state(history: FileHistory, target: RewindTarget) -> PromptState:
    """Return the prompt that ``target`` names, with the state of the files.

    Raises UsageError if there is no such prompt, and NoFileHistory if no state is known for it.
    """
    prompt = _find_prompt(history, target)
    is_on_other_branch = _OtherBranchCheck(history, prompt)
    states = tuple(state for state in history.states if not is_on_other_branch(state.prompt_id))
    earlier_states = []
    for state in states:
        if state.line_number <= prompt.line_number:
            earlier_states.append(state)
    later_states = []
    for state in states:
        if state.line_number > prompt.line_number:
            later_states.append(state)
    own_state = next((state for state in earlier_states if state.prompt_id == prompt.uuid), None)
    # Client 2.1.329 records no state if the client exits within milliseconds after the answer
    # (measured with ``-p``).
    exact_state = (
        own_state
        or _find_state_without_edits_in_between(history, earlier_states[-1:], prompt)
        or _find_state_without_edits_in_between(history, later_states[:1], prompt)
    )
    if exact_state is None and not earlier_states:
        first_later_prompt = next(
            (
                candidate
                for candidate in history.prompts
                if later_states and candidate.uuid == later_states[0].prompt_id
            ),
            None,
        )
        raise NoFileHistory(
            f"The client kept no state of the files at or before {describe_prompt(prompt)}",
            f"The first state is at {describe_prompt(first_later_prompt)}."
            if first_later_prompt
            else "The prompt's file history belongs to another branch.",
        )
    return PromptState(prompt, exact_state or earlier_states[-1], exact_state is not None, states)


def _find_state_without_edits_in_between(
    history: FileHistory, nearest_states: list[FilesAtPrompt], prompt: Prompt
) -> FilesAtPrompt | None:
    """Return the first of the states that no edit separates from the prompt, or None.

    Such a state is also the state at the prompt.
    """
    for state in nearest_states:
        start_line, end_line = sorted((state.line_number, prompt.line_number))
        if not any(start_line < line < end_line for line in history.edited_line_numbers):
            return state
    return None


def describe_prompt(prompt: Prompt) -> str:
    """Return a prompt's turn or line number, and its first words."""
    if prompt.turn_number:
        position = f"turn {prompt.turn_number}"
    else:
        position = f"line {prompt.line_number}"
    return f'{position} "{collapse_line(prompt.first_words, MAX_QUOTE_CHARACTERS)}"'


def _find_prompt(history: FileHistory, target: RewindTarget) -> Prompt:
    """Return the prompt that ``target`` names.

    Raises UsageError if the record is not a prompt. The message names the nearest prompts.
    """
    prompts = history.prompts
    if target.turn_number is not None:
        numbered_prompts = [candidate for candidate in prompts if candidate.turn_number]
        if not target.turn_number:
            matches = numbered_prompts[-1:]
        else:
            matches = [
                candidate
                for candidate in numbered_prompts
                if candidate.turn_number == target.turn_number
            ]
        if not matches:
            if numbered_prompts:
                turns_text = f"It has turns 1 to {numbered_prompts[-1].turn_number}."
            else:
                turns_text = "The session has no turns."
            raise UsageError(
                f"No turn {target.turn_number or 'at all'} in this session", turns_text
            )
        return matches[-1]
    if isinstance(target.line_or_uuid, str):
        record_ids = {target.line_or_uuid, target.line_or_uuid.lower()}
        line = next(
            (
                node.line_number
                for uuid, node in history.nodes_by_uuid.items()
                if uuid in record_ids
            ),
            None,
        )
    else:
        line = target.line_or_uuid
    if line is None:
        raise UsageError(
            f"No record {target.line_or_uuid} in {history.session.path}",
            _describe_nearest_prompts(prompts[-3:]),
        )
    prompt = next((candidate for candidate in prompts if candidate.line_number == line), None)
    if prompt is None:
        index = bisect.bisect([candidate.line_number for candidate in prompts], line)
        raise UsageError(
            f"Line {line} is not a user prompt",
            _describe_nearest_prompts(prompts[max(0, index - 1) : index + 1]),
        )
    return prompt


def _describe_nearest_prompts(prompts: tuple[Prompt, ...]) -> str:
    """Return a sentence that lists prompts with their ids, which ``--to`` accepts."""
    return f"The nearest prompts: {'; '.join(f'{prompt.uuid} {describe_prompt(prompt)}' for prompt in prompts)}."


class _OtherBranchCheck:
    """Checks whether a message is on another branch, which forked off before the prompt.

    File states at messages on other branches do not apply to the prompt. A compaction cuts the
    links between records, so a message without a common ancestor with the prompt is not considered
    to be on another branch.
    """

    def __init__(self, history: FileHistory, prompt: Prompt) -> None:
        self._nodes = history.nodes_by_uuid
        self._prompt_id = prompt.uuid
        self._ids_up_to_prompt = set(self._iterate_ancestor_ids(prompt.uuid))
        self._known_results: dict[str, bool] = {}

    def __call__(self, message: str) -> bool:
        trail: list[str] = []
        is_on_other_branch = False
        for uuid in self._iterate_ancestor_ids(message):
            if uuid in self._known_results:
                is_on_other_branch = self._known_results[uuid]
                break
            if uuid in self._ids_up_to_prompt:
                is_on_other_branch = bool(trail) and uuid != self._prompt_id
                break
            trail.append(uuid)
        self._known_results.update(dict.fromkeys(trail, is_on_other_branch))
        return is_on_other_branch

    def _iterate_ancestor_ids(self, uuid: str) -> Iterator[str]:
        """Yield the uuids of a message and its ancestors, starting with the message.

        If the links form a cycle, each uuid is yielded only once.
        """
        nodes = self._nodes
        trail = iterate_ancestors(
            nodes.get(uuid), lambda node: nodes.get(node.parent_uuid) if node.parent_uuid else None
        )
        return (node.uuid for node in trail)


def plan_rewind(history: FileHistory, prompt_state: PromptState, where: Where) -> FilesPlan:
    """Plan to restore the files to their state at a prompt.

    Raises RestoreFailed if it is uncertain which folder contains the files, or if the folder cannot
    be opened.
    """
    session = history.session
    # The id is used as a folder name, so it must be a valid session id.
    if not is_session_id(session.session_id):
        raise RestoreFailed(
            f"{session.path} has no session id, so no backup belongs to it", "Name another session."
        )
    root = ProjectRoot.from_folder(_find_working_folder(session, where), where)
    backup_folder = StoredFilePath(where.file_history, (session.session_id,))
    return plan_file_changes(
        session.session_id, root, _build_target_files(history, prompt_state, root, backup_folder)
    )


def _find_working_folder(session: SessionFile, where: Where) -> str:
    """Return the folder in which the session worked.

    The folder is trusted if the session's transcript is in the project folder that belongs to this
    folder, or if the command runs in this folder. Otherwise raise RestoreFailed, because the
    transcript may have been moved, and the folder may now contain another project.
    """
    ends = HeadTail(session.path)
    recorded_folder, project_folder = (
        home_folder_of_session(ends, where),
        os.path.dirname(session.path),
    )
    with contextlib.suppress(OSError, ValueError):
        if os.path.isabs(recorded_folder) and (
            has_project_key(recorded_folder, os.path.basename(project_folder))
            or (ends.cwd and os.path.samefile(recorded_folder, os.curdir))
        ):
            return recorded_folder
    if not os.path.isabs(ends.cwd):
        raise RestoreFailed(
            f"{session.session_id} does not say which folder it belongs to",
            "No file of the session can be restored.",
        )
    raise RestoreFailed(
        f"{session.session_id} worked in {plain_line(ends.cwd)}, but its transcript is in "
        f"{plain_line(project_folder)}, "
        "which belongs to another folder",
        "Run the command in the folder that contains the files, and not in a subfolder. If the project was moved, "
        f"make a session for it: resume-hooks fork {session.session_id} --home FOLDER.",
    )


def _build_target_files(
    history: FileHistory,
    prompt_state: PromptState,
    root: ProjectRoot,
    backup_folder: StoredFilePath,
) -> Iterator[TargetFile]:
    """Yield the target state of each file that was tracked at the prompt or later.

    ``backup_folder`` contains the backups. Records may name the same file by different paths. These
    paths are resolved to a single path, relative to the root of the project.
    """
    recorded_paths = {*history.last_edits}.union(*(state.backups for state in history.states))
    places_by_recorded = {path: root.resolve_path(path) for path in recorded_paths}
    places_by_path = {place.path: place for place in places_by_recorded.values()}
    edits = {places_by_recorded[path].path: edit for path, edit in history.last_edits.items()}
    backups_by_message = dict[str, dict[str, Backup]]()
    last_backups = dict[str, tuple[int, Backup]]()
    for state in history.states:
        backups = {places_by_recorded[path].path: backup for path, backup in state.backups.items()}
        backups_by_message[state.prompt_id] = backups
        for path, backup in backups.items():
            last_backups[path] = (state.line_number, backup)
    backups_at_prompt, first_backups = (
        backups_by_message[prompt_state.files.prompt_id],
        dict[str, Backup](),
    )
    paths: set[str] = set()
    for state in prompt_state.branch_states:
        for path, backup in backups_by_message[state.prompt_id].items():
            paths.add(path)
            if backup.version == FIRST_BACKUP_VERSION:
                first_backups.setdefault(path, backup)

    for path in sorted(paths):
        place, backup_at_prompt, edit = (
            places_by_path[path],
            backups_at_prompt.get(path) or first_backups.get(path),
            edits.get(path),
        )
        if backup_at_prompt is None or backup_at_prompt.name == "":
            yield TargetFile(
                place,
                refusal_reason=NO_EARLY_COPY_REASON
                if backup_at_prompt is None
                else "its backup has an invalid name",
            )
            continue
        line, newest_backup = last_backups[path]
        # The last state of the file that the session recorded: the file's last backup, or a later
        # edit.
        expected_file = None
        if edit is not None and edit.line_number > line:
            expected_file = ExpectedFile(edit.content_digest) if edit.content_digest else None
        elif newest_backup.name != "":
            expected_file = ExpectedFile(source=_locate_backup(newest_backup, backup_folder))
        source = _locate_backup(backup_at_prompt, backup_folder)
        yield TargetFile(
            place, source, expected_file=expected_file, recorded_folder=backup_at_prompt.folder
        )


def _locate_backup(backup: Backup, backup_folder: StoredFilePath) -> StoredFilePath | None:
    """Return the file of a backup, or None if the backup records that the file did not exist."""
    if backup.name is None:
        return None
    return StoredFilePath(backup_folder.root_folder, (*backup_folder.path_parts, backup.name))
