"""Read fields of records: their kinds, the blocks of their messages, and their texts.

A record is the dict that results from parsing a line. If a field is missing or wrong, the functions
still return a value of the right type, and never raise an error. This is necessary because the
client's format is internal and differs between versions, and because users edit files by hand.
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
# Records of these kinds are linked by ``uuid`` and ``parentUuid``.
CHAIN_RECORD_KINDS = frozenset({USER, ASSISTANT, SYSTEM, ATTACHMENT, PROGRESS})
# Records of these kinds contain a message of the conversation.
MESSAGE_KINDS = frozenset({USER, ASSISTANT})
OUTPUTS_CLEARED_SUBTYPE = "microcompact_boundary"
"""The subtype of the record that the client writes when it clears tool outputs from its memory.

Token counts may also fall without such a record: the session has fewer tools, another model or
another client.
"""
COMPACTION, API_ERROR = "compact_boundary", "api_error"  # Subtypes of system records.
# This plugin writes the records with this subtype. They contain the goal of a Codex session and its
# status, which are valid from that record onwards.
GOAL_SUBTYPE = "thread_goal"

TEXT, CALL, RESULT, SERVER_CALL = "text", "tool_use", "tool_result", "server_tool_use"
THINKING, REDACTED_THINKING = "thinking", "redacted_thinking"
IMAGE, DOCUMENT = "image", "document"  # These constants and the six above them are types of blocks.

THINKING_TYPES = frozenset({THINKING, REDACTED_THINKING})
MEDIA_TYPES = frozenset({IMAGE, DOCUMENT})

_CALL_ID_FIELDS_BY_BLOCK_TYPE = {CALL: "id", RESULT: "tool_use_id"}

READING_TOOLS = frozenset({"Read", "NotebookRead"})
# The client's tools that write a file.
WRITING_TOOLS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
POLL_TOOL, POLLED_TASK_FIELD = "write_stdin", "task_id"
"""The tool with which an agent waits for a running command, and the field of the tool's input that
names the command."""

KEYBOARD_TEXT_INPUT_NAME = "chars"
"""The input of ``POLL_TOOL`` that contains the characters to type into the command."""

TASK_FIELD, EXIT_STATUS_FIELD = "backgroundTaskId", "exitStatus"
"""Fields of a tool result in a transcript that was converted from another agent's session.

The first contains the id of a running command. The second contains the exit status of a command, or
None if it was not recorded.
"""

INSTRUCTIONS_FIELD = "instructionsOf"
"""The field that marks a message as the project's instructions.

Its value is the name of the instructions. The field occurs in transcripts that were converted from
another agent's session files.
"""

SANDBOX_FIELD = "sandbox"
"""The field of a message that describes a sandbox in which no changes are allowed.

The field occurs in transcripts that were converted from another agent's.
"""

# The names of the inputs in which the client's tools receive a file path.
FILE_PATH_INPUT_NAMES = (
    "file_path",
    "notebook_path",
)
MAX_CONTEXT_TOKENS = 100_000_000  # Larger numbers cannot be the size of a context.
# The name of the model in answers that were written by the client or this plugin, not by a model.
SYNTHETIC_MODEL = "<synthetic>"
# The start of the result of a call that the user rejected. The user's own words follow.
REJECTION_BEGINNING = "The user doesn't want to"

_NON_PROMPT_BEGINNINGS = (
    "<local-command-",
    "<command-name>",
    "[Request interrupted",
    "<bash-",
    "<task-notification",
    "Caveat: ",
    "Unknown command: /",  # 2.1.112
)
"""The beginnings of user messages that are not prompts to the model.

