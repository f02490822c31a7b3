"""Render a record as text for users and models: messages, calls and results, without the JSON.

The texts come from the transcript. Callers must not print control characters in them to a terminal
(see ``cli.output.print_text``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO, NamedTuple

from resume_hooks.reading.digest.entries import parse_digest
from resume_hooks.reading.digest.opening import format_whole_digest
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.record_references import RecordLine
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts import records, script_calls
from resume_hooks.transcripts.lines import open_transcript, read_lines_backwards
from resume_hooks.transcripts.records import Record, get_string
from resume_hooks.transcripts.trimmable_pieces import ToolCall, tool_calls_of_record

_ENVELOPE_FIELDS = frozenset(
    {"parentUuid", "isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "slug", "uuid"}
    | {"type", "timestamp", "logicalParentUuid", "subtype"}
)  # fmt: skip
"""Fields of every record that do not belong to its content."""

MAX_CALL_SEARCH_BYTES = 16 * 1024 * 1024
"""How many bytes before a result are searched for the result's call.

Usually only parallel calls and their results are between a call and its result.
"""


class Rendering(NamedTuple):
    """A record as text.

    ``tool_name`` and ``target`` describe the record's calls, or the calls whose results it
    contains. If the record contains neither calls nor results, they are ``""``.
    """

    kind: str
    role: str
    tool_name: str
    target: str
    text: str


def render_line(record: Record, entry: RecordLine) -> Rendering:
    """Render the record of a line.

    If the record contains results, their calls are read from the lines before it.
    """
    with open_transcript(entry.file_path) as stream:
        answered_calls = find_calls_before(
            stream, entry.offset, records.list_answered_call_ids(record)
        )
    return render_record(record, answered_calls | tool_calls_of_record(record))


def find_calls_before(stream: BinaryIO, end: int, call_ids: Iterable[str]) -> dict[str, ToolCall]:
    """Return the calls with these ids from the MAX_CALL_SEARCH_BYTES bytes before ``end``, by id.

    If several calls have the same id, the call nearest to ``end`` is returned.
    """
    missing_ids = {call for call in call_ids if call}
    calls: dict[str, ToolCall] = {}
    for line in read_lines_backwards(stream, end) if missing_ids else ():
        if b'"tool_use"' in line.raw:
            calls_in_line = tool_calls_of_record(records.parse_record(line.body) or {})
            calls = {
                call: calls_in_line[call] for call in missing_ids & calls_in_line.keys()
            } | calls
            missing_ids -= calls_in_line.keys()
        if not missing_ids or end - line.offset > MAX_CALL_SEARCH_BYTES:
            break
    return calls


def render_record(record: Record, calls: Mapping[str, ToolCall]) -> Rendering:
    """Render a record. ``calls`` are the known calls whose results the record may contain."""
    named_calls = [
        calls[call] for call in records.list_answered_call_ids(record) if call in calls
    ] or list(tool_calls_of_record(record).values())
    tools = [call.tool for call in named_calls] or [
        get_string(records.get_message(record), "tool_name")
    ]
    return Rendering(
        kind=records.get_kind(record),
        role=get_string(records.get_message(record), "role"),
        tool_name=", ".join(dict.fromkeys(plain_line(tool) for tool in tools)),
        target=plain_line(named_calls[0].target) if len(named_calls) == 1 else "",
        text=render_record_text(record, calls),
    )


def render_record_text(record: Record, calls: Mapping[str, ToolCall] | None = None) -> str:
    """Return the content of a record as text.

    If the record contains several results, each starts with a label that names its call. The calls
    are looked up in ``calls``.
    """
    kind = records.get_kind(record)
    if kind == records.ATTACHMENT:
        # If the client recorded the text that it made from the attachment and sent to the model,
        # use that text and not the attachment.
        sent_texts = [
            text
            for part in records.list_objects(record.get("rendered"))
            if (text := get_string(part, "content"))
        ]
        return "\n\n".join(sent_texts) or format_fields(records.get_mapping(record, "attachment"))
    if digest := parse_digest(record):
        return format_whole_digest(digest)
    if message := records.get_message(record):
        blocks = records.list_blocks(script_calls.fill_empty_result(record))
        # The record is from a plain export.
        if kind not in records.CHAIN_RECORD_KINDS and "content" not in message:
            return format_fields(
                {key: value for key, value in message.items() if key not in {"role", "tool_name"}}
            )
        has_several_results = len(records.list_results(record)) > 1
        return "\n\n".join(
            render_block_text(block, (calls or {}) if has_several_results else None)
            for block in blocks
        )
    system_text = get_string(record, "content") or get_string(record, "summary")
    return system_text or format_fields(
        {key: value for key, value in record.items() if key not in _ENVELOPE_FIELDS}
    )


def render_block_text(block: Record, calls: Mapping[str, ToolCall] | None = None) -> str:
    """Return a block of a message as text.

    If ``calls`` is given, the text of a tool's result starts with a label that names its call.
    """
    block_type = get_string(block, "type")
    if block_type == records.TEXT:
        return get_string(block, "text")
    if block_type == records.THINKING:
        thinking = get_string(block, "thinking")
        if thinking:
            return f"[thinking]\n{thinking}"
        return "[thinking, its text was not kept by the client]"
    if block_type == records.REDACTED_THINKING:
        return "[thinking, encrypted]"
    if block_type in records.MEDIA_TYPES:
        return _format_media(block_type, block)
    if block_type == records.RESULT:
        if calls:
            call = calls.get(get_string(block, "tool_use_id"))
        else:
            call = None
        if call:
            parts = [f"[result of {call.tool} {call.target}".rstrip() + "]"]
        else:
            parts = []
        parts += ["[error]"] if records.is_error(block) else []
        return "\n".join([*parts, *map(render_block_text, records.result_blocks(block))])
    call_input = block.get("input")
    if block_type == records.CALL and isinstance(call_input, dict):
        return f"[call of {get_string(block, 'name')}]\n{format_fields(call_input)}".rstrip("\n")
    other_fields = format_fields(
        {key: value for key, value in block.items() if key not in {"type", "id"}}
    )
    return f"[{block_type or 'a block of no kind'}]\n{other_fields}".rstrip("\n")


def _format_media(kind: str, block: Record) -> str:
    source = records.get_mapping(block, "source")
    data, media_format = (
        get_string(source, "data"),
        get_string(source, "media_type").rpartition("/")[2],
    )
    if source.get("type") == "text":
        return f"[{kind}, text]\n{data}"
    size = format_bytes(len(data) * 3 // 4) if data else ""
    address = get_string(source, "url") or get_string(source, "file_id")
    return f"[{', '.join(part for part in (kind, media_format, size, address) if part)}]"


def format_fields(value: Mapping[str, object]) -> str:
    """Return fields as lines of the form ``key: value``, and nested ones as ``key.inner: value``.

    A multi-line value starts on the line after its key.
    """
    return "\n".join(
        f"{key}:\n{field_text}" if "\n" in field_text else f"{key}: {field_text}"
        for key, field_text in _flatten_fields(value)
    )


def _flatten_fields(value: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield every plain value in nested fields, with its path such as ``key.inner``.

    The function is not recursive, because a hostile file may be nested very deeply.
    """
    stack: list[tuple[str, object]] = list(value.items())[::-1]
    while stack:
        key, inner = stack.pop()
        if isinstance(inner, dict) and get_string(inner, "type") in records.MEDIA_TYPES:
            yield key, _format_media(str(inner["type"]), inner)
        elif isinstance(inner, dict) and inner:
            for name, child in list(inner.items())[::-1]:
                stack.append((f"{key}.{name}", child))
        elif isinstance(inner, list) and inner:
            for index, child in list(enumerate(inner))[::-1]:
                stack.append((f"{key}.{index}", child))
        else:
            yield key, inner if isinstance(inner, str) else json.dumps(inner)
