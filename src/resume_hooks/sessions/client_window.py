"""The window that the client acts on: its model's, or the smaller one that its settings name."""

from __future__ import annotations

import re

from resume_hooks import settings
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.system.claude_settings import compaction_window
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.tokens import DEFAULT_WINDOW, ContextUse

_SMALL = re.compile(r"claude-(?:3-|(?:haiku-4-5|opus-4(?:-[015])?)(?=\Z|[@-]\d{8}))")
"""In the names of models that have no window of a million, as the catalog of 2.1.330 says; all others may have one."""


def window_set(ends: HeadTail, where: Where) -> int:
    """The most that a session's window can be, by a setting, else by its model's name; 0 where neither tells."""
    named = settings.load(where)["context_window"].value
    own = DEFAULT_WINDOW if not named and _SMALL.search(ends.model) else 0
    return min(filter(None, (own, compaction_window(ends.cwd, ends.model, where))), default=0)


def as_client_acts(context: ContextUse, ends: HeadTail, agent: str, where: Where) -> ContextUse:
    """The context of an agent's session in the window that its client acts on; other agents' settings name none."""
    return acted_on(context, window_set(ends, where)) if agent == NAME else context


def acted_on(context: ContextUse, most: int) -> ContextUse:
    """A context in a window of at most ``most`` tokens, 0 for any."""
    return context._replace(window=min(context.window, most or context.window))
