"""A trim of a Codex session: its child is sent as it is, but for placeholders in the place of bulky contents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.write import Sizes
from resume_hooks.derive.trim.calibration import Scale
from resume_hooks.derive.trim.candidates import TrimMaterial
from resume_hooks.derive.trim.decision import (
    ASSISTANT,
    BEFORE,
    USER,
    Decision,
    TrimNumbers,
    Words,
    parameters,
    stats,
    tools_trimmed,
)
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.selection import Choice, Origins
from resume_hooks.parts.codex.derive import pieces as contents
from resume_hooks.parts.codex.derive.child import CodexPlan, body_of
from resume_hooks.parts.codex.derive.parent import CodexParent
from resume_hooks.parts.codex.derive.rollout import Payload, Told
from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import readable
from resume_hooks.sessions.child_titles import Kind
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts.placeholders import Origin
from resume_hooks.transcripts.provenance import ChildSize, Trim
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN, ContextUse
from resume_hooks.transcripts.trimmable_pieces import Piece


class Owner(Protocol):
    """What reads threads and drafts their children."""

    def scanned(self, session: SessionFile, window: int) -> CodexScan:
        """A thread as a trim reads it."""

    def draft(self, session: SessionFile, kind: Kind, output_dir: str | None = None) -> Draft:
        """A child to be."""


READ, FIRST = 2_000, 200  # characters of a prompt that are looked at, and that its first words are


@dataclass(frozen=True, slots=True)
class CodexScan:
    """A session as a trim reads it; ``numbers`` are the lines of its items as references name them, by their ids."""

    session: SessionFile
    parent: CodexParent
    numbers: dict[str, int]
    owner: Owner

    @property
    def context(self) -> ContextUse:
        """What the client would send of it."""
        return self.parent.use

    @property
    def scale(self) -> Scale:
        """What its pieces weigh: the client counts what no file holds, too, so the count tells no ratio."""
        return Scale(CHARACTERS_PER_TOKEN, {}, {})

    def material(self, options: Options) -> TrimMaterial:
        """What can be trimmed of it."""
        return contents.material([item.payload for item in self.parent.items], options)

    def origins(self, where: Where) -> Origins:  # noqa: ARG002 - as of any session
        """Where the originals of its items are: in itself, or where an item that was trimmed before says."""
        own = str(self.parent.meta.get("id"))
        uuids = {place: item.uuid for place, item in enumerate(self.parent.items)}
        here = {place: Origin(own, self.parent.path, uuid, self.numbers.get(uuid, 0)) for place, uuid in uuids.items()}
        return Origins(own, self.parent.path, here | self.parent.origins, uuids, lambda _: True)

    def values(self, pieces: Iterable[Piece]) -> Iterator[Any]:
        """The contents in its items."""
        return (contents.value(self.parent.items[piece.number].payload, piece.address) for piece in pieces)

    def said(self) -> Iterator[Words]:
        """Prompts, answers and the summary of a compaction."""
        for place, item in enumerate(self.parent.items):
            if who := _who(item.payload):
                text = of_items.request_text(item.payload) if who == USER else of_items.text(item.payload)
                yield Words(place, who, text, one_line(plain_line(text[:READ]), FIRST) if who == USER else text)

    def again(self, where: Where) -> CodexScan:
        """The thread as it is now."""
        return self.owner.scanned(readable(self.session.path, where), self.parent.use.window)

    def draft(self, kind: Kind, where: Where, output_dir: str | None = None) -> Draft:  # noqa: ARG002 - as of any session
        """A child in the folder of today."""
        return self.owner.draft(self.session, kind, output_dir)

    def child(self, made: Draft, options: Options, decision: Decision, method: str) -> CodexTrimPlan:
        """A child with the same items."""
        return plan(self, made, options, decision, method)


def _who(item: Payload) -> str:
    """Who said a message; "" for any other item, and for what the harness said."""
    if of_items.is_prompt(item):
        return USER
    if of_items.is_summary(item):
        return BEFORE
    return ASSISTANT if of_items.kind(item) == of_items.MESSAGE and item.get("role") == "assistant" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodexTrimPlan(TrimNumbers, CodexPlan):
    """A trimmed rollout."""

    options: Options
    decision: Decision


def plan(scanned: CodexScan, child: Draft, options: Options, decision: Decision, method: str) -> CodexTrimPlan:
    """The child of a decision."""
    head = child.head(
        ChildSize(decision.after.tokens, decision.savings.ratio),
        trim=Trim({**parameters(options), "method": method}, stats(decision)),
    )
    return CodexTrimPlan(
        draft=child,
        body=body_of(child, scanned.parent, scanned.parent.told(_edited(scanned.parent, decision)), head),
        sizes=Sizes(
            decision.before.tokens,
            decision.after.tokens,
            decision.savings.characters,
            tools_trimmed(decision.choices),
        ),
        options=options,
        decision=decision,
    )


def _edited(parent: CodexParent, decision: Decision) -> dict[int, Told]:
    """What is told otherwise, by its place."""
    chosen: defaultdict[int, list[Choice]] = defaultdict(list)
    for choice in decision.choices:
        chosen[choice.piece.number].append(choice)
    edited = {}
    for place, choices in chosen.items():
        item = parent.items[place]
        marks = {**parent.marks.get(place, {}), **decision.origins.of(place).marks(0)}
        edited[place] = Told(contents.edited(item.payload, choices), item.timestamp, item.uuid, marks)
    return edited
