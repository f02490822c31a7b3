"""What a child says of its calls and its thinking as it is read back, and whether that is what was planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet

from resume_hooks.transcripts import records
from resume_hooks.transcripts.content import thought_digest
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.linearize import Linear
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record


class ReadBack:
    """An observer of a written child; ``thoughts`` are digests as in the pieces of its parent."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.thoughts: set[int] = set()

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        """Take in one record."""
        if node is None or node.kind != "assistant":
            return
        self.calls.update(node.calls)
        for block in records.blocks(record):
            if block.get("type") == "thinking":
                self.thoughts.add(thought_digest(block))

    def checks(self, planned: Linear, thoughts: AbstractSet[int]) -> list[Check]:
        """Whether the calls are those that were ``planned``, and no thinking is there but ``thoughts``."""
        dropped = planned.dropped
        calls = (call for node in planned.nodes for call in set(node.calls) - dropped.get(node.number, frozenset()))
        return [
            Check("no tool call was lost or added", self.calls == Counter(calls)),
            Check("thinking is as it was, or gone", self.thoughts <= thoughts),
        ]
