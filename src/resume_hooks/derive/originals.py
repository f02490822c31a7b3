"""Find the originals of trimmed content, and restore this content.

The path in a placeholder is not trusted. The module opens only sessions in a project folder or in
the folder of the trimmed session, and backups of these sessions. It does not open symbolic links.
The original must have the uuid that the placeholder names. If the original is itself trimmed, the
module follows its placeholder too, unless that leads to a record that was already visited.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.archive.vault import trash
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.paths import Where, is_session_id, session_id_from_path
from resume_hooks.sessions import locate
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.locator_forms import MIN_ID_PREFIX_CHARACTERS
from resume_hooks.sessions.record_references import (
    RecordLine,
    RecordLines,
    Reference,
    find_numbered_line,
)
from resume_hooks.sessions.session_files import all_sessions
from resume_hooks.storage.backups import backup_folder
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts import records
from resume_hooks.transcripts.placeholders import TRIM_FIELD_NAMES, Origin, read_origin
from resume_hooks.transcripts.provenance import Parent
from resume_hooks.transcripts.records import Record, get_message, get_string
from resume_hooks.transcripts.write_scan import mend_record

# Maximum number of placeholders that are followed one after the other. Only a forged session could
# have a longer sequence of them.
MAX_FOLLOWED_PLACEHOLDERS = 100
# The fields of a record that a trim may change.
CONTENT_FIELD_NAMES = ("message", "toolUseResult", "attachment", "rendered")
# Only the last characters of a text, at most this number, are searched for a notice.
MAX_NOTICE_SEARCH_CHARACTERS = 5_000

_NOTICE_PATTERN = re.compile(
    r"See line (\d{1,9}) of ([^\n]{1,4096}?\.(?:jsonl|bak))"
    r"(?: for full content(?: \(original was [\d,]+ chars\)\.)?)?\]?\Z"
)
"""Matches the notice at the end of a text that another tool trimmed.

