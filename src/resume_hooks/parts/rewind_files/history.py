"""Read from a session the state of the user's files at each prompt, and the last edit of each file.

Measured with clients 2.1.42, 2.1.112 and 2.1.329: at each prompt, the client records a backup of
every tracked file. The backup contains the file as it was before the turn. If the client starts to
track a file during the turn, it adds a backup of the file as it was before its first edit. Old
clients add this backup in another snapshot of the same prompt, and clients since 2.1.209 add it in
a separate record. If the name of a backup is null, the file did not exist.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from resume_hooks.errors import NoFileHistory
from resume_hooks.reading.outline import OutlineScan, extract_first_words
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.metadata_records import FILE_DELTA, FILE_SNAPSHOT
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import USER, Record, get_string
from resume_hooks.transcripts.transcript import scan_transcript

MAX_TRACKED_PATHS = 10_000
"""Maximum number of files that a session tracks. A session with more files was not written by a
client."""

_BACKUP_NAME_PATTERN = re.compile(r"[0-9a-f]{16}@v[0-9]{1,9}")


class Backup(NamedTuple):
    """The backup of a file, as the client records it.

    ``name`` is the name of the file that contains the backup. It is None if the file did not exist,
    and ``""`` if the recorded name is invalid. ``folder`` is the folder of the original file
    without symbolic links, as client 2.1.329 records it, or ``""`` if the record does not contain
    it.
    """

    name: str | None
    version: int
    folder: str


class Prompt(NamedTuple):
    """A user's message.

    ``line_number`` is its line number, counted from 0. ``turn_number`` is the number of the turn
    that it starts, or 0 if it starts no turn. ``first_words`` are its first words.
    """

    uuid: str
    line_number: int
    turn_number: int
    first_words: str


class FilesAtPrompt(NamedTuple):
    """The state of the tracked files at a prompt.

    ``backups`` maps the path of each file, in the form that the client records, to the file's
    backup.
    """

    prompt_id: str
    line_number: int
    backups: Mapping[str, Backup]


class LastEdit(NamedTuple):
    """The last edit of a file by a tool.

    ``content_digest`` is the digest of the text after the edit, or ``""`` if it is unknown.
    """

    line_number: int
    content_digest: str


@dataclass(frozen=True)
class FileHistory:
    """The file history of a session.

    ``states`` are in the order of their prompts. ``nodes_by_uuid`` maps uuids to the records of the
    session. ``last_edits`` maps the path of each file to its last edit. ``edited_line_numbers`` are
    the line numbers of all edits.
    """

    session: SessionFile
    states: tuple[FilesAtPrompt, ...]
    prompts: tuple[Prompt, ...]
    last_edits: Mapping[str, LastEdit]
    edited_line_numbers: tuple[int, ...]
    nodes_by_uuid: Mapping[str, Node] = field(repr=False)


def read_file_history(session: SessionFile) -> FileHistory:
    """Return the file history of a session.

    Raises NoFileHistory if it has none, and SessionNotFound if the session cannot be read.
    """
    outline, file_records = OutlineScan(is_subagent=False), _FileHistoryRecordCollector()
    transcript = scan_transcript(session.path, observers=[outline, file_records])
    states = tuple(
        sorted(
            file_records.build_states_at_prompts(
                {node.uuid: node.line_number for node in transcript.nodes}
            ),
            key=lambda state: state.line_number,
        )
    )
    if not states:
        raise NoFileHistory(
            f"{session.session_id} has no file history",
            (
                "The client keeps no file history if checkpointing is off, and it keeps one for "
                "headless runs only on request."
            ),
        )
    turns = {turn.line_number: turn for turn in outline.turns if turn.number}
    prompts_with_state = {state.prompt_id for state in states}
    prompts = tuple(
        Prompt(
            node.uuid,
            node.line_number,
            turn.number if turn else 0,
            turn.first_words if turn else file_records.words.get(node.line_number, ""),
        )
        for node in transcript.nodes
        if node.kind == USER
        and ((turn := turns.get(node.line_number)) or node.uuid in prompts_with_state)
    )
    return FileHistory(
        session,
        states,
        prompts,
        file_records.edits,
        tuple(file_records.edited_line_numbers),
        transcript.nodes_by_uuid,
    )


def hash_content_ignoring_line_ends(content: bytes) -> str:
    """Return the digest of a text without regard to its line endings.

    A tool may change the line endings when it writes the text.
    """
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


class _FileHistoryRecordCollector:
    """An observer of a scan that collects the records in which the client describes files."""

    def __init__(self) -> None:
        self.edits: dict[str, LastEdit] = {}
        self.edited_line_numbers: list[int] = []
        self._snapshots: dict[str, tuple[int, dict[str, Backup]]] = {}
        self._added_backups: list[tuple[int, str, str, Backup]] = []
        self.words: dict[int, str] = {}
        """Maps line numbers to the first words of those user messages that start no turn."""
        self._tracked_paths: set[str] = set()

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Collect the data of one record."""
        kind = get_string(record, "type")
        if kind == USER and node is not None:
            result = record.get("toolUseResult")
            if (
                isinstance(result, dict)
                and "structuredPatch" in result
                and (path := get_string(result, "filePath"))
            ):
                self.edits[path] = LastEdit(line.number, _hash_edited_text(result))
                self.edited_line_numbers.append(line.number)
            if not node.answered_call_ids and not node.is_prompt:
                self.words[line.number] = collapse_line(plain_line(extract_first_words(record)), 80)
        elif kind == FILE_SNAPSHOT:
            self._add_snapshot(record, line.number)
        elif kind == FILE_DELTA:
            message, path = (
                get_string(record, "snapshotMessageId"),
                get_string(record, "trackingPath"),
            )
            backup = _parse_backup(record.get("backup"))
            if message and path and backup:
                self._check_tracked_path_limit({path: backup})
                self._added_backups.append((line.number, message, path, backup))

    def build_states_at_prompts(self, line_numbers: Mapping[str, int]) -> Iterator[FilesAtPrompt]:
        """Yield the state of the files at each prompt.

        The state consists of the prompt's last snapshot and of the backups that were added to the
        prompt. The record of an added backup may come before or after the snapshot. If a prompt has
        no snapshot, the state of the previous prompt is used.
        """
        added_backups: dict[str, dict[str, Backup]] = {}
        first_lines: dict[str, int] = {}
        for line_number, message, path, backup in self._added_backups:
            added_backups.setdefault(message, {})[path] = backup
            first_lines.setdefault(message, line_number)
        messages = {
            message: line_number for message, (line_number, _) in self._snapshots.items()
        } | first_lines
        previous_backups: dict[str, Backup] = {}
        for message in sorted(
            messages, key=lambda candidate: line_numbers.get(candidate, messages[candidate])
        ):
            _, backups = self._snapshots.get(message, (0, previous_backups))
            previous_backups = {**backups, **added_backups.get(message, {})}
            yield FilesAtPrompt(
                message, line_numbers.get(message, messages[message]), previous_backups
            )

    def _add_snapshot(self, record: Record, line_number: int) -> None:
        snapshot = record.get("snapshot")
        if isinstance(snapshot, dict):
            tracked_files = snapshot.get("trackedFileBackups")
        else:
            tracked_files = None
        message = (
            get_string(snapshot, "messageId") if isinstance(snapshot, dict) else ""
        ) or get_string(record, "messageId")
        if not message or not isinstance(tracked_files, dict):
            return
        backups = {}
        for path, value in tracked_files.items():
            if backup := _parse_backup(value):
                backups[path] = backup
        self._check_tracked_path_limit(backups)
        self._snapshots[message] = line_number, backups

    def _check_tracked_path_limit(self, backups: Mapping[str, Backup]) -> None:
        self._tracked_paths.update(backups)
        if len(self._tracked_paths) > MAX_TRACKED_PATHS:
            raise NoFileHistory(
                f"The session tracks more than {MAX_TRACKED_PATHS:,} files",
                "No client tracks so many files. To check the session: resume-hooks fsck",
            )


def _parse_backup(value: Any) -> Backup | None:
    """Return the backup that a record describes, or None if ``value`` does not describe a backup."""
    if not isinstance(value, dict) or "backupFileName" not in value:
        return None
    name, version = value["backupFileName"], value.get("version")
    is_valid = name is None or (
        isinstance(name, str) and _BACKUP_NAME_PATTERN.fullmatch(name) is not None
    )
    return Backup(
        name if is_valid else "",
        version if isinstance(version, int) else 0,
        get_string(value, "realParentDir"),
    )


def _hash_edited_text(result: Mapping[str, Any]) -> str:
    """Return the digest of a file's text after an edit, or ``""`` if the text is unknown.

    ``result`` is the result of a Write or an Edit.
    """
    content, original, old_text, new_text = (
        result.get(key) for key in ("content", "originalFile", "oldString", "newString")
    )
    if (
        not isinstance(content, str)
        and isinstance(original, str)
        and isinstance(old_text, str)
        and isinstance(new_text, str)
    ):
        if old_text:
            content = original.replace(
                old_text, new_text, -1 if result.get("replaceAll") is True else 1
            )
        else:
            content = None
    if isinstance(content, str):
        return hash_content_ignoring_line_ends(content.encode("utf-8", "replace"))
    return ""
