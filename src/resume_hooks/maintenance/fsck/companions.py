"""Files that a session names: big tool outputs and backups of the user's files.

Paths in a transcript are hostile: only those in the project folders and under the session's own id are looked at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from resume_hooks.maintenance.fsck.findings import Finding, Kind
from resume_hooks.paths import FILE_HISTORY, Where
from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record, string

OUTPUT_GONE = Kind(
    "tool-output-gone",
    "warning",
    "The model sees the preview alone; reading the rest fails.",
    repairable=False,
)
BACKUP_GONE = Kind(
    "file-backup-gone", "note", "The client's /rewind can't bring that version of the file back.", repairable=False
)

_SAVED = re.compile(r"<persisted-output>.{0,200}?saved to: ([^\n]+)", re.DOTALL)


class Named:
    """The files that a session names, each with the first record that does."""

    def __init__(self) -> None:
        self.outputs: dict[str, int] = {}
        self.backups: dict[str, int] = {}

    def take_results(self, record: Record, number: int) -> None:
        """Note the outputs that tool results say were saved."""
        for block in records.blocks(record):
            for text in _texts(block.get("content")):
                for path in _SAVED.findall(text):
                    self.outputs.setdefault(path.strip(), number)

    def take_snapshot(self, record: Record, number: int) -> None:
        """Note the backups of a file-history record of either form."""
        tracked = records.mapping(records.mapping(record, "snapshot"), "trackedFileBackups")
        backups = [*tracked.values(), record.get("backup")]
        for backup in backups:
            name = string(backup, "backupFileName") if isinstance(backup, dict) else ""
            if name and name == os.path.basename(name):
                self.backups.setdefault(name, number)


def of_companions(named: Named, session_id: str, where: Where) -> Iterator[Finding]:
    """The named files that are not there."""
    home = where.projects
    for path, number in named.outputs.items():
        if not _lies_in(path, home) or not os.path.exists(path):
            yield Finding(OUTPUT_GONE, f"{path} is gone", number)
    folder = os.path.join(where.config, FILE_HISTORY, session_id)
    there = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    for name, number in named.backups.items():
        if name not in there:
            yield Finding(BACKUP_GONE, f"{os.path.join(folder, name)} is gone", number)


def _lies_in(path: str, home: str) -> bool:
    return "\0" not in path and os.path.normpath(path).startswith(home + os.sep)


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (string(block, "text") for block in content if isinstance(block, dict))
