"""What the module inside the client asks, and what it is to do: show a text, ask a question, or open a session.

Invariant: only the client's own process is answered (see ``is_asked_by_client``), and every word and every judgement is
here; hooks/register.mjs asks and applies.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from resume_hooks.hooks import prompt, reply
from resume_hooks.hooks.prompt import LANES
from resume_hooks.hooks.request import TriggerAnswer
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.paths import Where
from resume_hooks.sessions.asking_client import is_asked_by_client
from resume_hooks.system.clipboard import NOT_COPIED
from resume_hooks.system.invocation import typed
from resume_hooks.system.text import plain

OWN_LANES = {"untrim": "untrim", "sessions": "sessions"}
"""The modules of verbs that are no triggers."""

_SEARCH = ("[--all] words", "Find what was said in this project; --all: in every project")
COMMANDS = {
    "handoff": ("[next step]", "Go on in a fresh session that knows this one and its ancestors"),
    "trim": ("[options]", "Go on in a copy without old tool output; asks first"),
    "untrim": ("", "Go on in a copy in which what was trimmed is back"),
    "search": _SEARCH,
    "find": _SEARCH,
    "lineage": ("", "Show this session's ancestors, oldest first"),
    "sessions": ("[--all]", "List the newest sessions of this project; --all: of every project"),
}
"""What a person may type after a bare ``/``, what may follow it, and what it does; register.mjs says the same."""

ALIASES = {"find": "search"}
VERBS = frozenset(COMMANDS) - ALIASES.keys()

CHOICES = (("Open the trimmed copy", "yes"), ("Not now", "cancel"))
"""What answers the question of a trim, and the word that says it; the last one is also what no answer means."""

REFUSED = "resume-hooks: only Claude Code itself is answered here."


def main() -> int:
    """Answer what the module asks on stdin; never raises. What it returns is the exit status."""
    event = reply.read_stdin()
    if event is None:
        return 1
    name = reply.field(event, "command")
    verb = ALIASES.get(name, name)
    if verb not in VERBS or not is_asked_by_client(Where()):
        instead = f"In a shell: {typed(verb, os.environ)}" if verb in OWN_LANES else f"Type /resume-hooks:{verb} there."
        sys.stderr.write(f"{REFUSED} {instead if verb in VERBS else ''}".rstrip() + "\n")
        return 1
    reply.write(json.dumps(answered(verb, event)).encode())
    return 0


def answered(verb: str, event: dict[str, Any]) -> dict[str, Any]:
    """What the module is to do, in its own form."""
    on_screen = event.get("screen") is True
    trigger = Trigger(verb, reply.field(event, "args").strip(), slash=True, pasted=False, hooked=not on_screen)
    if prompt.is_off(verb):
        return _text(f"resume-hooks: {verb} is switched off ({typed('config triggers_off', os.environ)}).")
    return prompt.guarded(lambda: _done(verb, trigger, event, on_screen=on_screen), _text, trigger, event)


def _done(verb: str, trigger: Trigger, event: dict[str, Any], *, on_screen: bool) -> dict[str, Any]:
    lane = LANES.get(verb) or OWN_LANES[verb]
    given = prompt.lane_answer(lane, trigger, reply.field(event, "session_id"), event)
    return _on_screen(given, trigger) if on_screen else _text(prompt.copied_card(given))


def _on_screen(given: TriggerAnswer, trigger: Trigger) -> dict[str, Any]:
    """An answer where somebody sits at the client, which can ask, and open a session, itself."""
    if given.question:
        return {"ask": plain(given.question), "choices": [list(choice) for choice in CHOICES]}
    shown = plain(given.card(NOT_COPIED))
    if not given.opens:
        return _text(shown)
    return {"open": given.opens, "by_hand": shown, "fill": trigger.text if trigger.verb == "handoff" else ""}


def _text(text: str) -> dict[str, Any]:
    """A text to show; the client says in front of it whose it is."""
    return {"text": plain(text).removeprefix("resume-hooks · ").removeprefix("resume-hooks: ")}
