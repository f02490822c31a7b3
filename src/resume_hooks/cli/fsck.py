"""``fsck``: list a session's defects and the records that are affected, or write a repaired child."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from resume_hooks.cli.child import receipt_text
from resume_hooks.cli.verbs.upkeep import FsckOptions
from resume_hooks.derive.child.write_child import write_if_worthwhile
from resume_hooks.errors import ExitCode, UsageError
from resume_hooks.maintenance.fsck.diagnose import examine_session
from resume_hooks.maintenance.fsck.findings import SEVERITIES, DefectGroup, DefectReport
from resume_hooks.maintenance.fsck.repair import plan_repair_of_any_agent
from resume_hooks.sessions.agents.registry import stores_for_list
from resume_hooks.sessions.session_files import SessionFile, unlistable_folders
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count

# the maximum number of findings of one kind in the text output; ``--json`` lists more
MAX_SHOWN_FINDINGS = 3
_SEVERITY_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def check_sessions(options: FsckOptions) -> ExitCode:
    """Check sessions, or write a repaired child. Return 1 if a check finds errors or warnings."""
    if options.everywhere and (options.locator or options.must_repair):
        raise UsageError(
            "--all can't be combined with SESSION or --repair",
            "Leave out --all, or SESSION and --repair.",
        )
    if (options.branch or options.dry_run) and not options.must_repair:
        raise UsageError("--branch and --dry-run need --repair", "Add --repair.")
    if options.must_repair:
        _repair_session(options)
        return 0
    list_sessions = stores_for_list(options.where, all_agents=True)[0].sessions
    if options.everywhere:
        sessions = list_sessions()
    else:
        sessions = [options.locate_session_with_answers()]
    reports = []
    for session in _iterate_with_progress(sessions, quiet=options.as_json):
        reports.append(examine_session(session, options.where))
    unreadable_folders = unlistable_folders(options.where) if options.everywhere else []
    options.print_answer(
        _make_reports_data(reports, unreadable_folders),
        lambda: (
            _format_fsck_overview(reports, unreadable_folders)
            if options.everywhere
            else report_text(reports[0])
        ),
    )
    return int(bool(unreadable_folders) or any(not report.has_only_notes for report in reports))


def report_text(report: DefectReport) -> str:
    """Return a report as text: each kind of defect with its effect on clients and its first findings.

    After the defects, the text names the command that repairs the session. If the session has no
    errors and no warnings, the text contains only the number of notes, because notes are about
    defects that clients ignore.
    """
    if report.has_only_notes:
        notes = report.count_findings("note")
        if notes:
            notes_text = f" ({format_count(notes, 'note')} with no effect on clients: --json lists the notes)"
        else:
            notes_text = ""
        return f"{report.session_id}: clean{notes_text}"
    rows = [line for group in report.groups for line in _format_finding_group(group)]
    counts_text = ", ".join(
        format_count(report.count_findings(severity), severity) for severity in SEVERITIES
    )
    repair_line = f"{shell_command(f'fsck {report.session_id} --repair')} writes a repaired child."
    is_repairable = any(
        group.kind.is_repairable for group in report.groups if group.kind.severity != "note"
    )
    return "\n".join([*rows, f"{counts_text}.", *([repair_line] if is_repairable else [])])


def _format_finding_group(group: DefectGroup) -> Iterator[str]:
    kind = group.kind
    severity_text = click.style(kind.severity.upper().ljust(7), fg=_SEVERITY_COLOURS[kind.severity])
    yield f"{severity_text}  {kind.code}: {kind.consequence}"
    for finding in group.defects[:MAX_SHOWN_FINDINGS]:
        if finding.record_number is None:
            location = ""
        else:
            location = f"record {finding.record_number}: "
        uuid_text = f" ({finding.uuid})" if finding.uuid else ""
        yield f"         {location}{finding.message}{uuid_text}"
    if len(group.defects) > MAX_SHOWN_FINDINGS:
        yield f"         and {len(group.defects) - MAX_SHOWN_FINDINGS:,} more"


def _format_fsck_overview(reports: list[DefectReport], unreadable_folders: list[str]) -> str:
    """Return the report on all sessions as text: a line for each session with problems, and the totals.

    Folders that can't be listed have a line too.
    """
    rows = []
    for report in reports:
        if not report.has_only_notes:
            codes = ", ".join(
                group.kind.code for group in report.groups if group.kind.severity != "note"
            )
            counts = {}
            for severity in SEVERITIES:
                if severity != "note":
                    counts[severity] = report.count_findings(severity)
            problems_text = ", ".join(
                format_count(count, severity) for severity, count in counts.items() if count
            )
            rows.append(f"{report.session_id}  {problems_text}: {codes}")
    clean_count = sum(report.has_only_notes for report in reports)
    unlistable_lines = []
    for folder in unreadable_folders:
        unlistable_lines.append(f"{folder}  can't be listed: check its permissions")
    totals_text = f"{format_count(len(reports), 'session')}, {clean_count:,} clean, {len(rows):,} with problems."
    if unreadable_folders:
        further_lines = [
            f"Not checked: {format_count(len(unreadable_folders), 'folder')} that can't be listed."
        ]
    else:
        further_lines = []
    return "\n".join([*rows, *unlistable_lines, totals_text, *further_lines])


def _repair_session(options: FsckOptions) -> None:
    repair = plan_repair_of_any_agent(
        options.locate_session_with_answers(), options.where, options.branch
    )
    report = repair.report
    if report.has_only_notes and options.branch is None:
        options.print_answer(
            _make_reports_data([report]), lambda: f"{report.session_id}: clean, nothing to repair"
        )
        return
    receipt = write_if_worthwhile(repair.child, options.where, dry_run=options.dry_run)
    losses = list(repair.losses)
    data = _make_reports_data([report]) | {"repair": receipt, "lost": losses}
    if losses:
        rows = ["The following could not be kept:", *(f"  {line}" for line in losses)]
    else:
        rows = ["Everything was kept."]
    options.print_answer(data, lambda: "\n".join([receipt_text(receipt), *rows]), receipt.warnings)


def _make_reports_data(
    reports: list[DefectReport], unreadable_folders: Sequence[str] = ()
) -> dict[str, Any]:
    return {"sessions": reports, "unlistable": list(unreadable_folders), "repair": None, "lost": []}


def _iterate_with_progress(sessions: list[SessionFile], *, quiet: bool) -> Iterable[SessionFile]:
    if quiet or len(sessions) < 2 or not sys.stderr.isatty():
        return sessions
    # Imported late: rich takes 50 ms to load, and only a check of several sessions needs it.
    from rich.console import Console
    from rich.progress import track

    return track(sessions, description="fsck", console=Console(stderr=True), transient=True)
