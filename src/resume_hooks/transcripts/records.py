"""Typed access to parsed records: their kinds, the kinds of blocks in a message, and their text.

A record is the dict from a parsed line. The accessors return the right type or a neutral value and
never raise, because the format is internal to the client, varies between versions, and files are
edited by hand.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from resume_hooks.errors import NotATranscript

Record = dict[str, Any]

USER, ASSISTANT, SYSTEM, ATTACHMENT, PROGRESS = (
    "user",
    "assistant",
    "system",
    "attachment",
    "progress",
)
CHAIN_KINDS = frozenset(
    {USER, ASSISTANT, SYSTEM, ATTACHMENT, PROGRESS}
)  # linked by uuid and parentUuid
MESSAGE_KINDS = frozenset({USER, ASSISTANT})  # kinds of records with a message of the conversation
OUTPUTS_CLEARED = "microcompact_boundary"
"""The subtype of the record that marks a clearing of outputs from the client's memory.

Without it a falling count may have any other reason: fewer tools, another model, another client.
"""
COMPACTION, API_ERROR = "compact_boundary", "api_error"  # subtypes of system records
GOAL = "thread_goal"  # our subtype for the goal and its status in a Codex session from this record

TEXT, CALL, RESULT, SERVER_CALL = "text", "tool_use", "tool_result", "server_tool_use"
THINKING, REDACTED_THINKING = "thinking", "redacted_thinking"
IMAGE, DOCUMENT = "image", "document"  # kinds of blocks

THINKING_TYPES = frozenset({THINKING, REDACTED_THINKING})
MEDIA_TYPES = frozenset({IMAGE, DOCUMENT})

_CALL_ID = {CALL: "id", RESULT: "tool_use_id"}

READING_TOOLS = frozenset({"Read", "NotebookRead"})
WRITING_TOOLS = frozenset(
    {"Edit", "MultiEdit", "NotebookEdit", "Write"}
)  # the client's tools that read or write a file
POLL_TOOL, POLLED_TASK_FIELD = "write_stdin", "task_id"
"""An agent's tool that waits for a running command, and its input with the command's task."""

TYPED_FIELD = "chars"
"""The input of that tool with characters that it types for the command."""

TASK_FIELD, EXIT_STATUS_FIELD = "backgroundTaskId", "exitStatus"
"""Fields that mark a result of a converted transcript: the task of a running command, and the exit status.

The status is None if nothing recorded it.
"""

INSTRUCTIONS_FIELD = "instructionsOf"
"""A mark on a message of a converted transcript that gave the project's instructions: their name."""

SANDBOX_FIELD = "sandbox"
"""A mark on a message of a converted transcript in a sandbox that allows no changes: its description."""

FILE_KEYS = ("file_path", "notebook_path")  # the inputs of these tools that contain the file's path
MAX_CONTEXT_TOKENS = 100_000_000  # larger numbers are not context sizes
# the model's name in answers that the client or we wrote without a model
SYNTHETIC_MODEL = "<synthetic>"
# the beginning of the answer to a refused call; the user's own words follow
REJECTION_BEGINNING = "The user doesn't want to"

_OTHER_TEXT_BEGINNINGS = (
    "<local-command-",
    "<command-name>",
    "[Request interrupted",
    "<bash-",
    "<task-notification",
    "Caveat: ",
    "Unknown command: /",  # 2.1.112
)
"""Beginnings of user texts that are not prompts to the model.

A slash command that is a prompt begins with its message instead.
"""

STANDARD_PARSER_BYTES = 1024 * 1024
"""The number of bytes that a process parses without orjson."""

_PLAN_COMMAND = "/plan"
"""The only client command that is a prompt to the model: it requests a plan for its arguments."""

MIN_PLAN_WORDS = 3  # arguments with fewer words, such as ``open``, are not a request


def parse_record(body: bytes) -> Record | None:
    """Parse a line's body; return None for anything but a JSON object.

    The parser orjson rejects lone surrogates and invalid UTF-8, which the client writes and
    accepts. Such lines use the slower standard parser, with U+FFFD for invalid characters, so that
    every string can be written again. So do the first lines of a process without orjson.
    """
    if _use_standard_parser(body):
        try:
            return _parse_tolerantly(body)
        except RecursionError:  # orjson accepts deeper nesting
            pass
    import orjson  # late, see _ParserChoice

    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _parse_with_fallback(body)
    if isinstance(value, dict):
        return value
    return None


