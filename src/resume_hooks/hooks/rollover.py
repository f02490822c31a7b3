"""``>rollover``: the child with the digest at once, then a model's summary in it, or plain words on why there is none.

Invariant: one rollover is paid for once. What is typed again, with nobody asking anything since, shows the same child;
where that has no summary, and nobody is writing one, it is tried anew, for the same child.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence

from resume_hooks.derive.child.existing import existing_child
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.model.headless import model_for
from resume_hooks.derive.model.port import LIMIT, ModelCalls
from resume_hooks.derive.summary import add_summary
from resume_hooks.hooks import hook_state
from resume_hooks.hooks.child_cards import child_card
from resume_hooks.hooks.handoff import offer_clear
from resume_hooks.hooks.request import Request, TriggerAnswer, time_limit
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.system.processes import started
from resume_hooks.system.text import one_line, plain_line

WHOLE = 145.0
"""Seconds that a rollover may take before its card: the clipboard has its own two of 150."""

REPLACING = 5.0
"""Seconds of them that are kept for putting the summary into the child."""

PLANNING = 10.0
"""Seconds in which the child with the digest is decided on."""

WIDEST = 300
"""Characters of a fact on the card."""

_PREFIX = "rollover-"
BY_CLEAR = "or type /clear: the new session also starts with this (cut if long)"
UNFINISHED = "The summary is not in it yet: it is still being written."


def answer(request: Request) -> TriggerAnswer:
    """Roll the session over. Raises ResumeHooksError where no child was made."""
    deadline = time.monotonic() + WHOLE
    parent, where = request.session, request.where
    with time_limit(request.command, PLANNING):
        standing = _standing(parent, request)
        if standing is not None:
            return standing
        left = None if _is_written(request) else add_summary.unfinished(parent, where)
        begun = add_summary.plan(parent, where, wish=request.text, standing=left)
    written = add_summary.write(begun, where)
    _keep(request, written, [UNFINISHED], writing=True)
    if request.trigger.hooked:
        offer_clear(written)  # Esc ends us without a word: then /clear still leads on
    model = model_for(parent, where)
    limit = min(LIMIT, deadline - REPLACING - time.monotonic())
    calls = ModelCalls(model, limit, lambda _number, _count: None)
    outcome = add_summary.add_summary(begun, written, calls, where)
    facts = _facts(outcome, request)
    if outcome.failure:
        hook_state.take(_name(request))
        answered = _answer_of("rolled over without a summary", outcome.receipt, facts, request)
        return answered._replace(remark="; ".join(fact.removesuffix(".") for fact in facts))
    _keep(request, outcome.receipt, facts)
    return _answer_of("rolled over", outcome.receipt, facts, request)


def left(parent: SessionFile, where: Where, trigger: Trigger) -> str:
    """What a rollover leaves whose summary nobody waits for any more; ``""`` where its child was not made yet."""
    made = add_summary.unfinished(parent, where)
    if made is None:
        return ""
    again = trigger.name("rollover")
    return f"No summary. The session with the digest alone is there: {made.in_client} opens it, {again} asks anew."


def _facts(outcome: add_summary.SummaryOutcome, request: Request) -> list[str]:
    """What the child holds, what that took, and the way to what it lacks."""
    spent = [f"it took {outcome.spent.words}"] if outcome.spent.words else []
    if outcome.failure:
        again = f"to try again, type it once more, or in a shell: {request.command}"
        return [add_summary.failure_text(outcome.failure), *spent, again]
    check = [outcome.checked.words] if outcome.checked else []
    return [f"a summary by {outcome.spent.model} and a digest are in it", *check, *spent]


def _answer_of(done: str, receipt: Receipt, facts: Sequence[str], request: Request) -> TriggerAnswer:
    by_clear = [BY_CLEAR] if request.trigger.hooked and offer_clear(receipt) else []
    shown = [*(one_line(plain_line(fact), WIDEST) for fact in facts), *by_clear]
    return TriggerAnswer(
        receipt.in_client, lambda copied: child_card(done, receipt, copied, shown, slash=request.slash)
    )


def _keep(request: Request, child: Receipt, facts: Sequence[str], *, writing: bool = False) -> None:
    """Note what was made of what was asked for; without the note the same is made, and paid for, anew."""
    note: dict[str, object] = {
        "child": child.session_id,
        "asked": request.text[: add_summary.MAX_WISH],
        "facts": list(facts),
    }
    if writing:
        note |= {"writer": os.getpid(), "since": started(os.getpid())}
    with contextlib.suppress(OSError):
        hook_state.sweep(_PREFIX)
        hook_state.keep(_name(request), note)


def _is_interrupted(note: Mapping[str, object]) -> bool:
    """Whether who was writing the summary ended before it was there."""
    writer = note.get("writer")
    return isinstance(writer, int) and started(writer) != note.get("since")


def _is_written(request: Request) -> bool:
    """Whether somebody is at the summary of this session's rollover right now."""
    note = hook_state.find(_name(request))
    return "writer" in note and not _is_interrupted(note)


def _standing(parent: SessionFile, request: Request) -> TriggerAnswer | None:
    """The child that the same words made, where nobody went on in it or asked anything here since."""
    note = hook_state.find(_name(request))
    if note.get("asked") != request.text or _is_interrupted(note):
        return None
    receipt = existing_child(parent, "rollover", request.where)
    if receipt is None or receipt.session_id != note.get("child"):
        return None
    kept = note.get("facts")
    facts = [each for each in kept if isinstance(each, str)] if isinstance(kept, list) else []
    return _answer_of("already rolled over", receipt, facts, request)


def _name(request: Request) -> str:
    return f"{_PREFIX}{request.session_id}.json"
