"""Answer an API error: describe the session's defect, and offer a repaired child if a repair helps.

Invariant: an error that is not about the form of the conversation gets an empty answer, and no file
is read for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from resume_hooks.derive.child.write_child import make_planned_receipt, write_child
from resume_hooks.derive.outcome import (
    AnyOpenedSession,
    OpenedSession,
    Outcome,
    Question,
    make_text_report,
)
from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks.request import Request
from resume_hooks.hooks.time_limit import time_limit
from resume_hooks.maintenance.fsck import repair
from resume_hooks.maintenance.fsck.findings import Defect
from resume_hooks.maintenance.fsck.messages import defects_causing_error, findings_of_kinds
from resume_hooks.maintenance.fsck.repair import RepairPlan
from resume_hooks.system.text import collapse_line

MAX_READING_SECONDS = 5.0
"""Time limit in seconds for reading. The module waits 15 seconds, and writing takes as long as
reading."""

REFUSAL_HTTP_STATUS = "400"
"""The HTTP status of every error that the module reports.

If the text after the trigger does not contain this status, the user typed that text, perhaps to
answer the module's question about repairing the session.
"""

FRESH_SESSION_HINT = "opens a new session without the refused messages."
MAX_FINDING_CHARACTERS = 100  # the maximum number of characters of one finding


def answer_request(request: Request) -> Outcome:
    """Ask whether to repair a session that the API refused, or act on the user's answer.

    Raise ResumeHooksError if the user answered yes and the repair fails.
    """
    handoff_name = request.trigger.name_of_verb("handoff")
    handoff_hint = f"{handoff_name} {FRESH_SESSION_HINT}"
    if request.text == "yes":
        return _answer_with_repair(request)
    if REFUSAL_HTTP_STATUS not in request.text:
        return make_text_report(
            f"The session was not changed. To continue later: {handoff_name}, or in a shell: "
            f"{request.command} --repair"
        )
    kinds = defects_causing_error(request.text)
    if not kinds:
        return make_text_report("")
    try:
        repair_plan = _plan_repair_of_request(request)
    except ResumeHooksError as error:
        return make_text_report(
            f"The API refuses this session. It could not be checked: {error.message}. {handoff_hint}"
        )
    defects = findings_of_kinds(repair_plan.report, kinds)
    if not defects:
        return make_text_report(
            "The API refuses this session, and its file has no defect that a repair "
            f"would fix. {handoff_hint}"
        )
    return Question(_repair_question(repair_plan, defects))


def _plan_repair_of_request(request: Request) -> RepairPlan:
    with time_limit(f"{request.command} --repair", MAX_READING_SECONDS):
        return repair.plan_repair(request.session, request.where)


def _repair_question(repair_plan: RepairPlan, defects: list[Defect]) -> str:
    """Return the question in at most three lines.

    The lines show the defect, the size of the repaired child, and what is lost.
    """
    first_defect = defects[0]
    defect_text = f"{first_defect.message[:1].lower()}{first_defect.message[1:]} (record {first_defect.record_number})"
    if repair_plan.losses:
        loss_text = f"Not kept: {_describe_first_item([*repair_plan.losses])}"
    else:
        loss_text = "The copy keeps everything else"
    refusal = f"The API refuses this session: {_describe_first_item([defect_text, *defects[1:]])}."
    return f"{refusal}\nSize of a repaired copy: {make_planned_receipt(repair_plan).sizes_text}.\n{loss_text}."


def _describe_first_item(rows: Sequence[object]) -> str:
    others_text = f", and {len(rows) - 1:,} more" if rows[1:] else ""
    return f"{collapse_line(str(rows[0]), MAX_FINDING_CHARACTERS)}{others_text}"


def _answer_with_repair(request: Request) -> AnyOpenedSession:
    repair_plan = _plan_repair_of_request(request)
    child = write_child(repair_plan, request.where)
    facts = [
        f"not kept: {collapse_line(loss, MAX_FINDING_CHARACTERS)}" for loss in repair_plan.losses
    ] or ["everything was kept"]
    return OpenedSession(child, repair_plan, "repaired", tuple(facts))
