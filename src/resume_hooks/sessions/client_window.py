"""The window that the client acts on: its model's, as last measured, or the smaller one that its settings name."""

from __future__ import annotations

import os
import re

from resume_hooks import settings
from resume_hooks.paths import Where, read_object
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.system.claude_settings import compaction_window
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.records import positive
from resume_hooks.transcripts.tokens import DEFAULT_WINDOW, ContextUse

NOTES = "notice-"
"""What the notes of hooks begin with that know the window of a session's model, each by the session's id."""

_SMALL = re.compile(r"claude-(?:3-|(?:haiku-4-5|opus-4(?:-[015])?)(?=\Z|[@-]\d{8}))")
"""In the names of models that have no window of a million, as the catalog of 2.1.330 says; all others may have one."""


def measured(session_id: str, where: Where) -> int:
    """The window of a session's model as the module inside its client told it last; 0 where it never did."""
    return positive(read_object(os.path.join(where.state, "pending", f"{NOTES}{session_id}.json")).get("window"))


def window_of(session_id: str, where: Where) -> int:
    """The window of a session's model, by the setting, else as measured; 0 where only the transcript can show it."""
    return settings.number("context_window", where) or measured(session_id, where)


def window_set(ends: HeadTail, window: int, where: Where) -> int:
    """The most that a session's window can be: the client's settings, its model's name unless ``window`` is known."""
    own = DEFAULT_WINDOW if not window and _SMALL.search(ends.model) else 0
    return min(filter(None, (own, compaction_window(ends.cwd, ends.model, where))), default=0)


def as_client_acts(context: ContextUse, ends: HeadTail, agent: str, window: int, where: Where) -> ContextUse:
    """The context of an agent's session in the window that its client acts on; other agents' settings name none."""
    return acted_on(context, window_set(ends, window, where)) if agent == NAME else context


def acted_on(context: ContextUse, most: int) -> ContextUse:
    """A context in a window of at most ``most`` tokens, 0 for any."""
    return context._replace(window=min(context.window, most or context.window))
