"""A tool by which the model asks for a handoff. The person confirms it with all that it says before them.

Invariant: what is shown in the question is, letter for letter, what stands in the box of the fresh session afterwards;
nothing of it is ever sent by itself, whatever ``handoff_sends`` says.
"""

from __future__ import annotations

from typing import Any

from resume_hooks import settings
from resume_hooks.hooks import prompt, reply
from resume_hooks.system.text import plain_line

MOST = 400
"""Characters of a next step: all of it has to stand in the question."""

CHOICES = (("Hand off", "yes"), ("Not now", "no"))
"""The last one is also what no answer means."""

TOOL = {
    "name": "handoff",
    "description": "Ask the user to go on in a fresh session that knows this one by a digest: where they want that, or"
    " where the context is nearly full and a piece of work is done. They confirm it; then end your turn.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "next_step": {"type": "string", "maxLength": MOST, "description": "What to do next, in one sentence."}
        },
    },
}


def offered() -> dict[str, Any]:
    """The tools to register: none, unless the user switched it on."""
    return {"tools": [TOOL]} if _is_on() else {}


def asked(event: dict[str, Any]) -> dict[str, Any]:
    """The question for the person; once they ``said`` something, what the model is told, with ``step`` after a yes."""
    step, said = plain_line(reply.field(event, "args")).strip(), reply.field(event, "said")
    if not _is_on():
        return {"text": "The user has switched this off."}
    if reply.field(event, "agent_id"):
        return {"text": "Only the main conversation can be handed off."}
    if len(step) > MOST:
        return {"text": f"next_step has {len(step):,} characters: the user can be shown {MOST}."}
    if said == CHOICES[0][1]:
        return {"text": "The user agreed. End your turn now; the fresh session then opens.", "step": step}
    if said:
        words = "" if said == CHOICES[-1][1] else f" Their words: {said}"
        return {"text": f"The user said no: go on here, and ask again only if they want it.{words}"}
    shown = f"Its next step, which would wait in the box: {step}" if step else "It names no next step."
    return {
        "ask": f"The model asks to go on in a fresh session. {shown}",
        "choices": [list(choice) for choice in CHOICES],
    }


def _is_on() -> bool:
    return settings.is_on("handoff_tool") and not prompt.is_off("handoff")
