"""``fork``: a copy of a session's live conversation, whole or up to a point, here or in another folder."""

from __future__ import annotations

import os

from resume_hooks.cli.child import caller_of, print_child, receipt_text, require_client
from resume_hooks.cli.options import current_folder, locate_parent, time_of_option
from resume_hooks.cli.verbs.children import ForkOptions
from resume_hooks.cli.with_fields import With
from resume_hooks.derive import cut_point
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.cut_point import (
    CutAtRecord,
    CutAtTurn,
    CutBeforeCompaction,
    CutBeforeInstant,
    CutSelector,
)
from resume_hooks.derive.fork import ForkPlan
from resume_hooks.derive.verbs.fork import ForkSpec
from resume_hooks.derive.verbs.fork import fork as make_fork
from resume_hooks.errors import UsageError
from resume_hooks.sessions.record_references import Reference
from resume_hooks.sessions.session import Session


def fork(options: ForkOptions) -> None:
    """Create the copy."""
    options.refuse_together("here", "home", "output_dir")
    home = current_folder() if options.here else None
    if options.home is not None:
        home = os.path.join(current_folder(), os.path.expanduser(options.home))
    require_client(options)
    session, cut = _session_and_cut(options)
    outcome = make_fork(session, ForkSpec(cut, home, options.to or ""), caller_of(options))
    decided, made = outcome.plan, outcome.receipt
    cut_there = None
    if decided.cut:
        last = f"{session.session_id}:{decided.cut.last.number}"
        cut_there = With(decided.cut, {"reference": last})
    print_child(options, made, {"cut": cut_there}, lambda: _fork_text(decided, made))


def _session_and_cut(options: ForkOptions) -> tuple[Session, CutSelector | None]:
    """Return the session and its cut point, or None for no cut."""
    options.refuse_together(
        "at", "before", "turn", "before_compaction", remedy="A session is cut once."
    )
    if options.at is not None:
        at = cut_point.parse_cut(options.at)
        if not isinstance(at, Reference):
            return options.locate_parent(), at
        session = locate_parent(at.session, options.where)
        if options.locator is not None and options.locate_parent().original != session.original:
            raise UsageError(
                f"--at names another session than '{options.locator}'", "Leave one of them out."
            )
        return session, CutAtRecord(at.record)
    if options.before_compaction:
        return options.locate_parent(), CutBeforeCompaction()
    if options.turn is not None:
        return options.locate_parent(), CutAtTurn(options.turn)
    session = options.locate_parent()
    if options.before is not None:
        return session, CutBeforeInstant(time_of_option(options.before))
    return session, None


def _fork_text(decided: ForkPlan, made: Receipt) -> str:
    facts: list[tuple[str, object]] = []
    if decided.cut is not None:
        if decided.cut.turn:
            turn = f", in turn {decided.cut.turn}"
        else:
            turn = ""
        facts.append(
            ("cut", f"{decided.cut.asked}; the last record kept is {decided.cut.last.number}{turn}")
        )
    if decided.relocation is not None:
        facts.append(("home", f"{decided.relocation.new} (was {decided.relocation.old})"))
    return receipt_text(made, facts)
