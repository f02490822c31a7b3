"""What an item of the model's history is: messages, calls, their outputs, thoughts, and which texts are the harness's.

An item is the payload of a ``response_item``, or one of a compaction's ``replacement_history``. A
new type of call or of output is added to ``CALLS`` or ``OUTPUTS``.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import orjson

from resume_hooks.transcripts.records import Record, mapping, objects, string

MESSAGE, REASONING = "message", "reasoning"
CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"})
OUTPUTS = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "tool_search_output",
    }
)
"""Calls that are answered by an output of the same ``call_id``, and these outputs."""

HOSTED = frozenset({"web_search_call", "image_generation_call"})  # calls without an output item
ENCRYPTED = frozenset({"compaction", "context_compaction", "compaction_summary"})
"""Summaries that nobody but the provider can read."""

NEVER_SENT = "ghost_snapshot"

SUMMARY = "Another language model started to solve this problem"
"""How the summary of a compaction that was made here begins."""

REQUEST = "## My request for Codex:"
"""In prompts from an editor, what stands before the user's own words."""

HARNESS = (
    "<environment_context>",
    "# AGENTS.md",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<turn_aborted>",
    "<skill>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<codex_internal_context",
)
"""How texts begin that stand in the user's place and are not the user's."""

_GOAL_NOTE = '<codex_internal_context source="user_goal">'
_GOAL_KIND = "user.goal"  # words of Codex's own about what the user did
_OWN_KIND = "user."  # how Codex marks the parts of a message that a user wrote, from 0.15x on


class Pair(NamedTuple):
    """A call and its output by their places among the items; ``output`` is -1 for a call that nobody answered."""

    call: int
    output: int


def kind(item: Record) -> str:
    """The type of an item."""
    return string(item, "type")


def parts(item: Record) -> list[Record]:
    """What a message says, or an output holds, as parts; a plain string becomes one text part."""
    if kind(item) in OUTPUTS:
        content = item.get("output")
    else:
        content = item.get("content")
    if kind(item) == "tool_search_output" and content is None:
        content = _as_text(item.get("tools"))
    if isinstance(content, dict):  # {"content": ..., "success": ...}, of old clients
        content = content.get("content_items") or content.get("content")
    if isinstance(content, str):
        return [{"type": "input_text", "text": content}]
    return objects(content)


def text(item: Record) -> str:
    """The texts of a message or an output, joined by newlines; of a thought its summary."""
    if kind(item) == REASONING:
        rows = objects(item.get("summary")) + objects(item.get("content"))
        return "\n\n".join(filter(None, (string(row, "text") for row in rows)))
    return "\n".join(
        string(part, "text") for part in parts(item) if isinstance(part.get("text"), str)
    )


def is_harness(item: Record) -> bool:
    """Whether a message of the user's role is the harness's: settings, rules, what was aborted."""
    kinds = mapping(item, "internal_chat_message_metadata_passthrough").get("content_item_kinds")
    if isinstance(kinds, list) and any(isinstance(one, str) and one != "unknown" for one in kinds):
        return not any(
            isinstance(one, str) and one.startswith(_OWN_KIND) and one != _GOAL_KIND
            for one in kinds
        )
    return any(string(part, "text").lstrip().startswith(HARNESS) for part in parts(item))


def is_goal_note(item: Record) -> bool:
    """Whether a message is Codex's note for its model that the user set the thread's goal, or changed it."""
    is_users = kind(item) == MESSAGE and string(item, "role") == "user"
    return is_users and text(item).startswith(_GOAL_NOTE) and is_harness(item)


def opens_turn(item: Record) -> bool:
    """Whether an item begins a turn as Codex counts them when it rolls back: a user's message."""
    return kind(item) == MESSAGE and string(item, "role") == "user" and not is_harness(item)


def is_summary(item: Record) -> bool:
    """Whether an item is the summary of a compaction, readable or not."""
    return kind(item) in ENCRYPTED or (opens_turn(item) and text(item).lstrip().startswith(SUMMARY))


def is_prompt(item: Record) -> bool:
    """Whether a user asked something here."""
    return opens_turn(item) and not is_summary(item)


def request_text(item: Record) -> str:
    """What a prompt asks, without what an editor put before it."""
    said = text(item)
    if REQUEST in said:
        return said.rpartition(REQUEST)[2].strip() or said
    return said


def call_id(item: Record) -> str:
    """What a call and its output share; ``""`` for other items."""
    return string(item, "call_id") or (string(item, "id") if kind(item) in CALLS else "")


def arguments(item: Record) -> Record:
    """The arguments of a call as an object: free text, and any other value, stands under ``input``."""
    if kind(item) == "custom_tool_call":
        return {"input": string(item, "input")}
    if kind(item) in {"local_shell_call", *HOSTED}:
        return mapping(item, "action")
    given = item.get("arguments")
    if isinstance(given, str):
        try:
            given = orjson.loads(given)
        except orjson.JSONDecodeError:
            return {"input": given}
    if isinstance(given, dict):
        return given
    return {"input": _as_text(given)}


def pairs(items: list[Record]) -> dict[str, Pair]:
    """The calls by their ids, each with the output after it; outputs without a call are left out."""
    found: dict[str, Pair] = {}
    for place, item in enumerate(items):
        own = call_id(item)
        if own and kind(item) in CALLS:
            found[own] = Pair(place, -1)
        elif kind(item) in OUTPUTS and own in found and found[own].output < 0:
            found[own] = Pair(found[own].call, place)
    return found


def orphans(items: list[Record]) -> set[int]:
    """The places of outputs whose calls are not there; one that never had a call, as of a goal, does not count."""
    answers = {pair.output for pair in pairs(items).values()}
    outputs = set()
    for place, item in enumerate(items):
        if kind(item) in OUTPUTS and call_id(item):
            outputs.add(place)
    return outputs - answers


def size(item: Record) -> int:
    """Characters that an item puts before the model."""
    return len(_as_text(item))


def dump(value: object) -> bytes:
    """A value as JSON, the same for the same value.

    What nests deeper than any writer goes says only that.
    """
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # numbers that no other parser takes, for one
        try:
            return json.dumps(value, ensure_ascii=False, default=str).encode()
        except RecursionError:
            return b'"..."'


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return dump(value).decode("utf-8", "replace")
