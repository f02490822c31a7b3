"""``/trim --smart`` inside the client: the session's own model chooses, while its cache is warm, and a yes writes that.

Invariant: no other model is asked. What it chose counts only while the session offers the very same contents as when
it was asked, and only what was shown is written.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from resume_hooks import settings
from resume_hooks.derive import agents
from resume_hooks.derive.model import forked
from resume_hooks.derive.model.forked import FORKING, ForkedModel
from resume_hooks.derive.model.port import LIMIT
from resume_hooks.derive.trim.plan import TrimPlan, brief, remarks, totals
from resume_hooks.errors import HeadlessFailed, NothingToTrim, PlanOutdated, UsageError
from resume_hooks.hooks import confirmations
from resume_hooks.hooks.confirmations import Question
from resume_hooks.hooks.request import Request, TriggerAnswer, show, time_limit
from resume_hooks.hooks.trim import no_use_card
from resume_hooks.parts.smart_trim import plan as smart
from resume_hooks.parts.smart_trim import preview
from resume_hooks.parts.smart_trim.ask import MAX_PIECES, ModelAnswer, ask, parts, task
from resume_hooks.parts.smart_trim.offer import Offer, acting, digest_of, offer, smart_options
from resume_hooks.parts.smart_trim.plan import KIND, Verdict, of_model, of_rules
from resume_hooks.system.invocation import in_shell

PLANNING = 10.0
"""Seconds in which it is found out what can go."""

READING = "looking for what can go"
ABOVE = "The conversation is the one above, all of it; the material says which of its contents have which numbers."
NO_OPTIONS = "Behind --smart stand plain words here, and no options"
UNASKED = "No model is asked for that here"
COLD = "This session's own model is not asked: "
CHANGED = "The session is not as its model was shown it, so nothing was made"


def answer(request: Request, instructions: str) -> TriggerAnswer:
    """Ask the session's own model, or the person about what that chose. A ResumeHooksError says why nothing is made."""
    if instructions.startswith("-"):
        raise UsageError(NO_OPTIONS, _in_shell(request))
    if request.can_wait:
        return TriggerAnswer("", str, wait=READING)
    session, own = request.session, ForkedModel(request.forked or {})
    if request.forked is None:
        raise UsageError(UNASKED, _in_shell(request))
    cached = own.cached(session.path)
    if not (own.asked or cached):
        named = settings.load(request.where)["summary_model"]
        why = "its cache is cold" if named.source == "default" else f"summary_model names {named.value}"
        raise HeadlessFailed(f"{COLD}{why}", _in_shell(request))
    with time_limit(in_shell(f"trim --smart {request.session_id}"), PLANNING):
        offered = _offered(request, instructions)
        if own.asked:
            return _shown(request, own, offered)
        agents.draft_of(session, KIND, request.where, None)  # what can't be a parent is refused before it is asked
        shown = parts(offered)
    if not shown:
        raise NothingToTrim("There is nothing for a model to choose", f"By rules alone: {request.typed_name}")
    confirmations.consume_question(request.session_id)  # a yes meanwhile answers no older question
    _keep(request, _note(offered, ()), KIND)
    asked = forked.prompt(f"{task(instructions)}\n\n{ABOVE}", shown[0].text, ModelAnswer)
    return TriggerAnswer("", str, wait=FORKING.format(cached=cached), fork=asked)


def decided(request: Request, instructions: str) -> TrimPlan:
    """The trim that was shown. PlanOutdated where the session is not as it was."""
    offered = _offered(request, instructions)
    verdicts = [Verdict(record, tuple(address), *words) for record, address, *words in _kept(request, offered)]
    return smart.plan(offered, [*of_rules(offered), *verdicts], request.where).trim


def _offered(request: Request, instructions: str) -> Offer:
    """The rules' choices, and the largest contents that one part shows."""
    scanned = agents.scanned(request.session, request.where)
    whole = offer(scanned, smart_options(None, acting(instructions)), request.where, most=MAX_PIECES)
    count = sum(len(part.numbers) for part in parts(whole)[:1])
    left = len(whole.candidates) - count
    return replace(whole, candidates=whole.candidates[:count], unshown=whole.unshown + left)


def _shown(request: Request, own: ForkedModel, offered: Offer) -> TriggerAnswer:
    """What the model chose, with the question whether to write it."""
    took = [f"it took {own.words}"] if own.words else []
    _kept(request, offered)
    try:
        chosen = ask(own, offered, "", LIMIT, lambda _number, _count: None)
    except HeadlessFailed as error:
        raise HeadlessFailed("; ".join([error.message, *took]), _in_shell(request)) from error
    planned = smart.plan(offered, [*of_rules(offered), *chosen.verdicts], request.where)
    if not planned.trim.pays:
        return show(no_use_card("\n".join([brief(planned.trim), *took]), request.trigger.name("handoff")))
    _keep(request, _note(offered, chosen.verdicts), KIND)
    _keep(request, request.text, confirmations.TRIM)
    notes = [*took, *preview.warnings(planned, chosen), *remarks(planned.trim)[-1:]]
    rows = [*totals(planned.trim), *preview.largest(planned, own.name), *notes]
    return TriggerAnswer("", str, "\n".join(rows))


def _keep(request: Request, words: str, kind: str) -> None:
    """Keep a question. HeadlessFailed where that can't be done."""
    try:
        confirmations.store_question(Question(request.session_id, words, time.time(), kind=kind))
    except OSError as error:
        message = f"The answer can't be waited for ({error.strerror})"
        raise HeadlessFailed(message, _in_shell(request)) from error


def _kept(request: Request, offered: Offer) -> list[list[Any]]:
    """The verdicts that are kept on this very offer. PlanOutdated where it is another one."""
    note = confirmations.find_question(request.session_id, KIND)
    kept = json.loads(note.options) if note else {}
    if kept.get("offer") != _seal(offered):
        raise PlanOutdated(CHANGED, f"To ask anew: {request.typed_name} --smart")
    verdicts: list[list[Any]] = kept["verdicts"]
    return verdicts


def _note(offered: Offer, verdicts: Sequence[Verdict]) -> str:
    """What is kept of an offer and the verdicts on it."""
    return json.dumps({"offer": _seal(offered), "verdicts": [one._replace(rationale="") for one in verdicts]})


def _seal(offered: Offer) -> str:
    """What is the same for the same contents under the same numbers."""
    judged = [of_model(offered, one.number, "", "") for one in offered.candidates]
    return digest_of([list(verdict) for verdict in (*of_rules(offered), *judged)])


def _in_shell(request: Request) -> str:
    wish = request.text.partition(" ")[2].strip()
    keep = f" -p {shlex.quote(wish)}" if wish and not wish.startswith("-") else ""
    return f"In a shell a model is asked for it: resume-hooks trim --smart {request.session_id}{keep}"
