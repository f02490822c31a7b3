"""A trim of a Codex session: its child is sent as it is, but for placeholders in the place of bulky contents."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.write import Sizes
from resume_hooks.derive.codex import pieces
from resume_hooks.derive.codex.child import CodexPlan, body_of
from resume_hooks.derive.codex.parent import CodexParent
from resume_hooks.derive.codex.rollout import Told
from resume_hooks.derive.trim.calibration import Scale
from resume_hooks.derive.trim.candidates import TrimMaterial
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import Decision, TrimNumbers, parameters, stats, tools_trimmed
from resume_hooks.derive.trim.selection import Choice, Origins
from resume_hooks.paths import Where
from resume_hooks.transcripts.placeholders import Origin
from resume_hooks.transcripts.provenance import ChildSize, Trim
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN, ContextUse


@dataclass(frozen=True, slots=True)
class CodexScan:
    """A session as a trim reads it; ``numbers`` are the lines of its items as references name them, by their ids."""

    parent: CodexParent
    numbers: dict[str, int]

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
        return pieces.material([item.payload for item in self.parent.items], options)

    def origins(self, where: Where) -> Origins:  # noqa: ARG002 - as of any session
        """Where the originals of its items are: in itself, or where an item that was trimmed before says."""
        own = str(self.parent.meta.get("id"))
        uuids = {place: item.uuid for place, item in enumerate(self.parent.items)}
        here = {place: Origin(own, self.parent.path, uuid, self.numbers.get(uuid, 0)) for place, uuid in uuids.items()}
        return Origins(own, self.parent.path, here | self.parent.origins, uuids, lambda _: True)


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
        edited[place] = Told(pieces.edited(item.payload, choices), item.timestamp, item.uuid, marks)
    return edited
