"""Read the items in the model's history: messages, calls, outputs and reasoning.

An item is the payload of a ``response_item`` line, or an element of a compaction's
``replacement_history``. If a new version of Codex adds a type of call or output, that type must be
added to ``TOOL_CALL_TYPES`` or ``TOOL_OUTPUT_TYPES``.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import orjson

from resume_hooks.transcripts.records import Record, get_mapping, get_string, list_objects

MESSAGE_TYPE, REASONING_TYPE = "message", "reasoning"
TOOL_CALL_TYPES = frozenset(
    {"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"}
)
TOOL_OUTPUT_TYPES = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "tool_search_output",
    }
)
"""``TOOL_CALL_TYPES`` are the types of calls that Codex answers with an output, and ``TOOL_OUTPUT_TYPES`` are
the types of these outputs. A call and its output have the same ``call_id``."""

# The types of calls that have no output.
HOSTED_CALL_TYPES = frozenset({"web_search_call", "image_generation_call"})
ENCRYPTED_SUMMARY_TYPES = frozenset({"compaction", "context_compaction", "compaction_summary"})
"""The types of summaries that only the model's provider can read."""

ITEM_TYPE_NOT_SENT_TO_MODEL = "ghost_snapshot"

SUMMARY_PREFIX = "Another language model started to solve this problem"
"""The beginning of the summary of a compaction if the summary is not encrypted."""

REQUEST_HEADING = "## My request for Codex:"
"""The heading before the user's own text in a prompt from an editor."""

FILES_HEADING = "# Files mentioned by the user:"
"""The heading of the list of files that the user attached in an editor. In this list, the name of
each file is a heading too."""

APPROVED_PLAN_PREFIX = "PLEASE IMPLEMENT THIS PLAN:"
"""The beginning of the prompt that the client sends when the user approves a plan. The rest of the
prompt is the plan."""

INTERRUPTED_TURN_TAG = "<turn_aborted>"

HARNESS_PREFIXES = (
    "<environment_context>",
    "# AGENTS.md",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    INTERRUPTED_TURN_TAG,
    "<skill>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<codex_internal_context",
)
"""The beginnings of messages that have the user's role but come from the harness."""

_INSTRUCTIONS_HEADING_PATTERN = re.compile(r"# AGENTS\.md instructions for (\S[^\n]{0,400})\n")
_INSTRUCTIONS_PREFIXES = ("<user_instructions>", "<INSTRUCTIONS>", "# AGENTS.md")
_GOAL_NOTICE_PREFIX = '<codex_internal_context source="user_goal">'
# The kind of the message in which Codex tells the model about the user's goal.
_GOAL_NOTICE_KIND = "user.goal"
# Since Codex 0.15x, the names of all kinds of messages from the user begin with this text.
_USER_MESSAGE_KIND_PREFIX = "user."


class CallPair(NamedTuple):
    """The indexes of a call and its output in a list of items.

    ``output_index`` is -1 if no output follows the call.
    """

    call_index: int
    output_index: int


def item_type(item: Record) -> str:
    """Return the type of an item."""
    return get_string(item, "type")


def content_parts(item: Record) -> list[Record]:
    """Return the content parts of a message or output. A string is returned as a single part."""
    if item_type(item) in TOOL_OUTPUT_TYPES:
        content = item.get("output")
    else:
        content = item.get("content")
    if item_type(item) == "tool_search_output" and content is None:
        content = _format_value_as_text(item.get("tools"))
    if isinstance(content, dict):  # Old clients write {"content": ..., "success": ...}.
        content = content.get("content_items") or content.get("content")
    if isinstance(content, str):
        return [{"type": "input_text", "text": content}]
    return list_objects(content)


def item_text(item: Record) -> str:
    """Return the text of an item.

    If the item is a message or output, newlines join its text parts. The text of a reasoning item
    consists of its summary and its content, separated by blank lines.
    """
    if item_type(item) == REASONING_TYPE:
        rows = list_objects(item.get("summary")) + list_objects(item.get("content"))
        return "\n\n".join(filter(None, (get_string(row, "text") for row in rows)))
    return "\n".join(
        get_string(part, "text")
        for part in content_parts(item)
        if isinstance(part.get("text"), str)
    )


def is_harness_message(item: Record) -> bool:
    """Check whether a message with the user's role comes from the harness and not from the user.

    Such messages contain, for example, settings, instructions or interruptions.
    """
    kinds = get_mapping(item, "internal_chat_message_metadata_passthrough").get(
        "content_item_kinds"
    )
    if isinstance(kinds, list) and any(
        isinstance(kind, str) and kind != "unknown" for kind in kinds
    ):
        return not any(
            isinstance(kind, str)
            and kind.startswith(_USER_MESSAGE_KIND_PREFIX)
            and kind != _GOAL_NOTICE_KIND
            for kind in kinds
        )
    return any(
        get_string(part, "text").lstrip().startswith(HARNESS_PREFIXES)
        for part in content_parts(item)
    )


def is_goal_notice(item: Record) -> bool:
    """Check whether an item is the message in which Codex tells the model about the user's goal."""
    is_user_message = item_type(item) == MESSAGE_TYPE and get_string(item, "role") == "user"
    return (
        is_user_message
        and item_text(item).startswith(_GOAL_NOTICE_PREFIX)
        and is_harness_message(item)
    )


