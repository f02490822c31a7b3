"""``>rollover``: create a child with a digest and a model's summary.

If there is no summary, the card says why. Invariant: a model is paid only once for a rollover. If
the user repeats the request without a new prompt, the card shows the same child. If that child has
no summary and no process is writing one, the model is asked again, and its summary is added to the
same child.

In the client, the session's own model writes the summary while the API's cache is warm. The engine
then answers twice: first with the prompt for the model, later with the result.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from functools import partial

from resume_hooks.derive import summary
from resume_hooks.derive.child.existing_child import find_existing_child
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.model.forked import SESSION_MODEL_PROGRESS_TEMPLATE, SessionModel
from resume_hooks.derive.model.headless import choose_model
from resume_hooks.derive.model.port import Model, ModelCalls
from resume_hooks.derive.outcome import AnyOpenedSession, OpenedSession, Outcome, PendingAnswer
from resume_hooks.derive.summary import (
    SummaryResult,
    SummaryRollover,
    format_digest_for_prompt,
    make_material_without_records,
    make_prompt_after_conversation,
)
from resume_hooks.derive.verbs.rollover import make_rollover
from resume_hooks.hooks import hook_state
from resume_hooks.hooks.handoff import prepare_next_clear
from resume_hooks.hooks.request import Request, refuse_option
from resume_hooks.hooks.time_limit import time_limit
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.paths import Where
from resume_hooks.sessions.session import Session
from resume_hooks.shared_values import (
    MODEL_TIMEOUT_SECONDS,
    MODEL_TIMEOUT_TEXT,
    ROLLOVER_TIMEOUT_SECONDS,
)
from resume_hooks.system.processes import read_process_start_time
from resume_hooks.system.text import collapse_line, plain_line

# the time limit in seconds for the card; copying its command to the clipboard may take two seconds
# more
MAX_CARD_SECONDS = ROLLOVER_TIMEOUT_SECONDS - 5.0
# the part of ``MAX_CARD_SECONDS`` that is reserved for writing the summary into the child
SUMMARY_WRITE_SECONDS = 5.0
PLANNING_SECONDS = 10.0  # the time limit in seconds for planning the child with its digest
MAX_FACT_CHARACTERS = 300  # the maximum number of characters of a fact on the card

_NOTE_PREFIX = "rollover-"
SLASH_CLEAR_HINT = (
    "or type /clear in an empty box: the new session has this text (shortened if long)"
)
WAITING_STATUS = f"asking a model for the summary: up to {MODEL_TIMEOUT_TEXT}"
"""The line that the client shows while a model writes the summary."""


UNFINISHED_SUMMARY_FACT = "The summary is still being written."


def answer_request(request: Request) -> Outcome:
    """Roll the session over. Raise ResumeHooksError if no child was created."""
    refuse_option(request.text, "In a shell: resume-hooks rollover --help")
    if request.can_wait:
        return PendingAnswer(WAITING_STATUS)
    deadline = time.monotonic() + MAX_CARD_SECONDS
    parent, own_model = request.session, SessionModel(request.own_model_report or {})
    if not own_model.has_request_result:
        with time_limit(request.command, PLANNING_SECONDS):
            existing_rollover = _find_existing_rollover(parent, request)
        if existing_rollover is not None:
            return existing_rollover
    cached_tokens = (
        0 if own_model.has_request_result else own_model.count_cached_tokens(parent.path)
    )
    costs: list[str] = []

    def ask_for_summary(
        rollover_plan: SummaryRollover, child: Receipt
    ) -> SummaryResult | PendingAnswer:
        writer = os.getppid() if cached_tokens else os.getpid()
        _store_rollover_note(request, child, [UNFINISHED_SUMMARY_FACT], writer_pid=writer)
        if cached_tokens:
            prompt = make_prompt_after_conversation(
                format_digest_for_prompt(rollover_plan.digest), rollover_plan.focus
            )
            return PendingAnswer(
                SESSION_MODEL_PROGRESS_TEMPLATE.format(cached=cached_tokens), prompt
            )
        if request.trigger.is_hooked:
            prepare_next_clear(
                child
            )  # If Esc ends this process, the next /clear still opens the child.
        max_seconds = min(
            MODEL_TIMEOUT_SECONDS, deadline - SUMMARY_WRITE_SECONDS - time.monotonic()
        )
        outcome, lines = _write_summary(rollover_plan, child, max_seconds, own_model, request.where)
        costs.extend(lines)
        return outcome

    caller = request.caller()._replace(
        time_limit=partial(time_limit, request.command, PLANNING_SECONDS)
    )
    outcome = make_rollover(
        parent,
        request.text,
        caller,
        ask_for_summary,
        lambda: _find_unfinished_child(parent, request, own_model),
    )
    if not isinstance(outcome, OpenedSession) or outcome.summary is None:
        return outcome
    facts = _describe_summary(outcome.summary, request, costs)
    if outcome.summary.failure_reason:
        hook_state.consume_note(_rollover_note_name(request))
    else:
        _store_rollover_note(request, outcome.receipt, facts)
    if own_model.has_request_result or outcome.summary.failure_reason:
        remark = "; ".join(fact.removesuffix(".") for fact in facts)
    else:
        remark = ""
    return _add_facts(outcome._replace(remark=remark), facts, request)


def _find_unfinished_child(
    parent: Session, request: Request, own_model: SessionModel
) -> Receipt | None:
    """Return the child of an earlier attempt, if its summary is missing.

    If the session's own model was asked, return the child only if that model has written the
    summary.
    """
    note = hook_state.read_note(_rollover_note_name(request))
    if not own_model.has_request_result and "writer" in note and not _is_writing_interrupted(note):
        return None  # Another process is writing the summary of that child.
    child = summary.find_unfinished_rollover(parent, request.where)
    if child and (not own_model.has_request_result or child.session_id == note.get("child")):
        return child
    return None


def _write_summary(
    rollover_plan: SummaryRollover,
    child: Receipt,
    max_seconds: float,
    own_model: SessionModel,
    where: Where,
) -> tuple[SummaryResult, list[str]]:
    """Let a model write the summary, and return the outcome with the cost of each model.

    If the session's own model was asked, use its answer. If that answer is not valid, ask the usual
    model, unless the time is up.
    """

    def make_model_calls(model: Model) -> ModelCalls:
        return ModelCalls(model, max_seconds, lambda _number, _count: None)

    facts = []
    if own_model.has_request_result:
        outcome = summary.add_summary(
            rollover_plan,
            child,
            make_model_calls(own_model),
            where,
            make_material_without_records(rollover_plan.parent.session_id),
        )
        if own_model.has_timed_out or outcome.costs.model:
            return outcome, [f"it took {own_model.usage_text}"] if own_model.usage_text else []
        cost_text = f", and took {own_model.usage_text}" if own_model.usage_text else ""
        facts.append(
            f"this session's own model gave no usable answer{cost_text}: {outcome.failure_reason}"
        )
    usual_model = choose_model(rollover_plan.parent, where)
    outcome = summary.add_summary(rollover_plan, child, make_model_calls(usual_model), where)
    if outcome.costs.description:
        if own_model.has_request_result:
            model_name = outcome.costs.model or usual_model.name
        else:
            model_name = "it"
        facts.append(f"{model_name} took {outcome.costs.description}")
    return outcome, facts


def answer_abandoned_wait(parent: Session, where: Where, trigger: Trigger) -> str:
    """Return the text to show when the user has stopped waiting for a summary.

    The text names the child, and the trigger that asks for the summary again.
    """
    name = f"{_NOTE_PREFIX}{parent.session_id}.json"
    if "writer" in hook_state.read_note(name):
        hook_state.consume_note(name)
    child = summary.find_unfinished_rollover(parent, where)
    retry_trigger = trigger.name_of_verb("rollover")
    if child is None:
        return (
            f"There is no summary, and no session was created. To try again, type {retry_trigger}."
        )
    return (
        f"There is no summary. {child.client_command} opens the new session, which has only the digest; "
        f"to ask for a summary again, type {retry_trigger}."
    )


def _describe_summary(outcome: SummaryResult, request: Request, costs: Sequence[str]) -> list[str]:
    """Return lines about the summary and its ``costs``. Without a summary, say how to ask for one again."""
    if outcome.failure_reason:
        # The client may have opened the child already, so the line names the old session.
        old_session = f"in the old session (/resume {request.session_id})"
        focus_words = f" {request.text}" if request.text else ""
        if request.text:
            focus_option = f" -p {shlex.quote(request.text)}"
        else:
            focus_option = ""
        retry_fact = (
            f"to try again, type {request.typed_name}{focus_words} {old_session}, or in a shell: "
            f"{request.command}{focus_option}"
        )
        return [summary.describe_summary_failure(outcome.failure_reason), *costs, retry_fact]
    check_facts = [outcome.checked_summary.description] if outcome.checked_summary else []
    return [f"it contains a summary by {outcome.costs.model} and a digest", *check_facts, *costs]


def _add_facts(
    outcome: AnyOpenedSession, facts: Sequence[str], request: Request
) -> AnyOpenedSession:
    """Return a rollover's outcome with these facts, and with a hint if ``/clear`` opens the child."""
    short_facts = [collapse_line(plain_line(fact), MAX_FACT_CHARACTERS) for fact in facts]
    if request.trigger.is_hooked and prepare_next_clear(outcome.receipt):
        short_facts.append(SLASH_CLEAR_HINT)
    return outcome._replace(facts=tuple(short_facts))


