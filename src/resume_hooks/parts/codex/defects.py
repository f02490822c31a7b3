"""Defects in a Codex session, by line of its newest rollout, and how Codex reacts to each of them.

The reactions of Codex were measured on versions 0.42 to 0.169.
"""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.maintenance.fsck.findings import Defect, Kind
from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.parts.codex.transcripts.history import History, Item
from resume_hooks.parts.codex.transcripts.lines import MAX_LINE, META, raw_lines, read_line
from resume_hooks.parts.codex.transcripts.meta import REQUIRED, parse_name, read_meta
from resume_hooks.parts.codex.transcripts.segments import Finder, segment_lines, segments_left
from resume_hooks.transcripts.records import parse, string

FIRST = Kind(
    "first-line-foreign",
    "error",
    "Codex from 0.150 on refuses the session, because its first line is not Codex's own.",
)
FIELDS = Kind("first-line-short", "error", "Every Codex refuses the session.")
BASE = Kind(
    "base-gone",
    "error",
    "Codex refuses the session, which contains only the newer part of the conversation.",
)
GARBAGE = Kind("line-unreadable", "warning", "Codex skips the line.")
TORN = Kind("line-torn", "warning", "Codex skips the line, which was only partly written.")
UTF8 = Kind("utf8-bad", "error", "Codex up to 0.150 refuses the session; later ones don't.")
LONG = Kind("line-long", "note", "Codex reads it; resume-hooks does not.", repairable=False)
FORM = Kind("line-foreign", "note", "Codex skips the line: it has no type, time or payload.")
ORPHAN = Kind(
    "tool-result-orphan",
    "warning",
    "Codex from 0.77 on leaves it out; 0.42 sends it in the wrong place.",
)
UNANSWERED = Kind("tool-call-unanswered", "note", "Codex answers it with 'aborted'.")
FOREIGN_ID = Kind("session-id-foreign", "note", "Codex uses the id in the file's name.")
ENCRYPTED = Kind(
    "summary-encrypted", "note", "Only the model's provider can read it.", repairable=False
)

_LOST = frozenset({BASE, GARBAGE, TORN, LONG})
"""Defects whose content was lost before any repair."""


def defects_of_thread(path: str, find: Finder) -> Iterator[Defect]:
    """Yield the defects of the thread whose newest file is ``path``; ``find`` locates the rollouts that it continues.

    Raise NotATranscript or SessionNotFound like ``read_meta``.
    """
    meta, named = read_meta(path), parse_name(path)
    short = []
    for field in REQUIRED:
        if not string(meta.payload, field):
            short.append(field)
    if short:
        yield Defect(FIELDS, f"it lacks {', '.join(short)}", 0)
    if named and string(meta.payload, "id") not in {"", named.thread_id}:
        yield Defect(FOREIGN_ID, f"it contains {string(meta.payload, 'id')}", 0)
    yield from _defects_of_lines(path)
    files, missing = segments_left(path, find)
    if missing:
        yield Defect(BASE, missing, 0)
    history = History()
    for file in files:
        for line in segment_lines(file):
            history.take(line)
    yield from _defects_of_items(history.items, path)


def is_loss(kind: Kind) -> bool:
    """Check whether a repaired child lacks the content behind a defect of this kind."""
    return kind in _LOST


def _defects_of_lines(path: str) -> Iterator[Defect]:
    for number, offset, raw in raw_lines(path):
        line = read_line(raw, path, number, offset)
        if number == 0 and (line is None or line.kind != META):
            yield Defect(FIRST, "it does not describe a session", 0)
        elif not raw.isascii() and raw.decode(errors="replace").encode() != raw:  # invalid UTF-8
            yield Defect(UTF8, f"{len(raw):,} bytes", number)
        elif line is None and raw.strip():
            whole = raw.endswith(b"\n")
            if len(raw) == MAX_LINE and not whole:
                kind = LONG
            elif parse(raw) is not None:
                kind = FORM
            elif whole:
                kind = GARBAGE
            else:
                kind = TORN
            yield Defect(kind, f"{len(raw):,} bytes", number)


def _defects_of_items(items: list[Item], path: str) -> Iterator[Defect]:
    """Yield the defects of calls, outputs and summaries among the items that Codex sends.

    A defect names its record only if the record is in the newest file.
    """
    payloads = [item.payload for item in items]
    paired = of_items.pairs(payloads)
    orphans = of_items.orphans(payloads)
    open_calls = set()
    for pair in paired.values():
        if pair.output < 0:
            open_calls.add(pair.call)
    for place, item in enumerate(items):
        kind, record = of_items.kind(item.payload), item.number if item.file == path else None
        if place in orphans:
            yield Defect(
                ORPHAN, f"its call {of_items.call_id(item.payload)} is not there", record, item.uuid
            )
        elif place in open_calls:
            yield Defect(
                UNANSWERED,
                f"{string(item.payload, 'name') or kind} has no output",
                record,
                item.uuid,
            )
        elif kind in of_items.ENCRYPTED:
            yield Defect(
                ENCRYPTED, "the conversation before it is still in the session", record, item.uuid
            )
