"""``/trim --smart`` inside the client: the session's own model chooses while its cache is warm.

The trim is written after the user confirms it.

Invariant: no other model is asked. Its choices count only while the session offers exactly the same
contents, and only the trim that was shown is written.
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
from resume_hooks.derive.trim.plan import TrimPlan, card_text, remark_lines, total_lines
from resume_hooks.errors import HeadlessFailed, NothingToTrim, PlanOutdated, UsageError
from resume_hooks.hooks import confirmations
from resume_hooks.hooks.confirmations import StoredQuestion
from resume_hooks.hooks.request import Request, time_limit
from resume_hooks.hooks.trim import not_worth_card
from resume_hooks.parts.smart_trim import plan as smart
from resume_hooks.parts.smart_trim import preview
from resume_hooks.parts.smart_trim.ask import (
    MAX_PIECES,
    ModelAnswer,
    ask_about_offer,
    parts_of_offer,
    task_text,
)
from resume_hooks.parts.smart_trim.offer import (
    Offer,
    acting_rules,
    digest_of_content,
    make_offer,
    smart_options,
)
from resume_hooks.parts.smart_trim.plan import KIND, Verdict, verdict_of_model, verdicts_of_rules
from resume_hooks.shared_values import MODEL_SECONDS
from resume_hooks.system.invocation import shell_command

PLANNING = 10.0
"""Seconds for reading the session and making the offer."""

READING = "looking for what can go"
ABOVE = (
    "The conversation is the one above, all of it; the material says which of its contents "
    "have which numbers."
)
NO_OPTIONS = "Here --smart takes plain words, not options"
UNASKED = "No model is available here"
COLD = "This session's own model was not asked: "
CHANGED = "The session has changed since its model was asked, so nothing was written"


def answer_by_own_model(request: Request, instructions: str) -> Outcome:
    """Ask the session's own model, or ask the user about its choices.

    Raise ResumeHooksError on failure.
    """
    if instructions.startswith("-"):
        raise UsageError(NO_OPTIONS, _way_in_shell(request))
    if request.can_wait:
        return Waiting(READING)
    session, own = request.session, ForkedModel(request.forked or {})
    if request.forked is None:
        raise UsageError(UNASKED, _way_in_shell(request))
    cached = own.cached(session.path)
    if not (own.asked or cached):
        named = settings.load_settings(request.where)["summary_model"]
        if named.source == "default":
            why = "its cache is cold"
        else:
            why = f"summary_model names {named.value}"
        raise HeadlessFailed(f"{COLD}{why}", _way_in_shell(request))
    with time_limit(shell_command(f"trim --smart {request.session_id}"), PLANNING):
        offered = _make_one_part_offer(request, instructions)
        if own.asked:
            return _show_choices(request, own, offered)
        agents.draft_child(
            session, KIND, request.where, None
        )  # raises for a session that cannot be a parent
        shown = parts_of_offer(offered)
    if not shown:
        raise NothingToTrim(
            "There is nothing for a model to choose", f"By rules alone: {request.typed_name}"
        )
    # so that a yes in the meantime does not answer an older question
    confirmations.consume_question(request.session_id)
    _keep_question(request, _note_of_verdicts(offered, ()), KIND)
    asked = forked.forked_prompt(
        f"{task_text(instructions)}\n\n{ABOVE}", shown[0].text, ModelAnswer
    )
    return Waiting(PROGRESS_TEXT.format(cached=cached), asked)


def plan_decided_trim(request: Request, instructions: str) -> TrimPlan:
    """Return the trim that was shown. Raise PlanOutdated if the session has changed."""
    offered = _make_one_part_offer(request, instructions)
    verdicts = []
    for record, address, *words in _kept_verdicts(request, offered):
        verdicts.append(Verdict(record, tuple(address), *words))
    return smart.plan_smart_trim(
        offered, [*verdicts_of_rules(offered), *verdicts], request.where
    ).trim


def _make_one_part_offer(request: Request, instructions: str) -> Offer:
    """Return an offer with the rules' choices and the largest contents that fit into one call."""
    scanned = agents.scan_for_trim(request.session, request.where)
    whole = make_offer(
        scanned, smart_options(None, acting_rules(instructions)), request.where, most=MAX_PIECES
    )
    count = sum(len(part.numbers) for part in parts_of_offer(whole)[:1])
    left = len(whole.candidates) - count
    return replace(whole, candidates=whole.candidates[:count], unshown=whole.unshown + left)


def _show_choices(request: Request, own: ForkedModel, offered: Offer) -> Question | Report:
    """Show the model's choices, and ask whether to write the trim."""
    took = [f"it took {own.words}"] if own.words else []
    _kept_verdicts(request, offered)
    try:
        chosen = ask_about_offer(own, offered, "", MODEL_SECONDS, lambda _number, _count: None)
    except HeadlessFailed as error:
        raise HeadlessFailed("; ".join([error.message, *took]), _way_in_shell(request)) from error
    planned = smart.plan_smart_trim(
        offered, [*verdicts_of_rules(offered), *chosen.verdicts], request.where
    )
    if not planned.trim.pays:
        return report_on_text(
            not_worth_card(
                "\n".join([card_text(planned.trim), *took]), request.trigger.name("handoff")
            )
        )
    _keep_question(request, _note_of_verdicts(offered, chosen.verdicts), KIND)
    _keep_question(request, request.text, confirmations.TRIM)
    notes = [*took, *preview.warnings_on_answer(planned, chosen), *remark_lines(planned.trim)[-1:]]
    rows = [*total_lines(planned.trim), *preview.largest_choices(planned, own.name), *notes]
    return Question("\n".join(rows))


def _keep_question(request: Request, words: str, kind: str) -> None:
    """Store a question to the user. Raise HeadlessFailed if that fails."""
    try:
        confirmations.store_question(
            StoredQuestion(request.session_id, words, time.time(), kind=kind)
        )
    except OSError as error:
        message = f"The question can't be stored ({error.strerror})"
        raise HeadlessFailed(message, _way_in_shell(request)) from error


def _kept_verdicts(request: Request, offered: Offer) -> list[list[Any]]:
    """Return the stored verdicts on exactly this offer. Raise PlanOutdated if they belong to another one."""
    note = confirmations.find_question(request.session_id, KIND)
    kept = json.loads(note.options) if note else {}
    if kept.get("offer") != _seal_of_offer(offered):
        raise PlanOutdated(CHANGED, f"To ask again: {request.typed_name} --smart")
    verdicts: list[list[Any]] = kept["verdicts"]
    return verdicts


def _note_of_verdicts(offered: Offer, verdicts: Sequence[Verdict]) -> str:
    """Return an offer and its verdicts as a note to store."""
    return json.dumps(
        {
            "offer": _seal_of_offer(offered),
            "verdicts": [one._replace(rationale="") for one in verdicts],
        }
    )


def _seal_of_offer(offered: Offer) -> str:
    """Return a digest that is equal for equal contents under the same numbers."""
    judged = []
    for one in offered.candidates:
        judged.append(verdict_of_model(offered, one.number, "", ""))
    return digest_of_content([list(verdict) for verdict in (*verdicts_of_rules(offered), *judged)])


def _way_in_shell(request: Request) -> str:
    wish = request.text.partition(" ")[2].strip()
    if wish and not wish.startswith("-"):
        keep = f" -p {shlex.quote(wish)}"
    else:
        keep = ""
    return f"To ask a model in a shell: resume-hooks trim --smart {request.session_id}{keep}"
