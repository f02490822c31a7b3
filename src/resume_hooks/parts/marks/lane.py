"""Answer ``>mark`` and ``>back``: set a mark, and go back to it with a report.

Invariant: only the exact word replaces a mark, and one mark makes at most one child.
"""

from __future__ import annotations

import contextlib
import time

from resume_hooks.derive.child.existing import find_existing_child, lock_parent
from resume_hooks.derive.outcome import (
    AnyOpenedSession,
    OpenedSession,
    Outcome,
    Report,
    report_on_text,
)
from resume_hooks.errors import InSubagent, NothingToMark, UsageError
from resume_hooks.hooks import confirmations, pending_handoff
from resume_hooks.hooks.confirmations import StoredQuestion
from resume_hooks.hooks.request import Request, missing_transcript_error, time_limit
from resume_hooks.parts.marks import cards, state
from resume_hooks.parts.marks.state import PlacedMark, place_mark
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.system.text import plain_text

YES, CANCEL = "yes", "cancel"
QUESTION_KIND = "checkpoint"
"""The prefix of our questions' file names; the marks themselves use ``mark-``."""


def answer(request: Request) -> Outcome:
    """Mark the current point, or go back to the mark. Raise ResumeHooksError."""
    if request.in_subagent:
        raise InSubagent
    if request.trigger.verb == "back":
        if request.path is None:
            return report_on_text(cards.no_mark_card(request.trigger))
        with lock_parent(request.session, request.where):
            return _go_back(request)
    if request.path is None:
        raise missing_transcript_error(NothingToMark, "There is nothing to mark")
    session = request.session
    if request.text.lower() == CANCEL:
        return _cancel_mark(session, request)
    if request.text.lower() == YES:
        return _replace_mark(session, request)
    return _set_mark(session, request)


def _set_mark(session: SessionFile, request: Request) -> Report:
    placed = _place_mark(session, request.text, request)
    active = state.find_mark(session.session_id)
    if active is not None and not active.is_at(placed.mark):
        storage_error = ""
        try:
            confirmations.store_question(
                StoredQuestion(
                    session.session_id, placed.mark.goal, time.time(), kind=QUESTION_KIND
                )
            )
        except OSError as error:
            storage_error = (
                f"A yes can't be waited for ({error.strerror}). In a shell: {request.command} --yes"
            )
        return report_on_text(
            cards.question_card(active, placed.mark.goal, storage_error, request.trigger)
        )
    if active is None:
        state.save_mark(placed.mark)
    else:
        placed = placed._replace(mark=active)
    return report_on_text(
        cards.set_card(
            placed, request.trigger, has_replaced=False, is_already_set=active is not None
        )
    )


def _cancel_mark(session: SessionFile, request: Request) -> Report:
    """Discard an open question about replacing the mark. If there is none, forget the mark."""
    question = confirmations.find_question(session.session_id, QUESTION_KIND)
    had_question = (
        confirmations.consume_question(session.session_id, QUESTION_KIND)
        and question is not None
        and question.is_open
    )
    active = state.find_mark(session.session_id)
    if not had_question:
        state.clear_mark(session.session_id)
    return report_on_text(cards.cancelled_card(active, request.trigger, asked=had_question))


def _replace_mark(session: SessionFile, request: Request) -> Report:
    """After a yes, set the mark at the current end of the session, with the goal from the question."""
    question = confirmations.find_question(session.session_id, QUESTION_KIND)
    if question is None or not question.is_open:
        active = state.find_mark(session.session_id)
        return report_on_text(
            cards.unasked_card(active, request.trigger, expired=question is not None)
        )
    placed = _place_mark(session, question.options, request)
    state.save_mark(placed.mark)
    confirmations.consume_question(session.session_id, QUESTION_KIND)
    return report_on_text(
        cards.set_card(placed, request.trigger, has_replaced=True, is_already_set=False)
    )


def _place_mark(session: SessionFile, goal: str, request: Request) -> PlacedMark:
    with time_limit(request.command):
        return place_mark(session, goal)


def _go_back(request: Request) -> AnyOpenedSession | Report:
    mark = state.wait_for_mark(request.session_id)
    if mark is None:
        existing = _existing_child_answer(request, plain_text(request.text).strip())
        if existing is not None:
            return existing
        # Setting a mark does not import the code that finds a fork's point or writes a child.
        from resume_hooks.parts.marks.fork_point import find_fork_point

        with time_limit(request.command):
            mark = find_fork_point(request.session, request.where)
        if mark is None:
            existing = _existing_child_answer(request)
            return existing or report_on_text(cards.no_mark_card(request.trigger))
    from resume_hooks.parts.marks import back

    if not mark.left and not plain_text(request.text).strip():
        raise UsageError(
            back.EMPTY_REPORT,
            (
                f"Type it after the command: {request.typed_name} what you found out and "
                "what came of it"
            ),
        )
    plan, receipt = back.go_back(request.session, mark, request.text, request.caller())
    with contextlib.suppress(OSError):
        # otherwise a yes to an older question would set a new mark
        confirmations.consume_question(request.session_id, QUESTION_KIND)
        # otherwise /clear would continue the conversation that the user just left
        pending_handoff.consume_handoffs_of_parent(request.session_id)
    return OpenedSession(receipt, plan.child, "back", cards.back_facts(receipt, plan))


def _existing_child_answer(request: Request, report: str = "") -> AnyOpenedSession | None:
    """Return the answer with the child that the last ``>back`` made from the same report.

    Return None if that child was deleted or continued.
    """
    existing = find_existing_child(request.session, "back", request.where, report=report)
    if existing is None:
        return None
    facts = cards.existing_child_facts(request.trigger)
    remark = f"Nothing new was made: this is the session from your last {request.typed_name}."
    return OpenedSession(existing, None, "already back", facts, remark)