A slash command that is a prompt is not matched, because its record begins with
``<command-message>`` instead of ``<command-name>``.
"""

MAX_BYTES_FOR_STANDARD_PARSER = 1024 * 1024
"""Number of bytes that a process parses with the standard parser before it imports orjson."""

_PLAN_COMMAND = "/plan"
"""The only slash command whose arguments reach the model as a prompt even though its record has no
``<command-message>`` tag. The arguments say what to plan."""

MIN_PLAN_WORDS = 3  # Arguments with fewer words, such as ``open``, are not a request for a plan.


def parse_record(body: bytes) -> Record | None:
    """Parse the body of a line. Return None if the body is not a JSON object.

    orjson rejects lone surrogates and invalid UTF-8, but the client writes and accepts them. Bodies
    that contain them are parsed by the slower standard parser, with U+FFFD in place of each invalid
    character, so that every string can be written again. The standard parser also parses the first
    lines that a process reads.
    """
    if _STANDARD_PARSER_CHOICE(body):
        try:
            return _parse_tolerantly(body)
        except RecursionError:  # orjson accepts deeper nesting than the standard parser.
            pass
    import orjson  # Imported here for the reason stated in ``_ParserChoice``.

    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return _parse_record_with_fallback(body)
    if isinstance(value, dict):
        return value
    return None


class _ParserChoice:
    """The choice between the standard parser and orjson.

    Importing orjson takes 10 ms. In this time, the standard parser, which is already imported,
    parses a megabyte. Therefore a process parses its first megabyte with the standard parser,
    unless orjson has been imported already.
    """

    def __init__(self) -> None:
        self._remaining_bytes = MAX_BYTES_FOR_STANDARD_PARSER

    def __call__(self, body: bytes) -> bool:
        """Check whether the standard parser should parse ``body``."""
        self._remaining_bytes -= len(body)
        return self._remaining_bytes >= 0 and "orjson" not in sys.modules


_STANDARD_PARSER_CHOICE = _ParserChoice()


def _parse_record_with_fallback(body: bytes) -> Record | None:
    """Parse a body that may contain lone surrogates or invalid UTF-8."""
    record = parse_record_strictly(body)
    if record is not None:
        return record
    try:
        return _parse_tolerantly(body)
    except RecursionError:
        return None


def parse_record_strictly(body: bytes) -> Record | None:
    """Parse the body of a line if orjson accepts it.

    Return None if it is not a JSON object, or if it contains lone surrogates or invalid UTF-8.
    """
    if body[:1] != b"{":
        body = body.strip()
        if body[:1] != b"{":
            return None
    import orjson  # Imported here for the reason stated in ``_ParserChoice``.

    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if isinstance(value, dict):
        return value
    return None


def _parse_integer_like_orjson(digits: str) -> int | float:
    """Parse an integer. If it has more than 64 bits, return a float, as orjson does."""
    number = int(digits)
    if -(2**63) <= number < 2**64:
        return number
    return float(number)


_TOLERANT_DECODER = json.JSONDecoder(parse_int=_parse_integer_like_orjson)


def _parse_tolerantly(body: bytes) -> Record | None:
    """Parse a body with the standard parser, with U+FFFD in place of invalid characters.

    Raises RecursionError if the body is nested too deeply.
    """
    body = body.strip()
    if body[:1] != b"{":
        return None
    try:
        text = body.decode("utf-8", "replace")
        value = _TOLERANT_DECODER.decode(text)
        if "\\ud" in text.lower():
            utf16 = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
            value = _TOLERANT_DECODER.decode(utf16.decode("utf-16", "replace"))
    except (ValueError, OverflowError):
        return None
    if isinstance(value, dict):
        return value
    return None


def get_string(record: Record, key: str) -> str:
    """Return the value of a field if it is a string, else ``""``."""
    value = record.get(key)
    if isinstance(value, str):
        return value
    return ""


def get_mapping(record: Record, key: str) -> Record:
    """Return the value of a field if it is an object, else ``{}``."""
    value = record.get(key)
    if isinstance(value, dict):
        return value
    return {}


def list_objects(value: object) -> list[Record]:
    """Return the items of a list that are objects. If ``value`` is not a list, return ``[]``."""
    if isinstance(value, list):
        return [row for row in value if isinstance(row, dict)]
    return []


def parse_positive_count(value: object, maximum: int = MAX_CONTEXT_TOKENS) -> int:
    """Return ``value`` if it is a positive integer, but at most ``maximum``. Otherwise return 0."""
    if isinstance(value, int) and value is not True and value > 0:
        return min(value, maximum)
    return 0


def iterate_strings(value: object) -> Iterator[str]:
    """Yield every string in a JSON value, in order.

    The function is not recursive, because values from untrusted files may be nested too deeply.
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
    """Return the kind of a record, for example ``user``, ``system`` or ``custom-title``."""
    return get_string(record, "type")


def list_uuids(record: Record) -> list[str]:
    """Return the ids of a record.

    A record has its own id. A queued prompt also has the id under which it was sent.
    """
    return [uuid for key in ("uuid", "sentAsUuid") if (uuid := get_string(record, key))]


def get_message(record: Record) -> Record:
    """Return the API message that a user or assistant record contains, or ``{}``."""
    return get_mapping(record, "message")


def list_blocks(record: Record) -> list[Record]:
    """Return the content of a record's message as blocks. A string becomes one block of text."""
    return _list_content_blocks(get_message(record).get("content"))


def _list_content_blocks(content: object) -> list[Record]:
    if isinstance(content, str):
        return [{"type": TEXT, "text": content}]
    return list_objects(content)


def list_calls(record: Record) -> list[Record]:
    """Return the blocks of a record's message that call a tool."""
    return [block for block in list_blocks(record) if block.get("type") == CALL]


def list_results(record: Record) -> list[Record]:
    """Return the blocks of a record's message that contain the result of a call."""
    return [block for block in list_blocks(record) if block.get("type") == RESULT]


def list_answered_call_ids(record: Record) -> list[str]:
    """Return the ids of the calls whose results a record contains, in order."""
    return [get_string(block, "tool_use_id") for block in list_results(record)]


def call_id(block: Record) -> str:
    """Return the id of the call in a block, or ``""``.

    If the block is a result, this is the id of the call that the result answers.
    """
    return get_string(block, _CALL_ID_FIELDS_BY_BLOCK_TYPE.get(get_string(block, "type"), ""))


