"""A fork of a Codex session: it needs no other file, and the model is sent the same history as by its parent."""

from __future__ import annotations

from dataclasses import dataclass

from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.relocate import Relocation
from resume_hooks.derive.child.write import Sizes
from resume_hooks.derive.codex.child import CodexPlan, body_of
from resume_hooks.derive.codex.parent import CodexParent
from resume_hooks.derive.cut_point import Cut
from resume_hooks.derive.fork import ForkFacts
from resume_hooks.errors import NothingToFork, UsageError
from resume_hooks.transcripts.codex import items as of_items
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN


@dataclass(frozen=True, slots=True, kw_only=True)
class CodexForkPlan(ForkFacts, CodexPlan):
    """A forked rollout; ``cut`` is None if all of it stays."""

    cut: Cut | None
    relocation: Relocation | None = None


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
