"""Rows that a client wrote a second time: where a plugin answers a compaction, the conversation follows it once more.

Behind such a boundary stands no new summary but the new conversation, under new ids and with instants not after the
boundary's; nothing in it was said there. Summaries of earlier compactions are part of it.
"""

from __future__ import annotations

from resume_hooks import clock
from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record


class Copies:
    """Takes in the records of one file in order.

    ``until`` is the instant up to which what follows is a copy; ``latest`` that of the last message before it. By the
    latter a summary that was copied, too, is told from a fresh one, which is made after all that it sums up.
    """

    def __init__(self, until: str = "", latest: str = "") -> None:
        self.until, self.latest = until, latest

    def holds(self, record: Record) -> bool:
        """Whether the next record is a copy of what stands before the last boundary."""
        kind = records.kind(record)
        if record.get("isSidechain") or kind not in records.CHAIN_KINDS:
            return False
        at = record.get("timestamp")
        if kind == records.SYSTEM and record.get("subtype") == records.COMPACTION:
            kept = any(key.startswith("preserved") for key in records.mapping(record, "compactMetadata"))
            self.until = "" if kept else clock.normal(at)
            return False
        if not self.until:
            if kind in records.MESSAGES and isinstance(at, str):
                self.latest = at
            return False
        if record.get("isCompactSummary") and not self.latest:
            return False  # first in its file: what follows it tells
        instant = clock.normal(at)
        summed_up = record.get("isCompactSummary") and instant > clock.normal(self.latest)
        if summed_up or (instant > self.until and kind in records.MESSAGES):
            self.until, self.latest = "", instant  # the client's own compaction, or the conversation goes on
        return bool(self.until) and instant <= self.until
