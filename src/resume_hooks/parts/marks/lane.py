"""``>mark`` and ``>back``: a mark, and the way back to it with a report.

Invariant: a mark is replaced on the exact word alone, and one mark makes one child at most.
"""

from __future__ import annotations

import contextlib
import time

from resume_hooks.derive.child.existing import existing_child, one_at_a_time
from resume_hooks.errors import InSubagent, NothingToMark, UsageError
from resume_hooks.hooks import confirmations, pending_handoff
from resume_hooks.hooks.confirmations import Question
from resume_hooks.hooks.request import Request, TriggerAnswer, show, time_limit, without_transcript
from resume_hooks.parts.marks import cards, state
from resume_hooks.parts.marks.state import Placed, place
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.system.text import plain

YES, CANCEL = "yes", "cancel"
AGAIN = "checkpoint"
"""The kind of our questions, which names their files: ``mark-`` is that of the marks themselves."""


def answer(request: Request) -> TriggerAnswer:
    """Mark the place, or go back to it. Raises ResumeHooksError."""
    if request.in_subagent:
        raise InSubagent
    if request.trigger.verb == "back":
        if request.path is None:
            return show(cards.none_card(request.trigger))
        with one_at_a_time(request.session, request.where):
            return _back(request)
    if request.path is None:
        raise without_transcript(NothingToMark, "There is nothing to mark")
    session = request.session
    if request.text.lower() == CANCEL:
        return _cancel(session, request)
    return _replace(session, request) if request.text.lower() == YES else _set(session, request)


def _set(session: SessionFile, request: Request) -> TriggerAnswer:
    placed = _placed(session, request.text, request)
    active = state.find(session.session_id)
    if active is not None and not active.is_at(placed.mark):
        unkept = ""
        try:
            confirmations.store_question(Question(session.session_id, placed.mark.goal, time.time(), kind=AGAIN))
        except OSError as error:
            unkept = f"A yes can't be waited for ({error.strerror}). In a shell: {request.command} --yes"
        return show(cards.question_card(active, placed.mark.goal, unkept, request.trigger))
    if active is None:
        state.keep(placed.mark)
    else:
        placed = placed._replace(mark=active)
    return show(cards.set_card(placed, request.trigger, replaced=False, already=active is not None))


def _cancel(session: SessionFile, request: Request) -> TriggerAnswer:
    """Leave the mark where a question was to replace it, else forget it."""
    question = confirmations.find_question(session.session_id, AGAIN)
    asked = confirmations.consume_question(session.session_id, AGAIN) and question is not None and question.is_open
    active = state.find(session.session_id)
    if not asked:
        state.clear(session.session_id)
    return show(cards.cancelled_card(active, request.trigger, asked=asked))


def _replace(session: SessionFile, request: Request) -> TriggerAnswer:
    """Act on a yes: the goal is that of the question, the place the one where it is answered."""
    question = confirmations.find_question(session.session_id, AGAIN)
    if question is None or not question.is_open:
        active = state.find(session.session_id)
        return show(cards.unasked_card(active, request.trigger, expired=question is not None))
    placed = _placed(session, question.options, request)
    state.keep(placed.mark)
    confirmations.consume_question(session.session_id, AGAIN)
    return show(cards.set_card(placed, request.trigger, replaced=True, already=False))


def _placed(session: SessionFile, goal: str, request: Request) -> Placed:
    with time_limit(request.command):
        return place(session, goal)


def _back(request: Request) -> TriggerAnswer:
    mark = state.settled(request.session_id)
    if mark is None:
        if (standing := _standing(request, plain(request.text).strip())) is not None:
            return standing
        # What finds a fork's place, and what a child is written and checked with, is nothing to a mark.
        from resume_hooks.parts.marks.fork_point import fork_point

        with time_limit(request.command):
            mark = fork_point(request.session, request.where)
        if mark is None:
            return _standing(request) or show(cards.none_card(request.trigger))
    from resume_hooks.derive.child.write import write
    from resume_hooks.parts.marks import back

    if not mark.left and not plain(request.text).strip():
        raise UsageError(
            back.EMPTY, f"Type it after the command: {request.typed_name} what you found out and what came of it"
        )
    with time_limit(request.command):
        decided = back.plan(request.session, mark, request.text, request.where)
    # Outside the limit: what is written is never cut in two.
    with state.used(mark):
        receipt = write(decided.child, request.where)
    with contextlib.suppress(OSError):
        confirmations.consume_question(request.session_id, AGAIN)  # a yes to an older question would set one anew
        pending_handoff.retire_handoffs_of(request.session_id)  # /clear would lead to what was just left
    return TriggerAnswer(
        receipt.in_client,
        lambda copied: cards.back_card(receipt, copied, decided, slash=request.slash),
    )


def _standing(request: Request, report: str = "") -> TriggerAnswer | None:
    """The child that the last ``>back`` made, with this report; None where there is none, or somebody went on."""
    standing = existing_child(request.session, "back", request.where, report=report)
    return standing and TriggerAnswer(
        standing.in_client,
        lambda copied: cards.standing_card(standing, copied, request.trigger, slash=request.slash),
        remark=f"Nothing new was made: this is the session from your last {request.typed_name}.",
    )
