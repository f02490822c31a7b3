"""Calls made by a script: in the client's Code Mode the model calls the tool ``REPL``, whose script calls other tools.

The client records each such call after the script's result: a call without the model, and a result
without text, with the tool's output in ``toolUseResult``. Clients up to 2.1.112 stored only these
records. This module converts them to calls and results that other readers understand; the
transcript's bytes do not change.
"""

from __future__ import annotations

from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record, get_mapping, get_string

_COPY_ID_PREFIX = "repl-error-"
"""The prefix of ids for the client's copies of a script's error, made for its own screen."""


def is_made_by_script(record: Record) -> bool:
    """Check whether a record contains a call that a script made, or its result. The model did not make this call."""
    if records.get_kind(record) != records.ASSISTANT or is_copy_of_error(record):
        return False
    return get_string(records.get_message(record), "model") == records.SYNTHETIC_MODEL and bool(
        records.list_calls(record)
    )


def is_copy_of_error(record: Record) -> bool:
    """Check whether a record only repeats the error of a script, as a call or its result."""
    return any(
        records.call_id(block).startswith(_COPY_ID_PREFIX) for block in records.list_blocks(record)
    )


def is_unsent(record: Record) -> bool:
    """Check whether the client never sends a message to the API, because the script's result covers it."""
    return record.get("isVirtual") is True


def list_printed_results(record: Record) -> list[Record]:
    """Return a record's results, with the client's note as the text of an empty one."""
    result_blocks = records.list_results(record)
    if _is_empty_result(result_blocks):
        return records.list_results(add_result_text(record))
    return result_blocks


def add_result_text(record: Record) -> Record:
    """Return the record, with the client's note as the text of an empty result."""
    result_blocks = records.list_results(record)
    if not _is_empty_result(result_blocks):
        return record
    note_text = _format_note(record.get("toolUseResult"))
    if not note_text:
        return record
    content = []
    for block in records.list_blocks(record):
        content.append({**block, "content": note_text} if block is result_blocks[0] else block)
    return records.replace_content(record, content)


def _is_empty_result(result_blocks: list[Record]) -> bool:
    """Check whether a record has exactly one result, and it has no text."""
    return len(result_blocks) == 1 and result_blocks[0].get("content") == ""


def _format_note(note: object) -> str:
    """Return a tool's output as text; ``""`` for a written file, which the call already contains."""
    if isinstance(note, str):
        return note
    if not isinstance(note, dict):
        return _join_texts(note)
    if "structuredPatch" in note:
        return ""
    if "stdout" in note:
        return "\n".join(part for key in ("stdout", "stderr") if (part := get_string(note, key)))
    file_content = get_string(get_mapping(note, "file"), "content")
    other_text = file_content or get_string(note, "content") or get_string(note, "result")
    return other_text or _join_texts(note.get("content")) or _join_texts(note.get("filenames"))


def _join_texts(rows: object) -> str:
    """Join the texts in a list of plain strings or blocks."""
    texts = rows if isinstance(rows, list) else []
    return "\n".join(
        row if isinstance(row, str) else get_string(row, "text")
        for row in texts
        if isinstance(row, (str, dict))
    )
