"""Tests that every defect is found with its code and record, and that valid sessions have no finding."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from resume_hooks.maintenance.fsck.diagnose import examine_session
from resume_hooks.maintenance.fsck.findings import SEVERITIES, DefectReport
from resume_hooks.paths import Where
from resume_hooks.sessions.session_files import SessionFile
from tests.builders import (
    SESSION,
    ConfigHome,
    attachment,
    conversation,
    last_prompt,
    session_bytes,
    summary,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.corpus import RealSession
from tests.maintenance.fsck.cases import CASES, Case
from tests.transcripts.chain_cases import CHAIN_CASES

SESSIONS_WITH_ERRORS = {
    # This file was written by hand, and contains invalid lines and records without a message.
    "daaain__claude-code-log/edge_cases.jsonl",
    # The first turn's parent is a record that is not in the file.
    "entireio__cli/70c88cff-cb35-404f-a974-2a08bab4e4bc.jsonl",
    # This file begins with an answer, as the README of its repository explains.
    "obra__episodic-memory/large-conversation.jsonl",
}
"""The real sessions with errors.

We have checked each of them: client 2.1.329 did not send the records that the findings name.
"""


def examine_bytes(
    content: bytes, folder: Path, environ: dict[str, str] | None = None
) -> DefectReport:
    """Return the report on a session with this content."""
    path = folder / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return examine_session(
        SessionFile(SESSION, str(path), 0, len(content)), Where(environ or {"HOME": str(folder)})
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_defect_is_found(case: Case, tmp_path: Path) -> None:
    """A defect is found with its code, record and severity.

    If the finding names a uuid, its record has this uuid.
    """
    report = examine_bytes(case.content, tmp_path)
    found = {group.kind.code: group for group in report.groups}
    assert case.defect_code in found
    group = found[case.defect_code]
    assert (group.kind.severity, group.defects[0].record_number) == (
        case.severity,
        case.record_number,
    )
    assert group.defects[0].message
    assert group.kind.consequence
    assert case.severity == "note" or not report.has_only_notes
    lines = case.content.split(b"\n")
    for defect in (defect for group in report.groups for defect in group.defects if defect.uuid):
        assert defect.record_number is not None
        assert orjson.dumps(defect.uuid) in lines[defect.record_number]


@pytest.mark.parametrize(
    "records",
    [
        conversation(3),
        [
            *conversation(1),
            tool_use("1", uuid="c", parent="r1", ts=2),
            tool_result("1", uuid="r", parent="c", ts=3),
            attachment("note", uuid="n", parent="r", ts=4),
            user("more", uuid="m", parent="n", ts=5),
            last_prompt("m"),
        ],
        [summary("sum", uuid="s", parent=None), user("on", uuid="u", parent="s", ts=1)],
        next(case.records for case in CHAIN_CASES if case.name == "a listed segment is spliced in"),
        next(
            case.records
            for case in CHAIN_CASES
            if case.name == "parallel calls come back with their results"
        ),
        next(
            case.records
            for case in CHAIN_CASES
            if case.name == "a segment of an earlier compaction is cut with it"
        ),
    ],
    ids=[
        "plain",
        "a call and a hint",
        "a summary at the root",
        "kept messages",
        "parallel calls",
        "two compactions",
    ],
)
def test_a_valid_session_has_no_finding(records: list[dict[str, object]], tmp_path: Path) -> None:
    """A valid session has no finding, not even a note."""
    assert examine_bytes(session_bytes(records), tmp_path).groups == ()


def test_an_abandoned_shorter_branch_is_not_a_finding(tmp_path: Path) -> None:
    """An abandoned branch that is shorter than the live one is not a finding.

    A rewind and a compaction create such branches.
    """
    rewound = [*conversation(2), *conversation(2, prefix="x", start=20)]
    rewound[4]["parentUuid"] = "r1"
    assert examine_bytes(session_bytes(rewound), tmp_path).groups == ()


def test_an_unreadable_session_is_a_finding(tmp_path: Path) -> None:
    """A session that was deleted, or that belongs to another program, is reported as unreadable."""
    gone = examine_session(
        SessionFile(SESSION, str(tmp_path / "gone.jsonl"), 0, 1), Where({"HOME": str(tmp_path)})
    )
    assert [group.kind.code for group in gone.groups] == ["session-unreadable"]
    foreign = examine_bytes(b'{"type":"session_meta","payload":{}}\n', tmp_path)
    assert [group.kind.code for group in foreign.groups] == ["session-unreadable"]


def test_missing_large_outputs_are_reported(config_home: ConfigHome) -> None:
    """A missing file of a large output is reported, and an existing one is not.

    The file is looked for only in the projects' folders.
    """
    saved = config_home.project() / SESSION / "tool-results" / "x.txt"
    text = "<persisted-output>\nOutput too large (46KB). Full output saved to: {}\n\nPreview"
    records = [
        *conversation(1),
        tool_use("1", uuid="c", parent="r1", ts=2),
        tool_result("1", text.format(saved), uuid="r", parent="c", ts=3),
        tool_use("2", uuid="d", parent="r", ts=4),
        tool_result("2", text.format("/etc/hostname"), uuid="s", parent="d", ts=5),
    ]
    report = examine_bytes(session_bytes(records), config_home.project(), config_home.environ)
    assert [(g.kind.code, [f.record_number for f in g.defects]) for g in report.groups] == [
        ("tool-output-gone", [3, 5])
    ]
    saved.parent.mkdir(parents=True)
    saved.write_text("whole")
    report = examine_bytes(session_bytes(records), config_home.project(), config_home.environ)
    assert [f.record_number for group in report.groups for f in group.defects] == [5]


def test_missing_file_backups_are_reported(config_home: ConfigHome) -> None:
    """A missing backup of a file is reported. It is looked for in the folder with the session's own id.

    A backup that is null in the record is not reported.
    """
    tracked = {"a.py": {"backupFileName": "1@v1"}, "b.py": {"backupFileName": None}}
    snapshot = {
        "type": "file-history-snapshot",
        "messageId": "r0",
        "snapshot": {"trackedFileBackups": tracked},
    }
    delta = {"type": "file-history-delta", "messageId": "r0", "backup": {"backupFileName": "2@v1"}}
    folder = config_home.config / "file-history" / SESSION
    folder.mkdir(parents=True)
    (folder / "2@v1").write_text("old")
    content = session_bytes([*conversation(1), snapshot, delta])
    report = examine_bytes(content, config_home.project(), config_home.environ)
    assert [(g.kind.code, g.kind.severity, g.defects[0].record_number) for g in report.groups] == [
        ("file-backup-gone", "note", 2)
    ]
    assert report.has_only_notes


def test_the_most_severe_group_is_first(tmp_path: Path) -> None:
    """A report lists the group of the most severe findings first."""
    case = next(case for case in CASES if case.defect_code == "history-cut")
    report = examine_bytes(case.content[:-1], tmp_path)
    ranks = [SEVERITIES.index(group.kind.severity) for group in report.groups]
    assert ranks == sorted(ranks)
    assert (report.count_findings("error"), report.count_findings("warning")) == (1, 1)


def test_a_report_does_not_change_the_file(config_home: ConfigHome) -> None:
    """A report does not change the bytes or the time of the session's file."""
    path = Path(write_session(config_home.project(), SESSION, conversation(2)))
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    examine_session(SessionFile(SESSION, str(path), 0, 0), config_home.where)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_real_sessions_have_only_known_errors(real_session: RealSession, tmp_path: Path) -> None:
    """Real sessions have errors only if a client really loses or refuses their content."""
    report = examine_session(real_session.file, Where({"HOME": str(tmp_path)}))
    assert bool(report.count_findings("error")) == (real_session.name in SESSIONS_WITH_ERRORS)
