"""``/trim --smart`` in the client: the session's own model chooses what to replace.

The model is asked while the session is in the API's cache. The trim is written after the user has
confirmed the choices.

Invariant: no other model is asked. The choices are valid only as long as exactly the same pieces of
content would be offered. Only the trim that was shown to the user is written.
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
from resume_hooks.derive.model.forked import SESSION_MODEL_PROGRESS_TEMPLATE, SessionModel
from resume_hooks.derive.outcome import Outcome, PendingAnswer, Question, Report, make_text_report
from resume_hooks.derive.trim.plan import TrimPlan, format_card, format_totals, list_remarks
from resume_hooks.errors import HeadlessFailed, NothingToTrim, PlanOutdated, UsageError
from resume_hooks.hooks import confirmations
from resume_hooks.hooks.confirmations import StoredQuestion
from resume_hooks.hooks.request import Request
from resume_hooks.hooks.time_limit import time_limit
from resume_hooks.hooks.trim import not_worthwhile_card
from resume_hooks.parts.smart_trim import plan as smart
from resume_hooks.parts.smart_trim import preview
from resume_hooks.parts.smart_trim.ask_model import (
    MAX_PIECES_PER_MODEL_CALL,
    ModelAnswer,
    ask_model_about_offer,
    build_call_prompts,
    format_task,
)
from resume_hooks.parts.smart_trim.offered_contents import (
    OfferedContents,
    build_offer,
    build_smart_options,
    hash_content,
    select_rule_names,
)
from resume_hooks.parts.smart_trim.plan import (
    CHILD_KIND,
    Verdict,
    build_model_verdict,
    build_rule_verdicts,
)
from resume_hooks.shared_values import MODEL_TIMEOUT_SECONDS
from resume_hooks.system.invocation import shell_command

SECONDS_RESERVED_FOR_PLANNING = 10.0
"""Number of seconds that are reserved for reading the session and for making the offer."""

PLANNING_PROGRESS_MESSAGE = "looking for content to drop"
CONVERSATION_NOTE = (
    "The conversation is the whole one above; the material shows the number of each content."
)
NO_OPTIONS_MESSAGE = "Here --smart takes plain words, not options"
NO_MODEL_MESSAGE = "No model is available here"
MODEL_NOT_ASKED_MESSAGE_PREFIX = "This session's own model was not asked: "
SESSION_CHANGED_MESSAGE = (
    "The session has changed since the model was asked, so nothing was written"
)


def answer_with_session_model(request: Request, instructions: str) -> Outcome:
    """Ask the session's own model for its choices. If it has answered, ask the user to confirm them.

    Raises ResumeHooksError if this fails.
    """
    if instructions.startswith("-"):
        raise UsageError(NO_OPTIONS_MESSAGE, _format_advice_to_use_shell(request))
    if request.can_wait:
        return PendingAnswer(PLANNING_PROGRESS_MESSAGE)
    session, model = request.session, SessionModel(request.own_model_report or {})
    if request.own_model_report is None:
        raise UsageError(NO_MODEL_MESSAGE, _format_advice_to_use_shell(request))
    cached_tokens = model.count_cached_tokens(session.path)
    if not (model.has_request_result or cached_tokens):
        setting = settings.load_settings(request.where)["summary_model"]
        if setting.source == "default":
            reason = "its cache is cold"
        else:
            reason = f"summary_model names {setting.value}"
        raise HeadlessFailed(
            f"{MODEL_NOT_ASKED_MESSAGE_PREFIX}{reason}", _format_advice_to_use_shell(request)
        )
    with time_limit(
        shell_command(f"trim --smart {request.session_id}"), SECONDS_RESERVED_FOR_PLANNING
    ):
        offer = _build_single_call_offer(request, instructions)
        if model.has_request_result:
            return _build_choices_reply(request, model, offer)
        # This raises an error if a child of this kind cannot be made from the session.
        agents.draft_child(session, CHILD_KIND, request.where, None)
        call_prompts = build_call_prompts(offer)
    if not call_prompts:
        raise NothingToTrim(
            "There is nothing for a model to choose", f"By rules alone: {request.typed_name}"
        )
    # An older question may still be open. Without this line, a ``yes`` that the user types before
    # the next question would answer the older one.
    confirmations.consume_question(request.session_id)
    _store_question(request, _format_verdicts_note(offer, ()), CHILD_KIND)
    prompt = forked.make_prompt_for_session_model(
        f"{format_task(instructions)}\n\n{CONVERSATION_NOTE}", call_prompts[0].text, ModelAnswer
    )
    return PendingAnswer(SESSION_MODEL_PROGRESS_TEMPLATE.format(cached=cached_tokens), prompt)


def plan_confirmed_trim(request: Request, instructions: str) -> TrimPlan:
    """Return the plan that was shown to the user.

    Raises PlanOutdated if the session has changed since then.
    """
    offer = _build_single_call_offer(request, instructions)
    verdicts = []
    for record, address, *words in _read_stored_verdicts(request, offer):
        verdicts.append(Verdict(record, tuple(address), *words))
    return smart.plan_smart_trim(
        offer, [*build_rule_verdicts(offer), *verdicts], request.where
    ).trim_plan


def _build_single_call_offer(request: Request, instructions: str) -> OfferedContents:
    """Return an offer that fits into one call of the model.

    If not all pieces of content fit, the largest are offered.
    """
    trimmable = agents.read_trimmable_session(request.session, request.where)
    offer = build_offer(
        trimmable,
        build_smart_options(None, select_rule_names(instructions)),
        request.where,
        max_candidates=MAX_PIECES_PER_MODEL_CALL,
    )
    candidate_count = sum(len(part.content_numbers) for part in build_call_prompts(offer)[:1])
    omitted_count = len(offer.candidates) - candidate_count
    return replace(
        offer,
        candidates=offer.candidates[:candidate_count],
        omitted_content_count=offer.omitted_content_count + omitted_count,
    )


def _build_choices_reply(
    request: Request, model: SessionModel, offer: OfferedContents
) -> Question | Report:
    """Show the model's choices to the user, and ask whether to write the trim."""
    usage_notes = [f"it took {model.usage_text}"] if model.usage_text else []
    _read_stored_verdicts(request, offer)
    try:
        result = ask_model_about_offer(
            model, offer, "", MODEL_TIMEOUT_SECONDS, lambda _number, _count: None
        )
    except HeadlessFailed as error:
        raise HeadlessFailed(
            "; ".join([error.message, *usage_notes]), _format_advice_to_use_shell(request)
        ) from error
    smart_plan = smart.plan_smart_trim(
        offer, [*build_rule_verdicts(offer), *result.verdicts], request.where
    )
    if not smart_plan.trim_plan.is_worthwhile:
        return make_text_report(
            not_worthwhile_card(
                "\n".join([format_card(smart_plan.trim_plan), *usage_notes]),
                request.trigger.name_of_verb("handoff"),
            )
        )
    _store_question(request, _format_verdicts_note(offer, result.verdicts), CHILD_KIND)
    _store_question(request, request.text, confirmations.TRIM_QUESTION_KIND)
    notes = [
        *usage_notes,
        *preview.list_answer_warnings(smart_plan, result),
        *list_remarks(smart_plan.trim_plan)[-1:],
    ]
    rows = [
        *format_totals(smart_plan.trim_plan),
        *preview.format_largest_model_choices(smart_plan, model.name),
        *notes,
    ]
    return Question("\n".join(rows))


