"""A child for Claude Code made from another agent's session: its conversation as text."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from resume_hooks import clock
from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.relocate import Relocation
from resume_hooks.derive.child.write import Sizes
from resume_hooks.derive.conversation import SpokenText
from resume_hooks.derive.cut_point import Cut
from resume_hooks.derive.fork import ForkFacts
from resume_hooks.derive.fresh_child import FreshLines
from resume_hooks.sessions.opening_layout import lineage_line, spoken_line
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldPlan(ForkFacts):
    """A conversation as text."""

    body: FreshLines
    cut: Cut | None = None
    relocation: Relocation | None = None


def told_plan(child: Draft, told: str, said: Sequence[SpokenText], sizes: Sizes) -> ToldPlan:
    """The child; ``told`` stands before the conversation, where the screen doesn't show it."""
    setting, last = child.setting, str(uuid.uuid4())
    bodies = [child.head(ChildSize(sizes.after, CHARACTERS_PER_TOKEN)), lineage_line(setting, None, last, told)]
    for one in said:
        setting = setting._replace(at=clock.later(setting.at))
        own = str(uuid.uuid4())
        bodies.append(spoken_line(setting, last, own, one.role, one.text))
        last = own
    return ToldPlan(draft=child, body=FreshLines(tuple(bodies)), sizes=sizes)
