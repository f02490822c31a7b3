"""Rows that a client wrote a second time: where a plugin answers a compaction, the conversation follows it once more.

Behind such a boundary stands no summary but the new conversation, under new ids and with instants not after the
boundary's; nothing in it was said there.
"""

from __future__ import annotations

from resume_hooks import clock
from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record


class Copies:
    """Takes in the records of one file in order; ``until`` is the instant up to which what follows is a copy."""

    def __init__(self, until: str = "") -> None:
        self.until = until

    def holds(self, record: Record) -> bool:
        """Whether the next record is a copy of what stands before the last boundary."""
        kind = records.kind(record)
        if record.get("isSidechain") or kind not in records.CHAIN_KINDS:
            return False
        if kind == records.SYSTEM and record.get("subtype") == records.COMPACTION:
            kept = any(key.startswith("preserved") for key in records.mapping(record, "compactMetadata"))
            self.until = "" if kept else clock.normal(record.get("timestamp"))
            return False
        if not self.until:
            return False
        later = clock.normal(record.get("timestamp")) > self.until
        if record.get("isCompactSummary") or (later and kind in records.MESSAGES):
            self.until = ""  # the client's own compaction, or the conversation goes on
        return bool(self.until) and not later
