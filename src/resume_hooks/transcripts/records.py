"""Typed access to parsed records: their kinds, the kinds of blocks in a message, and the text in them.

A record is the dict that a line parses to. The accessors answer with the right type or a neutral
value and never raise, since the format is internal to the client, differs between its versions, and
files are edited by hand.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import orjson

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
MESSAGES = frozenset({USER, ASSISTANT})  # kinds of records that hold a message of the conversation
CLEARED = "microcompact_boundary"
"""The subtype of the record with which a client notes that it cleared outputs from its memory. Without it a falling
count may have any other reason: fewer tools, another model, another client."""
COMPACTION, API_ERROR = "compact_boundary", "api_error"  # subtypes of system records
GOAL = "thread_goal"  # that of a copy of ours: the goal of a session of Codex from there on, and its status

TEXT, CALL, RESULT, SERVER_CALL = "text", "tool_use", "tool_result", "server_tool_use"
THINKING, REDACTED_THINKING = "thinking", "redacted_thinking"
IMAGE, DOCUMENT = "image", "document"  # kinds of blocks

THOUGHTS = frozenset({THINKING, REDACTED_THINKING})
MEDIA = frozenset({IMAGE, DOCUMENT})

_CALL_ID = {CALL: "id", RESULT: "tool_use_id"}

READERS = frozenset({"Read", "NotebookRead"})
WRITERS = frozenset(
    {"Edit", "MultiEdit", "NotebookEdit", "Write"}
)  # the client's tools that read or write a file
FILE_KEYS = ("file_path", "notebook_path")  # their inputs that name it
MAX_TOKENS = 100_000_000  # a larger number does not count a context
SYNTHETIC_MODEL = "<synthetic>"  # of answers that the client (or we) wrote without asking a model
REJECTION = "The user doesn't want to"  # how an answer to a refused call begins; the user's own words follow

_NOT_PROMPTS = (
    "<local-command-",
    "<command-name>",
    "[Request interrupted",
    "<bash-",
    "<task-notification",
    "Caveat: ",
    "Unknown command: /",  # 2.1.112
)
"""Openings of user text that asks the model nothing.

A slash command that does opens with its message instead.
"""

_PLANS = "/plan"
"""The one command of the client's own that asks the model: for a plan of what stands behind it."""

LEAST_ASKED = 3  # words behind a command of the client's from which on they are about the work


def parse(body: bytes) -> Record | None:
    """Parse a line's body; None for anything that is not a JSON object.

    orjson refuses lone surrogates and bad UTF-8, which the client writes and tolerates: those lines
    take the slower standard parser, and U+FFFD stands for what is not a character, so that every
    string can be written again.
    """
    record = parse_strict(body)
    if record is None and body.lstrip()[:1] == b"{":
        return _parse_tolerantly(body)
    return record


def parse_strict(body: bytes) -> Record | None:
    """Parse a line's body that any JSON parser takes.

    None for anything else, lone surrogates among it.
    """
    if body[:1] != b"{":
        body = body.strip()
        if body[:1] != b"{":
            return None
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if isinstance(value, dict):
        return value
    return None


def _parse_tolerantly(body: bytes) -> Record | None:
    try:
        text = body.decode("utf-8", "replace")
        value = json.loads(text)
        if "\\ud" in text.lower():
            pairs = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
            value = json.loads(pairs.decode("utf-16", "replace"))
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        return value
    return None


def string(record: Record, key: str) -> str:
    """A string field, or ``""``."""
    value = record.get(key)
    if isinstance(value, str):
        return value
    return ""


def mapping(record: Record, key: str) -> Record:
    """A field that holds an object, or ``{}``."""
    value = record.get(key)
    if isinstance(value, dict):
        return value
    return {}


def objects(value: object) -> list[Record]:
    """The objects in a list, or ``[]``."""
    if isinstance(value, list):
        return [row for row in value if isinstance(row, dict)]
    return []


def positive(value: object, most: int = MAX_TOKENS) -> int:
    """A count above zero, at most so much; 0 for anything else."""
    if isinstance(value, int) and value is not True and value > 0:
        return min(value, most)
    return 0


def strings(value: object) -> Iterator[str]:
    """Every text in a JSON value, in order.

    No recursion, since a hostile file may nest without end.
    """
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, dict):
            waiting += reversed(inner.values())
        elif isinstance(inner, list):
            waiting += reversed(inner)


def kind(record: Record) -> str:
    """The record's type: user, assistant, system, attachment, custom-title..."""
    return string(record, "type")


def uuids(record: Record) -> list[str]:
    """What a record is known by: its own id, and the one that a queued prompt was sent under."""
    return [uuid for key in ("uuid", "sentAsUuid") if (uuid := string(record, key))]


def message(record: Record) -> Record:
    """The API message inside a user or assistant record, or ``{}``."""
    return mapping(record, "message")


def blocks(record: Record) -> list[Record]:
    """The content of a message as blocks; a plain string becomes one text block."""
    return _as_blocks(message(record).get("content"))