class _ParserChoice:
    """The choice of the standard parser for a process's first bytes, unless the process has loaded orjson.

    The import of orjson takes 10 ms, in which the standard parser, which is already loaded, parses
    a megabyte.
    """

    def __init__(self) -> None:
        self._remaining_bytes = STANDARD_PARSER_BYTES

    def __call__(self, body: bytes) -> bool:
        """Check whether the standard parser parses this body."""
        self._remaining_bytes -= len(body)
        return self._remaining_bytes >= 0 and "orjson" not in sys.modules


_use_standard_parser = _ParserChoice()


def _parse_with_fallback(body: bytes) -> Record | None:
    """Parse a body that a strict JSON parser rejects."""
    record = parse_strict(body)
    if record is not None:
        return record
    try:
        return _parse_tolerantly(body)
    except RecursionError:
        return None


def parse_strict(body: bytes) -> Record | None:
    """Parse a line's body that any JSON parser accepts.

    Return None for anything else, including lone surrogates.
    """
    if body[:1] != b"{":
        body = body.strip()
        if body[:1] != b"{":
            return None
    import orjson  # as above

    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if isinstance(value, dict):
        return value
    return None


def _parse_integer(digits: str) -> int | float:
    """Parse an integer. One beyond 64 bits becomes a float, as in orjson."""
    number = int(digits)
    if -(2**63) <= number < 2**64:
        return number
    return float(number)


_decode_json = json.JSONDecoder(parse_int=_parse_integer).decode


def _parse_tolerantly(body: bytes) -> Record | None:
    """Parse a body with the standard parser. Raise RecursionError if it is nested too deeply."""
    body = body.strip()
    if body[:1] != b"{":
        return None
    try:
        text = body.decode("utf-8", "replace")
        value = _decode_json(text)
        if "\\ud" in text.lower():
            utf16 = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
            value = _decode_json(utf16.decode("utf-16", "replace"))
    except (ValueError, OverflowError):
        return None
    if isinstance(value, dict):
        return value
    return None


def get_string(record: Record, key: str) -> str:
    """Return a string field, or ``""``."""
    value = record.get(key)
    if isinstance(value, str):
        return value
    return ""


def get_mapping(record: Record, key: str) -> Record:
    """Return an object field, or ``{}``."""
    value = record.get(key)
    if isinstance(value, dict):
        return value
    return {}


def list_objects(value: object) -> list[Record]:
    """Return the objects in a list, or ``[]``."""
    if isinstance(value, list):
        return [row for row in value if isinstance(row, dict)]
    return []


def positive_count(value: object, maximum: int = MAX_CONTEXT_TOKENS) -> int:
    """Return a positive count, clamped to ``maximum``; 0 for anything else."""
    if isinstance(value, int) and value is not True and value > 0:
        return min(value, maximum)
    return 0


def strings_in_value(value: object) -> Iterator[str]:
    """Yield every string in a JSON value, in order.

    Use no recursion, because a hostile file may be nested without end.
    """
    pending_values = [value]
    while pending_values:
        inner_value = pending_values.pop()
        if isinstance(inner_value, str):
            yield inner_value
        elif isinstance(inner_value, dict):
            pending_values += reversed(inner_value.values())
        elif isinstance(inner_value, list):
            pending_values += reversed(inner_value)


def get_kind(record: Record) -> str:
    """Return the record's type: user, assistant, system, attachment, custom-title..."""
    return get_string(record, "type")


def list_uuids(record: Record) -> list[str]:
    """Return a record's ids: its own, and the one that a queued prompt was sent under."""
    return [uuid for key in ("uuid", "sentAsUuid") if (uuid := get_string(record, key))]


def get_message(record: Record) -> Record:
    """Return the API message in a user or assistant record, or ``{}``."""
    return get_mapping(record, "message")


def list_blocks(record: Record) -> list[Record]:
    """Return a message's content as blocks; a plain string becomes one text block."""
    return _content_blocks(get_message(record).get("content"))


def _content_blocks(content: object) -> list[Record]:
    if isinstance(content, str):
        return [{"type": TEXT, "text": content}]
    return list_objects(content)


def list_calls(record: Record) -> list[Record]:
    """Return the blocks of a message that call a tool."""
    return [block for block in list_blocks(record) if block.get("type") == CALL]


def list_results(record: Record) -> list[Record]:
    """Return the blocks of a message that answer a tool call."""
    return [block for block in list_blocks(record) if block.get("type") == RESULT]


def answered_calls(record: Record) -> list[str]:
    """Return the ids of the tool calls that a message answers, in order."""
    return [get_string(block, "tool_use_id") for block in list_results(record)]


def call_id(block: Record) -> str:
    """Return the id of the call that a block makes or answers, ``""`` for other blocks."""
    return get_string(block, _CALL_ID.get(get_string(block, "type"), ""))


