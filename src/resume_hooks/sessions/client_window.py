"""The client's effective window: its model's, as last measured, or a smaller one from its settings."""

from __future__ import annotations

import os
import re

from resume_hooks import settings
from resume_hooks.paths import Where, read_json_object
from resume_hooks.system.claude_settings import read_compaction_window
from resume_hooks.transcripts.head_tail import HeadTail, parse_version
from resume_hooks.transcripts.records import positive_count
from resume_hooks.transcripts.tokens import DEFAULT_WINDOW_TOKENS, LARGE_WINDOW_TOKENS, ContextSize

WINDOW_NOTE_PREFIX = "notice-"
"""The prefix of the hooks' notes with the window of a session's model, each followed by the session's id."""

_NATIVE_MILLION_MODELS = re.compile(r"claude-(?:opus|sonnet|haiku|fable|mythos)-5(?=\Z|[-@])")
_MILLION_IN_NEW_CLIENTS = re.compile(r"claude-opus-4-[78](?=\Z|[-@])")
_MILLION_ON_DEMAND = re.compile(r"claude-(?:opus-4-6|sonnet-4(?:-[56])?)(?=[@-]\d{8}|[-@]v\d|\Z)")
"""Model names in the catalog of 2.1.332. Native: always a million tokens.

By new clients: a million in clients that know them as such, 200,000 in older ones unless requested.
On demand: a million only if requested.
"""

MIN_NATIVE_VERSION = (2, 1, 329)
"""The oldest client that is known to give ``_MILLION_IN_NEW_CLIENTS`` a million tokens; 2.1.112 did so on request."""

_SMALL_WINDOW_MODELS = re.compile(r"claude-(?:3-|(?:haiku-4-5|opus-4(?:-[015])?)(?=\Z|[@-]\d{8}))")
"""Names of models without a window of a million tokens in the catalog of 2.1.330.

All other models may have one.
"""


def measured_window(session_id: str, where: Where) -> int:
    """Return the window last reported by the module inside the session's client; 0 if it never reported one."""
    return positive_count(
        read_json_object(
            os.path.join(where.state, "pending", f"{WINDOW_NOTE_PREFIX}{session_id}.json")
        ).get("window")
    )


def session_window(session_id: str, where: Where) -> int:
    """Return the window of a session's model, by the setting or as measured; 0 if only the transcript can show it."""
    return settings.read_number("context_window", where) or measured_window(session_id, where)


def window_limit(ends: HeadTail, window: int, where: Where) -> int:
    """Return the limit of a session's window by the client's settings and, if ``window`` is 0, by the model's name."""
    if not window and _SMALL_WINDOW_MODELS.search(ends.model):
        model_limit = DEFAULT_WINDOW_TOKENS
    else:
        model_limit = 0
    return min(
        filter(None, (model_limit, read_compaction_window(ends.cwd, ends.model, where))), default=0
    )


def model_window(ends: HeadTail) -> int:
    """Return the window of the last model, from its name and its client's version; 0 if unknown."""
    if _NATIVE_MILLION_MODELS.search(ends.model) or (
        _MILLION_IN_NEW_CLIENTS.search(ends.model)
        and parse_version(ends.version) >= MIN_NATIVE_VERSION
    ):
        return LARGE_WINDOW_TOKENS
    if _SMALL_WINDOW_MODELS.search(ends.model) or _MILLION_ON_DEMAND.search(ends.model):
        return DEFAULT_WINDOW_TOKENS
    return 0


def apply_window(context: ContextSize, ends: HeadTail, max_tokens: int) -> ContextSize:
    """Apply the model's window to a context with an unknown one, and a limit (0: none) to any context.

    A context larger than its model's window shows that the window is larger.
    """
    own_window = 0 if context.window_known else model_window(ends)
    limited_context = limit_window(
        context._replace(
            window=own_window or context.window, window_known=context.window_known or own_window > 0
        ),
        max_tokens,
    )
    is_overfull = (
        own_window == DEFAULT_WINDOW_TOKENS
        and not max_tokens
        and limited_context.tokens > limited_context.limit
    )
    if is_overfull:
        return limited_context._replace(window_known=False)
    return limited_context


def limit_window(context: ContextSize, max_tokens: int) -> ContextSize:
    """Limit a context's window to ``max_tokens``; 0 means no limit."""
    if not max_tokens:
        return context
    # A limit below every model's window makes the window known.
    is_known = context.window_known or max_tokens <= DEFAULT_WINDOW_TOKENS
    return context._replace(window=min(context.window, max_tokens), window_known=is_known)