def _as_blocks(content: object) -> list[Record]:
    if isinstance(content, str):
        return [{"type": TEXT, "text": content}]
    return objects(content)


def calls(record: Record) -> list[Record]:
    """The blocks of a message that call a tool."""
    return [block for block in blocks(record) if block.get("type") == CALL]


def results(record: Record) -> list[Record]:
    """The blocks of a message that answer a tool call."""
    return [block for block in blocks(record) if block.get("type") == RESULT]


def answered_calls(record: Record) -> list[str]:
    """The ids of the tool calls that a message answers, in its order."""
    return [string(block, "tool_use_id") for block in results(record)]


def call_id(block: Record) -> str:
    """The id of the call that a block makes or answers, ``""`` for other blocks."""
    return string(block, _CALL_ID.get(string(block, "type"), ""))


def text(record: Record) -> str:
    """The text blocks of a message, joined by newlines."""
    return "\n".join(string(block, "text") for block in blocks(record) if block.get("type") == TEXT)


def result_blocks(block: Record) -> list[Record]:
    """What a tool answered, as blocks; a plain string becomes one text block."""
    return _as_blocks(block.get("content"))


def result_text(block: Record) -> str:
    """The texts that a tool answered, joined by newlines."""
    content = block.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(string(row, "text") for row in result_blocks(block))


def file_in(given: Record) -> str:
    """The file that the inputs of a call name, ``""`` for none."""
    return next((path for key in FILE_KEYS if (path := string(given, key))), "")


def is_error(block: Record) -> bool:
    """Whether a result says that its call failed."""
    return block.get("is_error") is True


def usage(record: Record) -> Record:
    """The token counts that the API sent with an answer, or ``{}``."""
    return mapping(message(record), "usage")


def with_content(record: Record, content: object) -> Record:
    """The record with other content in its message."""
    return {**record, "message": {**message(record), "content": content}}


def tool_details(record: Record) -> Record:
    """What the client notes beside the result of a tool, or ``{}``."""
    return mapping(record, "toolUseResult")


def agent_of(record: Record) -> str:
    """The id of the sub-agent whose answer a result is, ``""`` for other results."""
    return string(tool_details(record), "agentId")


def copied_from(record: Record) -> str:
    """The uuid of the record that one of a fork is a copy of, ``""`` for other records."""
    return string(mapping(record, "forkedFrom"), "messageUuid")


def tokens_before(record: Record) -> int:
    """The tokens of the context before the compaction that a boundary stands for; 0 if unknown."""
    return positive(mapping(record, "compactMetadata").get("preTokens"))


def counted_tokens(record: Record) -> tuple[int, int]:
    """Tokens that the API counted for an assistant record: its input, and with its answer.

    Zeros where unknown.
    """
    counts = usage(record)
    if not counts or kind(record) != ASSISTANT:
        return 0, 0
    get = counts.get
    asked = positive(get("input_tokens")) + positive(get("cache_read_input_tokens"))
    asked += positive(get("cache_creation_input_tokens"))
    return asked, asked + positive(get("output_tokens"))


def model(record: Record) -> str:
    """The model that answered, ``""`` for synthetic answers."""
    name = string(message(record), "model")
    if name == SYNTHETIC_MODEL:
        return ""
    return name


def is_prompt(record: Record) -> bool:
    """Whether a user record opens a turn: no result, summary, command output or insertion of the client's."""
    if kind(record) != USER or record.get("isMeta") or record.get("isCompactSummary"):
        return False
    if record.get("isSidechain") or record.get("isVisibleInTranscriptOnly"):
        return False
    found = blocks(record)
    if not found or any(block.get("type") == RESULT for block in found):
        return False
    said = text(record).lstrip()
    return not said.startswith(_NOT_PROMPTS) or _asks_for_plan(said)


def _asks_for_plan(said: str) -> bool:
    """Whether a text is ``/plan`` with what is to be planned, and not with ``open``, as the client keeps it."""
    if not said.startswith(f"<command-name>{_PLANS}</command-name>"):
        return False
    return len(_between(said, "<command-args>", "</command-args>").split()) >= LEAST_ASKED


def prompt_text(record: Record) -> str:
    """What a prompt says, a slash command in the words it was typed in."""
    said = text(record)
    name = _between(said, "<command-name>", "</command-name>")
    if not said.lstrip().startswith(("<command-message>", "<command-name>")) or not name:
        return said
    return f"{name} {_between(said, '<command-args>', '</command-args>')}".strip()


def _between(said: str, opening: str, closing: str) -> str:
    return said.partition(opening)[2].partition(closing)[0].strip()


def refuse_foreign(record: Record, path: str) -> None:
    """Raise NotATranscript for the first line of a Codex rollout file."""
    if record.get("type") == "session_meta" and isinstance(record.get("payload"), dict):
        raise NotATranscript(
            f"{os.path.basename(path)} is a Codex rollout file, not a Claude Code transcript",
            "One of Codex is read under the name that Codex gave it: rollout-<time>-<id>.jsonl.",
        )
