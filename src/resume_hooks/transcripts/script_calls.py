"""Calls that a script made: in the client's Code Mode the model calls the tool ``REPL``, whose script calls the others.

The client notes each such call in two records, behind the answer to the script: a call that no
model said, and a result without a text, beside which ``toolUseResult`` holds what the tool gave.
Clients up to 2.1.112 kept these alone. What is said here makes of them the calls and results that
other readers know; the bytes of a transcript stay as they are.
"""

from __future__ import annotations

from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record, mapping, string

_COPIES = "repl-error-"
"""How the ids begin under which the client repeats the error of a script, for its own screen."""


def is_made_by_script(record: Record) -> bool:
    """Whether a record holds a call that a script made. No model said it, but it did happen."""
    if records.kind(record) != records.ASSISTANT or is_copy_of_error(record):
        return False
    return string(records.message(record), "model") == records.SYNTHETIC_MODEL and bool(
        records.calls(record)
    )


def is_copy_of_error(record: Record) -> bool:
    """Whether a record only repeats, as a call or its result, the error that a script ended with."""
    return any(records.call_id(block).startswith(_COPIES) for block in records.blocks(record))


def is_unsent(record: Record) -> bool:
    """Whether the client never sends a message to the API: what a script did is told by the script's own result."""
    return record.get("isVirtual") is True


def results(record: Record) -> list[Record]:
    """The results in a record, the text of one that has none told by what the client noted beside it."""
    answers = records.results(record)
    if _is_empty(answers):
        return records.results(with_result(record))
    return answers


def with_result(record: Record) -> Record:
    """The record, the text of a result that has none told by what the client noted beside it."""
    answers = records.results(record)
    if not _is_empty(answers):
        return record
    told = _text_of_note(record.get("toolUseResult"))
    if not told:
        return record
    content = []
    for block in records.blocks(record):
        content.append({**block, "content": told} if block is answers[0] else block)
    return records.with_content(record, content)


def _is_empty(answers: list[Record]) -> bool:
    """Whether the results of a record are one without a text."""
    return len(answers) == 1 and answers[0].get("content") == ""


def _text_of_note(noted: object) -> str:
    """What a tool gave, in words; ``""`` of a file that was written, which its call tells of."""
    if isinstance(noted, str):
        return noted
    if not isinstance(noted, dict):
        return _join_texts(noted)
    if "structuredPatch" in noted:
        return ""
    if "stdout" in noted:
        return "\n".join(part for key in ("stdout", "stderr") if (part := string(noted, key)))
    read = string(mapping(noted, "file"), "content")
    plain = read or string(noted, "content") or string(noted, "result")
    return plain or _join_texts(noted.get("content")) or _join_texts(noted.get("filenames"))


def _join_texts(rows: object) -> str:
    """The texts in a list: plain ones, or blocks."""
    texts = rows if isinstance(rows, list) else []
    return "\n".join(
        row if isinstance(row, str) else string(row, "text")
        for row in texts
        if isinstance(row, (str, dict))
    )
