"""A child for Claude Code made from another agent's session: its conversation as text."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from resume_hooks import clock
from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.conversation import SpokenText
from resume_hooks.derive.fresh_child import FreshLines
from resume_hooks.sessions.opening_layout import lineage_line, spoken_line


def told_lines(child: Draft, head: bytes, told: str, said: Sequence[SpokenText]) -> FreshLines:
    """The lines of the child; ``told`` stands before the conversation, where the screen doesn't show it."""
    setting, last = child.setting, str(uuid.uuid4())
    bodies = [head, lineage_line(setting, None, last, told)]
    for one in said:
        setting = setting._replace(at=clock.later(setting.at))
        own = str(uuid.uuid4())
        bodies.append(spoken_line(setting, last, own, one.role, one.text))
        last = own
    return FreshLines(tuple(bodies))
