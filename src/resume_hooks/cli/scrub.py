"""``scrub``: a child without the secrets of a session; or, in place, the secrets gone from wherever they lie."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, Unpack

import click

from resume_hooks.cli.child import How, child_options, client_to_start, receipt_text, require_start
from resume_hooks.cli.output import emit, located, locator_argument, say, table
from resume_hooks.cli.start_client import start, start_of
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import carry_out
from resume_hooks.errors import SessionLive, UsageError
from resume_hooks.maintenance.scrub import child, findings, literals
from resume_hooks.maintenance.scrub.child import ScrubPlan
from resume_hooks.maintenance.scrub.findings import (
    HELD,
    LEFT,
    OUTSIDE,
    REMOVED,
    Holding,
    ScrubFindings,
    ScrubReach,
)
from resume_hooks.maintenance.scrub.locations import INDEXED, OWN
from resume_hooks.maintenance.scrub.purge import clear_left, purge
from resume_hooks.paths import Where

SHOWN = 40
"""Places of one state that are named one by one."""

_HEADINGS = {
    HELD: "Here they are:",
    REMOVED: "Gone from:",
    LEFT: "They are, or may be, still here:",
    OUTSIDE: "Also here, and not touched:",
}
_REMAIN = "The originals still hold them: nothing but the child was written. Take them out: {command}"
_SHORT = (
    "{count:,} short values may still stand elsewhere: where the scanner does not see them they could be any word. "
    "Look for them by hand, or give them to --secret-stdin."
)


class ScrubHow(How):
    """The options of a scrub."""

    in_place: bool
    kind: tuple[str, ...]
    secret_stdin: bool
    lineage: bool
    everywhere: bool
    backups: bool
    documents: bool
    client: bool
    yes: bool


@click.command("scrub")
@locator_argument
@click.option("--in-place", is_flag=True, help="Take them out of the session, every copy of it, and its children.")
@click.option("--kind", multiple=True, metavar="KIND", help="Secrets of this kind alone, as audit names it.")
@click.option("--secret-stdin", is_flag=True, help="Also the secrets on stdin, one a line; on a terminal it asks.")
@click.option("--lineage", is_flag=True, help="With --in-place: also the sessions that it came from.")
@click.option("--everywhere", is_flag=True, help="With --in-place: also any other session that holds them.")
@click.option("--backups", is_flag=True, help="With --in-place: also copies of your files that a rewind puts back.")
@click.option("--documents", is_flag=True, help="With --in-place: also what handoffs wrote into the project.")
@click.option("--client", is_flag=True, help="With --in-place: also the client's own files, such as history.jsonl.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@child_options
def command(locator: str | None, **how: Unpack[ScrubHow]) -> int:
    """Make a child of LOCATOR without its secrets, and list every place that holds them.

    The session itself is only read. With --in-place its own files are rewritten instead, and the secrets go from its
    sub-agents, tool outputs, backups, the trash, the vault, the index, and the sessions that came from it. Each file is
    replaced whole or not at all; no backup is kept. What is already known to others stays known: revoke the secret.

    \b
    Examples:
      resume-hooks scrub 5e12a303
      resume-hooks scrub 5e12a303 --in-place --dry-run
      resume-hooks scrub 5e12a303 --in-place --client --yes
      resume-hooks scrub --secret-stdin < secret.txt
    """
    _refuse(how)
    client = "" if how["in_place"] else client_to_start(how)
    named = literals.named(_asked()) if how["secret_stdin"] else {}
    wanted = ScrubReach(how["lineage"], how["everywhere"], how["backups"], how["documents"], how["client"])
    session = located(locator)
    if how["in_place"] and not how["dry_run"]:
        clear_left(Where())
    found = findings.look_everywhere(session, Where(), kinds=how["kind"], named=named, wanted=wanted)
    return _in_place(found, how) if how["in_place"] else _in_a_child(found, how, client)


def _in_a_child(found: ScrubFindings, how: ScrubHow, client: str) -> int:
    decided = _planned(found, how)
    if decided is not None:
        require_start(client, decided.draft)
    made = None
    if decided is not None:
        made = carry_out(decided, Where(), dry_run=how["dry_run"])
    warnings = list(made.warnings) if made else []
    if found.held:
        warnings.append(_REMAIN.format(command=_command(found, how)))
    _answer(found, found.rows, how, made, warnings)
    if client and made is not None and made.written:
        start(start_of(made.session_id, made.file, made.folder, Where()))
    return 0


def _planned(found: ScrubFindings, how: ScrubHow) -> ScrubPlan | None:
    """The child to be; None where the session holds nothing that it would have to be without."""
    if not any(row.place.relation == OWN for row in found.held):
        return None
    return child.plan(found.session, Where(), found.scanner, output_dir=how["output_dir"])


def _in_place(found: ScrubFindings, how: ScrubHow) -> int:
    rows: Sequence[Holding] = found.rows
    done = False
    if found.held and not how["dry_run"]:
        if found.live:
            raise SessionLive(f"The session is live: {found.live}", "Quit its client, wait a minute, run it again.")
        if not how["yes"]:
            say(_facts(found, rows))
        done = how["yes"] or click.confirm("\nTake them out, for good?", err=True)
        rows = purge(found, Where()) if done else rows
    _answer(found, rows, how, None, [], done=done)
    asked = not how["dry_run"] and (done or not found.held)
    return int(asked and any(row.state == LEFT for row in rows))


def _answer(
    found: ScrubFindings,
    rows: Sequence[Holding],
    how: ScrubHow,
    made: Receipt | None,
    warnings: list[str],
    *,
    done: bool = False,
) -> None:
    if found.short:
        warnings.append(_SHORT.format(count=len(found.short)))
    written = done or (made is not None and made.written)
    data: dict[str, Any] = {
        "session_id": found.session.session_id,
        "file": found.session.path,
        "in_place": how["in_place"],
        "written": written,
        "live": found.live,
        "places": [_place_data(row) for row in rows],
        "receipt": made.data() if made else None,
    }

    def text() -> str:
        receipt = f"\n\n{receipt_text(made)}" if made else ""
        return f"{_facts(found, rows)}{receipt}" + ("" if written else "\n\nNothing was written.")

    emit("scrub", data, text, as_json=how["as_json"], warnings=warnings)


def _place_data(row: Holding) -> dict[str, Any]:
    place = row.place._asdict()
    return {**place, "secrets": row.kinds, "state": row.state, "why": row.why}


def _facts(found: ScrubFindings, rows: Sequence[Holding]) -> str:
    """What was found, as text."""
    kinds: Counter[str] = Counter()
    for row in rows:
        if row.place.relation == OWN:
            kinds.update(row.kinds)
    facts = [("session", found.title), ("id", found.session.session_id)]
    facts.append(("its secrets", _counted(kinds) or "none was found"))
    if found.live:
        facts.append(("live", found.live))
    parts = [table(facts)]
    for state, heading in _HEADINGS.items():
        some = [row for row in rows if row.state == state and (row.kinds or row.why or state == REMOVED)]
        if some:
            more = [f"  and {len(some) - SHOWN:,} more"] if len(some) > SHOWN else []
            parts.append("\n".join([heading, *map(_line, some[:SHOWN]), *more]))
    return "\n\n".join(parts)


def _line(row: Holding) -> str:
    place = row.place
    whose = {"": "", OWN: ""}.get(place.relation, f"{place.relation} ")
    counted = _counted(row.kinds) or ("made anew" if place.kind == INDEXED else "")
    said = "  ".join(part for part in (f"{whose}{place.kind}", counted, place.path) if part)
    return f"  {said}" + (f"\n    {row.why}" if row.why else "")


def _counted(kinds: dict[str, int] | Counter[str]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in sorted(kinds.items()))


def _command(found: ScrubFindings, how: ScrubHow) -> str:
    """The command that takes them out of the originals."""
    words = ["resume-hooks", "scrub", found.session.session_id, "--in-place"]
    words += [word for kind in how["kind"] for word in ("--kind", kind)]
    return shlex.join([*words, *(["--secret-stdin"] if how["secret_stdin"] else [])])


def _asked() -> bytes:
    """What was given on stdin; on a terminal it is asked for, and not shown."""
    if sys.stdin.isatty():
        return str(click.prompt("Secret", hide_input=True, err=True)).encode()
    return sys.stdin.buffer.read(literals.LONGEST_NAMED + 1)


def _refuse(how: ScrubHow) -> None:
    """Refuse options that mean nothing together, and questions that nobody could answer."""
    reach = ("lineage", "everywhere", "backups", "documents", "client")
    given = next((name for name in reach if how[name]), "")  # type: ignore[literal-required]
    if given and not how["in_place"]:
        raise UsageError(f"--{given} belongs to --in-place", "A child is written without touching anything else.")
    if how["in_place"] and (how["output_dir"] is not None or how["start"]):
        raise UsageError("--in-place makes no child", "Leave --output-dir and --start out.")
    asks = how["in_place"] and not (how["yes"] or how["dry_run"])
    if asks and (how["as_json"] or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise UsageError(
            "A scrub in place asks first, and here nobody can be asked", "Add --yes, or --dry-run to see the places."
        )
