"""Find the defects in the files of a Codex session.

Each defect has a description of how Codex reacts to it. If the defect is in the session's newest
file, it also has a line number. The reactions were measured with Codex 0.42 to 0.169.
"""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.maintenance.fsck.findings import Defect, DefectKind
from resume_hooks.parts.codex.transcripts import items as codex_items
from resume_hooks.parts.codex.transcripts.history import HistoryItem, ThreadHistory
from resume_hooks.parts.codex.transcripts.lines import (
    MAX_LINE_BYTES,
    META_LINE,
    parse_line,
    read_raw_lines,
)
from resume_hooks.parts.codex.transcripts.meta import (
    REQUIRED_FIRST_LINE_FIELD_NAMES,
    parse_rollout_name,
    read_meta,
)
from resume_hooks.parts.codex.transcripts.segments import (
    RolloutFinder,
    find_readable_segments,
    read_segment_lines,
)
from resume_hooks.transcripts.records import get_string, parse_record

INVALID_FIRST_LINE_DEFECT = DefectKind(
    "first-line-foreign",
    "error",
    "Codex 0.150 and later refuses the session, because Codex did not write its first line.",
)
MISSING_FIELDS_DEFECT = DefectKind(
    "first-line-short", "error", "Every version of Codex refuses the session."
)
MISSING_HISTORY_BASE_DEFECT = DefectKind(
    "base-gone",
    "error",
    "Codex refuses the session, which contains only the newer part of the conversation.",
)
UNREADABLE_LINE_DEFECT = DefectKind("line-unreadable", "warning", "Codex skips the line.")
PARTLY_WRITTEN_LINE_DEFECT = DefectKind(
    "line-torn", "warning", "Codex skips the line, which was only partly written."
)
INVALID_UTF8_DEFECT = DefectKind(
    "utf8-bad", "error", "Codex up to 0.150 refuses the session; later versions load it."
)
LONG_LINE_DEFECT = DefectKind(
    "line-long", "note", "Codex reads the line; resume-hooks does not.", is_repairable=False
)
LINE_WITHOUT_REQUIRED_FIELDS_DEFECT = DefectKind(
    "line-foreign", "note", "Codex skips the line: it has no type, time or payload."
)
ORPHAN_OUTPUT_DEFECT = DefectKind(
    "tool-result-orphan",
    "warning",
    "Codex from 0.77 on omits the result; 0.42 sends the result in the wrong place.",
)
UNANSWERED_CALL_DEFECT = DefectKind(
    "tool-call-unanswered", "note", "Codex answers the call with 'aborted'."
)
SESSION_ID_MISMATCH_DEFECT = DefectKind(
    "session-id-foreign", "note", "Codex uses the id in the file's name."
)
ENCRYPTED_SUMMARY_DEFECT = DefectKind(
    "summary-encrypted",
    "note",
    "Only the model's provider can read the summary.",
    is_repairable=False,
)

_CONTENT_LOSS_DEFECTS = frozenset(
    {
        MISSING_HISTORY_BASE_DEFECT,
        UNREADABLE_LINE_DEFECT,
        PARTLY_WRITTEN_LINE_DEFECT,
        LONG_LINE_DEFECT,
    }
)
"""The kinds of defects that mean a loss of content. A repair cannot restore the lost content."""


def find_thread_defects(path: str, find_rollout: RolloutFinder) -> Iterator[Defect]:
    """Yield the defects of the Codex session whose newest file is ``path``.

    ``find_rollout`` returns the path of an older file of the session. Raise NotATranscript or
    SessionNotFound if the first line cannot be read.
    """
    meta, name = read_meta(path), parse_rollout_name(path)
    missing_fields = []
    for field in REQUIRED_FIRST_LINE_FIELD_NAMES:
        if not get_string(meta.payload, field):
            missing_fields.append(field)
    if missing_fields:
        yield Defect(MISSING_FIELDS_DEFECT, f"missing: {', '.join(missing_fields)}", 0)
    if name and get_string(meta.payload, "id") not in {"", name.thread_id}:
        yield Defect(
            SESSION_ID_MISMATCH_DEFECT,
            f"the first line contains {get_string(meta.payload, 'id')}",
            0,
        )
    yield from _find_line_defects(path)
    segments, incompleteness_reason = find_readable_segments(path, find_rollout)
    if incompleteness_reason:
        yield Defect(MISSING_HISTORY_BASE_DEFECT, incompleteness_reason, 0)
    history = ThreadHistory()
    for segment in segments:
        for line in read_segment_lines(segment):
            history.add_line(line)
    yield from _find_item_defects(history.items, path)


def is_content_loss(kind: DefectKind) -> bool:
    """Check whether a defect of this kind means that content is lost even after a repair."""
    return kind in _CONTENT_LOSS_DEFECTS


def _find_line_defects(path: str) -> Iterator[Defect]:
    for number, offset, raw in read_raw_lines(path):
        line = parse_line(raw, path, number, offset)
        if number == 0 and (line is None or line.kind != META_LINE):
            yield Defect(INVALID_FIRST_LINE_DEFECT, "the first line does not describe a session", 0)
        # The line is not valid UTF-8.
        elif not raw.isascii() and raw.decode(errors="replace").encode() != raw:
            yield Defect(INVALID_UTF8_DEFECT, f"{len(raw):,} bytes", number)
        elif line is None and raw.strip():
            is_complete = raw.endswith(b"\n")
            if len(raw) == MAX_LINE_BYTES and not is_complete:
                kind = LONG_LINE_DEFECT
            elif parse_record(raw) is not None:
                kind = LINE_WITHOUT_REQUIRED_FIELDS_DEFECT
            elif is_complete:
                kind = UNREADABLE_LINE_DEFECT
            else:
                kind = PARTLY_WRITTEN_LINE_DEFECT
            yield Defect(kind, f"{len(raw):,} bytes", number)


def _find_item_defects(items: list[HistoryItem], path: str) -> Iterator[Defect]:
    """Yield the defects in the calls, outputs and summaries that Codex sends to the model.

    A defect has a line number only if its item is in the newest file, ``path``.
    """
    payloads = [item.payload for item in items]
    call_pairs = codex_items.pair_calls_with_outputs(payloads)
    orphan_indexes = codex_items.find_orphan_indexes(payloads)
    unanswered_calls = set()
    for pair in call_pairs.values():
        if pair.output_index < 0:
            unanswered_calls.add(pair.call_index)
    for index, item in enumerate(items):
        kind, record = (
            codex_items.item_type(item.payload),
            item.line_number if item.file_path == path else None,
        )
        if index in orphan_indexes:
            yield Defect(
                ORPHAN_OUTPUT_DEFECT,
                f"its call {codex_items.call_id(item.payload)} is missing",
                record,
                item.uuid,
            )
        elif index in unanswered_calls:
            yield Defect(
                UNANSWERED_CALL_DEFECT,
                f"{get_string(item.payload, 'name') or kind} has no output",
                record,
                item.uuid,
            )
        elif kind in codex_items.ENCRYPTED_SUMMARY_TYPES:
            yield Defect(
                ENCRYPTED_SUMMARY_DEFECT,
                "the earlier conversation is still in the session",
                record,
                item.uuid,
            )