def _store_question(request: Request, question_text: str, kind: str) -> None:
    """Store a question to the user. Raises HeadlessFailed if it cannot be stored."""
    try:
        confirmations.store_question(
            StoredQuestion(request.session_id, question_text, time.time(), kind=kind)
        )
    except OSError as error:
        message = confirmations.describe_storage_error(error)
        raise HeadlessFailed(message, _format_advice_to_use_shell(request)) from error


def _read_stored_verdicts(request: Request, offer: OfferedContents) -> list[list[Any]]:
    """Return the stored verdicts about the contents of ``offer``.

    Raises PlanOutdated if the verdicts belong to a different offer.
    """
    note = confirmations.find_question(request.session_id, CHILD_KIND)
    stored = json.loads(note.options) if note else {}
    if stored.get("offer") != _hash_offer(offer):
        raise PlanOutdated(SESSION_CHANGED_MESSAGE, f"To ask again: {request.typed_name} --smart")
    verdicts: list[list[Any]] = stored["verdicts"]
    return verdicts


def _format_verdicts_note(offer: OfferedContents, verdicts: Sequence[Verdict]) -> str:
    """Return JSON text with the verdicts and the digest of the offer."""
    return json.dumps(
        {
            "offer": _hash_offer(offer),
            "verdicts": [verdict._replace(rationale="") for verdict in verdicts],
        }
    )


def _hash_offer(offer: OfferedContents) -> str:
    """Return a digest of the offered pieces of content and of the numbers that identify them."""
    model_verdicts = []
    for candidate in offer.candidates:
        model_verdicts.append(build_model_verdict(offer, candidate.number, "", ""))
    return hash_content(
        [list(verdict) for verdict in (*build_rule_verdicts(offer), *model_verdicts)]
    )


def _format_advice_to_use_shell(request: Request) -> str:
    instructions = request.text.partition(" ")[2].strip()
    if instructions and not instructions.startswith("-"):
        prompt_option = f" -p {shlex.quote(instructions)}"
    else:
        prompt_option = ""
    return f"To let a model choose, run in a shell: resume-hooks trim --smart {request.session_id}{prompt_option}"