def join_text_blocks(record: Record) -> str:
    """Return the text blocks of a message, joined by newlines."""
    return "\n".join(
        get_string(block, "text") for block in list_blocks(record) if block.get("type") == TEXT
    )


def result_blocks(block: Record) -> list[Record]:
    """Return a tool result as blocks; a plain string becomes one text block."""
    return _content_blocks(block.get("content"))


def result_text(block: Record) -> str:
    """Return the texts in a tool result, joined by newlines."""
    content = block.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(get_string(row, "text") for row in result_blocks(block))


def file_from_input(tool_input: Record) -> str:
    """Return the file named in a call's inputs, or ``""``."""
    return next((path for key in FILE_KEYS if (path := get_string(tool_input, key))), "")


def is_error(block: Record) -> bool:
    """Check whether a result reports that its call failed."""
    return block.get("is_error") is True


def token_usage(record: Record) -> Record:
    """Return the API's token counts for an answer, or ``{}``."""
    return get_mapping(get_message(record), "usage")


def replace_content(record: Record, content: object) -> Record:
    """Return the record with another content in its message."""
    return {**record, "message": {**get_message(record), "content": content}}


def tool_details(record: Record) -> Record:
    """Return the client's details next to a tool result, or ``{}``."""
    return get_mapping(record, "toolUseResult")


def answering_agent(record: Record) -> str:
    """Return the id of the sub-agent whose answer a result is, ``""`` for other results."""
    return get_string(tool_details(record), "agentId")


def copied_from(record: Record) -> str:
    """Return the uuid of the original of a fork's record, ``""`` for other records."""
    return get_string(get_mapping(record, "forkedFrom"), "messageUuid")


def tokens_before(record: Record) -> int:
    """Return the context size before a boundary's compaction, in tokens; 0 if unknown."""
    return positive_count(get_mapping(record, "compactMetadata").get("preTokens"))


def counted_tokens(record: Record) -> tuple[int, int]:
    """Return the API's token counts for an assistant record: its input, and the sum of input and answer.

    Return zeros if unknown.
    """
    counts = token_usage(record)
    if not counts or get_kind(record) != ASSISTANT:
        return 0, 0
    get = counts.get
    input_tokens = positive_count(get("input_tokens")) + positive_count(
        get("cache_read_input_tokens")
    )
    input_tokens += positive_count(get("cache_creation_input_tokens"))
    return input_tokens, input_tokens + positive_count(get("output_tokens"))


def answering_model(record: Record) -> str:
    """Return the model that answered, ``""`` for synthetic answers."""
    name = get_string(get_message(record), "model")
    if name == SYNTHETIC_MODEL:
        return ""
    return name


def is_prompt(record: Record) -> bool:
    """Check whether a user record opens a turn. Results, summaries, command outputs and texts of the client don't."""
    if get_kind(record) != USER or record.get("isMeta") or record.get("isCompactSummary"):
        return False
    if record.get("isSidechain") or record.get("isVisibleInTranscriptOnly"):
        return False
    message_blocks = list_blocks(record)
    if not message_blocks or any(block.get("type") == RESULT for block in message_blocks):
        return False
    words = join_text_blocks(record).lstrip()
    return not words.startswith(_OTHER_TEXT_BEGINNINGS) or _is_plan_request(words)


def _is_plan_request(words: str) -> bool:
    """Check whether a text is ``/plan`` with a request, and not with ``open``, as the client stores it."""
    if not words.startswith(f"<command-name>{_PLAN_COMMAND}</command-name>"):
        return False
    return len(_text_between(words, "<command-args>", "</command-args>").split()) >= MIN_PLAN_WORDS


def prompt_text(record: Record) -> str:
    """Return a prompt's text; a slash command as it was typed."""
    message_text = join_text_blocks(record)
    name = _text_between(message_text, "<command-name>", "</command-name>")
    if not message_text.lstrip().startswith(("<command-message>", "<command-name>")) or not name:
        return message_text
    return f"{name} {_text_between(message_text, '<command-args>', '</command-args>')}".strip()


def _text_between(text: str, opening: str, closing: str) -> str:
    return text.partition(opening)[2].partition(closing)[0].strip()


def reject_codex_rollout(record: Record, path: str) -> None:
    """Raise NotATranscript for the first line of a Codex rollout file."""
    if record.get("type") == "session_meta" and isinstance(record.get("payload"), dict):
        raise NotATranscript(
            f"{os.path.basename(path)} is a Codex rollout file, not a Claude Code transcript",
            "Codex sessions are read under Codex's own file names: rollout-<time>-<id>.jsonl.",
        )
