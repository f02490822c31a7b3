"""Write the lines of a new Codex session's rollout (its .jsonl file).

A rollout contains items for the model, and events for the screen and for lists of sessions. The
lines have the format of Codex up to 0.146, and later versions can also resume such a rollout. The
file is self-contained. It therefore contains neither the parent's ordinals nor the parent's
references to other files. The parent's token counts are also omitted, because Codex would compact
the child immediately if they were close to the limit.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.write_child import ChildBody, ChildPlan
from resume_hooks.derive.fresh_child import FreshOpening
from resume_hooks.parts.codex.transcripts import items as codex_items
from resume_hooks.parts.codex.transcripts.history import ORIGINAL_ID_KEY, ThreadHistory
from resume_hooks.parts.codex.transcripts.lines import (
    EVENT_LINE,
    ITEM_LINE,
    META_LINE,
    OPENING_KEY,
    TITLE_KEY,
    RolloutLine,
    read_rollout_lines,
)
from resume_hooks.parts.codex.transcripts.meta import (
    REQUIRED_FIRST_LINE_FIELD_NAMES,
    parse_rollout_name,
    read_meta,
)
from resume_hooks.reading.digest import entries
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.raw_edit import encode_record
from resume_hooks.transcripts.records import Record

_PARENT_LINK_FIELD_NAMES = frozenset(
    {"history_mode", "history_base", "forked_from_ordinal_exclusive", "parent_thread_id"}
)
"""The fields that refer to other files in the first line of a rollout. A child does not have these
fields, because it is self-contained."""


GOAL_WARNING = (
    "The goal stays with the parent. To have Codex pursue the goal in the child, type /goal and the "
    "text of the goal there."
)
"""The warning that a child has no goal. A child cannot get its parent's goal, because Codex stores
the goals of all threads in its own database and not in the threads' files."""


DEFAULT_CLI_VERSION = "0.125.0"
"""The Codex version in the first line of a child whose parent is not a Codex session. Every
supported version of Codex can resume a child with this version."""

DEFAULT_PROVIDER, DEFAULT_ORIGINATOR = "openai", "codex_cli_rs"
_PROVIDER_SETTING_PATTERN = re.compile(
    r'^\s*model_provider\s*=\s*["\']([\w.-]{1,100})["\']', re.MULTILINE
)
MAX_CONFIG_BYTES = 1024 * 1024  # Maximum number of bytes to read from Codex's settings.


