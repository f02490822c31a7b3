"""``fork``: a copy of a session's live conversation, whole or up to a point, here or in another folder."""

from __future__ import annotations

import os
from typing import Any, Unpack

import click

from resume_hooks import clock
from resume_hooks.cli.child import How, answer, child_options, client_to_start, receipt_text, require_start
from resume_hooks.cli.output import current_folder, located, locator_argument
from resume_hooks.derive import cut_point, fork
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import carry_out
from resume_hooks.derive.cut_point import AtMessage, AtRecord, AtTurn, Before, Truncator
from resume_hooks.derive.fork import ForkPlan
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.references import Reference


class ForkHow(How):
    """The options of a fork."""

    at: str | None
    at_message: str | None
    before: str | None
    turn: int | None
    here: bool
    home: str | None


@click.command("fork")
@locator_argument
@click.option("--at", metavar="REF", help="Up to and including this record: line, uuid, or session and line.")
@click.option("--at-message", metavar="ID", help="Up to and including this answer: msg_..., or a record's uuid.")
@click.option("--before", metavar="TIME", help="What was said before: a date, a time (UTC), or 30min, 2h, 3d ago.")
@click.option("--turn", type=int, metavar="N", help="Up to the end of turn N; -2: of the last but one.")
@click.option("--here", is_flag=True, help="Make it a session of the current folder.")
@click.option("--home", metavar="FOLDER", help="Make it a session of this folder.")
@child_options
def command(locator: str | None, **how: Unpack[ForkHow]) -> None:
    """Make a copy of LOCATOR's live conversation under a new id, whole or up to a point.

    The session itself is only read. What is sent of the copy is what would be sent of the session. A cut never parts
    a tool call from its answer: it moves to the nearest place that does not, and says so. A record from before a
    compaction, or on an abandoned branch, gives the conversation as it was there. File backups and large outputs
    are linked, so that rewinding files works in the copy.

    With --here or --home it becomes a session of that folder, as where its own folder moved or is gone.

    \b
    Examples:
      resume-hooks fork 5e12a303
      resume-hooks fork 5e12a303 --turn 4
      resume-hooks fork --at 5e12a303:41 --start
      resume-hooks fork 5e12a303 --before 2026-01-31T09:30 --dry-run
      resume-hooks fork 5e12a303 --here
    """
    home = _home(how)
    client = client_to_start(how)
    session, cut = _asked(locator, how)
    decided = fork.plan(session, Where(), cut=cut, home=home, output_dir=how["output_dir"])
    require_start(client, decided.draft)
    made = carry_out(decided, Where(), dry_run=how["dry_run"])
    answer("fork", made, how, client, more={"cut": _data(decided)}, text=lambda: _text(decided, made))


def _home(how: ForkHow) -> str | None:
    """The folder that was asked for. UsageError for options that mean nothing together."""
    if how["here"] and how["home"] is not None:
        raise UsageError("--here and --home exclude each other", "Leave one of them out.")
    if how["output_dir"] is not None and (how["here"] or how["home"] is not None):
        raise UsageError("--output-dir writes elsewhere than --here and --home", "Leave one of them out.")
    if how["home"] is not None:
        return os.path.join(current_folder(), os.path.expanduser(how["home"]))
    return current_folder() if how["here"] else None


def _asked(locator: str | None, how: ForkHow) -> tuple[SessionFile, Truncator | None]:
    """The session and where it is cut, None for nowhere."""
    given = [name for name in ("at", "at_message", "before", "turn") if how[name] is not None]
    if len(given) > 1:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{options} exclude each other", "A session is cut once.")
    at = cut_point.parse(how["at"]) if how["at"] is not None else None
    if isinstance(at, Reference):
        return _session_of(at, locator), AtRecord(at.record)
    return located(locator), at or _cut(how)


def _cut(how: ForkHow) -> Truncator | None:
    if how["at_message"] is not None:
        return AtMessage(how["at_message"].strip())
    if how["turn"] is not None:
        return AtTurn(how["turn"])
    if how["before"] is None:
        return None
    instant = clock.point(how["before"])
    if instant is None:
        raise UsageError(f"'{how['before']}' is no time", clock.WHEN)
    return Before(instant)


def _session_of(at: Reference, locator: str | None) -> SessionFile:
    """The session that a reference names. UsageError where LOCATOR names another."""
    session = located(at.session)
    if locator is not None and located(locator).path != session.path:
        raise UsageError(f"--at names another session than '{locator}'", "Leave one of them out.")
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
    if decided.moving is not None:
        facts.append(("home", f"{decided.moving.new} (was {decided.moving.old})"))
    return receipt_text(made, facts)
