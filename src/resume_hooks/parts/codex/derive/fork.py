"""A fork of a Codex session: it needs no other file, and the model is sent the same history as by its parent."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.write import ChildPlan, Sizes
from resume_hooks.derive.cut_point import Cut
from resume_hooks.derive.fork import ForkPlan
from resume_hooks.derive.fresh_child import Opening
from resume_hooks.errors import NothingToFork, UsageError
from resume_hooks.parts.codex.derive.rollout import item_record, message, told_body
from resume_hooks.parts.codex.derive.thread import CodexThread
from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.parts.codex.transcripts.lines import OPENING
from resume_hooks.transcripts import records
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.records import Record, parse
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN

Clean = Callable[[bytes], bytes]
"""What a line of JSON becomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanPlan(ChildPlan):
    """A rollout in which ``clean`` finds nothing to take out of any line."""

    clean: Clean

    def checks(self, path: str) -> list[Check]:
        """Also that, as read back."""
        with open(path, "rb") as stream:
            left = any(self.clean(raw) != raw for raw in stream)
        return [*ChildPlan.checks(self, path), Check("no secret is found in it", not left)]


def cleaned(parent: CodexThread, child: Draft, clean: Clean) -> CleanPlan:
    """The child of all that is sent, each item as ``clean`` leaves it; what is encrypted goes where that changes it."""

    def without(record: Record) -> Record:
        return parse(clean(orjson.dumps(record))) or record

    told = []
    for record in parent.told:
        payload = without(record["payload"])
        if payload == record["payload"] or of_items.kind(payload) not in {*of_items.ENCRYPTED, of_items.REASONING}:
            told.append({**record, "payload": payload})
    surroundings = [line._replace(record=without(line.record)) for line in parent.surroundings]
    child = child._replace(own_title=without({"title": child.own_title or child.stem})["title"])
    tokens = parent.context.tokens
    head = child.head(ChildSize(tokens, CHARACTERS_PER_TOKEN))
    body = told_body(child, head, without(parent.meta), told, surroundings)
    return CleanPlan(draft=child, body=body, sizes=Sizes(tokens, tokens), clean=clean)


def rewound(parent: CodexThread, closing: Opening, kept: Sequence[str]) -> ChildPlan:
    """The child that stands at the last of the items ``kept``, and then is told the ``closing``."""
    child, said = closing.child, {records.USER: closing.text, records.ASSISTANT: closing.card}
    own = [str(uuid.uuid5(uuid.NAMESPACE_OID, f"{child.session_id}/{side}")) for side in ("told", "card")]
    closed = [
        item_record(message(role, text), child.setting.at, one, {OPENING: True})
        for (role, text), one in zip(said.items(), own, strict=True)
    ]
    body = told_body(child, closing.head, parent.meta, [*parent.told[: _count(parent, kept)], *closed])
    return ChildPlan(draft=child, body=body, sizes=closing.sizes)


def plan(parent: CodexThread, child: Draft, cut: Cut | None) -> ForkPlan:
    """The child of a parent, of what stands before the ``cut``. NothingToFork where that is nothing."""
    count = len(parent.items) if cut is None else _count(parent, [node.uuid for node in cut.nodes])
    if cut is not None and not count:
        raise UsageError(f"{cut.asked.capitalize()} lies before a compaction", "Codex can be cut behind that alone.")
    if not any(of_items.kind(item.payload) == of_items.MESSAGE for item in parent.items[:count]):
        raise NothingToFork("There is nothing to fork: nothing was said up to there that a client would send")
    gone = sum(of_items.size(item.payload) for item in parent.items[count:])
    after = max(0, parent.context.tokens - round(gone / CHARACTERS_PER_TOKEN))
    head = child.head(ChildSize(after, CHARACTERS_PER_TOKEN))
    # After a cut the client tells its surroundings anew.
    told = told_body(child, head, parent.meta, parent.told[:count], () if gone else parent.surroundings)
    sizes = Sizes(parent.context.tokens, after)
    return ForkPlan(draft=child, body=told, sizes=sizes, remarks=cut.remarks if cut else (), cut=cut)


def _count(parent: CodexThread, kept: Sequence[str]) -> int:
    """How many items there are up to the last of the ``kept`` ones."""
    wanted = set(kept)
    return max((place for place, item in enumerate(parent.items, 1) if item.uuid in wanted), default=0)
