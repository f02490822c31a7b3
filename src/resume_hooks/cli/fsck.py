"""``fsck``: what is broken in a session, by record, and a repaired child of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from resume_hooks.cli.child import receipt_text
from resume_hooks.cli.output import dry_run_option, emit, json_option, located, locator_argument
from resume_hooks.derive.child.write import carry_out
from resume_hooks.errors import UsageError
from resume_hooks.maintenance.fsck import repair
from resume_hooks.maintenance.fsck.diagnose import examine
from resume_hooks.maintenance.fsck.findings import SEVERITIES, DefectGroup, DefectReport
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from resume_hooks.sessions.locate import SessionFile

SHOWN = 3
"""Findings of one kind that are shown to people; ``--json`` lists more."""

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


@click.command("fsck")
@locator_argument
@click.option("--all", "everywhere", is_flag=True, help="Every session of every project.")
@click.option("--repair", "repairing", is_flag=True, help="Write a repaired child.")
@click.option("--branch", metavar="UUID", help="With --repair: keep the branch that ends at this record.")
@dry_run_option
@json_option
def command(
    locator: str | None, everywhere: bool, repairing: bool, branch: str | None, dry_run: bool, as_json: bool
) -> int:
    """Report what is broken in a session, by record, and what the clients do with it.

    Ends with 1 where there are errors or warnings. Notes are what clients leave behind by themselves. The session
    itself is only read; a repaired child keeps everything that can be reached.

    \b
    Examples:
      resume-hooks fsck
      resume-hooks fsck 5e12a303 --json
      resume-hooks fsck --all
      resume-hooks fsck 5e12a303 --repair
      resume-hooks fsck 5e12a303 --repair --branch 9b1c7f52-...
    """
    _refuse(locator, everywhere=everywhere, repairing=repairing, branch=branch, dry_run=dry_run)
    if repairing:
        return _repair(located(locator), branch, dry_run=dry_run, as_json=as_json)
    sessions = locate.all_sessions(Where()) if everywhere else [located(locator)]
    reports = [examine(session, Where()) for session in _shown_at_work(sessions, quiet=as_json)]
    hidden = locate.unlistable(Where()) if everywhere else []
    emit(
        "fsck",
        _data(reports, hidden),
        lambda: _overview(reports, hidden) if everywhere else render(reports[0]),
        as_json=as_json,
    )
    return int(bool(hidden) or any(not report.clean for report in reports))


def render(report: DefectReport) -> str:
    """A report for people: by severity, each kind with what clients do with it, then what to do."""
    if not report.groups:
        return f"{report.session_id}: clean"
    rows = [line for group in report.groups for line in _group(group)]
    counts = ", ".join(_counted(report.count(severity), severity) for severity in SEVERITIES)
    if report.clean:
        return "\n".join([*rows, f"{report.session_id}: clean, {counts.rpartition(', ')[2]}"])
    remedy = f"resume-hooks fsck {report.session_id} --repair writes a repaired child."
    repairable = any(group.kind.repairable for group in report.groups if group.kind.severity != "note")
    return "\n".join([*rows, f"{counts}.", *([remedy] if repairable else [])])


def _group(group: DefectGroup) -> Iterator[str]:
    kind = group.kind
    word = click.style(kind.severity.upper().ljust(7), fg=_COLOURS[kind.severity])
    yield f"{word}  {kind.code}: {kind.consequence}"
    for finding in group.findings[:SHOWN]:
        where = "" if finding.record is None else f"record {finding.record}: "
        named = f" ({finding.uuid})" if finding.uuid else ""
        yield f"         {where}{finding.message}{named}"
    if len(group.findings) > SHOWN:
        yield f"         and {len(group.findings) - SHOWN:,} more"


def _overview(reports: list[DefectReport], hidden: list[str]) -> str:
    """One line a session with problems and a folder that can't be listed, and the totals."""
    rows = []
    for report in reports:
        if not report.clean:
            codes = ", ".join(group.kind.code for group in report.groups if group.kind.severity != "note")
            rows.append(f"{report.session_id}  {_problems(report)}: {codes}")
    clean = sum(report.clean for report in reports)
    unseen = [f"{folder}  can't be listed: check its permissions" for folder in hidden]
    totals = f"{_counted(len(reports), 'session')}, {clean:,} clean, {len(rows):,} with problems."
    more = [f"{_counted(len(hidden), 'folder')} can't be listed; nothing in there was looked at."] if hidden else []
    return "\n".join([*rows, *unseen, totals, *more])


def _problems(report: DefectReport) -> str:
    return ", ".join(
        _counted(count, severity) for severity in SEVERITIES if severity != "note" and (count := report.count(severity))
    )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _refuse(locator: str | None, *, everywhere: bool, repairing: bool, branch: str | None, dry_run: bool) -> None:
    if everywhere and (locator or repairing):
        raise UsageError("--all reports on every session and repairs none", "Leave --all out, or everything else.")
    if (branch or dry_run) and not repairing:
        raise UsageError("--branch and --dry-run belong to --repair", "Add --repair.")


def _repair(session: SessionFile, branch: str | None, *, dry_run: bool, as_json: bool) -> int:
    """Write a repaired child, unless nothing is broken and no branch was asked for."""
    decided = repair.plan(session, Where(), branch=branch)
    report = decided.report
    if report.clean and branch is None:
        emit("fsck", _data([report]), lambda: f"{report.session_id}: clean, nothing to repair", as_json=as_json)
        return 0
    done = carry_out(decided, Where(), dry_run=dry_run)
    lost = list(decided.lost)
    data = {**_data([report]), "repair": done.data(), "lost": lost}
    emit("fsck", data, lambda: f"{receipt_text(done)}\n{_lost(lost)}", as_json=as_json, warnings=done.warnings)
    return 0


def _lost(lost: list[str]) -> str:
    if not lost:
        return "Everything was kept."
    return "\n".join(["What could not be kept:", *(f"  {line}" for line in lost)])


def _data(reports: list[DefectReport], hidden: Sequence[str] = ()) -> dict[str, Any]:
    sessions = [report.data() for report in reports]
    return {"sessions": sessions, "unlistable": list(hidden), "repair": None, "lost": []}


def _shown_at_work(sessions: list[SessionFile], *, quiet: bool) -> Iterable[SessionFile]:
    """The sessions; on a terminal a bar runs beside them where there are many."""
    if quiet or len(sessions) < 2 or not sys.stderr.isatty():
        return sessions
    # rich takes 50 ms to load, which only a long look at many files has to spend.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import track  # noqa: PLC0415

    return track(sessions, description="fsck", console=Console(stderr=True), transient=True)
