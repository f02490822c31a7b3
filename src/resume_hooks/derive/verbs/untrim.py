"""``untrim``: create a child of a trimmed session, with the original contents restored."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from resume_hooks.derive import agents
from resume_hooks.derive.outcome import NothingWritten, OpenedSession, format_remark_for_new_session
from resume_hooks.derive.untrim import TrimmedSession, UntrimPlan, scan_trimmed_session
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.session import Session


class UntrimSpec(NamedTuple):
    """The options of an untrim.

    If ``restores_all`` is true, all trimmed records are restored. Otherwise, only the records with
    these ``line_numbers`` are restored. If ``strict`` is true and an original is missing, no child
    is written.
    """

    restores_all: bool = True
    line_numbers: tuple[int, ...] = ()
    strict: bool = False


FULL_UNTRIM_SPEC = UntrimSpec()


def untrim(
    session: Session, spec: UntrimSpec, caller: Caller
) -> OpenedSession[UntrimPlan] | NothingWritten[UntrimPlan]:
    """Write a child with the original contents, and return the outcome.

    If the session has no trimmed contents, the outcome states this as the reason. Raises UsageError
    if ``spec`` selects no records.
    """
    with caller.time_limit():
        trimmed_session = scan_trimmed_session(session)
        count = len(trimmed_session.trimmed_nodes)
        if count and not (spec.restores_all or spec.line_numbers):
            records = "1 record is" if count == 1 else f"{count:,} records are"
            raise UsageError(
                f"{records} trimmed. Which ones do you want to restore?",
                "Give --all, or --record N for one record.",
            )
        plan = plan_untrim(
            trimmed_session,
            caller.where,
            spec.line_numbers or None,
            strict=spec.strict,
            output_dir=caller.output_dir,
        )
    receipt = caller.write_child(plan)
    if not receipt.written:
        return NothingWritten(
            receipt,
            plan,
            reason=trimmed_session.make_nothing_to_trim_error() if plan.is_child_unneeded else None,
        )
    facts = [*plan.facts]
    if plan.context_after.compacts_at_once:
        facts.append("note: the child would be compacted at once")
    remark = format_remark_for_new_session(receipt)
    return OpenedSession(receipt, plan, "untrimmed", tuple(facts), remark)


def plan_untrim(
    trimmed_session: TrimmedSession,
    where: Where,
    line_numbers: Collection[int] | None = None,
    *,
    strict: bool = False,
    output_dir: str | None = None,
) -> UntrimPlan:
    """Plan an untrimmed child with the writer of the session's agent.

    The arguments and errors are those of ``derive.untrim.plan_untrim``.
    """
    writer = agents.load_writer_for_child(trimmed_session.session, "", where)
    return writer.plan_untrim(trimmed_session, line_numbers, strict=strict, output_dir=output_dir)
