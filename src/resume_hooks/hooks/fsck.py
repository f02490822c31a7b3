"""The answer to a request that the API refused: the session's defect, and a repaired copy if that helps.

Invariant: an error that is not about the form of the conversation gets an empty answer, before any
file is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from resume_hooks.derive.child.write import planned_receipt, write_child
from resume_hooks.derive.outcome import (
    AnyOpenedSession,
    OpenedSession,
    Outcome,
    Question,
    report_on_text,
)
from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks.request import Request, time_limit
from resume_hooks.maintenance.fsck import repair
from resume_hooks.maintenance.fsck.findings import Defect
from resume_hooks.maintenance.fsck.messages import defects_behind, findings_of_kinds
from resume_hooks.maintenance.fsck.repair import RepairPlan
from resume_hooks.system.text import collapse_line

LIMIT = 5.0
"""Seconds for reading. The module waits 15, a prompt does not, and writing takes as long as reading."""

STATUS = "400"
"""The status in every error that the module reports.

Any other text is the answer to a question, or was typed instead of one.
"""

FRESH = "opens a fresh session without the refused messages."
ROW = 100  # characters of a finding's text


def answer(request: Request) -> Outcome:
    """Ask about a refused request, or act on the user's answer.

    Raise ResumeHooksError if the answer was yes.
    """
    handoff = request.trigger.name("handoff")
    fresh = f"{handoff} {FRESH}"
    if request.text == "yes":
        return _answer_with_repair(request)
    if STATUS not in request.text:
        return report_on_text(
            f"This session stays as it is. Later: {handoff}, or in a shell: "
            f"{request.command} --repair"
        )
    kinds = defects_behind(request.text)
    if not kinds:
        return report_on_text("")
    try:
        decided = _plan_repair_of_request(request)
    except ResumeHooksError as error:
        return report_on_text(
            f"The API refuses this session. It could not be checked: {error.message}. {fresh}"
        )
    found = findings_of_kinds(decided.report, kinds)
    if not found:
        return report_on_text(
            "The API refuses this session, and its file has no defect that a repair "
            f"would fix. {fresh}"
        )
    return Question(_repair_question(decided, found))


def _plan_repair_of_request(request: Request) -> RepairPlan:
    with time_limit(f"{request.command} --repair", LIMIT):
        return repair.plan_repair(request.session, request.where)


def _repair_question(decided: RepairPlan, found: list[Defect]) -> str:
    """Return the defect and the contents of the repaired copy, in at most three lines."""
    first = found[0]
    wrong = f"{first.message[:1].lower()}{first.message[1:]} (record {first.record})"
    if decided.lost:
        lost = f"Not kept: {_first_of_rows([*decided.lost])}"
    else:
        lost = "Everything else is kept"
    refused = f"The API refuses this session: {_first_of_rows([wrong, *found[1:]])}."
    return f"{refused}\nA repaired copy: {planned_receipt(decided).sizes}.\n{lost}."


def _first_of_rows(rows: Sequence[object]) -> str:
    more = f", and {len(rows) - 1:,} more" if rows[1:] else ""
    return f"{collapse_line(str(rows[0]), ROW)}{more}"


def _answer_with_repair(request: Request) -> AnyOpenedSession:
    decided = _plan_repair_of_request(request)
    made = write_child(decided, request.where)
    facts = [f"not kept: {collapse_line(each, ROW)}" for each in decided.lost] or [
        "everything was kept"
    ]
    return OpenedSession(made, decided, "repaired", tuple(facts))
