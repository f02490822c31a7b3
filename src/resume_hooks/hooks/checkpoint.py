"""``>checkpoint`` and ``>rewind``: a mark, and the way back to it with a report.

Invariant: a checkpoint is replaced on the exact word alone, and one checkpoint makes one child at most.
"""

from __future__ import annotations

import contextlib
import os
import time

from resume_hooks.derive import checkpoint
from resume_hooks.derive.checkpoint import Mark, Placed
from resume_hooks.derive.child.existing import standing_rewind
from resume_hooks.errors import NothingToMark
from resume_hooks.hooks import checkpoint_cards as cards
from resume_hooks.hooks import checkpoint_state as marks
from resume_hooks.hooks import confirmations as pending
from resume_hooks.hooks import pending_handoff as handed_off
from resume_hooks.hooks.answer import Answer, said, time_limit
from resume_hooks.hooks.confirmations import CHECKPOINT, Question
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.sessions import locate as store

YES = "yes"

WAIT = 1.0
"""Seconds that a second ``>rewind`` waits for the child that the first one is making."""

PAUSE = 0.02


def answer(trigger: Trigger, path: str | None, session_id: str, window: int) -> Answer:  # noqa: ARG001 - a lane's form
    """Mark the place in the session at ``path`` (None: no transcript yet), or go back to it.

    Raises ResumeHooksError.
    """
    session = store.session_file(path) if path is not None else None
    if trigger.verb == "rewind":
        return _rewind(session, session_id, trigger)
    if session is None:
        raise NothingToMark("There is nothing to mark: this session has no transcript yet", "Send a prompt first.")
    if trigger.text.lower() == YES:
        return _replace(session, trigger)
    return _set(session, trigger)


def _set(session: store.SessionFile, trigger: Trigger) -> Answer:
    placed = _placed(session, trigger.text)
    active = marks.find(session.session_id)
    if active is not None and not active.is_at(placed.mark):
        unkept = ""
        try:
            pending.keep(Question(session.session_id, placed.mark.goal, time.time(), kind=CHECKPOINT))
        except OSError as error:
            unkept = f"A yes can't be waited for ({error.strerror}). In a shell: {_shell('checkpoint', session)} --yes"
        return said(cards.question_card(active, placed.mark.goal, unkept, slash=trigger.slash))
    if active is None:
        marks.keep(placed.mark)
    kept = placed if active is None else placed._replace(mark=active)
    return said(cards.set_card(kept, replaced=False, already=active is not None, slash=trigger.slash))


def _replace(session: store.SessionFile, trigger: Trigger) -> Answer:
    """The answer to a yes: the goal is that of the question, the place the one where it is answered."""
    question = pending.find(session.session_id, CHECKPOINT)
    if question is None or not question.is_open:
        active = marks.find(session.session_id)
        return said(cards.unasked_card(active, expired=question is not None, slash=trigger.slash))
    placed = _placed(session, question.options)
    marks.keep(placed.mark)
    pending.take(session.session_id, CHECKPOINT)
    return said(cards.set_card(placed, replaced=True, already=False, slash=trigger.slash))


def _rewind(session: store.SessionFile | None, session_id: str, trigger: Trigger) -> Answer:
    mark = _settled(session_id)
    if session is None or mark is None:
        return _without_mark(session, trigger)
    # What a child is written and checked with is nothing to a checkpoint.
    from resume_hooks.derive import rewind  # noqa: PLC0415

    with time_limit(_shell("rewind", session)):
        decided = rewind.plan(session, mark, trigger.text, os.environ)
    # Outside the limit: what is written is never cut in two.
    with marks.used(mark):
        receipt = rewind.write(decided, os.environ)
    with contextlib.suppress(OSError):
        pending.take(session_id, CHECKPOINT)  # a yes to an older question would set one anew
        handed_off.retire(session_id)  # /clear would lead to what was just left
    return Answer(
        receipt.in_client,
        lambda copied: cards.rewound_card(receipt, copied, mark, decided.report, decided.left_out, slash=trigger.slash),
    )


def _without_mark(session: store.SessionFile | None, trigger: Trigger) -> Answer:
    """What a rewind gets to which no checkpoint is active: the child that the last one made, or what to do."""
    standing = standing_rewind(session, os.environ) if session is not None else None
    if standing is None:
        return said(cards.none_card(trigger.text, slash=trigger.slash))
    return Answer(
        standing.in_client, lambda copied: cards.standing_card(standing, copied, trigger.text, slash=trigger.slash)
    )


def _settled(session_id: str) -> Mark | None:
    """The session's checkpoint; a rewind that is at work on it is waited for, since it uses it up."""
    deadline = time.monotonic() + WAIT
    while marks.is_used(session_id) and time.monotonic() < deadline:
        time.sleep(PAUSE)
    return marks.find(session_id)


def _placed(session: store.SessionFile, goal: str) -> Placed:
    with time_limit(_shell("checkpoint", session)):
        return checkpoint.place(session, goal)


def _shell(verb: str, session: store.SessionFile) -> str:
    return f"resume-hooks {verb} {session.session_id}"
