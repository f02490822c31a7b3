"""Answer ``>mark`` and ``>back``: set a mark, and go back to it with a report.

Invariants: a mark is replaced only if the user answers exactly ``yes``, and at most one child is
created from a mark.
"""

from __future__ import annotations

import contextlib
import time

from resume_hooks.derive.child.existing_child import find_existing_child, lock_parent
from resume_hooks.derive.outcome import (
    AnyOpenedSession,
    OpenedSession,
    Outcome,
    Report,
    make_text_report,
)
from resume_hooks.errors import MarkInSubagent, NothingToMark, UsageError
from resume_hooks.hooks import confirmations, pending_handoff
from resume_hooks.hooks.confirmations import StoredQuestion
from resume_hooks.hooks.request import Request, make_missing_transcript_error
from resume_hooks.hooks.time_limit import time_limit
from resume_hooks.parts.marks import cards, state
from resume_hooks.parts.marks.state import PlacedMark, make_mark_at_end
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.system.text import plain_text

YES_ARGUMENT, CANCEL_ARGUMENT = "yes", "cancel"
QUESTION_FILE_PREFIX = "checkpoint"
"""The prefix of the names of files that store questions. The names of files that store marks start
with ``mark-``."""


def answer_request(request: Request) -> Outcome:
    """Set the session's mark, or go back to it. Raise ResumeHooksError if this is impossible."""
    if request.is_in_subagent:
        raise MarkInSubagent
    if request.trigger.verb == "back":
        if request.path is None:
            return make_text_report(cards.format_no_mark_card(request.trigger))
        with lock_parent(request.session, request.where):
            return _go_back(request)
    if request.path is None:
        raise make_missing_transcript_error(NothingToMark, "There is nothing to mark")
    session = request.session
    if request.text.lower() == CANCEL_ARGUMENT:
        return _cancel_mark(session, request)
    if request.text.lower() == YES_ARGUMENT:
        return _replace_mark(session, request)
    return _set_mark(session, request)


def _set_mark(session: SessionFile, request: Request) -> Report:
    placed_mark = _make_mark_within_time_limit(session, request.text, request)
    active_mark = state.find_mark(session.session_id)
    if active_mark is not None and not active_mark.is_same_as(placed_mark.mark):
        storage_error = ""
        try:
            confirmations.store_question(
                StoredQuestion(
                    session.session_id,
                    placed_mark.mark.goal,
                    time.time(),
                    kind=QUESTION_FILE_PREFIX,
                )
            )
        except OSError as error:
            storage_error = confirmations.describe_storage_error(error)
        return make_text_report(
            cards.format_replacement_question(
                active_mark, placed_mark.mark.goal, storage_error, request.trigger
            )
        )
    if active_mark is None:
        state.save_mark(placed_mark.mark)
    else:
        placed_mark = placed_mark._replace(mark=active_mark)
    return make_text_report(
        cards.format_mark_card(
            placed_mark,
            request.trigger,
            has_replaced_mark=False,
            is_already_set=active_mark is not None,
        )
    )


def _cancel_mark(session: SessionFile, request: Request) -> Report:
    """Discard an open question about replacing the mark. If there is none, delete the mark."""
    question = confirmations.find_question(session.session_id, QUESTION_FILE_PREFIX)
    had_question = (
        confirmations.consume_question(session.session_id, QUESTION_FILE_PREFIX)
        and question is not None
        and question.is_open
    )
    active_mark = state.find_mark(session.session_id)
    if not had_question:
        state.clear_mark(session.session_id)
    return make_text_report(
        cards.format_cancelled_card(active_mark, request.trigger, had_question=had_question)
    )


def _replace_mark(session: SessionFile, request: Request) -> Report:
    """Replace the mark with one at the current end of the session, after the user typed ``>mark yes``.

    The new mark has the goal that the question showed. If no question is open, the mark stays, and
    the report says so.
    """
    question = confirmations.find_question(session.session_id, QUESTION_FILE_PREFIX)
    if question is None or not question.is_open:
        active_mark = state.find_mark(session.session_id)
        return make_text_report(
            cards.format_no_question_card(
                active_mark, request.trigger, is_expired=question is not None
            )
        )
    placed_mark = _make_mark_within_time_limit(session, question.options, request)
    state.save_mark(placed_mark.mark)
    confirmations.consume_question(session.session_id, QUESTION_FILE_PREFIX)
    return make_text_report(
        cards.format_mark_card(
            placed_mark, request.trigger, has_replaced_mark=True, is_already_set=False
        )
    )


def _make_mark_within_time_limit(session: SessionFile, goal: str, request: Request) -> PlacedMark:
    with time_limit(request.command):
        return make_mark_at_end(session, goal)


def _go_back(request: Request) -> AnyOpenedSession | Report:
    mark = state.wait_for_mark(request.session_id)
    if mark is None:
        existing_child = _reopen_existing_child(request, plain_text(request.text).strip())
        if existing_child is not None:
            return existing_child
        # Imported here because setting a mark does not need the code for forks.
        from resume_hooks.parts.marks.fork_point import find_fork_point

        with time_limit(request.command):
            mark = find_fork_point(request.session, request.where)
        if mark is None:
            existing_child = _reopen_existing_child(request)
            return existing_child or make_text_report(cards.format_no_mark_card(request.trigger))
    # Imported here because only ``back`` needs it.
    from resume_hooks.parts.marks import plan_back

    if not mark.left_parent_id and not plain_text(request.text).strip():
        raise UsageError(
            plan_back.EMPTY_REPORT_MESSAGE,
            (
                f"Type the report after the command, for example: {request.typed_name} what you found "
                "out and what came of it"
            ),
        )
    plan, receipt = plan_back.go_back(request.session, mark, request.text, request.caller())
    with contextlib.suppress(OSError):
        # If an older question were still open, answering it with yes would set a new mark.
        confirmations.consume_question(request.session_id, QUESTION_FILE_PREFIX)
        # If a handoff stayed pending, /clear would continue the conversation that the user has just
        # left.
        pending_handoff.consume_handoffs_of_parent(request.session_id)
    return OpenedSession(receipt, plan.child, "back", cards.format_child_lines(receipt, plan))


def _reopen_existing_child(request: Request, report: str = "") -> AnyOpenedSession | None:
    """Return an answer that opens the child that the last ``>back`` created from the same report.

    Return None if there is no such child, or if it was deleted or continued.
    """
    existing_child = find_existing_child(request.session, "back", request.where, report=report)
    if existing_child is None:
        return None
    facts = cards.describe_repeated_back(request.trigger)
    remark = f"No new session was created. This is the session from your last {request.typed_name}."
    return OpenedSession(existing_child, None, "already back", facts, remark)
