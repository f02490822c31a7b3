"""UserPromptSubmit: decides whether a prompt is a trigger and answers it.

Invariant: a prompt that is not ours passes, whatever happens; once a trigger was recognised, a failure is told with
a way out. Imports inside functions keep each lane to what it needs: ``>session`` never loads a transcript.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from resume_hooks import settings
from resume_hooks.errors import InSubagent, ResumeHooksError, SessionNotFound
from resume_hooks.hooks import reply
from resume_hooks.hooks.triggers import Trigger, recognise
from resume_hooks.paths import Where, find_session, is_session_id, named_session

if TYPE_CHECKING:
    from resume_hooks.hooks.answer import Answer

LANES = {
    "resume": "answer",
    "handoff": "answer",
    "rollover": "rollover",
    "lineage": "answer",
    "trim": "trim",
    "search": "search",
    "recover-context": "recover",
    "checkpoint": "checkpoint",
    "rewind": "checkpoint",
}
"""The module of each trigger that reads a transcript; its ``answer`` gives what to copy and the card."""

MAX_INPUT = 32 * 1024 * 1024
"""Bytes of hook input that are read; a trigger is never that long."""


def main() -> None:
    """Answer the event on stdin; writes nothing where the prompt passes. Never raises."""
    raw = sys.stdin.buffer.read(MAX_INPUT + 1)
    event = reply.read_event(raw) if len(raw) <= MAX_INPUT else None
    trigger = recognise(reply.field(event, "prompt")) if event else None
    if event is None or trigger is None or reply.stands_aside():
        return
    reason = card(trigger, event)
    if reason:
        sys.stdout.buffer.write(reply.block(reason))
        sys.stdout.buffer.flush()


def card(trigger: Trigger, event: dict[str, Any]) -> str:
    """The text to show for a trigger, whatever happens; ``""`` where it is switched off and the prompt passes."""
    try:
        return answer(trigger, event)
    except ResumeHooksError as error:
        return _failure(error, trigger.text)
    except ModuleNotFoundError:  # a venv from before an update, or a damaged one, lacks a dependency
        from resume_hooks.hooks import broken_venv, fallback  # noqa: PLC0415

        broken_venv.mark()
        return fallback.answer(trigger, reply.field(event, "session_id"))
    except Exception as error:  # noqa: BLE001 - the outermost rim: a trigger ends in a sentence, never in a trace
        return _bug(error, trigger)


def answer(trigger: Trigger, event: dict[str, Any]) -> str:
    """The text to show for a trigger, ``""`` where it is switched off. Raises ResumeHooksError."""
    chosen = settings.load()
    off = chosen["triggers_off"].value
    if isinstance(off, tuple) and trigger.verb in off:
        return ""
    if trigger.pasted or trigger.verb == "help":
        from resume_hooks.hooks.plain_cards import HELP, pasted_card  # noqa: PLC0415

        return pasted_card(trigger.text) if trigger.pasted else HELP
    session_id = reply.field(event, "session_id")
    if not is_session_id(session_id):
        raise SessionNotFound("The client named no session", "Send a prompt first.")
    if LANES.get(trigger.verb) == "checkpoint" and reply.field(event, "agent_id"):
        raise InSubagent
    from resume_hooks.system.clipboard import copy  # noqa: PLC0415

    way = str(chosen["clipboard"].value)
    if trigger.verb == "session":
        from resume_hooks.hooks.plain_cards import session_card  # noqa: PLC0415

        return session_card(session_id, copy(session_id, way=way))
    lane = importlib.import_module(f"resume_hooks.hooks.{LANES[trigger.verb]}")
    window = chosen["context_window"].value
    path = named_session(reply.field(event, "transcript_path"), session_id, Where()) or find_session(
        session_id, Where()
    )
    found: Answer = lane.answer(trigger, path, session_id, window if isinstance(window, int) else 0)
    return found.card(copy(found.to_copy, way=way if found.to_copy else "none"))


def _failure(error: ResumeHooksError, text: str) -> str:
    said = f"resume-hooks: {error.message.removesuffix('.')}.\n\n{error.remedy}".rstrip()
    return f"{said}{_kept(text)}\n\nNothing was changed."


def _bug(error: Exception, trigger: Trigger) -> str:
    from resume_hooks import __version__  # noqa: PLC0415 - only a bug waits for it
    from resume_hooks.system import bug_log  # noqa: PLC0415 - only a bug waits for it
    from resume_hooks.system.invocation import typed  # noqa: PLC0415

    bug_log.note(f">{trigger.verb}", __version__, error)
    return (
        f"resume-hooks failed and changed nothing you had ({type(error).__name__}: {error}).{_kept(trigger.text)}\n\n"
        "Your prompt was not sent. Put a space before > to send it as it is.\n"
        f"To see what is wrong, in a shell:\n  {typed('doctor', os.environ)}\n\nThen try again."
    )


def _kept(text: str) -> str:
    """The user's words, which a slash command does not leave in the input box."""
    return f"\n\nYour text: {text}" if text else ""
