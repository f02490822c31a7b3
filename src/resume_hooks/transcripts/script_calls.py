"""Convert tool calls that scripts made to ordinary calls and results.

In the client's Code Mode, the model calls the ``REPL`` tool with a script, and the script calls
other tools. After the script's result, the client records each of the script's calls: first a call
that the script made instead of the model, then a result without text, whose output is in
``toolUseResult``. Clients up to 2.1.112 recorded only these two records. The conversion does not
change the transcript.
"""

from __future__ import annotations

from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record, get_mapping, get_string

_PREFIX_OF_COPIED_CALL_IDS = "repl-error-"
"""The prefix of call ids in records that only show a script's error on the screen again."""


def was_written_by_script(record: Record) -> bool:
    """Check whether a record contains a call that was made by a script, not by the model."""
    if records.get_kind(record) != records.ASSISTANT or is_copied_error_record(record):
        return False
    return get_string(records.get_message(record), "model") == records.SYNTHETIC_MODEL and bool(
        records.list_calls(record)
    )


def is_copied_error_record(record: Record) -> bool:
    """Check whether a record only repeats the error of a script."""
    return any(
        records.call_id(block).startswith(_PREFIX_OF_COPIED_CALL_IDS)
        for block in records.list_blocks(record)
    )


def is_unsent(record: Record) -> bool:
    """Check whether the client leaves a message out of requests.

    The client does so if the result of a script already contains the message.
    """
    return record.get("isVirtual") is True


def list_results_with_output(record: Record) -> list[Record]:
    """Return the results in a record. If a result has no text, the tool's output becomes its text."""
    result_blocks = records.list_results(record)
    if _is_empty_result(result_blocks):
        return records.list_results(fill_empty_result(record))
    return result_blocks


def fill_empty_result(record: Record) -> Record:
    """Return the record with the tool's output as the text of its result, if the result has no text."""
    result_blocks = records.list_results(record)
    if not _is_empty_result(result_blocks):
        return record
    note_text = _format_tool_output(record.get("toolUseResult"))
    if not note_text:
        return record
    content = []
    for block in records.list_blocks(record):
        content.append({**block, "content": note_text} if block is result_blocks[0] else block)
    return records.replace_content(record, content)


def _is_empty_result(result_blocks: list[Record]) -> bool:
    """Check whether the list contains exactly one result and this result has no text."""
    return len(result_blocks) == 1 and result_blocks[0].get("content") == ""


def _format_tool_output(tool_output: object) -> str:
    """Return the output of a tool as text.

    For a file that was written, return ``""``, because the call already contains the file.
    """
    if isinstance(tool_output, str):
        return tool_output
    if not isinstance(tool_output, dict):
        return _join_texts(tool_output)
    if "structuredPatch" in tool_output:
        return ""
    if "stdout" in tool_output:
        return "\n".join(
            part for key in ("stdout", "stderr") if (part := get_string(tool_output, key))
        )
    file_content = get_string(get_mapping(tool_output, "file"), "content")
    other_text = (
        file_content or get_string(tool_output, "content") or get_string(tool_output, "result")
    )
    return (
        other_text
        or _join_texts(tool_output.get("content"))
        or _join_texts(tool_output.get("filenames"))
    )


def _join_texts(texts_or_blocks: object) -> str:
    """Join the texts in a list of strings or blocks. If ``texts_or_blocks`` is not a list, return ``""``."""
    texts = texts_or_blocks if isinstance(texts_or_blocks, list) else []
    return "\n".join(
        row if isinstance(row, str) else get_string(row, "text")
        for row in texts
        if isinstance(row, (str, dict))
    )
