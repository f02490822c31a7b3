"""``/trim --smart`` inside the client: the session's own model chooses while the API still caches the session.

The trim is written after the user confirms the choices.

Invariant: no other model is asked. The model's choices only count while the session offers exactly
the same contents, and only the trim that was shown to the user is written.
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
from resume_hooks.derive.model.forked import PROGRESS_TEXT, ForkedModel
from resume_hooks.derive.outcome import Outcome, Question, Report, Waiting, report_on_text
from resume_hooks.derive.trim.plan import TrimPlan, format_card, format_totals, list_remarks
from resume_hooks.errors import HeadlessFailed, NothingToTrim, PlanOutdated, UsageError
from resume_hooks.hooks import confirmations
from resume_hooks.hooks.confirmations import StoredQuestion
from resume_hooks.hooks.request import Request, time_limit
from resume_hooks.hooks.trim import not_worthwhile_card
from resume_hooks.parts.smart_trim import plan as smart
from resume_hooks.parts.smart_trim import preview
from resume_hooks.parts.smart_trim.ask import (
    MAX_PIECES,
    ModelAnswer,
    ask_model_about_offer,
    split_offer,
    task_text,
)
from resume_hooks.parts.smart_trim.offer import (
    Offer,
    content_digest,
    make_offer,
    rules_for_instructions,
    smart_options,
)
from resume_hooks.parts.smart_trim.plan import KIND, Verdict, model_verdict, rule_verdicts
from resume_hooks.shared_values import MODEL_SECONDS
from resume_hooks.system.invocation import shell_command

PLANNING_SECONDS = 10.0
"""The maximum number of seconds for reading the session and making the offer."""

READING_NOTE = "looking for what can go"
CONVERSATION_NOTE = (
    "The conversation is the one above, all of it; the material says which of its contents "
    "have which numbers."
)
NO_OPTIONS = "Here --smart takes plain words, not options"
NO_MODEL = "No model is available here"
NOT_ASKED = "This session's own model was not asked: "
SESSION_CHANGED = "The session has changed since its model was asked, so nothing was written"


def answer_by_own_model(request: Request, instructions: str) -> Outcome:
    """Ask the session's own model for its choices, or ask the user to confirm them.

    Raise ResumeHooksError if this fails.
    """
    if instructions.startswith("-"):
        raise UsageError(NO_OPTIONS, _shell_remedy(request))
    if request.can_wait:
        return Waiting(READING_NOTE)
    session, model = request.session, ForkedModel(request.own_model_report or {})
    if request.own_model_report is None:
        raise UsageError(NO_MODEL, _shell_remedy(request))
    cached = model.cached(session.path)
    if not (model.asked or cached):
        setting = settings.load_settings(request.where)["summary_model"]
        if setting.source == "default":
            why = "its cache is cold"
        else:
            why = f"summary_model names {setting.value}"
        raise HeadlessFailed(f"{NOT_ASKED}{why}", _shell_remedy(request))
    with time_limit(shell_command(f"trim --smart {request.session_id}"), PLANNING_SECONDS):
        offer = _make_single_call_offer(request, instructions)
        if model.asked:
            return _show_choices(request, model, offer)
        # raises an error if the session cannot be a parent
        agents.draft_child(session, KIND, request.where, None)
        parts = split_offer(offer)
    if not parts:
        raise NothingToTrim(
            "There is nothing for a model to choose", f"By rules alone: {request.typed_name}"
        )
    # otherwise a yes given before the next question would answer an older question
    confirmations.consume_question(request.session_id)
    _store_question(request, _verdicts_note(offer, ()), KIND)
    prompt = forked.forked_prompt(
        f"{task_text(instructions)}\n\n{CONVERSATION_NOTE}", parts[0].text, ModelAnswer
    )
    return Waiting(PROGRESS_TEXT.format(cached=cached), prompt)


def plan_decided_trim(request: Request, instructions: str) -> TrimPlan:
    """Return the trim that was shown to the user. Raise PlanOutdated if the session has changed."""
    offer = _make_single_call_offer(request, instructions)
    verdicts = []
    for record, address, *words in _read_stored_verdicts(request, offer):
        verdicts.append(Verdict(record, tuple(address), *words))
    return smart.plan_smart_trim(offer, [*rule_verdicts(offer), *verdicts], request.where).trim


def _make_single_call_offer(request: Request, instructions: str) -> Offer:
    """Return an offer with the contents that rules drop, and the largest contents that fit into one call."""
    scanned = agents.scan_for_trim(request.session, request.where)
    offer = make_offer(
        scanned,
        smart_options(None, rules_for_instructions(instructions)),
        request.where,
        most=MAX_PIECES,
    )
    count = sum(len(part.numbers) for part in split_offer(offer)[:1])
    omitted = len(offer.candidates) - count
    return replace(offer, candidates=offer.candidates[:count], unshown=offer.unshown + omitted)


def _show_choices(request: Request, model: ForkedModel, offer: Offer) -> Question | Report:
    """Show the model's choices, and ask the user whether to write the trim."""
    usage_notes = [f"it took {model.words}"] if model.words else []
    _read_stored_verdicts(request, offer)
    try:
        result = ask_model_about_offer(
            model, offer, "", MODEL_SECONDS, lambda _number, _count: None
        )
    except HeadlessFailed as error:
        raise HeadlessFailed(
            "; ".join([error.message, *usage_notes]), _shell_remedy(request)
        ) from error
    smart_plan = smart.plan_smart_trim(
        offer, [*rule_verdicts(offer), *result.verdicts], request.where
    )
    if not smart_plan.trim.pays:
        return report_on_text(
            not_worthwhile_card(
                "\n".join([format_card(smart_plan.trim), *usage_notes]),
                request.trigger.name("handoff"),
            )
        )
    _store_question(request, _verdicts_note(offer, result.verdicts), KIND)
    _store_question(request, request.text, confirmations.TRIM_KIND)
    notes = [
        *usage_notes,
        *preview.answer_warnings(smart_plan, result),
        *list_remarks(smart_plan.trim)[-1:],
    ]
    rows = [
        *format_totals(smart_plan.trim),
        *preview.largest_choices(smart_plan, model.name),
        *notes,
    ]
    return Question("\n".join(rows))