def join_text_blocks(record: Record) -> str:
    """Return the texts of a record's message, joined by line feeds."""
    return "\n".join(
        get_string(block, "text") for block in list_blocks(record) if block.get("type") == TEXT
    )


def result_blocks(block: Record) -> list[Record]:
    """Return the content of a tool result as blocks. A string becomes one block of text."""
    return _list_content_blocks(block.get("content"))


def result_text(block: Record) -> str:
    """Return the texts of a tool result, joined by line feeds."""
    content = block.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(get_string(row, "text") for row in result_blocks(block))


def file_path_from_input(tool_input: Record) -> str:
    """Return the path of a file in the input of a call, or ``""``."""
    return next(
        (path for key in FILE_PATH_INPUT_NAMES if (path := get_string(tool_input, key))), ""
    )


def is_error(block: Record) -> bool:
    """Check whether a tool result states that its call failed."""
    return block.get("is_error") is True


def token_usage(record: Record) -> Record:
    """Return the API's token counts for an answer, or ``{}``."""
    return get_mapping(get_message(record), "usage")


def replace_content(record: Record, content: object) -> Record:
    """Return a copy of a record whose message has the given content."""
    return {**record, "message": {**get_message(record), "content": content}}


def tool_details(record: Record) -> Record:
    """Return the details that the client records in addition to a tool result, or ``{}``."""
    return get_mapping(record, "toolUseResult")


def agent_id_of_result(record: Record) -> str:
    """Return the id of the sub-agent that gave a result, or ``""`` if no sub-agent gave it."""
    return get_string(tool_details(record), "agentId")


def read_copied_uuid(record: Record) -> str:
    """Return the uuid of the record from which a fork's record was copied, or ``""``."""
    return get_string(get_mapping(record, "forkedFrom"), "messageUuid")


def tokens_before_compaction(record: Record) -> int:
    """Return the size of the context before a compaction, in tokens, or 0 if it is unknown.

    ``record`` is the boundary record of the compaction.
    """
    return parse_positive_count(get_mapping(record, "compactMetadata").get("preTokens"))


def read_token_counts(record: Record) -> tuple[int, int]:
    """Return the API's token counts of an answer: its input, and the sum of input and output.

    If they are unknown, return zeros.
    """
    counts = token_usage(record)
    if not counts or get_kind(record) != ASSISTANT:
        return 0, 0
    get = counts.get
    input_tokens = parse_positive_count(get("input_tokens")) + parse_positive_count(
        get("cache_read_input_tokens")
    )
    input_tokens += parse_positive_count(get("cache_creation_input_tokens"))
    return input_tokens, input_tokens + parse_positive_count(get("output_tokens"))


def answering_model(record: Record) -> str:
    """Return the name of the model that gave an answer, or ``""`` if no model gave it."""
    name = get_string(get_message(record), "model")
    if name == SYNTHETIC_MODEL:
        return ""
    return name


def is_prompt(record: Record) -> bool:
    """Check whether a record is a prompt, which starts a turn.

    Results, summaries, command outputs and texts that the client wrote are not prompts.
    """
    if get_kind(record) != USER or record.get("isMeta") or record.get("isCompactSummary"):
        return False
    if record.get("isSidechain") or record.get("isVisibleInTranscriptOnly"):
        return False
    message_blocks = list_blocks(record)
    if not message_blocks or any(block.get("type") == RESULT for block in message_blocks):
        return False
    words = join_text_blocks(record).lstrip()
    return not words.startswith(_NON_PROMPT_BEGINNINGS) or _is_plan_request(words)


def _is_plan_request(message_text: str) -> bool:
    """Check whether a message is the command ``/plan`` followed by a request. ``/plan open`` is not one.

    ``message_text`` contains the command in the client's tags.
    """
    if not message_text.startswith(f"<command-name>{_PLAN_COMMAND}</command-name>"):
        return False
    return (
        len(_extract_text_between(message_text, "<command-args>", "</command-args>").split())
        >= MIN_PLAN_WORDS
    )


def prompt_text(record: Record) -> str:
    """Return the text of a prompt. A slash command is returned as the user typed it."""
    message_text = join_text_blocks(record)
    name = _extract_text_between(message_text, "<command-name>", "</command-name>")
    if not message_text.lstrip().startswith(("<command-message>", "<command-name>")) or not name:
        return message_text
    return (
        f"{name} {_extract_text_between(message_text, '<command-args>', '</command-args>')}".strip()
    )


def _extract_text_between(text: str, opening: str, closing: str) -> str:
    return text.partition(opening)[2].partition(closing)[0].strip()


def reject_codex_rollout(record: Record, path: str) -> None:
    """Raise NotATranscript if ``record`` is the first line of a Codex session."""
    if record.get("type") == "session_meta" and isinstance(record.get("payload"), dict):
        raise NotATranscript(
            f"{os.path.basename(path)} is a Codex rollout file, not a Claude Code transcript",
            "Codex sessions are recognized by Codex's own file names: rollout-<time>-<id>.jsonl.",
        )
