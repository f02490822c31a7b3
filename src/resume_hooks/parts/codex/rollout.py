"""Write the lines of a rollout: items for the model, and events for the client's screen and session lists.

The format is that of Codex up to 0.146, which later versions can also resume: one self-contained
file without the parent's ordinals, pointers and token counts. If we copied a token count near the
limit, Codex would compact the child immediately.
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
from resume_hooks.derive.child.write_child import Body, ChildPlan
from resume_hooks.derive.fresh_child import FreshOpening
from resume_hooks.parts.codex.transcripts import items as codex_items
from resume_hooks.parts.codex.transcripts.history import OWN_ID_KEY, History
from resume_hooks.parts.codex.transcripts.lines import (
    EVENT,
    ITEM,
    META,
    OPENING_KEY,
    TITLE_KEY,
    RolloutLine,
    read_rollout_lines,
)
from resume_hooks.parts.codex.transcripts.meta import REQUIRED_FIELDS, parse_rollout_name, read_meta
from resume_hooks.reading.digest import entries
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.raw_edit import encode_record
from resume_hooks.transcripts.records import Record

_PARENT_LINK_FIELDS = frozenset(
    {"history_mode", "history_base", "forked_from_ordinal_exclusive", "parent_thread_id"}
)
"""The fields that link a file to other files. A child is self-contained, so it omits them."""


GOAL_WARNING = (
    "The goal stays with the parent. In the child, type /goal and its text to have Codex "
    "pursue it there."
)
"""The warning that a child has no goal. Codex stores goals in its own database by thread id."""


DEFAULT_CLI_VERSION = "0.125.0"
"""The Codex version to record in a child whose parent is not a Codex session.

Every supported version can resume it.
"""

DEFAULT_PROVIDER, DEFAULT_ORIGINATOR = "openai", "codex_cli_rs"
_PROVIDER_SETTING = re.compile(r'^\s*model_provider\s*=\s*["\']([\w.-]{1,100})["\']', re.MULTILINE)
MAX_CONFIG_BYTES = 1024 * 1024  # the maximum number of bytes to read from the settings


@dataclass(frozen=True, slots=True)
class RolloutBody(Body):
    """The encoded lines of a child, and the items that the model must receive from it.

    ``drops_goal`` is true if the parent has a goal, which Codex does not copy to the child.
    """

    encoded_lines: tuple[bytes, ...]
    sent_items: tuple[Record, ...]
    drops_goal: bool = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning if the parent's goal does not apply to the child."""
        if self.drops_goal:
            return (GOAL_WARNING,)
        return ()

    def lines(self) -> Iterator[bytes]:
        """Return the encoded lines."""
        return iter(self.encoded_lines)

    def run_checks(self, path: str, plan: ChildPlan) -> list[Check]:
        """Check that a written child follows our rules, and that the model receives exactly the planned items."""
        history, kinds, next_line_number, ordinals = History(), [], 0, 0
        for line in read_rollout_lines(path):
            history.add_line(line)
            kinds.append(line.kind)
            next_line_number = line.line_number + 1
            ordinals += "ordinal" in line.record
        with open(path, "rb") as stream:
            line_count = sum(1 for _ in stream)
        meta, name = read_meta(path), parse_rollout_name(plan.draft.path)
        sent_payloads = [item.payload for item in history.items]
        return [
            Check("every line is a whole record", next_line_number == len(kinds) == line_count),
            Check(
                "it begins with its session, once", kinds[:1] == [META] and kinds.count(META) == 1
            ),
            Check(
                "the first line has the fields that every client requires",
                all(meta.payload.get(key) for key in REQUIRED_FIELDS),
            ),
            Check(
                "it has its own id",
                name is not None and meta.payload.get("id") == name.thread_id,
            ),
            Check(
                "it is self-contained", meta.base is None and not meta.is_paginated and not ordinals
            ),
            Check(
                "its model receives exactly the planned items",
                sent_payloads == list(self.sent_items),
            ),
            Check("no count of tokens is carried over", not history.has_client_count),
            Check("the file is private", os.stat(path).st_mode & 0o077 == 0),
        ]


