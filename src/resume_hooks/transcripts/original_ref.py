"""Where the original of trimmed content lies: the marks at the top level of a record, and the reference to it."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from resume_hooks.paths import is_session_id, session_id_of
from resume_hooks.system.text import encodable
from resume_hooks.transcripts.placeholders import Reference
from resume_hooks.transcripts.records import Record, string


class Origin(NamedTuple):
    """The record that holds the original: its session (id and file), its uuid, its 0-based line."""

    session_id: str
    file: str
    uuid: str
    record: int

    @property
    def reference(self) -> Reference:
        """What a placeholder names."""
        return Reference(self.session_id, self.record)

    def marks(self, block: int) -> dict[str, Any]:
        """The fields of a trimmed record; ``block`` is the first one that was trimmed."""
        return {
            "truncated": True,
            "original_session": encodable(self.file),
            "original_session_id": self.session_id,
            "original_uuid": self.uuid,
            "original_index": self.record,
            "original_block": block,
        }


def origin_of(record: Record) -> Origin | None:
    """What a trimmed record says of its original, another tool's marks included; None where it can't be followed.

    The file is untrusted: it is never opened before it is found to be a session of that id.
    """
    said, file, index = string(record, "original_session_id"), string(record, "original_session"), None
    if isinstance(record.get("original_index"), int) and not isinstance(record["original_index"], bool):
        index = record["original_index"]
    named_so = said == os.path.splitext(os.path.basename(file))[0]  # a file that was trimmed by its path
    session_id = said if is_session_id(said) or named_so else session_id_of(file) or ""
    if index is None or index < 0 or not (file or session_id):
        return None
    return Origin(session_id, file, string(record, "original_uuid") or string(record, "uuid"), index)