The notice names the file and the line of the original. The line numbers start at 1.
"""

# Every notice contains at least one of these words. Searching for them first is faster.
_NOTICE_WORDS = ("original", "truncated", "full content")
# Before another tool trims a session, it copies the session to a backup with such a name.
_BACKUP_NAME_PATTERN = re.compile(r"([0-9a-f-]{36})\.pre-trim-[\w.-]{1,60}\.jsonl\.bak")


class OriginalRecord(NamedTuple):
    """The record that the user requested, and its original.

    A record that was not trimmed is its own original. If the session of the original no longer
    exists, ``original`` may be a trimmed record itself.
    """

    requested_line: RecordLine
    original: RecordLine


def look_up_original(reference: Reference, cwd: str, where: Where) -> OriginalRecord:
    """Return a referenced record and its original. ``cwd`` is the current folder.

    Raises UsageError if the referenced record does not exist, and SessionNotFound if the record was
    trimmed and its original no longer exists.
    """
    originals = OriginalFinder(where)
    requested_line = _find_referenced_line(reference, originals, cwd, where)
    record = requested_line.parse_record()
    original = originals.find_original(record, requested_line.file_path) if record else None
    if original is None and record and is_marked_as_trimmed(record):
        raise SessionNotFound(
            f"The original of {requested_line.reference} is gone: {originals.describe_original_location(record)}",
            f"Only the trimmed record is left: line {requested_line.number} of {requested_line.file_path}.",
        )
    return OriginalRecord(requested_line, original or requested_line)


def _find_referenced_line(
    reference: Reference, originals: OriginalFinder, cwd: str, where: Where
) -> RecordLine:
    """Return the line of a referenced record.

    If the session no longer exists, the record is looked up in the backups that were made when the
    session was trimmed in place.
    """
    try:
        session = locate.resolve_locator(
            reference.session_locator, cwd, where, allow_other_agents=True
        )
    except SessionNotFound:
        prefix = reference.session_locator.lower()
        if len(prefix) >= MIN_ID_PREFIX_CHARACTERS:
            backed_up = originals.find_ids_of_backed_up_sessions(prefix)
        else:
            backed_up = []
        if len(backed_up) != 1:
            raise
        for path in originals.list_backups(backed_up[0]):
            with contextlib.suppress(UsageError):  # A later backup may contain more lines.
                return find_numbered_line(reference, RecordLines(path, backed_up[0]))
        raise
    return find_numbered_line(reference, RecordLines(session.path, session.session_id))


class OriginalFinder:
    """Finds originals. Reads each file only once."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._lineage_finder = LineageFinder(where)
        self._files: dict[str, RecordLines | None] = {}
        self._candidates: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
        self._lines_by_session: dict[str, RecordLines] = {}

    def find_original(self, record: Record, file: str) -> RecordLine | None:
        """Return the original of the trimmed ``record`` in ``file``, or None if it no longer exists."""
        return self._follow_references(record, file, set())

    def find_original_of_line(self, session_id: str, line_number: int) -> RecordLine:
        """Return the original of the record in line ``line_number`` of a session.

        If no original exists, return the record itself. Raises SessionNotFound if the record no
        longer exists.
        """
        if session_id not in self._lines_by_session:
            try:
                session_file = locate.resolve_locator(
                    session_id, "", self._where, allow_other_agents=True
                )
            except UsageError as error:
                raise SessionNotFound(str(error), error.remedy) from error
            self._lines_by_session[session_id] = RecordLines(
                session_file.path, session_file.session_id
            )
        requested_line = self._lines_by_session[session_id].find_line_with_number(line_number)
        record = requested_line.parse_record() if requested_line else None
        if requested_line is None or record is None:
            raise SessionNotFound(
                f"record {line_number:,} of session {session_id} no longer exists"
            )
        return self.find_original(record, requested_line.file_path) or requested_line

    def describe_original_location(self, record: Record) -> str:
        """Return a phrase that tells where a trimmed record's original was, and how to restore it."""
        origin = next(iter(find_origins(record)), None)
        if origin is None:
            return "the record names no original"
        session_id = origin.session_id or session_id_from_path(origin.file_path) or ""
        deleted = any(
            entry.session_id == session_id for entry in trash.list_trashed_sessions(self._where)
        )
        if deleted:
            restore_hint = f"; restore it: resume-hooks restore {session_id}"
        else:
            restore_hint = ""
        return f"it was line {origin.line_number} of {plain_line(origin.file_path or origin.session_id)}{restore_hint}"

    def list_backups(self, session_id: str) -> list[str]:
        """Return the paths of a session's backups, oldest first. A trim in place writes such a backup."""
        folder = os.path.abspath(backup_folder(session_id, self._where))
        if not is_session_id(session_id) or os.path.islink(folder):
            return []
        try:
            with os.scandir(folder) as entries:
                files = []
                for entry in entries:
                    if entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False):
                        files.append(entry)
                # The names start with the times of the backups, so sorting them puts the oldest first.
                return sorted(entry.path for entry in files)
        except OSError:
            return []

    def find_ids_of_backed_up_sessions(self, prefix: str) -> list[str]:
        """Return the ids that start with ``prefix`` and belong to sessions with backups."""
        try:
            names = os.listdir(backup_folder("", self._where))
        except OSError:
            return []
        return sorted(name for name in names if name.startswith(prefix) and self.list_backups(name))

    def _follow_references(
        self, record: Record, file: str, visited_lines: set[tuple[str, int]]
    ) -> RecordLine | None:
        for line, named_record in self._iterate_possible_originals(record, file):
            if (line.file_path, line.number) in visited_lines or len(
                visited_lines
            ) == MAX_FOLLOWED_PLACEHOLDERS:
                continue
            visited_lines.add((line.file_path, line.number))
            # If no placeholder leads to another record, this record is the best available copy.
            return self._follow_references(named_record, line.file_path, visited_lines) or line
        return None

    def _iterate_possible_originals(
        self, record: Record, file: str
    ) -> Iterator[tuple[RecordLine, Record]]:
        """Yield the lines and records that may be a trimmed record's original, starting with the likeliest."""
        folder = os.path.dirname(os.path.abspath(file))
        for origin in find_origins(record):
            key = origin.session_id, origin.file_path, folder
            if key not in self._candidates:
                self._candidates[key] = list(
                    dict.fromkeys(self._iterate_candidate_files(origin, folder))
                )
            for path, session_id in self._candidates[key]:
                entry = self._find_record(path, session_id, origin)
                original = entry.parse_record() if entry else None
                if (
                    entry is not None
                    and original is not None
                    and records.get_kind(original) == records.get_kind(record)
                ):
                    yield entry, original

    def _find_record(self, path: str, session_id: str, origin: Origin) -> RecordLine | None:
        try:
            if path not in self._files:
                self._files[path] = None
                self._files[path] = RecordLines(path, session_id)
            entries = self._files[path]
            if entries and origin.uuid:
                return entries.find_record_with_uuid(origin.uuid, origin.line_number)
            return None
        except SessionNotFound:
            return None  # The file was deleted after it was listed.

    def _iterate_candidate_files(
        self, origin: Origin, trimmed_folder: str
    ) -> Iterator[tuple[str, str]]:
        """Yield the path of each file that may contain an original, with the id of its session.

        Only files that may be opened are yielded.
        """
        backup = _BACKUP_NAME_PATTERN.fullmatch(os.path.basename(origin.file_path))
        folder = os.path.basename(os.path.dirname(origin.file_path))
        names = (
            origin.session_id,
            session_id_from_path(origin.file_path),
            backup.group(1) if backup else "",
            folder,
        )
        session_id = next((name for name in names if name and is_session_id(name)), "")
        backups = self.list_backups(session_id)
        if origin.file_path in backups or self._is_safe_to_open(origin.file_path, trimmed_folder):
            yield origin.file_path, session_id or origin.session_id
        if not session_id:
            return
        for file in (origin.file_path, os.path.join(trimmed_folder, f"{session_id}.jsonl")):
            path = self._lineage_finder.locate_parent(
                Parent(session_id, file, "", "", ""), os.path.join(trimmed_folder, "child")
            )
            if path is not None:
                yield path, session_id
        for copy in all_sessions(self._where, session_id):
            yield (copy.path, session_id)
        yield from ((path, session_id) for path in backups)

    def _is_safe_to_open(self, path: str, trimmed_folder: str) -> bool:
        """Check whether a file may be opened although its name is not a session id.

        The file must be in a folder of sessions, and must not be a symbolic link. Two kinds of
        files without a session id in their names can contain originals: transcripts that were
        trimmed by their paths, and backups that another tool wrote next to a session.
        """
        if path != os.path.abspath(path):
            return False  # A path with ``..`` could lead out of the folder.
        folder, name = os.path.split(path)
        in_project = os.path.dirname(folder) == self._where.projects and not os.path.islink(folder)
        has_valid_name = _BACKUP_NAME_PATTERN.fullmatch(name) or (
            name.endswith(".jsonl") and session_id_from_path(name) is None
        )
        return (
            bool(has_valid_name)
            and (folder == trimmed_folder or in_project)
            and os.path.isfile(path)
            and not os.path.islink(path)
        )