def _store_question(request: Request, words: str, kind: str) -> None:
    """Store a question for the user. Raise HeadlessFailed if that fails."""
    try:
        confirmations.store_question(
            StoredQuestion(request.session_id, words, time.time(), kind=kind)
        )
    except OSError as error:
        message = f"The question can't be stored ({error.strerror})"
        raise HeadlessFailed(message, _shell_remedy(request)) from error


def _read_stored_verdicts(request: Request, offer: Offer) -> list[list[Any]]:
    """Return the stored verdicts on this offer. Raise PlanOutdated if they belong to a different offer."""
    note = confirmations.find_question(request.session_id, KIND)
    stored = json.loads(note.options) if note else {}
    if stored.get("offer") != _offer_digest(offer):
        raise PlanOutdated(SESSION_CHANGED, f"To ask again: {request.typed_name} --smart")
    verdicts: list[list[Any]] = stored["verdicts"]
    return verdicts


def _verdicts_note(offer: Offer, verdicts: Sequence[Verdict]) -> str:
    """Return an offer and its verdicts in the format in which they are stored."""
    return json.dumps(
        {
            "offer": _offer_digest(offer),
            "verdicts": [verdict._replace(rationale="") for verdict in verdicts],
        }
    )


def _offer_digest(offer: Offer) -> str:
    """Return a digest of the offer's contents and their numbers."""
    judged = []
    for candidate in offer.candidates:
        judged.append(model_verdict(offer, candidate.number, "", ""))
    return content_digest([list(verdict) for verdict in (*rule_verdicts(offer), *judged)])


def _shell_remedy(request: Request) -> str:
    instructions = request.text.partition(" ")[2].strip()
    if instructions and not instructions.startswith("-"):
        prompt_option = f" -p {shlex.quote(instructions)}"
    else:
        prompt_option = ""
    return (
        f"To ask a model in a shell: resume-hooks trim --smart {request.session_id}{prompt_option}"
    )
