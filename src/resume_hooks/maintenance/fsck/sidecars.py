"""Check whether the files that a session's records refer to exist.

These files are large tool outputs, backups of the user's files, and originals of trimmed records.
Paths in a transcript may be hostile. Therefore only paths in the project folders and below the
session's own id are checked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from resume_hooks.derive.originals import OriginalFinder, is_marked_as_trimmed
from resume_hooks.maintenance.fsck.findings import Defect, DefectKind
from resume_hooks.paths import Where
from resume_hooks.transcripts import records
from resume_hooks.transcripts.placeholders import TRIM_FIELD_NAMES, read_origin
from resume_hooks.transcripts.records import Record, get_string

MISSING_OUTPUT_DEFECT = DefectKind(
    "tool-output-gone",
    "warning",
    "The model sees only the preview; reading the rest fails.",
    is_repairable=False,
)
MISSING_BACKUP_DEFECT = DefectKind(
    "file-backup-gone",
    "note",
    "The client's /rewind can't bring that version of the file back.",
    is_repairable=False,
)

_SAVED_OUTPUT_PATH_PATTERN = re.compile(r"<persisted-output>.{0,200}?saved to: ([^\n]+)", re.DOTALL)


class ReferencedFiles:
    """The files that a session names, each with the first record that names it."""

    def __init__(self) -> None:
        self.outputs: dict[str, int] = {}
        self.backups: dict[str, int] = {}

    def add_outputs(self, record: Record, line_number: int) -> None:
        """Remember the saved outputs to which a record's tool results refer."""
        for block in records.list_blocks(record):
            for block_part in records.result_blocks(block):
                for path in _SAVED_OUTPUT_PATH_PATTERN.findall(get_string(block_part, "text")):
                    self.outputs.setdefault(path.strip(), line_number)

    def add_backups(self, record: Record, line_number: int) -> None:
        """Remember the backups that a file-history record names, in either of its two forms."""
        tracked_backups = records.get_mapping(
            records.get_mapping(record, "snapshot"), "trackedFileBackups"
        )
        backups = [*tracked_backups.values(), record.get("backup")]
        for backup in backups:
            if isinstance(backup, dict):
                name = get_string(backup, "backupFileName")
            else:
                name = ""
            if name and name == os.path.basename(name):
                self.backups.setdefault(name, line_number)


def defects_of_referenced_files(
    referenced_files: ReferencedFiles, session_id: str, where: Where
) -> Iterator[Defect]:
    """Yield a defect for each file that a record names and that does not exist."""
    for path, number in referenced_files.outputs.items():
        is_inside = "\0" not in path and os.path.normpath(path).startswith(where.projects + os.sep)
        if not is_inside or not os.path.exists(path):
            yield Defect(MISSING_OUTPUT_DEFECT, f"{path} is gone", number)
    folder = os.path.join(where.file_history, session_id)
    existing_names = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    for name, number in referenced_files.backups.items():
        if name not in existing_names:
            yield Defect(MISSING_BACKUP_DEFECT, f"{os.path.join(folder, name)} is gone", number)


MISSING_ORIGINAL_DEFECT = DefectKind(
    "original-gone",
    "warning",
    "Clients send the placeholders; 'read' and 'untrim' can't restore the contents.",
    is_repairable=False,
)

MAX_SEARCHED_ORIGINAL_FILES = 200
"""The maximum number of files that are searched for originals. A session that names more files is
probably forged."""

_IDENTIFYING_FIELD_NAMES = (*TRIM_FIELD_NAMES, "type", "uuid")
"""The fields of a trimmed record that identify its original."""


class TrimmedRecords:
    """The trimmed records of a file, without their contents.

    They are grouped by the session and the file of their originals.
    """

    def __init__(self) -> None:
        self.by_origin: dict[tuple[str, str], list[tuple[int, Record]]] = {}

    def add_record(self, record: Record, line_number: int) -> None:
        """Remember a record if it is trimmed and names its original."""
        origin = read_origin(record) if is_marked_as_trimmed(record) else None
        if origin is not None:
            identifying_fields = {
                key: record[key] for key in _IDENTIFYING_FIELD_NAMES if key in record
            }
            self.by_origin.setdefault((origin.session_id, origin.file_path), []).append(
                (line_number, identifying_fields)
            )


def defects_of_missing_originals(
    trimmed_records: TrimmedRecords, path: str, where: Where
) -> Iterator[Defect]:
    """Yield a defect for each trimmed record whose original can no longer be found.

    ``path`` is the session's file.
    """
    if not trimmed_records.by_origin:
        return
    originals = OriginalFinder(where)
    for numbered_records in list(trimmed_records.by_origin.values())[:MAX_SEARCHED_ORIGINAL_FILES]:
        if _has_original(originals, numbered_records[0][1], path):
            continue
        for number, record_fields in numbered_records:
            if not _has_original(originals, record_fields, path):
                location = originals.describe_original_location(record_fields)
                message = f"The original of the trimmed content is gone: {location}"
                yield Defect(
                    MISSING_ORIGINAL_DEFECT, message, number, get_string(record_fields, "uuid")
                )


def _has_original(originals: OriginalFinder, record_fields: Record, path: str) -> bool:
    """Check whether the original of a trimmed record can be found.

    If the record that is found is itself trimmed, the original is missing.
    """
    original = originals.find_original(record_fields, path)
    return original is not None and not is_marked_as_trimmed(original.parse_record() or {})
