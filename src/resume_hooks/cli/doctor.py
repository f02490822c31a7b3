"""``doctor``: what is set up, what is not, and what to do about it."""

from __future__ import annotations

import click

from resume_hooks.cli.output import current_folder, emit, json_option
from resume_hooks.diagnosis import Finding, diagnose

_MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "problem": ("PROBLEM", "red")}


@click.command("doctor")
@json_option
def command(as_json: bool) -> int:
    """Check client, plugin, hooks, engine, transcripts, permissions, index and clipboard.

    Ends with 1 where something will not work.

    \b
    Examples:
      resume-hooks doctor
      resume-hooks doctor --json
    """
    findings = diagnose(current_folder())
    emit("doctor", {"findings": [f._asdict() for f in findings]}, lambda: _render(findings), as_json=as_json)
    return int(any(finding.level == "problem" for finding in findings))


def _render(findings: list[Finding]) -> str:
    lines = []
    for finding in findings:
        word, colour = _MARKS[finding.level]
        lines.append(f"{click.style(word.ljust(7), fg=colour)}  {finding.name}: {finding.detail}")
        if finding.remedy:
            lines.append(f"         {finding.remedy}")
    return "\n".join(lines)
