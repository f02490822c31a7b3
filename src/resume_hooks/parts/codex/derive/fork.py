"""A fork of a Codex session: it needs no other file, and the model is sent the same history as by its parent."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import orjson

from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.relocate import Relocation
from resume_hooks.derive.child.write import Sizes
from resume_hooks.derive.cut_point import Cut
from resume_hooks.derive.fork import ForkFacts
from resume_hooks.derive.fresh_child import Opening
from resume_hooks.errors import NothingToFork, UsageError
from resume_hooks.parts.codex.derive.child import CodexPlan, body_of
from resume_hooks.parts.codex.derive.parent import CodexParent
from resume_hooks.parts.codex.derive.rollout import Payload, Told, message
from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.parts.codex.transcripts.lines import OPENING
from resume_hooks.transcripts import records
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.records import parse
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN

Clean = Callable[[bytes], bytes]
"""What a line of JSON becomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodexForkPlan(ForkFacts, CodexPlan):
    """A forked rollout; ``cut`` is None if all of it stays."""

    cut: Cut | None
    relocation: Relocation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodexCleanPlan(CodexForkPlan):
    """A rollout in which ``clean`` finds nothing to take out of any line."""

    clean: Clean

    def checks(self, path: str) -> list[Check]:
        """Also that, as read back."""
        with open(path, "rb") as stream:
            left = any(self.clean(raw) != raw for raw in stream)
        return [*CodexPlan.checks(self, path), Check("no secret is found in it", not left)]


def cleaned(parent: CodexParent, child: Draft, clean: Clean) -> CodexCleanPlan:
    """The child of all that is sent, each item as ``clean`` leaves it; what is encrypted goes where that changes it."""

    def without(record: Payload) -> Payload:
        return parse(clean(orjson.dumps(record))) or record

    told = []
    for item in parent.told():
        payload = without(item.payload)
        if payload == item.payload or of_items.kind(payload) not in {*of_items.ENCRYPTED, of_items.REASONING}:
            told.append(item._replace(payload=payload))
    context = tuple(line._replace(record=without(line.record)) for line in parent.context)
    child = child._replace(own_title=without({"title": child.own_title or child.stem})["title"])
    tokens = parent.use.tokens
    return CodexCleanPlan(
        draft=child,
        body=body_of(
            child,
            replace(parent, meta=without(parent.meta), context=context),
            told,
            child.head(ChildSize(tokens, CHARACTERS_PER_TOKEN)),
        ),
        sizes=Sizes(tokens, tokens),
        cut=None,
        clean=clean,
    )


def rewound(parent: CodexParent, closing: Opening, kept: Sequence[str]) -> CodexForkPlan:
    """The child that stands at the last of the items ``kept``, and then is told the ``closing``."""
    child, told = closing.child, parent.told()
    last = max((place for place, item in enumerate(told) if item.uuid in set(kept)), default=-1)
    own = [uuid.uuid5(uuid.NAMESPACE_OID, f"{child.session_id}/{side}") for side in ("told", "card")]
    words = [message(records.USER, closing.text), message(records.ASSISTANT, closing.card)]
    marks = {OPENING: True}
    closed = [Told(each, child.setting.at, str(one), marks) for each, one in zip(words, own, strict=True)]
    body = body_of(child, parent, [*told[: last + 1], *closed], closing.head, whole=False)
    return CodexForkPlan(draft=child, body=body, sizes=closing.sizes, cut=None)


def plan(parent: CodexParent, child: Draft, cut: Cut | None) -> CodexForkPlan:
    """The child of a parent, of what stands before the ``cut``. NothingToFork where that is nothing."""
    told = parent.told()
    if cut is not None:
        kept = {node.uuid for node in cut.nodes}
        last = max((place for place, item in enumerate(told) if item.uuid in kept), default=-1)
        if last < 0:
            raise UsageError(
                f"{cut.asked.capitalize()} lies before a compaction", "Codex can be cut behind that alone."
            )
        told = told[: last + 1]
    if not any(of_items.kind(item.payload) == of_items.MESSAGE for item in told):
        raise NothingToFork("There is nothing to fork: nothing was said up to there that a client would send")
    gone = sum(of_items.size(item.payload) for item in parent.items[len(told) :])
    after = max(0, parent.use.tokens - round(gone / CHARACTERS_PER_TOKEN))
    head = child.head(ChildSize(after, CHARACTERS_PER_TOKEN))
    return CodexForkPlan(
        draft=child,
        body=body_of(child, parent, told, head, whole=not gone),
        sizes=Sizes(parent.use.tokens, after),
        remarks=cut.remarks if cut else (),
        cut=cut,
    )
