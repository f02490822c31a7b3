"""``>checkpoint`` and ``>rewind``: a mark, and the way back to it with a report.

Invariant: a checkpoint is replaced on the exact word alone, and one checkpoint makes one child at most.
"""

from __future__ import annotations

import contextlib
import time

from resume_hooks.derive import checkpoint
from resume_hooks.derive.checkpoint import Mark, Placed
from resume_hooks.derive.child.existing import standing_rewind
from resume_hooks.errors import NothingToMark
from resume_hooks.hooks import checkpoint_cards, checkpoint_state, confirmations, pending_handoff
from resume_hooks.hooks.answer import Answer, said, time_limit
from resume_hooks.hooks.confirmations import CHECKPOINT, Question
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.paths import Where
from resume_hooks.sessions import locate

YES = "yes"

WAIT = 1.0
"""Seconds that a second ``>rewind`` waits for the child that the first one is making."""

PAUSE = 0.02


def answer(trigger: Trigger, path: str | None, session_id: str, window: int) -> Answer:  # noqa: ARG001 - a lane's form
    """Mark the place in the session at ``path`` (None: no transcript yet), or go back to it.

    Raises ResumeHooksError.
    """
    session = locate.session_file(path) if path is not None else None
    if trigger.verb == "rewind":
        return _rewind(session, session_id, trigger)
    if session is None:
        raise NothingToMark("There is nothing to mark: this session has no transcript yet", "Send a prompt first.")
    if trigger.text.lower() == YES:
        return _replace(session, trigger)
    return _set(session, trigger)


def _set(session: locate.SessionFile, trigger: Trigger) -> Answer:
    placed = _placed(session, trigger.text)
    active = checkpoint_state.find(session.session_id)
    if active is not None and not active.is_at(placed.mark):
        unkept = ""
        try:
            confirmations.keep(Question(session.session_id, placed.mark.goal, time.time(), kind=CHECKPOINT))
        except OSError as error:
            unkept = f"A yes can't be waited for ({error.strerror}). In a shell: {_shell('checkpoint', session)} --yes"
        return said(checkpoint_cards.question_card(active, placed.mark.goal, unkept, slash=trigger.slash))
    if active is None:
        checkpoint_state.keep(placed.mark)
    kept = placed if active is None else placed._replace(mark=active)
    return said(checkpoint_cards.set_card(kept, replaced=False, already=active is not None, slash=trigger.slash))


def _replace(session: locate.SessionFile, trigger: Trigger) -> Answer:
    """The answer to a yes: the goal is that of the question, the place the one where it is answered."""
    question = confirmations.find(session.session_id, CHECKPOINT)
    if question is None or not question.is_open:
        active = checkpoint_state.find(session.session_id)
        return said(checkpoint_cards.unasked_card(active, expired=question is not None, slash=trigger.slash))
    placed = _placed(session, question.options)
    checkpoint_state.keep(placed.mark)
    confirmations.take(session.session_id, CHECKPOINT)
    return said(checkpoint_cards.set_card(placed, replaced=True, already=False, slash=trigger.slash))


def _rewind(session: locate.SessionFile | None, session_id: str, trigger: Trigger) -> Answer:
    mark = _settled(session_id)
    if session is None or mark is None:
        return _without_mark(session, trigger)
    # What a child is written and checked with is nothing to a checkpoint.
    from resume_hooks.derive import rewind  # noqa: PLC0415

    with time_limit(_shell("rewind", session)):
        decided = rewind.plan(session, mark, trigger.text, Where())
    # Outside the limit: what is written is never cut in two.
    with checkpoint_state.used(mark):
        receipt = rewind.write(decided, Where())
    with contextlib.suppress(OSError):
        confirmations.take(session_id, CHECKPOINT)  # a yes to an older question would set one anew
        pending_handoff.retire(session_id)  # /clear would lead to what was just left
    return Answer(
        receipt.in_client,
        lambda copied: checkpoint_cards.rewound_card(
            receipt, copied, mark, decided.report, decided.left_out, slash=trigger.slash
        ),
    )


def _without_mark(session: locate.SessionFile | None, trigger: Trigger) -> Answer:
    """What a rewind gets to which no checkpoint is active: the child that the last one made, or what to do."""
    standing = standing_rewind(session, Where()) if session is not None else None
    if standing is None:
        return said(checkpoint_cards.none_card(trigger.text, slash=trigger.slash))
    return Answer(
        standing.in_client,
        lambda copied: checkpoint_cards.standing_card(standing, copied, trigger.text, slash=trigger.slash),
    )


def _settled(session_id: str) -> Mark | None:
    """The session's checkpoint; a rewind that is at work on it is waited for, since it uses it up."""
    deadline = time.monotonic() + WAIT
    while checkpoint_state.is_used(session_id) and time.monotonic() < deadline:
        time.sleep(PAUSE)
    return checkpoint_state.find(session_id)


def _placed(session: locate.SessionFile, goal: str) -> Placed:
    with time_limit(_shell("checkpoint", session)):
        return checkpoint.place(session, goal)


def _shell(verb: str, session: locate.SessionFile) -> str:
    return f"resume-hooks {verb} {session.session_id}"
