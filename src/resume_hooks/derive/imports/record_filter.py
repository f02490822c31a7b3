"""What of a stranger's record is taken over: what was said, and nothing that changes how a client goes on.

Invariant: of a record's fields only those that are named here are in what comes out; a field that clients learn to
obey tomorrow is left out today. Left out so far: permission modes, system prompts, rights of commands, plans and their
files, what hooks and tools told the model to do, links to other sessions, what the tokens cost; and ``toolUseResult``,
which is for the screen alone: one that is malformed ends client 2.1.42.
"""

from __future__ import annotations

from resume_hooks import clock
from resume_hooks.derive.imports.block_filter import taken_over
from resume_hooks.sessions.opening_layout import ChildSetting
from resume_hooks.transcripts.attachments import QUEUED, kind_of
from resume_hooks.transcripts.records import (
    COMPACTION,
    SYNTHETIC_MODEL,
    Record,
    kind,
    mapping,
    message,
    string,
    tokens_before,
)

PROMPT = "prompt"
"""How words were queued that a person typed; others tell of tasks that ran elsewhere."""

SYSTEM = frozenset({"compact_boundary", "local_command"})
"""System records that are part of a conversation; the others tell of the client that it was held in."""

FLAGS = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")
"""Marks of a message that say how it is shown, and whether it is sent."""

HIDING = frozenset({"isMeta", "isVisibleInTranscriptOnly"})
"""Marks of a message that the model reads and the screen does not show."""

NOTIFICATION = {"kind": "task-notification"}
"""The origin of a message that no person wrote, which clients say to the model, too."""

FIELDS = frozenset(
    {
        "attachment", "compactMetadata", "content", "cwd", "entrypoint", "gitBranch", "isSidechain", "level", "message",
        "origin", "parentUuid", "sessionId", "subtype", "timestamp", "type", "userType", "uuid",
        "version", *FLAGS,
    }
)  # fmt: skip
"""Every field that a record may have in an imported session."""

_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


def is_said(record: Record) -> bool:
    """Whether a chain record is part of the conversation."""
    its_kind = kind(record)
    if its_kind == "attachment":
        # What any other attachment holds client 2.1.329 sends in the role of the system, which no stranger is given.
        return kind_of(record) == QUEUED and record["attachment"].get("commandMode", PROMPT) == PROMPT
    return its_kind in {"user", "assistant"} or (its_kind == "system" and string(record, "subtype") in SYSTEM)


def is_hidden(record: Record) -> bool:
    """Whether the model reads a record of the conversation that the screen does not show."""
    return any(record.get(flag) is True for flag in HIDING)


class ConversationOnly:
    """An edit of a chain rewrite: a record as it stands in an imported session, None where it does not."""

    def __init__(self, setting: ChildSetting) -> None:
        self._setting = setting

    def __call__(self, record: Record) -> Record | None:
        """Take over one chain record."""
        if not is_said(record):
            return None
        flags = {flag: True for flag in FLAGS if record.get(flag) is True}
        return {**self._envelope(record), **flags, **_said(record)}

    def _envelope(self, record: Record) -> Record:
        """What every chain record has; the writer sets its links, and an instant that can't be."""
        return {
            "parentUuid": string(record, "parentUuid") or None,
            "isSidechain": False,
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self._setting.cwd,
            "sessionId": string(record, "sessionId") or self._setting.session_id,
            "version": self._setting.version,
            "type": kind(record),
            "uuid": string(record, "uuid"),
            "timestamp": clock.normal(record.get("timestamp")),
        }


def has_fitting_blocks(record: Record) -> bool:
    """Whether the content of a record of the conversation is what would be taken over of it."""
    match kind(record):
        case "user" | "assistant" as role:
            content = message(record).get("content")
            return bool(taken_over(content, role) == content)
        case "attachment":
            return bool(_queued(record) == record["attachment"].get("prompt"))
    return True


def _said(record: Record) -> Record:
    """The fields of a record that hold what was said in it."""
    match kind(record):
        case "user":
            inner = {"role": "user", "content": taken_over(message(record).get("content"), "user")}
            return {"message": inner, **_origin(record)}
        case "assistant":
            return {"message": _answer(message(record))}
        case "attachment":
            inner = {"type": QUEUED, "prompt": _queued(record), "commandMode": PROMPT}
            return {"attachment": inner}
    return _note(record)


def _answer(answer: Record) -> Record:
    """An answer without its price, which was paid elsewhere, and without its model, which clients would go on with."""
    return {
        "model": SYNTHETIC_MODEL,
        "id": string(answer, "id"),
        "type": "message",
        "role": "assistant",
        "content": taken_over(answer.get("content"), "assistant"),
        "stop_reason": string(answer, "stop_reason") or None,
        "stop_sequence": string(answer, "stop_sequence") or None,
        "usage": dict.fromkeys(_COUNTS, 0),
    }


def _queued(record: Record) -> str | list[Record]:
    return taken_over(record["attachment"].get("prompt"), "queued") or ""


def _origin(record: Record) -> Record:
    notified = mapping(record, "origin").get("kind") == NOTIFICATION["kind"]
    return {"origin": NOTIFICATION} if notified else {}


def _note(record: Record) -> Record:
    note = {"subtype": string(record, "subtype"), "content": string(record, "content"), "level": "info"}
    if note["subtype"] != COMPACTION:
        return note
    return {**note, "compactMetadata": {"trigger": "auto", "preTokens": tokens_before(record)}}
