"""Determine the size of a client's context window.

The window is the one that the client reported for the session's model, or a smaller one from the
client's settings.
"""

from __future__ import annotations

import os
import re

from resume_hooks import settings
from resume_hooks.paths import Where, read_json_object
from resume_hooks.system.claude_settings import read_compaction_window
from resume_hooks.transcripts.head_tail import HeadTail, parse_version
from resume_hooks.transcripts.records import parse_positive_count
from resume_hooks.transcripts.tokens import DEFAULT_WINDOW_TOKENS, LARGE_WINDOW_TOKENS, ContextSize

WINDOW_FILE_PREFIX = "notice-"
"""The prefix of the names of files that contain the size of a session's window.

The hooks write these files. The session's id follows the prefix.
"""

_NATIVE_MILLION_TOKEN_MODEL_PATTERN = re.compile(
    r"claude-(?:opus|sonnet|haiku|fable|mythos)-5(?=\Z|[-@])"
)
_NEW_CLIENT_MILLION_TOKEN_MODEL_PATTERN = re.compile(r"claude-opus-4-[78](?=\Z|[-@])")
_REQUESTED_MILLION_TOKEN_MODEL_PATTERN = re.compile(
    r"claude-(?:opus-4-6|sonnet-4(?:-[56])?)(?=[@-]\d{8}|[-@]v\d|\Z)"
)
"""Patterns for the names of models, as listed in client 2.1.332.

The models of ``_NATIVE_MILLION_TOKEN_MODEL_PATTERN`` always have a window of a million tokens.
Those of ``_NEW_CLIENT_MILLION_TOKEN_MODEL_PATTERN`` have a million tokens in new clients, and
200,000 in older clients unless the user requests a million. Those of
``_REQUESTED_MILLION_TOKEN_MODEL_PATTERN`` have a million tokens only if the user requests it.
"""

MIN_MILLION_TOKEN_CLIENT_VERSION = (2, 1, 329)
"""The oldest client that is known to give a million tokens to new models by default.

The new models are those of ``_NEW_CLIENT_MILLION_TOKEN_MODEL_PATTERN``. Client 2.1.112 gave them a
million tokens only on request.
"""

_SMALL_WINDOW_MODEL_PATTERN = re.compile(
    r"claude-(?:3-|(?:haiku-4-5|opus-4(?:-[015])?)(?=\Z|[@-]\d{8}))"
)
"""Matches names of models that never have a window of a million tokens, as in client 2.1.330.

Models that the pattern does not match may have a window of a million tokens.
"""


def measured_context_window(session_id: str, where: Where) -> int:
    """Return the size of a session's context window in tokens, or 0 if it is unknown.

    The size is the one that the plugin last measured in the session's client.
    """
    return parse_positive_count(
        read_json_object(
            os.path.join(where.state, "pending", f"{WINDOW_FILE_PREFIX}{session_id}.json")
        ).get("window")
    )


def context_window_of_session(session_id: str, where: Where) -> int:
    """Return the window of a session's model: the user's setting, or else the measured window.

    Return 0 if the window is unknown.
    """
    return settings.read_number_setting("context_window", where) or measured_context_window(
        session_id, where
    )


def max_context_window(ends: HeadTail, window: int, where: Where) -> int:
    """Return the upper limit for a session's window from the client's settings, or 0 if there is no limit.

    If ``window`` is 0 (unknown) and the session's model always has a small window, the limit is at
    most that small window.
    """
    if not window and _SMALL_WINDOW_MODEL_PATTERN.search(ends.model):
        model_limit = DEFAULT_WINDOW_TOKENS
    else:
        model_limit = 0
    return min(
        filter(None, (model_limit, read_compaction_window(ends.cwd, ends.model, where))), default=0
    )


def model_window(ends: HeadTail) -> int:
    """Return the window of the session's last model, or 0 if it is unknown.

    The window depends on the model's name and the version of the client.
    """
    if _NATIVE_MILLION_TOKEN_MODEL_PATTERN.search(ends.model) or (
        _NEW_CLIENT_MILLION_TOKEN_MODEL_PATTERN.search(ends.model)
        and parse_version(ends.version) >= MIN_MILLION_TOKEN_CLIENT_VERSION
    ):
        return LARGE_WINDOW_TOKENS
    if _SMALL_WINDOW_MODEL_PATTERN.search(
        ends.model
    ) or _REQUESTED_MILLION_TOKEN_MODEL_PATTERN.search(ends.model):
        return DEFAULT_WINDOW_TOKENS
    return 0


def fill_in_model_window(context: ContextSize, ends: HeadTail, max_tokens: int) -> ContextSize:
    """Return the context. If its window is unknown, use the model's window.

    The window is at most ``max_tokens``, where 0 means no limit. If the context is larger than the
    model's window, that window can't be right, so it is marked as unknown.
    """
    own_window = 0 if context.is_window_known else model_window(ends)
    limited_context = limit_window(
        context._replace(
            window=own_window or context.window,
            is_window_known=context.is_window_known or own_window > 0,
        ),
        max_tokens,
    )
    is_overfull = (
        own_window == DEFAULT_WINDOW_TOKENS
        and not max_tokens
        and limited_context.tokens > limited_context.usable_tokens
    )
    if is_overfull:
        return limited_context._replace(is_window_known=False)
    return limited_context


def limit_window(context: ContextSize, max_tokens: int) -> ContextSize:
    """Return a context with a window of at most ``max_tokens``, where 0 means no limit."""
    if not max_tokens:
        return context
    # No model has a smaller window than ``DEFAULT_WINDOW_TOKENS``. A limit that is not larger than
    # this must therefore be the window.
    is_known = context.is_window_known or max_tokens <= DEFAULT_WINDOW_TOKENS
    return context._replace(window=min(context.window, max_tokens), is_window_known=is_known)
