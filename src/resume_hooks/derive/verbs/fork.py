"""``fork``: a copy of a session's live conversation, whole or cut, here, in another folder or for another agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.derive import agents
from resume_hooks.derive.outcome import NothingWritten, OpenedSession, format_first_line
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.sessions.session import Session

if TYPE_CHECKING:
    from resume_hooks.derive.cut_point import CutSelector
    from resume_hooks.derive.fork import ForkPlan


class ForkSpec(NamedTuple):
    """The options of a fork: where to ``cut`` the conversation, the new ``home`` folder, the target agent.

    The default is a fork of the whole conversation, in the session's own folder, for its own agent.
    """

    cut: CutSelector | None = None
    home: str | None = None
    to: str = ""


WHOLE = ForkSpec()


def fork(
    session: Session, spec: ForkSpec, caller: Caller
) -> OpenedSession[ForkPlan] | NothingWritten[ForkPlan]:
    """Write a fork. Raises the errors of ``agents.plan_fork`` and of writing a child."""
    with caller.time_limit():
        plan = agents.plan_fork(
            session,
            caller.where,
            cut=spec.cut,
            home=spec.home,
            output_dir=caller.output_dir,
            to=spec.to,
        )
    receipt = caller.write(plan)
    if not receipt.written:
        return NothingWritten(receipt, plan)
    facts = ("carries the whole conversation",) if plan.cut is None else ()
    return OpenedSession(receipt, plan, "forked", facts, remark=format_first_line(receipt))
