"""``rollover``: a new session that holds the lineage of this one; ``summary`` adds what a model says of it."""

from __future__ import annotations

from resume_hooks.derive import agents
from resume_hooks.derive.fresh_child import RolloverPlan
from resume_hooks.derive.outcome import Nothing, Opened
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.sessions.session_files import SessionFile


def rollover_quick(
    parent: SessionFile, caller: Caller
) -> Opened[RolloverPlan] | Nothing[RolloverPlan]:
    """Make a child that holds the lineage alone; no model is asked. NothingToHandOff as for a handoff."""
    with caller.time_limit():
        plan = agents.fresh(parent, caller.where, output_dir=caller.output_dir)
    receipt = caller.write(plan)
    if not receipt.written:
        return Nothing(receipt, plan)
    return Opened(receipt, plan, "rolled over")
