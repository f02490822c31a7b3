"""A fresh child for Codex: what it comes from, a digest, the next step; or a conversation that was held elsewhere."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Sequence

import orjson

from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.conversation import SpokenText
from resume_hooks.derive.fresh_child import Opening
from resume_hooks.parts.codex.derive.rollout import (
    RolloutBody,
    fresh_lines,
    item_record,
    message,
    meta_line,
    told_body,
)
from resume_hooks.parts.codex.sessions.strategy import NAME
from resume_hooks.parts.codex.transcripts.lines import OPENING
from resume_hooks.parts.codex.transcripts.meta import read_meta
from resume_hooks.reading.digest import entries
from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record

VERSION = "0.125.0"
"""The client that a session says it was held in that was held in none: old enough for every one that resumes it."""

PROVIDER, ORIGINATOR = "openai", "codex_cli_rs"
_PROVIDER = re.compile(r'^\s*model_provider\s*=\s*["\']([\w.-]{1,100})["\']', re.MULTILINE)
MAX_CONFIG = 1024 * 1024  # bytes of the settings that are looked at


def opening(told: Opening, meta: Record) -> RolloutBody:
    """A child that opens with what it is told."""
    child, digest, at = told.child, told.contents.digest, told.child.setting.at
    turn = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{child.session_id}/turn"))
    items = message(records.USER, told.text), message(records.ASSISTANT, told.card)
    lines = [meta_line(child, told.head, meta), *fresh_lines(*items, child.own_title or child.stem, turn, at)]
    if digest is not None:
        record = orjson.loads(entries.line(digest))
        lines.append(orjson.dumps({"timestamp": at, "type": record.pop("type"), "payload": record}) + b"\n")
    return RolloutBody(tuple(lines), items)


def conversation(child: Draft, head: bytes, meta: Record, told: str, said: Sequence[SpokenText]) -> RolloutBody:
    """A child that holds a conversation as text; ``told`` stands before it."""
    at = child.setting.at
    own = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{child.session_id}/told"))
    first = item_record(message(records.USER, told), at, own, {OPENING: True})
    rest = [item_record(message(one.role, one.text), one.at or at, one.uuid) for one in said]
    return told_body(child, head, meta, [first, *rest])


def meta_for(child: Draft, home: str) -> Record:
    """What the first line says beside what is the child's own: as its parent's, else as the settings have it."""
    return read_meta(child.parent.path).payload if child.parent_agent == NAME else meta_told(child, home)


def meta_told(child: Draft, home: str) -> Record:
    """What a first line says of a session that no client wrote."""
    git = {"git": {"branch": child.setting.branch}} if child.setting.branch else {}
    return {
        "cwd": child.setting.cwd,
        "originator": ORIGINATOR,
        "cli_version": VERSION,
        "model_provider": provider(home),
        **git,
    }


def provider(home: str) -> str:
    """The provider of the user's settings: a session can't be resumed with another one."""
    try:
        with open(os.path.join(home, "config.toml"), "rb") as stream:
            text = stream.read(MAX_CONFIG).decode("utf-8", "replace")
    except OSError:
        return PROVIDER
    top = re.split(r"^\s*\[", text, maxsplit=1, flags=re.MULTILINE)[0]
    found = _PROVIDER.search(top)
    return found[1] if found else PROVIDER
