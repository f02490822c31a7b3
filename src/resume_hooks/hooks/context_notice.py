"""The notice that a session's context is large, with the best way to continue.

The notice is due when the used percentage of the context reaches the setting ``notice_percent``.
The Stop hook shows it once in a session, as one line. The hook shows it once more if the session's
window turns out to be larger than was assumed. If the client has loaded the plugin's module, a band
above the input box shows the notice as long as the context is that large. A file for each session
stores the window, the window at the last notice, and the number of tokens at which ``hooks/notice``
checks again whether a notice is due. When a sub-agent stops, the client sends a different event,
which this hook does not receive.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

from resume_hooks import settings
from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks import hook_replies, hook_state
from resume_hooks.paths import Where, is_session_id
from resume_hooks.sessions.client_window import (
    WINDOW_FILE_PREFIX,
    context_window_of_session,
    limit_window,
    max_context_window,
)
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import session_file
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.records import parse_positive_count
from resume_hooks.transcripts.tokens import ContextSize

# A number of tokens that no context reaches. It has few enough digits for a comparison in the
# shell.
UNREACHABLE_TOKEN_COUNT = 10**9
# the number of seconds until a note expires; clients delete sessions after thirty days
NOTE_LIFETIME_SECONDS = 100 * 86_400


def main() -> None:
    """Print the notice for the event on stdin if it is due. Print nothing if an error occurs."""
    event = hook_replies.read_stdin()
    if event is None:
        return
    session_id = hook_replies.text_field(event, "session_id")
    path = hook_replies.find_transcript(event, session_id, Where())
    if path is None:
        return
    with contextlib.suppress(OSError, ResumeHooksError):
        line = claim_notice(session_id, path)
        if line:
            hook_replies.write_reply(json.dumps({"systemMessage": line}).encode())


def store_window(session_id: str, window: object) -> None:
    """Store the size of the window that the client reported. Ignore it unless it is a positive number.

    If the size has changed, earlier notices are forgotten, so a notice may be shown again.
    """
    name = f"{WINDOW_FILE_PREFIX}{session_id}.json"
    if (
        is_session_id(session_id)
        and parse_positive_count(window)
        and hook_state.read_note(name).get("window") != window
    ):
        with contextlib.suppress(OSError):
            hook_state.write_note(name, {"window": window})


def claim_notice(session_id: str, path: str) -> str:
    """Return the notice of a session, and store that it was shown. Return ``""`` if no notice is due.

    Raise OSError if this cannot be stored. The notice must then not be shown, because it would appear
    again.
    """
    name = f"{WINDOW_FILE_PREFIX}{session_id}.json"
    note = hook_state.read_note(name)
    noticed_window = parse_positive_count(note.get("told"))
    hook_state.delete_old_notes(WINDOW_FILE_PREFIX, NOTE_LIFETIME_SECONDS)
    # The note is written before the session is read. If the reading is slow or fails, later turns
    # do not read the session again.
    hook_state.write_note(name, note | {"look": UNREACHABLE_TOKEN_COUNT, "told": noticed_window})
    percent, session = (
        settings.read_number_setting("notice_percent"),
        Session.from_file(session_file(path), Where()),
    )
    if not percent:
        return ""
    client_window = context_window_of_session(session_id, Where())
    context = session.context
    is_due = (
        context.is_measured
        and context.window > noticed_window
        and context.tokens >= _tokens_at_percent(context.usable_tokens, percent)
    )
    if is_due:
        noticed_window = context.window
    next_check = UNREACHABLE_TOKEN_COUNT
    if context.window > noticed_window:
        next_check = _tokens_at_percent(context.usable_tokens, percent)
    elif context.window < tokens.LARGE_WINDOW_TOKENS and not (
        client_window or max_context_window(session.head_tail, client_window, Where())
    ):
        # The window may be larger than assumed. In that case the notice is due at a higher number
        # of tokens, so ask again at that number.
        next_check = _tokens_at_percent(
            _count_usable_tokens(tokens.LARGE_WINDOW_TOKENS, 0), percent
        )
    hook_state.write_note(name, note | {"look": next_check, "told": noticed_window})
    if is_due:
        return _describe_notice(path, context)
    return ""


def band_reply(session_id: str, path: str | None, used_tokens: int) -> dict[str, Any]:
    """Return the text of the band, and the number of tokens (``from``) above which to show it.

    If the context is smaller, return only the number of tokens (``look``) at which the module asks
    for the band again. The numbers in the band come from the client. After either reply, the Stop
    hook shows no notice for this session. Raise OSError if the session's note can't be written.
    """
    percent, window = (
        settings.read_number_setting("notice_percent"),
        context_window_of_session(session_id, Where()),
    )
    if not percent or window < 1:
        return {"look": UNREACHABLE_TOKEN_COUNT}
    usable_tokens = _count_usable_tokens(
        window, max_context_window(HeadTail(path), window, Where()) if path else 0
    )
    notice_tokens = _tokens_at_percent(usable_tokens, percent)
    band_data: dict[str, Any] = {"look": notice_tokens}
    if used_tokens >= notice_tokens:
        text = f"{{percent}} % of {usable_tokens:,}{_describe_savings(path)} · /handoff"
        band_data = {
            "look": UNREACHABLE_TOKEN_COUNT,
            "from": notice_tokens,
            "window": usable_tokens,
            "band": text,
        }
    # The note silences the Stop hook, so it is written only when the answer is complete.
    name = f"{WINDOW_FILE_PREFIX}{session_id}.json"
    hook_state.write_note(
        name,
        hook_state.read_note(name)
        | {"look": UNREACHABLE_TOKEN_COUNT, "told": max(window, tokens.LARGE_WINDOW_TOKENS)},
    )
    return band_data


def _describe_savings(path: str | None) -> str:
    # Imported late because it is needed only once in a session.
    from resume_hooks.derive.compare import count_freed_tokens
    from resume_hooks.derive.trim import in_client
    from resume_hooks.derive.trim.options import MIN_WORTHWHILE_SAVED_TOKENS

    if path is None:
        return ""
    in_copy, in_place = count_freed_tokens(path, Where())
    if in_copy < MIN_WORTHWHILE_SAVED_TOKENS:
        if in_place >= MIN_WORTHWHILE_SAVED_TOKENS:
            return f" · /trim here frees about {round(in_place, -3):,}"
        return ""
    if in_client.do_savings_differ(in_copy, in_place):
        in_place_text = f", here {round(in_place, -3):,}"
    else:
        in_place_text = ""
    return f" · /trim frees about {round(in_copy, -3):,}{in_place_text}"


def _describe_notice(path: str, context: ContextSize) -> str:
    """Return the notice with the best way to continue. The function reads the whole conversation."""
    # Imported late because most turns need no notice.
    from resume_hooks.derive.compare import recommend_strategy
    from resume_hooks.hooks.resume_card import STRATEGY_NAMES

    advice = recommend_strategy(path, Where())
    usage_text = f"resume-hooks: {context.max_percent} % of the context is used"
    return f"{usage_text}; {STRATEGY_NAMES[advice.strategy]} fits best: /resume-hooks:{advice.strategy}"


def _count_usable_tokens(window_tokens: int, max_tokens: int) -> int:
    """Return the number of tokens that the client counts as 100 % of a window.

    ``max_tokens`` limits the window (0: no limit).
    """
    return limit_window(ContextSize(0, window_tokens), max_tokens).usable_tokens


def _tokens_at_percent(usable_tokens: int, percent: int) -> int:
    return -(-usable_tokens * percent // 100)