@dataclass(frozen=True, slots=True)
class RolloutBody(ChildBody):
    """The content of a new Codex session, and the items that its model must receive.

    ``encoded_lines`` are the lines of the session's file. ``drops_goal`` is true if the parent has
    a goal, which is not copied to the new session.
    """

    encoded_lines: tuple[bytes, ...]
    items_sent_to_model: tuple[Record, ...]
    drops_goal: bool = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning if the parent has a goal, and otherwise nothing."""
        if self.drops_goal:
            return (GOAL_WARNING,)
        return ()

    def lines(self) -> Iterator[bytes]:
        """Return an iterator of the encoded lines."""
        return iter(self.encoded_lines)

    def run_checks(self, path: str, plan: ChildPlan) -> list[Check]:
        """Check a written child, and return the results of the checks.

        One of the checks requires that the model receives exactly the planned items.
        """
        history, kinds, next_line_number, ordinals = ThreadHistory(), [], 0, 0
        for line in read_rollout_lines(path):
            history.add_line(line)
            kinds.append(line.kind)
            next_line_number = line.line_number + 1
            ordinals += "ordinal" in line.record
        with open(path, "rb") as stream:
            line_count = sum(1 for _ in stream)
        meta, name = read_meta(path), parse_rollout_name(plan.draft.path)
        received_items = [item.payload for item in history.items]
        return [
            Check("every line is a complete record", next_line_number == len(kinds) == line_count),
            Check(
                "only its first line describes the session",
                kinds[:1] == [META_LINE] and kinds.count(META_LINE) == 1,
            ),
            Check(
                "the first line has the fields that every client requires",
                all(meta.payload.get(key) for key in REQUIRED_FIRST_LINE_FIELD_NAMES),
            ),
            Check(
                "it has its own id",
                name is not None and meta.payload.get("id") == name.thread_id,
            ),
            Check(
                "it is self-contained", meta.base is None and not meta.is_paginated and not ordinals
            ),
            Check(
                "the model receives exactly the planned items",
                received_items == list(self.items_sent_to_model),
            ),
            Check(
                "it does not contain token counts of the parent",
                not history.has_token_count_from_client,
            ),
            Check("the file is private", os.stat(path).st_mode & 0o077 == 0),
        ]


def build_body(
    child: Draft,
    first_line: bytes,
    meta: Record,
    item_records: Sequence[Record],
    environment_lines: Sequence[RolloutLine] = (),
    *,
    drops_goal: bool = False,
) -> RolloutBody:
    """Return the content of a child whose model receives ``item_records``.

    ``first_line`` contains the fields that this plugin adds to the child's first line, and ``meta`` the
    fields from the parent's first line. ``environment_lines`` are the lines in which the client
    last described the environment to the model. They are written immediately before the last item,
    because the client assumes that all items after a description are newer than the description.
    """
    encoded_lines = [_build_first_line(child, first_line, meta)]
    for index, record in enumerate(item_records):
        if index == len(item_records) - 1:
            encoded_lines += (
                _encode_line(line.kind, _set_thread_id(line.payload, child), line.timestamp)
                for line in environment_lines
            )
        if event := _build_displayed_message_event(record["payload"]):
            encoded_lines.append(_encode_line(EVENT_LINE, event, record["timestamp"]))
        encoded_lines.append(encode_record(record) + b"\n")
    return RolloutBody(
        tuple(encoded_lines), tuple(record["payload"] for record in item_records), drops_goal
    )


def _set_thread_id(payload: Record, child: Draft) -> Record:
    """Return a copy of ``payload`` with the child's thread id, if the payload contains a thread id."""
    if "thread_id" in payload:
        return payload | {"thread_id": child.session_id}
    return payload


def build_opening_body(opening: FreshOpening, meta: Record) -> RolloutBody:
    """Return the content of a child that consists of an opening: one user message and one answer.

    The screen and the lists of sessions show the child's title instead of the user message.
    """
    child, digest, timestamp = (
        opening.child,
        opening.contents.digest,
        opening.child.attributes.created_at,
    )
    turn_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{child.session_id}/turn"))
    prompt_item, answer_item = (
        build_message_item("user", opening.text),
        build_message_item("assistant", opening.screen_text),
    )
    encoded_lines = [
        _build_first_line(child, opening.first_line, meta),
        _encode_line(
            EVENT_LINE,
            {"type": "task_started", "turn_id": turn_id, "model_context_window": None},
            timestamp,
        ),
        _encode_line(
            EVENT_LINE,
            _build_message_event("user_message", child.own_title or child.title_stem),
            timestamp,
        ),
        _encode_line(ITEM_LINE, prompt_item, timestamp, {OPENING_KEY: True}),
        _encode_line(
            EVENT_LINE,
            _build_message_event("agent_message", codex_items.item_text(answer_item)),
            timestamp,
        ),
        _encode_line(ITEM_LINE, answer_item, timestamp),
        _encode_line(
            EVENT_LINE,
            {"type": "task_complete", "turn_id": turn_id, "last_agent_message": None},
            timestamp,
        ),
    ]
    if digest is not None:
        record = orjson.loads(entries.format_digest_record(digest))
        encoded_lines.append(
            orjson.dumps({"timestamp": timestamp, "type": record.pop("type"), "payload": record})
            + b"\n"
        )
    return RolloutBody(tuple(encoded_lines), (prompt_item, answer_item))


