"""``fork``: a copy of a session's live conversation, whole or up to a point, here or in another folder."""

from __future__ import annotations

import os
from typing import Any

import click

from resume_hooks.cli.child import answer, make, receipt_text, require_client
from resume_hooks.cli.options import (
    VerbOptions,
    as_one_value,
    child_options,
    current_folder,
    located,
    locator_argument,
    time_of,
    to_option,
)
from resume_hooks.derive import agents, cut_point
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.cut_point import AtMessage, AtRecord, AtTurn, Before, BeforeCompaction, Truncator
from resume_hooks.derive.fork import ForkPlan
from resume_hooks.errors import UsageError
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.record_references import Reference


@click.command("fork")
@locator_argument
@click.option("--at", metavar="REF", help="Up to and including this record: line, uuid, or session and line.")
@click.option("--at-message", metavar="ID", help="Up to and including this answer: msg_..., or a record's uuid.")
@click.option("--before", metavar="TIME", help="What was said before: a date, a time (UTC), or 30min, 2h, 3d ago.")
@click.option("--turn", type=int, metavar="N", help="Up to the end of turn N; -2: of the last but one.")
@click.option("--before-compaction", is_flag=True, help="As it was before its last compaction.")
@click.option("--here", is_flag=True, help="Make it a session of the current folder.")
@click.option("--home", metavar="FOLDER", help="Make it a session of this folder.")
@to_option
@child_options
@as_one_value
def command(options: VerbOptions) -> None:
    """Make a copy of SESSION's live conversation under a new id, whole or up to a point.

    The session itself is only read. What is sent of the copy is what would be sent of the session. A cut never parts
    a tool call from its answer: it moves to the nearest place that does not, and says so. A record from before a
    compaction, or on an abandoned branch, gives the conversation as it was there. File backups and large outputs
    are linked, so that rewinding files works in the copy.

    With --here or --home it becomes a session of that folder, as where its own folder moved or is gone. With --to it
    goes on in the other agent: turns and calls as text, without thinking.

    \b
    Examples:
      resume-hooks fork 5e12a303
      resume-hooks fork 5e12a303 --turn 4
      resume-hooks fork --at 5e12a303:41 --start
      resume-hooks fork 5e12a303 --before 2026-01-31T09:30 --dry-run
      resume-hooks fork 5e12a303 --before-compaction --start
      resume-hooks fork 5e12a303 --here
      resume-hooks fork 5e12a303 --to codex
    """
    home = _home(options)
    require_client(options)
    session, cut = _cut(options)
    decided = agents.fork(
        session, options.where, cut=cut, home=home, output_dir=options.output_dir, to=options.to or ""
    )
    made = make(options, decided)
    answer(options, made, {"cut": _data(decided)}, lambda: _text(decided, made))


def _home(options: VerbOptions) -> str | None:
    """The folder that was asked for. UsageError for options that mean nothing together."""
    options.refuse_together("here", "home", "output_dir")
    if options.home is not None:
        return os.path.join(current_folder(), os.path.expanduser(options.home))
    return current_folder() if options.here else None


def _cut(options: VerbOptions) -> tuple[SessionFile, Truncator | None]:
    """The session and where to cut it, None for nowhere."""
    options.refuse_together("at", "at_message", "before", "turn", "before_compaction", remedy="A session is cut once.")
    if options.at is not None:
        at = cut_point.parse(options.at)
        return (
            (_session_of(at, options), AtRecord(at.record))
            if isinstance(at, Reference)
            else (options.located(foreign=True), at)
        )
    if options.at_message is not None:
        return options.located(foreign=True), AtMessage(options.at_message.strip())
    if options.before_compaction:
        return options.located(foreign=True), BeforeCompaction()
    if options.turn is not None:
        return options.located(foreign=True), AtTurn(options.turn)
    return options.located(foreign=True), Before(time_of(options.before)) if options.before is not None else None


def _session_of(at: Reference, options: VerbOptions) -> SessionFile:
    """The session that a reference names. UsageError if SESSION names another."""
    session = located(at.session, options.where, foreign=True)
    if options.locator is not None and options.located(foreign=True).path != session.path:
        raise UsageError(f"--at names another session than '{options.locator}'", "Leave one of them out.")
    return session


def _data(decided: ForkPlan) -> dict[str, Any] | None:
    cut = decided.cut
    if cut is None:
        return None
    return {
        "asked": cut.asked,
        "reference": f"{decided.draft.parent.session_id}:{cut.last.number}",
        "moved": cut.moved != 0,
        "turn": cut.turn,
    }


def _text(decided: ForkPlan, made: Receipt) -> str:
    facts: list[tuple[str, object]] = []
    if decided.cut is not None:
        turn = f", in turn {decided.cut.turn}" if decided.cut.turn else ""
        facts.append(("cut", f"{decided.cut.asked}; the last record kept is {decided.cut.last.number}{turn}"))
    if decided.relocation is not None:
        facts.append(("home", f"{decided.relocation.new} (was {decided.relocation.old})"))
    return receipt_text(made, facts)
