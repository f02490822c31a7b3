"""Trimmed records whose originals are gone: nothing that was taken out of them can be brought back.

One record vouches for all that name the same file, so that a thousand of them cost one look.
"""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.derive.originals import MARKS, Originals, is_marked
from resume_hooks.maintenance.fsck.findings import Finding, Kind
from resume_hooks.paths import Where
from resume_hooks.transcripts.placeholders import origin_of
from resume_hooks.transcripts.records import Record, string

ORIGINAL_GONE = Kind(
    "original-gone",
    "warning",
    "Clients send the placeholders; 'read' and 'untrim' can't bring back what they stand for.",
    repairable=False,
)

MAX_ORIGINS = 200
"""Files that are looked for; a session that names more can only be a forgery."""

_KEPT = (*MARKS, "type", "uuid")
"""What of a trimmed record its original is found by."""


class Trimmed:
    """The trimmed records of a file, without their contents, by the session and file that they name."""

    def __init__(self) -> None:
        self.by_origin: dict[tuple[str, str], list[tuple[int, Record]]] = {}

    def take(self, record: Record, number: int) -> None:
        """Note a record that says where its original is."""
        origin = origin_of(record) if is_marked(record) else None
        if origin is not None:
            told = {key: record[key] for key in _KEPT if key in record}
            self.by_origin.setdefault((origin.session_id, origin.file), []).append((number, told))


def of_originals(trimmed: Trimmed, path: str, where: Where) -> Iterator[Finding]:
    """The trimmed records of the session at ``path`` whose originals can't be found any more."""
    if not trimmed.by_origin:
        return
    originals = Originals(where)
    for rows in list(trimmed.by_origin.values())[:MAX_ORIGINS]:
        if _is_there(originals, rows[0][1], path):
            continue
        for number, told in rows:
            if not _is_there(originals, told, path):
                message = f"The original of what was trimmed here is gone: {originals.where_it_was(told)}"
                yield Finding(ORIGINAL_GONE, message, number, string(told, "uuid"))


def _is_there(originals: Originals, told: Record, path: str) -> bool:
    """Whether an original can be found; what was trimmed itself, and leads nowhere, is none."""
    entry = originals.of(told, path)
    return entry is not None and not is_marked(entry.record() or {})