class RecordRestorationEdit:
    """An edit that restores the contents of a record.

    It reads the original only when the record is written.
    """

    def __init__(self, original: RecordLine) -> None:
        self._original = original

    def __call__(self, record: Record) -> Record | None:
        """Return the record with its original contents.

        Raises SessionNotFound if the original no longer exists.
        """
        original = self._original.parse_record()
        if original is None:
            raise SessionNotFound(
                f"{self._original.file_path} changed while it was read", "Run the command again."
            )
        return restore_record(record, original)


def restore_record(record: Record, original: Record) -> Record | None:
    """Return a trimmed ``record`` with the contents of its ``original``.

    All other fields are those of ``record``, including the token counts. Blocks that the trim
    removed because the API would reject them are not restored: calls without results, results
    without calls, blank texts and thinking without a signature. Return None if no block remains.
    """
    restored = {}
    for key, value in record.items():
        if key not in TRIM_FIELD_NAMES:
            restored[key] = value
    # The original may itself be a trimmed record whose fields name its own original.
    restored |= {key: value for key, value in original.items() if key in TRIM_FIELD_NAMES}
    for key in CONTENT_FIELD_NAMES:
        if key in original:
            restored[key] = original[key]
        else:
            restored.pop(key, None)
    if not get_message(restored):
        return restored
    restored_message = {}
    for key, value in get_message(original).items():
        if key != "usage":
            restored_message[key] = value
    if isinstance(restored_message.get("content"), list):
        removed_pairs = find_call_and_result_ids(original) - find_call_and_result_ids(record)
        restored_message["content"] = [
            block
            for block in restored_message["content"]
            if not (isinstance(block, dict) and _get_kind_and_call_id(block) in removed_pairs)
        ]
    if "usage" in get_message(record):
        restored_message["usage"] = get_message(record)["usage"]
    return mend_record({**restored, "message": restored_message})


def is_marked_as_trimmed(record: Record) -> bool:
    """Check whether a record has the field with which this plugin marks trimmed records."""
    return record.get("truncated") is True


def find_origins(record: Record) -> list[Origin]:
    """Return the originals that a record names.

    The names are in the fields that a trim by this plugin added, or in another tool's notices at
    the ends of the record's texts.
    """
    if is_marked_as_trimmed(record):
        origin = read_origin(record)
        if origin:
            return [origin]
        return []
    text_ends = (text[-MAX_NOTICE_SEARCH_CHARACTERS:] for text in _list_record_texts(record))
    notices = (
        _NOTICE_PATTERN.search(end)
        for end in text_ends
        if "See line " in end and any(word in end for word in _NOTICE_WORDS)
    )
    uuid = get_string(record, "uuid")
    origins = (
        Origin("", notice.group(2), uuid, int(notice.group(1)) - 1) for notice in notices if notice
    )
    return list(dict.fromkeys(origin for origin in origins if origin.line_number >= 0))


def _list_record_texts(record: Record) -> Iterator[str]:
    for block in records.list_blocks(record):
        yield get_string(block, "text")
        for value in records.get_mapping(block, "input").values():
            if isinstance(value, str):
                yield value
        for part in records.result_blocks(block):
            yield get_string(part, "text")


def find_call_and_result_ids(record: Record) -> set[tuple[str, str]]:
    """Return a pair of kind and id for each call and each result in a record."""
    return {pair for block in records.list_blocks(record) if (pair := _get_kind_and_call_id(block))}


def _get_kind_and_call_id(block: Record) -> tuple[str, str] | None:
    kind = get_string(block, "type")
    if kind in {records.CALL, records.RESULT}:
        return (kind, records.call_id(block))
    return None
