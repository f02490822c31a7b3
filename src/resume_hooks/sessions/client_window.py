"""The window that the client acts on: its model's, or the smaller one that its settings name."""

from __future__ import annotations

from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.system.claude_settings import compaction_window
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.tokens import ContextUse


def window_set(ends: HeadTail, where: Where) -> int:
    """The window that the client's settings name for a session's folder and model; 0 for none."""
    return compaction_window(ends.cwd, ends.model, where)


def as_client_acts(context: ContextUse, ends: HeadTail, agent: str, where: Where) -> ContextUse:
    """The context of an agent's session in the window that its client acts on; other agents' settings name none."""
    return acted_on(context, window_set(ends, where)) if agent == NAME else context


def acted_on(context: ContextUse, most: int) -> ContextUse:
    """A context in a window of at most ``most`` tokens, 0 for any."""
    return context._replace(window=min(context.window, most or context.window))
