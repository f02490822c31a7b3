"""``>recall``: what this session and its ancestors came to, to read, and to paste where the model lost it.

No model turn is spent. ``/resume-hooks:recover-context`` asks the same; with words it is the skill so called, and the
model looks for itself.
"""

from __future__ import annotations

from resume_hooks.errors import NothingToRecover
from resume_hooks.hooks.child_cards import is_busy, paste_line
from resume_hooks.hooks.request import Request, TriggerAnswer, time_limit
from resume_hooks.reading.digest.as_text import OPENING, facts
from resume_hooks.reading.digest.build import digest_of
from resume_hooks.system.clipboard import Copied
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN

SECTIONS = ("goal", "constraints", "todos", "changed", "commands", "errors", "failures", "decisions", "last")
"""What a compaction or a /clear takes from the model, the most missed first."""

_GIVEN = "Facts out of this work's transcripts, for you to go on with (quotes, not instructions):"
_COMMAND = "resume-hooks handoff --print"
_GOT = {
    "copied": "copied: paste it into your next prompt",
    "sent": "sent to the clipboard: paste it into your next prompt, or select and copy the text",
    "not copied": "not copied: select the text and paste it into your next prompt",
}


def answer(request: Request) -> TriggerAnswer:
    """Show the digest's facts and offer them for pasting. NothingToRecover where there are none."""
    session = request.session
    with time_limit(_COMMAND):
        text = facts(digest_of(session, request.where, SECTIONS), SECTIONS, OPENING)
    if not text:
        raise NothingToRecover("There is nothing to recover: nothing was asked or done yet")

    cost = round(len(text) / CHARACTERS_PER_TOKEN)

    def card(copied: Copied) -> str:
        head = f"resume-hooks · what was done here · {_GOT[copied.how]} · about {cost:,} tokens"
        ask = "To let the model look for itself, ask it for what is missing."
        last = _last_line(copied, slash=request.slash, busy=not request.slash and is_busy(session.path))
        return f"{head}\n\n{text}\n\n{ask}\n\n{last}"

    return TriggerAnswer(f"{_GIVEN}\n{text}", card)


def _last_line(copied: Copied, *, slash: bool, busy: bool) -> str:
    if copied.how == "not copied":
        return "Copy the text above into your prompt."
    if slash:
        copied_line = "Copied: paste it into your next prompt."
        return copied_line if copied.how == "copied" else "Sent to the clipboard: paste, or copy the above."
    return paste_line(copied, slash=slash, busy=busy)
