"""Tests of ``doctor`` on the command line: its findings, and the data for a bug report."""

from __future__ import annotations

import json
from pathlib import Path

from resume_hooks.cli.schema.upkeep import BugReport
from tests.cli.conftest import Cli, Document


def test_doctor_prints_the_bug_report(cli: Cli, document: Document) -> None:
    """``doctor --bundle`` prints the bug report as JSON.

    With ``--json``, it prints a document that contains the report.
    """
    printed = cli("doctor", "--bundle")
    assert printed.returncode == 0
    assert set(json.loads(printed.stdout)) == set(BugReport.model_fields)
    data = document("doctor", "--bundle")["data"]
    assert (data["file"], data["report"]["report"]) == ("", 3)


def test_doctor_writes_a_private_bug_report(cli: Cli, tmp_path: Path) -> None:
    """``doctor --bundle -o`` writes a file that only the user can read.

    It does not replace an existing file and does not follow a link.
    """
    file = tmp_path / "report.json"
    done = cli("doctor", "--bundle", "-o", str(file))
    assert (done.returncode, done.stdout.split(b"\n")[0]) == (0, f"Written: {file}".encode())
    assert file.stat().st_mode & 0o777 == 0o600
    assert BugReport.model_validate_json(file.read_bytes()).report == 3
    again = cli("doctor", "--bundle", "-o", str(file))
    assert (again.returncode, again.stderr.split(b"\n")[0]) == (
        2,
        f"resume-hooks: {file} exists already".encode(),
    )
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "elsewhere.json")
    assert cli("doctor", "--bundle", "-o", str(link)).returncode == 1
    assert not (tmp_path / "elsewhere.json").exists()


def test_every_finding_has_a_distinct_code(cli: Cli) -> None:
    """Every finding of ``doctor`` has a different code, and every problem has a remedy."""
    done = cli("doctor", "--json")
    findings = json.loads(done.stdout)["data"]["findings"]
    assert done.returncode == 1  # No client is on PATH.
    assert len({finding["code"] for finding in findings}) == len(findings)
    assert all(finding["remedy"] for finding in findings if finding["level"] == "problem")