def build_body(
    child: Draft,
    head: bytes,
    meta: Record,
    item_records: Sequence[Record],
    environment_lines: Sequence[RolloutLine] = (),
    *,
    drops_goal: bool = False,
) -> RolloutBody:
    """Return a child whose model receives these items.

    ``head`` contains our fields for the child's first line, and ``meta`` contains the fields of the
    parent's first line. ``environment_lines`` record the client's earlier description of the
    environment. They are written before the last item, because the client treats everything after
    them as newer.
    """
    encoded_lines = [_build_first_line(child, head, meta)]
    for index, record in enumerate(item_records):
        if index == len(item_records) - 1:
            encoded_lines += (
                _encode_line(line.kind, _set_thread_id(line.payload, child), line.timestamp)
                for line in environment_lines
            )
        if event := _build_screen_event(record["payload"]):
            encoded_lines.append(_encode_line(EVENT, event, record["timestamp"]))
        encoded_lines.append(encode_record(record) + b"\n")
    return RolloutBody(
        tuple(encoded_lines), tuple(record["payload"] for record in item_records), drops_goal
    )


def _set_thread_id(payload: Record, child: Draft) -> Record:
    """Return the payload. If it names a thread, replace that id by the child's thread id."""
    if "thread_id" in payload:
        return payload | {"thread_id": child.session_id}
    return payload


def build_opening_body(opening: FreshOpening, meta: Record) -> RolloutBody:
    """Return a child with only our opening: one message from the user and one from the assistant.

    The screen and the session lists show the child's title instead of the first message.
    """
    child, digest, timestamp = opening.child, opening.contents.digest, opening.child.attributes.at
    turn_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{child.session_id}/turn"))
    prompt_item, answer_item = (
        build_message_item("user", opening.text),
        build_message_item("assistant", opening.card),
    )
    encoded_lines = [
        _build_first_line(child, opening.head, meta),
        _encode_line(
            EVENT,
            {"type": "task_started", "turn_id": turn_id, "model_context_window": None},
            timestamp,
        ),
        _encode_line(
            EVENT, _build_message_event("user_message", child.own_title or child.stem), timestamp
        ),
        _encode_line(ITEM, prompt_item, timestamp, {OPENING_KEY: True}),
        _encode_line(
            EVENT,
            _build_message_event("agent_message", codex_items.item_text(answer_item)),
            timestamp,
        ),
        _encode_line(ITEM, answer_item, timestamp),
        _encode_line(
            EVENT,
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
    """Return the rollout line for an item; ``extra_fields`` are extra keys that the model does not see."""
    return {
        "timestamp": timestamp,
        "type": ITEM,
        "payload": payload,
        OWN_ID_KEY: item_id,
        **extra_fields,
    }


def build_child_meta(child: Draft, codex_home: str) -> Record:
    """Return the metadata for a child whose parent is not a Codex session; ``codex_home`` is the CODEX_HOME."""
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
    """Return the model provider in the user's settings, because Codex only resumes sessions of the current provider."""
    try:
        with open(os.path.join(codex_home, "config.toml"), "rb") as stream:
            text = stream.read(MAX_CONFIG_BYTES).decode("utf-8", "replace")
    except OSError:
        return DEFAULT_PROVIDER
    top_settings = re.split(r"^\s*\[", text, maxsplit=1, flags=re.MULTILINE)[0]
    match = _PROVIDER_SETTING.search(top_settings)
    if match:
        return match[1]
    return DEFAULT_PROVIDER


def _build_first_line(child: Draft, head: bytes, meta: Record) -> bytes:
    """Return the first line of a child, based on ``meta`` from the parent or from ``build_child_meta``.

    Fields that the parent's client version does not know are not added.
    """
    payload = {}
    for key, value in meta.items():
        if key not in _PARENT_LINK_FIELDS:
            payload[key] = value
    payload |= {"id": child.session_id, "timestamp": child.attributes.at, "source": "cli"}
    if "session_id" in payload:
        payload["session_id"] = child.session_id
    if child.parent_agent == child.agent:
        payload["forked_from_id"] = child.parent.session_id
    return _encode_line(
        META,
        payload,
        child.attributes.at,
        orjson.loads(head) | {TITLE_KEY: child.own_title or child.stem},
    )


def build_message_item(role: str, text: str) -> Record:
    """Return a message item from the user or the assistant."""
    part_type = "output_text" if role == "assistant" else "input_text"
    return {
        "type": "message",
        "role": role,
        "content": [{"type": part_type, "text": replace_surrogates(text)}],
    }


def _build_screen_event(payload: Record) -> Record | None:
    """Return the event that shows an item on the screen, or None.

    Only messages from the user and the model have an event.
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