def is_interruption(item: Record) -> bool:
    """Check whether an item is Codex's message to the model that the user interrupted the turn."""
    is_user_message = item_type(item) == MESSAGE_TYPE and get_string(item, "role") == "user"
    is_note = item_text(item).lstrip().startswith(INTERRUPTED_TURN_TAG)
    return is_user_message and is_note and is_harness_message(item)


def instructions_name(item: Record) -> str:
    """Return a name for the project instructions in a message, for example ``AGENTS.md of /home/me/app``.

    Return ``""`` if the message contains no instructions.
    """
    text = item_text(item).lstrip()
    if match := _INSTRUCTIONS_HEADING_PATTERN.match(text):
        return f"AGENTS.md of {match[1]}"
    if text.startswith(_INSTRUCTIONS_PREFIXES):
        return "AGENTS.md"
    return ""


def opens_turn(item: Record) -> bool:
    """Check whether an item is a user message that begins a turn.

    Codex counts these messages when it rolls back turns. A message from the harness does not begin
    a turn.
    """
    return (
        item_type(item) == MESSAGE_TYPE
        and get_string(item, "role") == "user"
        and not is_harness_message(item)
    )


def is_summary(item: Record) -> bool:
    """Check whether an item is the summary of a compaction, encrypted or not."""
    return item_type(item) in ENCRYPTED_SUMMARY_TYPES or (
        opens_turn(item) and item_text(item).lstrip().startswith(SUMMARY_PREFIX)
    )


def is_prompt(item: Record) -> bool:
    """Check whether an item is a prompt from the user."""
    return opens_turn(item) and not is_summary(item)


def request_text(item: Record) -> str:
    """Return the user's own text in a prompt, without the text that an editor added before it.

    If the user attached files, a list of these files is appended to the text.
    """
    prompt = item_text(item)
    before, heading, after = prompt.rpartition(REQUEST_HEADING)
    request = after.strip()
    if not heading or not (request or FILES_HEADING in before):
        return prompt
    files = _format_attached_files(before)
    if files:
        return "\n".join([request, "", "Files that the user attached:", *files]).strip()
    return request


def approved_plan(item: Record) -> str:
    """Return the plan in the prompt that the client sends after the user has approved a plan.

    Return ``""`` if ``item`` is not such a prompt.
    """
    prompt = item_text(item)
    if prompt.startswith(APPROVED_PLAN_PREFIX):
        return prompt.removeprefix(APPROVED_PLAN_PREFIX).strip()
    return ""


def _format_attached_files(leading_text: str) -> list[str]:
    """Return a line of text for each file that an editor listed before the user's own text."""
    rows = []
    for row in leading_text.partition(FILES_HEADING)[2].split("\n"):
        if row.startswith("# "):
            break
        if row.startswith("## "):
            rows.append(f"- {row.removeprefix('## ').strip()}")
    return rows


def call_id(item: Record) -> str:
    """Return the id that a call and its output share, or ``""`` for other items."""
    return get_string(item, "call_id") or (
        get_string(item, "id") if item_type(item) in TOOL_CALL_TYPES else ""
    )


def call_arguments(item: Record) -> Record:
    """Return the arguments of a call as a dictionary.

    If the arguments are not a JSON object, for example if they are a script, return them in a
    dictionary with the key ``input``.
    """
    if item_type(item) == "custom_tool_call":
        return {"input": get_string(item, "input")}
    if item_type(item) in {"local_shell_call", *HOSTED_CALL_TYPES}:
        return get_mapping(item, "action")
    arguments = item.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            return {"input": arguments}
    if isinstance(arguments, dict):
        return arguments
    return {"input": _format_value_as_text(arguments)}


def pair_calls_with_outputs(items: list[Record]) -> dict[str, CallPair]:
    """Return a dictionary that maps each call id to the indexes of the call and its output.

    Outputs without a call are omitted.
    """
    pairs: dict[str, CallPair] = {}
    for index, item in enumerate(items):
        call = call_id(item)
        if call and item_type(item) in TOOL_CALL_TYPES:
            pairs[call] = CallPair(index, -1)
        elif (
            item_type(item) in TOOL_OUTPUT_TYPES and call in pairs and pairs[call].output_index < 0
        ):
            pairs[call] = CallPair(pairs[call].call_index, index)
    return pairs


def find_orphan_indexes(items: list[Record]) -> set[int]:
    """Return the indexes of outputs without a matching call.

    Outputs without a call id are not included.
    """
    answered_indexes = {pair.output_index for pair in pair_calls_with_outputs(items).values()}
    orphans = set()
    for index, item in enumerate(items):
        if item_type(item) in TOOL_OUTPUT_TYPES and call_id(item):
            orphans.add(index)
    return orphans - answered_indexes


def count_item_characters(item: Record) -> int:
    """Return the number of characters that an item adds to the model's context."""
    return len(_format_value_as_text(item))


def dump_json(value: object) -> bytes:
    """Return a value as JSON. Equal values always become equal bytes.

    A value that is nested too deeply becomes ``"..."``.
    """
    try:
        return orjson.dumps(value)
    # orjson rejects some values, for example very large numbers.
    except orjson.JSONEncodeError:
        try:
            return json.dumps(value, ensure_ascii=False, default=str).encode()
        except RecursionError:
            return b'"..."'


def _format_value_as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return dump_json(value).decode("utf-8", "replace")
