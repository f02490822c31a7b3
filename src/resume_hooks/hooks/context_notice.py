"""When a session's context first passes ``notice_percent`` of ``settings``: one line says so and what fits best.

The Stop hook shows it once; where the module inside the client runs, a band shows it for as long as
it holds, instead.

Once a session; where its window proves larger than it was taken for, once more of that one. A note
keeps what was said, the window that the module told, and the count of tokens at which
``hooks/notice`` asks again. Sub-agents have an event of their own, which is not asked.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

from resume_hooks import settings
from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks import hook_state, reply
from resume_hooks.paths import Where, is_session_id
from resume_hooks.sessions.client_window import (
    NOTES,
    context_in_window,
    window_of,
    window_set,
)
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import session_file
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.records import positive
from resume_hooks.transcripts.tokens import ContextSize

NEVER = 10**9  # tokens that no context has; longer numbers the shell does not compare
KEPT = (
    100 * 86_400
)  # seconds after which a note goes; clients remove the sessions themselves after thirty days


def main() -> None:
    """Answer the event on stdin: one line to show, or nothing.

    A failure is silent, since nobody asked for anything.
    """
    event = reply.read_stdin()
    if event is None:
        return
    session_id = reply.field(event, "session_id")
    path = reply.transcript(event, session_id, Where())
    if path is None:
        return
    with contextlib.suppress(OSError, ResumeHooksError):
        line = notice(session_id, path)
        if line:
            reply.write_reply(json.dumps({"systemMessage": line}).encode())


def learn(session_id: str, window: object) -> None:
    """Keep the window that the client measured, for all that count.

    Of another one nothing was said yet.
    """
    name = f"{NOTES}{session_id}.json"
    if (
        is_session_id(session_id)
        and positive(window)
        and hook_state.read_note(name).get("window") != window
    ):
        with contextlib.suppress(OSError):
            hook_state.write_note(name, {"window": window})


def notice(session_id: str, path: str) -> str:
    """The line to show of a session, ``""`` where none is due.

    OSError where no note can be kept: no line then.
    """
    name = f"{NOTES}{session_id}.json"
    note = hook_state.read_note(name)
    told = positive(note.get("told"))
    hook_state.sweep_notes(NOTES, KEPT)
    # First of all: a turn's end never waits again for a session that takes too long to read.
    hook_state.write_note(name, note | {"look": NEVER, "told": told})
    percent, session = settings.number("notice_percent"), Session.of(session_file(path), Where())
    if not percent:
        return ""
    known = window_of(session_id, Where())
    context = session.context
    due = (
        context.measured
        and context.window > told
        and context.tokens >= _notice_limit(context.limit, percent)
    )
    if due:
        told = context.window
    look = NEVER
    if context.window > told:
        look = _notice_limit(context.limit, percent)
    elif context.window < tokens.LARGE_WINDOW and not (
        known or window_set(session.head_tail, known, Where())
    ):
        # Its window may prove larger than it was taken for.
        look = _notice_limit(_room(tokens.LARGE_WINDOW, 0), percent)
    hook_state.write_note(name, note | {"look": look, "told": told})
    if due:
        return _notice_line(path, context)
    return ""


def band(session_id: str, path: str | None, used: int) -> dict[str, Any]:
    """What the module shows from ``from`` tokens on, or when to ask again.

    By the client's own figures.

    From then on the Stop hook says nothing of this session. OSError where no note of that can be
    kept.
    """
    percent, window = settings.number("notice_percent"), window_of(session_id, Where())
    if not percent or window < 1:
        return {"look": NEVER}
    room = _room(window, window_set(HeadTail(path), window, Where()) if path else 0)
    limit = _notice_limit(room, percent)
    shown: dict[str, Any] = {"look": limit}
    if used >= limit:
        text = f"{{percent}} % of {room:,}{_ways(path)} · /handoff"
        shown = {"look": NEVER, "from": limit, "window": room, "band": text}
    # Last of all: an engine that ends before it answered has kept the Stop hook from nothing.
    name = f"{NOTES}{session_id}.json"
    hook_state.write_note(
        name, hook_state.read_note(name) | {"look": NEVER, "told": max(window, tokens.LARGE_WINDOW)}
    )
    return shown


def _ways(path: str | None) -> str:
    from resume_hooks.derive.compare import freed_by_trim  # once in a session
    from resume_hooks.derive.trim import in_client
    from resume_hooks.derive.trim.options import WORTH

    if path is None:
        return ""
    copy, in_place = freed_by_trim(path, Where())
    if copy < WORTH:
        if in_place >= WORTH:
            return f" · /trim here frees about {round(in_place, -3):,}"
        return ""
    if in_client.is_different_saving(copy, in_place):
        here = f", here {round(in_place, -3):,}"
    else:
        here = ""
    return f" · /trim frees about {round(copy, -3):,}{here}"


def _notice_line(path: str, context: ContextSize) -> str:
    """What is said. The advice reads the live part; it is worth that only once."""
    from resume_hooks.derive.compare import advise
    from resume_hooks.hooks.resume_card import NAMES  # nothing to most turns' ends

    advice = advise(path, Where())
    full = f"resume-hooks: {context.most_percent} % of the context is used"
    return f"{full}; {NAMES[advice.strategy]} fits best: /resume-hooks:{advice.strategy}"


def _room(window: int, most: int) -> int:
    """What the client's own per cent are of in a window of at most ``most`` tokens, 0 for any."""
    return context_in_window(ContextSize(0, window), most).limit


def _notice_limit(room: int, percent: int) -> int:
    return -(-room * percent // 100)
