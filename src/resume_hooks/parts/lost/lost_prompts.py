"""How much is left of sessions that were lost, in words."""

from __future__ import annotations

import contextlib

from resume_hooks.parts.lost.strategy import NAME
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import OTHERS
from resume_hooks.system.invocation import typed
from resume_hooks.system.text import counted


def lost_prompts(where: Where, *, waiting: bool = False) -> str:
    """How many sessions left their prompts alone, as the beginning of a sentence; ``""`` for none.

    With somebody ``waiting`` a large history is not read for the first time: then there may be some.
    """
    known = OTHERS.get(NAME)
    if known is None or not known.is_there(where):
        return ""
    if waiting and not known.is_quick(where):
        return "prompts of lost sessions may be left"
    lost, prompts = known.load(where).store.sessions(), 0
    for session in lost:
        with contextlib.suppress(OSError), open(session.path, "rb") as stream:
            prompts += sum(1 for _ in stream) - 1
    return f"{counted(prompts, 'prompt')} of {counted(len(lost), 'lost session')} are left" if lost else ""


def at_first(where: Where) -> str:
    """What is said once, to somebody who waits; ``""`` where nothing was lost."""
    lost = lost_prompts(where, waiting=True)
    return f"From before, {lost}: {typed(f'sessions --all --agent {NAME}')}" if lost else ""
