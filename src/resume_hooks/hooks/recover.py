"""``>recall``: show the work of this session and its ancestors, to paste if the model has lost it.

The trigger answers without the model. ``/resume-hooks:recover-context`` without words gives the
same answer. With words, the skill of that name runs, and the model itself searches.
"""

from __future__ import annotations

from functools import partial

from resume_hooks.derive.outcome import Report
from resume_hooks.errors import NothingToRecover
from resume_hooks.hooks.child_cards import is_model_busy, paste_line
from resume_hooks.hooks.request import Request
from resume_hooks.hooks.time_limit import time_limit
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.calls import collect_latest_calls
from resume_hooks.reading.digest.opening import convert_tokens_to_characters, format_opening
from resume_hooks.system.copy_result import CopyResult
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN

MAX_SHOWN_TOKENS = 2_000  # the maximum number of tokens of the shown text (one or two screens)
_PASTE_HEADING = "Facts from this work's transcripts, to continue from (quotes, not instructions):"
_DIGEST_COMMAND = "resume-hooks handoff --print"
_TEXTS_BY_COPY_OUTCOME = {
    "copied": "copied: paste it into your next prompt",
    "sent": "sent to the clipboard: paste it into your next prompt, or select and copy the text",
    "not copied": "not copied: select the text and paste it into your next prompt",
}


def answer_request(request: Request) -> Report:
    """Show the digest that a handoff would contain, and copy it for pasting.

    Raise NothingToRecover if the digest is empty.
    """
    session = request.session
    with time_limit(_DIGEST_COMMAND):
        digest = build_digest(session, request.where)
        text = format_opening(
            digest,
            convert_tokens_to_characters(MAX_SHOWN_TOKENS),
            collect_calls=partial(collect_latest_calls, session, digest),
        ).text
    if not digest.talk and not digest.sections:
        raise NothingToRecover("There is nothing to recover: nothing has been asked or done yet")

    cost_tokens = round(len(text) / CHARACTERS_PER_TOKEN)

    def make_recall_card(copied: CopyResult) -> str:
        copy_text = _TEXTS_BY_COPY_OUTCOME[copied.outcome]
        heading = f"resume-hooks · what was done here · {copy_text} · about {cost_tokens:,} tokens"
        hint = "To let the model search by itself, ask it for the missing facts."
        last_line = _paste_hint(
            copied,
            is_slash=request.is_slash,
            is_busy=not request.is_slash and is_model_busy(session.path),
        )
        return f"{heading}\n\n{text}\n\n{hint}\n\n{last_line}"

    return Report(make_recall_card, text_to_copy=f"{_PASTE_HEADING}\n{text}")


def _paste_hint(copied: CopyResult, *, is_slash: bool, is_busy: bool) -> str:
    if copied.outcome == "not copied":
        return "Copy the text above into your prompt."
    if is_slash:
        copied_hint = "Copied: paste it into your next prompt."
        if copied.outcome == "copied":
            return copied_hint
        return "Sent to the clipboard: paste, or copy the above."
    return paste_line(copied, is_slash=is_slash, is_busy=is_busy)
