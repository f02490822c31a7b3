"""The window that the client acts on: its model's, as last measured, or the smaller one that its settings name."""

from __future__ import annotations

import os
import re

from resume_hooks import settings
from resume_hooks.paths import Where, read_json_object
from resume_hooks.system.claude_settings import compaction_window
from resume_hooks.transcripts.head_tail import HeadTail, version_numbers
from resume_hooks.transcripts.records import positive
from resume_hooks.transcripts.tokens import DEFAULT_WINDOW, LARGE_WINDOW, ContextSize

NOTES = "notice-"
"""What the notes of hooks begin with that know the window of a session's model, each by the session's id."""

_NATIVE = re.compile(r"claude-(?:opus|sonnet|haiku|fable|mythos)-5(?=\Z|[-@])")
_BY_NEW_CLIENTS = re.compile(r"claude-opus-4-[78](?=\Z|[-@])")
_ON_DEMAND = re.compile(r"claude-(?:opus-4-6|sonnet-4(?:-[56])?)(?=[@-]\d{8}|[-@]v\d|\Z)")
"""In the names of models, as the catalog of 2.1.332 says: with a million tokens always; in clients that know them so,
200,000 in older ones unless they were asked for; and only where they were asked for."""

NATIVE_SINCE = (2, 1, 329)
"""The oldest client that is known to give ``_BY_NEW_CLIENTS`` a million; 2.1.112 gave them one on demand."""

_SMALL = re.compile(r"claude-(?:3-|(?:haiku-4-5|opus-4(?:-[015])?)(?=\Z|[@-]\d{8}))")
"""In the names of models that have no window of a million, as the catalog of 2.1.330 says.

All others may have one.
"""


def measured_window(session_id: str, where: Where) -> int:
    """The window of a session's model as the module inside its client told it last; 0 where it never did."""
    return positive(
        read_json_object(os.path.join(where.state, "pending", f"{NOTES}{session_id}.json")).get(
            "window"
        )
    )


def window_of(session_id: str, where: Where) -> int:
    """The window of a session's model, by the setting, else as measured; 0 where only the transcript can show it."""
    return settings.read_number("context_window", where) or measured_window(session_id, where)


def window_set(ends: HeadTail, window: int, where: Where) -> int:
    """The most that a session's window can be: the client's settings, its model's name unless ``window`` is known."""
    if not window and _SMALL.search(ends.model):
        own = DEFAULT_WINDOW
    else:
        own = 0
    return min(filter(None, (own, compaction_window(ends.cwd, ends.model, where))), default=0)


def window_of_model(ends: HeadTail) -> int:
    """The window of the model that answered last, by its name and its client's version; 0 where these don't tell."""
    if _NATIVE.search(ends.model) or (
        _BY_NEW_CLIENTS.search(ends.model) and version_numbers(ends.version) >= NATIVE_SINCE
    ):
        return LARGE_WINDOW
    if _SMALL.search(ends.model) or _ON_DEMAND.search(ends.model):
        return DEFAULT_WINDOW
    return 0


def in_window(context: ContextSize, ends: HeadTail, most: int) -> ContextSize:
    """A context whose window was not told, in that of its model, and of at most ``most`` tokens, 0 for any.

    What does not fit into the window of its model shows that it has a larger one.
    """
    own = 0 if context.window_known else window_of_model(ends)
    found = context_in_window(
        context._replace(
            window=own or context.window, window_known=context.window_known or own > 0
        ),
        most,
    )
    overfull = own == DEFAULT_WINDOW and not most and found.tokens > found.limit
    if overfull:
        return found._replace(window_known=False)
    return found


def context_in_window(context: ContextSize, most: int) -> ContextSize:
    """A context in a window of at most ``most`` tokens, 0 for any."""
    if not most:
        return context
    # A limit that is below every window a model has is known whatever that window is.
    known = context.window_known or most <= DEFAULT_WINDOW
    return context._replace(window=min(context.window, most), window_known=known)
