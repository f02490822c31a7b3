"""``doctor``: check the installation, print remedies, and write a bug report.

The verb also shows, updates and rebuilds the search index.
"""

from __future__ import annotations

import os

import click
import orjson

from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import facts_table, show_work_progress
from resume_hooks.cli.value_with_fields import ValueWithFields
from resume_hooks.cli.verbs.upkeep import DoctorOptions
from resume_hooks.errors import ExitCode, UsageError
from resume_hooks.maintenance.doctor import Finding, check_installation
from resume_hooks.search.index.connect import IndexStatus, index_status, open_index
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.storage import project_files
from resume_hooks.system.invocation import format_remedy
from resume_hooks.system.text import format_count

_LEVEL_LABELS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "problem": ("PROBLEM", "red")}


def diagnose_installation(options: DoctorOptions) -> ExitCode:
    """Print the findings, the bug report, or the state of the index. Return 1 if a finding is a problem."""
    if options.report_path is not None and not options.must_bundle:
        raise UsageError("-o needs --bundle", "Add --bundle.")
    options.refuse_combination("must_bundle", "index_action")
    if options.index_action is not None:
        _maintain_index(options)
        return 0
    findings = check_installation(current_folder())
    report = None
    if options.must_bundle:
        # Imported late because only a bug report needs it.
        from resume_hooks.maintenance import bug_report

        report = bug_report.make_bug_report(findings, current_folder(), options.where)
    report_json = orjson.dumps(report, option=orjson.OPT_INDENT_2)
    if options.report_path is None:
        report_path = ""
    else:
        report_path = os.path.abspath(options.report_path)
    if report_path:
        if project_files.read_file_state(report_path) is not None:
            raise UsageError(f"{report_path} exists already", "Name a file that does not exist.")
        project_files.write_project_file(report_path, report_json + b"\n", None, mode=0o600)
    data = {"findings": findings, "report": report, "file": report_path, "index": None}

    def format_report_or_findings() -> str:
        if report_path:
            return f"Written: {report_path}\nRead it before you send it to anyone."
        if options.must_bundle:
            return report_json.decode()
        return _format_doctor_findings(findings)

    options.print_answer(data, format_report_or_findings)
    return int(not options.must_bundle and any(finding.level == "problem" for finding in findings))


def _maintain_index(options: DoctorOptions) -> None:
    bytes_read, notes = 0, []
    if options.index_action != "status":
        with (
            show_work_progress("Indexing", quiet=options.as_json) as progress,
            open_index(
                options.where,
                progress=progress,
                rebuild=options.index_action == "rebuild",
                must_be_stored=True,
            ) as index,
        ):
            bytes_read, notes = index.update_outcome.read_byte_count, index.notes
    status = index_status(options.where)
    data: dict[str, object] = {
        "findings": [],
        "report": None,
        "file": "",
        "index": ValueWithFields(status, {"bytes_read": bytes_read}),
    }
    options.print_answer(data, lambda: _format_index_status(status, bytes_read), notes)


def _format_index_status(status: IndexStatus, bytes_read: int) -> str:
    if status.transcript_bytes:
        fraction_text = f" ({100 * status.index_bytes / status.transcript_bytes:.1f} %)"
    else:
        fraction_text = ""
    rows: list[tuple[str, object]] = [
        ("index", status.index_path),
        (
            "state",
            status.state
            if not status.outdated_file_count
            else f"{status.state}, {format_count(status.outdated_file_count, 'file')} behind",
        ),
        (
            "transcripts",
            f"{format_count(status.transcript_count, 'file')}, {format_bytes(status.transcript_bytes)}",
        ),
        (
            "holds",
            f"{format_count(status.session_count, 'session')}, {format_count(status.record_count, 'record')}",
        ),
        *(
            [("vault", f"{status.archived_session_count:,} of the sessions are archived copies")]
            if status.archived_session_count
            else []
        ),
        ("size", f"{format_bytes(status.index_bytes)}{fraction_text}"),
    ]
    return facts_table([*rows, *([("read now", format_bytes(bytes_read))] if bytes_read else [])])


def _format_doctor_findings(findings: list[Finding]) -> str:
    lines = []
    for finding in findings:
        word, colour = _LEVEL_LABELS[finding.level]
        lines.append(f"{click.style(word.ljust(7), fg=colour)}  {finding.name}: {finding.detail}")
        if finding.remedy:
            lines.append(f"         {format_remedy(finding.remedy)}")
    return "\n".join(lines)