def _store_rollover_note(
    request: Request, child: Receipt, facts: Sequence[str], *, writer_pid: int = 0
) -> None:
    """Record in a note which child was created for the user's words.

    Without the note, a repeated request would create and pay for another child. ``writer_pid`` is
    the id of the process that is writing the summary: this process or the client. It is 0 if no
    process is writing the summary.
    """
    note: dict[str, object] = {
        "child": child.session_id,
        "asked": request.text[: summary.MAX_FOCUS_CHARACTERS],
        "facts": list(facts),
    }
    if writer_pid:
        note |= {
            "writer": writer_pid,
            "since": read_process_start_time(writer_pid),
            "until": time.time() + MODEL_TIMEOUT_SECONDS + MAX_CARD_SECONDS,
        }
    with contextlib.suppress(OSError):
        hook_state.delete_old_notes(_NOTE_PREFIX)
        hook_state.write_note(_rollover_note_name(request), note)


def _is_writing_interrupted(note: Mapping[str, object]) -> bool:
    """Check whether the process that wrote the summary has ended early, or is out of time."""
    writer, end_time = note.get("writer"), note.get("until")
    has_timed_out = not isinstance(end_time, float) or time.time() > end_time
    return isinstance(writer, int) and (
        has_timed_out or read_process_start_time(writer) != note.get("since")
    )


def _find_existing_rollover(parent: Session, request: Request) -> AnyOpenedSession | None:
    """Return the child of an earlier rollover with the same words, or None if there is none.

    Also return None if that child was continued, or if the session has a new prompt.
    """
    note = hook_state.read_note(_rollover_note_name(request))
    if note.get("asked") != request.text or _is_writing_interrupted(note):
        return None
    receipt = find_existing_child(parent, "rollover", request.where)
    if receipt is None or receipt.session_id != note.get("child"):
        return None
    stored_facts = note.get("facts")
    if isinstance(stored_facts, list):
        facts = [fact for fact in stored_facts if isinstance(fact, str)]
    else:
        facts = []
    return _add_facts(OpenedSession(receipt, None, "already rolled over"), facts, request)


def _rollover_note_name(request: Request) -> str:
    return f"{_NOTE_PREFIX}{request.session_id}.json"
