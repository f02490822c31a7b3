"""``/untrim``: a child of a trimmed session in which every original that is left stands again."""

from __future__ import annotations

from resume_hooks.derive import agents
from resume_hooks.derive.child.write import write
from resume_hooks.derive.untrim import read_trimmed
from resume_hooks.hooks.child_cards import child_card, opened
from resume_hooks.hooks.request import Request, TriggerAnswer, time_limit


def answer(request: Request) -> TriggerAnswer:
    """Make the child. Raises ResumeHooksError."""
    parent = request.session
    with time_limit(f"{request.command} --all"):
        reading = read_trimmed(parent)
        decided = agents.untrim(reading, request.where)
    if decided.is_idle:
        raise reading.nothing
    receipt = write(decided, request.where)
    facts = decided.facts
    if decided.after.compacts_at_once:
        facts.append("note: it would be compacted at once")
    return TriggerAnswer(
        receipt.in_client,
        lambda copied: child_card("untrimmed", receipt, copied, facts, slash=request.slash),
        remark=opened(receipt),
    )