def build_item_record(
    payload: Record, timestamp: str, item_id: str, extra_fields: Mapping[str, Any] = {}
) -> Record:
    """Return the record of a rollout line for an item.

    ``extra_fields`` are added to the record outside the item, where the model does not see them.
    """
    return {
        "timestamp": timestamp,
        "type": ITEM_LINE,
        "payload": payload,
        ORIGINAL_ID_KEY: item_id,
        **extra_fields,
    }


def build_child_meta(child: Draft, codex_home: str) -> Record:
    """Return the fields of a child's first line if its parent is not a Codex session.

    The model provider is read from the settings in the folder ``codex_home``.
    """
    if child.attributes.branch:
        git_fields = {"git": {"branch": child.attributes.branch}}
    else:
        git_fields = {}
    return {
        "cwd": child.attributes.cwd,
        "originator": DEFAULT_ORIGINATOR,
        "cli_version": DEFAULT_CLI_VERSION,
        "model_provider": _read_provider_setting(codex_home),
        **git_fields,
    }


def _read_provider_setting(codex_home: str) -> str:
    """Return the model provider in the user's settings, or the default provider.

    A child must have the current provider, because Codex only resumes sessions of that provider.
    """
    try:
        with open(os.path.join(codex_home, "config.toml"), "rb") as stream:
            text = stream.read(MAX_CONFIG_BYTES).decode("utf-8", "replace")
    except OSError:
        return DEFAULT_PROVIDER
    top_settings = re.split(r"^\s*\[", text, maxsplit=1, flags=re.MULTILINE)[0]
    match = _PROVIDER_SETTING_PATTERN.search(top_settings)
    if match:
        return match[1]
    return DEFAULT_PROVIDER


def _build_first_line(child: Draft, first_line: bytes, meta: Record) -> bytes:
    """Return the first line of a child.

    ``meta`` contains the fields from the parent's first line or from ``build_child_meta``. If
    ``meta`` has no ``session_id``, the client that wrote ``meta`` does not know this field, so the
    child does not get it either.
    """
    payload = {}
    for key, value in meta.items():
        if key not in _PARENT_LINK_FIELD_NAMES:
            payload[key] = value
    payload |= {"id": child.session_id, "timestamp": child.attributes.created_at, "source": "cli"}
    if "session_id" in payload:
        payload["session_id"] = child.session_id
    if child.parent_agent == child.agent:
        payload["forked_from_id"] = child.parent.session_id
    return _encode_line(
        META_LINE,
        payload,
        child.attributes.created_at,
        orjson.loads(first_line) | {TITLE_KEY: child.own_title or child.title_stem},
    )


def build_message_item(role: str, text: str) -> Record:
    """Return an item that contains a message from the user or the assistant."""
    part_type = "output_text" if role == "assistant" else "input_text"
    return {
        "type": "message",
        "role": role,
        "content": [{"type": part_type, "text": replace_surrogates(text)}],
    }


def _build_displayed_message_event(payload: Record) -> Record | None:
    """Return the event that shows an item on the screen.

    Return None if the item is neither a prompt nor an answer of the model.
    """
    if codex_items.item_type(payload) != codex_items.MESSAGE_TYPE:
        return None
    if payload.get("role") == "assistant":
        return _build_message_event("agent_message", codex_items.item_text(payload))
    if codex_items.is_prompt(payload):
        return _build_message_event("user_message", codex_items.item_text(payload))
    return None


def _build_message_event(kind: str, text: str) -> Record:
    extra_fields: Record = (
        {"images": [], "local_images": [], "text_elements": []} if kind == "user_message" else {}
    )
    return {"type": kind, "message": text, **extra_fields}


def _encode_line(
    kind: str, payload: Record, timestamp: str, extra_fields: Mapping[str, Any] = {}
) -> bytes:
    return (
        encode_record({"timestamp": timestamp, "type": kind, "payload": payload, **extra_fields})
        + b"\n"
    )
