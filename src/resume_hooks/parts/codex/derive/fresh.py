"""A fresh child for Codex: what it comes from, a digest, the next step; or a conversation that was held elsewhere."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.conversation import SpokenText
from resume_hooks.derive.fresh_child import Opening, RolloverPlan
from resume_hooks.parts.codex.derive.child import checks, identity
from resume_hooks.parts.codex.derive.rollout import Payload, Told, fresh_lines, message, meta_line, told_lines
from resume_hooks.parts.codex.sessions.strategy import NAME
from resume_hooks.parts.codex.transcripts.lines import OPENING
from resume_hooks.parts.codex.transcripts.meta import read_meta
from resume_hooks.reading.digest import entries
from resume_hooks.transcripts import records
from resume_hooks.transcripts.invariants import Check

VERSION = "0.125.0"
"""The client that a session says it was held in that was held in none: old enough for every one that resumes it."""

PROVIDER, ORIGINATOR = "openai", "codex_cli_rs"
_PROVIDER = re.compile(r'^\s*model_provider\s*=\s*["\']([\w.-]{1,100})["\']', re.MULTILINE)
MAX_CONFIG = 1024 * 1024  # bytes of the settings that are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshRollout(RolloverPlan):
    """A fresh rollout; ``told`` are the items that its model gets."""

    told: tuple[Payload, ...]

    def checks(self, path: str) -> list[Check]:
        """Also that what it opens with is whole, as an item."""
        return checks(path, self.draft, self.told)


def opening(told: Opening, meta: Payload) -> tuple[list[bytes], list[Payload]]:
    """The lines of a child that opens with what it is told, without endings, and its items."""
    child, digest = told.child, told.contents.digest
    at, turn = child.setting.at, str(uuid.uuid5(uuid.NAMESPACE_OID, f"{child.session_id}/turn"))
    who = identity(child, told.head)
    items = [message(records.USER, told.text), message(records.ASSISTANT, told.card)]
    lines = [meta_line(meta, who), *fresh_lines(items[0], items[1], child.own_title or child.stem, turn, at)]
    if digest is not None:
        record = orjson.loads(entries.line(digest))
        lines.append(orjson.dumps({"timestamp": at, "type": record.pop("type"), "payload": record}) + b"\n")
    return [line.removesuffix(b"\n") for line in lines], items


def conversation(
    child: Draft, head: bytes, meta: Payload, told: str, said: Sequence[SpokenText]
) -> tuple[list[bytes], list[Payload]]:
    """The lines of a child that holds a conversation as text, and its items; ``told`` stands before it."""
    at = child.setting.at
    who = identity(child, head)
    items = [Told(message(one.role, one.text), one.at or at, one.uuid) for one in said]
    own = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{child.session_id}/told"))
    told_item = Told(message(records.USER, told), at, own, {OPENING: True})
    return [meta_line(meta, who), *told_lines([told_item, *items])], [item.payload for item in (told_item, *items)]


def meta_for(child: Draft, home: str) -> Payload:
    """What the first line says beside what is the child's own: as its parent's, else as the settings have it."""
    return read_meta(child.parent.path).payload if child.parent_agent == NAME else meta_told(child, home)


def meta_told(child: Draft, home: str) -> Payload:
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
