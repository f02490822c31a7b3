"""Tests of ``fsck``: its text, its document, and the exit code that says whether a session is broken."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from resume_hooks.cli.schema import schema_of_verb
from resume_hooks.maintenance.fsck.findings import MAX_LISTED_FINDINGS
from tests.builders import SESSION, ConfigHome, conversation, session_id, write_session
from tests.cli.conftest import Cli, Document
from tests.cli.fork_server import ForkServer
from tests.maintenance.fsck.cases import CASES, VALID_RECORDS

CONTENTS_BY_CASE = {case.name: case.content for case in CASES}


def write_broken_session(case_name: str, home: ConfigHome, number: int = 1) -> str:
    """Write a broken session to the project and return its id."""
    own = SESSION if number == 1 else session_id(number)
    (home.project() / f"{own}.jsonl").write_bytes(
        CONTENTS_BY_CASE[case_name].replace(SESSION.encode(), own.encode())
    )
    return own


def test_fsck_of_a_clean_session_prints_one_line(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """``fsck`` prints one line for a clean session and exits with code 0."""
    write_session(config_home.project(), SESSION, conversation(2))
    done = cli("fsck", SESSION)
    assert (done.returncode, done.stdout.decode()) == (0, f"{SESSION}: clean\n")
    (session,) = document("fsck", SESSION)["data"]["sessions"]
    assert (session["clean"], session["kinds"]) == (True, [])


def test_fsck_describes_a_defect(config_home: ConfigHome, cli: Cli) -> None:
    """``fsck`` prints a defect's kind, its effect on clients, its record and a remedy.

    It exits with code 1.
    """
    write_broken_session("bricked by a thinking signature", config_home)
    done = cli("fsck", SESSION)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 1
    assert lines[0].startswith("ERROR    thinking-unsigned: Clients send the thinking; the API")
    assert lines[1] == "         record 3: Thinking without a signature (t2)"
    assert lines[-2:] == [
        "1 error, 0 warnings, 0 notes.",
        f"resume-hooks fsck {SESSION} --repair writes a repaired child.",
    ]


def test_notes_do_not_make_a_session_broken(config_home: ConfigHome, cli: Cli) -> None:
    """For harmless records of the client, ``fsck`` prints only their number and exits with code 0.

    With ``--json``, it lists these records.
    """
    write_broken_session("closed during a tool call", config_home)
    done = cli("fsck", SESSION)
    assert done.returncode == 0
    assert (
        done.stdout.decode()
        == f"{SESSION}: clean (1 note with no effect on clients: --json lists the notes)\n"
    )


def test_fsck_json_lists_every_finding(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """``fsck --json`` lists each finding with its code, severity, record and uuid."""
    write_broken_session("history lost: the parent is not in the file", config_home)
    done = cli("fsck", SESSION, "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    schema_of_verb("fsck").model_validate(found["data"])
    (session,) = found["data"]["sessions"]
    assert (session["errors"], session["warnings"], session["notes"]) == (1, 0, 0)
    (kind,) = session["kinds"]
    assert (kind["code"], kind["severity"], kind["count"], kind["repairable"]) == (
        "history-cut",
        "error",
        1,
        True,
    )
    assert kind["findings"] == [
        {
            "record": 2,
            "uuid": "u2",
            "message": "Its parent gone leads nowhere; 1 earlier turns are lost",
        }
    ]


def test_fsck_limits_the_findings_of_a_kind(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """``fsck`` prints the first few findings of each kind and the number of further ones.

    With ``--json``, it lists more of them.
    """
    records = [{**record, "sessionId": "another"} for record in conversation(MAX_LISTED_FINDINGS)]
    path = Path(write_session(config_home.project(), SESSION, records))
    (session,) = document("fsck", SESSION)["data"]["sessions"]
    assert f"clean ({2 * MAX_LISTED_FINDINGS} notes" in cli("fsck", SESSION).stdout.decode()
    path.write_bytes(path.read_bytes() + b"\0" * 20 + b"\n")
    assert f"and {2 * MAX_LISTED_FINDINGS - 3} more" in cli("fsck", SESSION).stdout.decode()
    assert (session["kinds"][0]["count"], len(session["kinds"][0]["findings"])) == (
        2 * MAX_LISTED_FINDINGS,
        MAX_LISTED_FINDINGS,
    )


def test_fsck_all_prints_one_line_for_each_broken_session(
    config_home: ConfigHome, cli: Cli
) -> None:
    """``fsck --all`` prints one line for each broken session, and the totals at the end.

    After a session that cannot be read, ``fsck`` continues with the next one.
    """
    write_broken_session("bricked by a thinking signature", config_home, 1)
    write_broken_session("a block of NULs", config_home, 2)
    write_session(config_home.project(), session_id(3), conversation(1, session_id=session_id(3)))
    (config_home.project() / f"{session_id(4)}.jsonl").write_bytes(
        b'{"type":"session_meta","payload":{}}\n'
    )
    done = cli("fsck", "--all")
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr) == (1, b"")
    assert sorted(lines[:-1]) == sorted(
        [
            f"{SESSION}  1 error: thinking-unsigned",
            f"{session_id(2)}  1 warning: line-nul",
            f"{session_id(4)}  1 error: session-unreadable",
        ]
    )
    assert lines[-1] == "4 sessions, 1 clean, 3 with problems."


PROGRAM_AS_ANOTHER_USER = """
import difflib, encodings.ascii, os, shutil, sys, urllib.parse
from resume_hooks.cli import doctor, fsck, info, schema, search
from resume_hooks.maintenance import doctor as diagnosis
from resume_hooks.cli.main import main
from resume_hooks.paths import project_key
project_key("/")
for verb in ("doctor", "fsck", "info", "search"):
    schema.schema_of_verb(verb)
if os.geteuid() == 0:
    os.setuid(65534)
main(sys.argv[1:])
"""
"""A program that runs the command line as a user who may not read some folders.

If the tests run as root, the program switches to another user after all imports.
"""


@pytest.mark.parametrize("mode", [0, 0o444])
def test_verbs_report_folders_that_cannot_be_listed(
    mode: int, fork_server: ForkServer, tmp_path: Path
) -> None:
    """Verbs report a folder that they cannot list, in text and in documents, and exit with code 1.

    If a session is not found, the error says that it may be in a folder that cannot be listed.
    """
    (script := tmp_path / "hidden.py").write_text(PROGRAM_AS_ANOTHER_USER)

    def run_as_another_user(*words: str) -> subprocess.CompletedProcess[bytes]:
        return fork_server.run(
            words, {"PATH": "/usr/bin:/bin", **home.environ}, b"", "/", 60, str(script)
        )

    # The folder is outside the tests' own folder, to which the other user has no access.
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        home = ConfigHome(
            Path(root), Path(root, "config"), {"HOME": root, "CLAUDE_CONFIG_DIR": f"{root}/config"}
        )
        write_session(home.project("/open"), SESSION, conversation(1))
        os.chmod(home.project("/open") / f"{SESSION}.jsonl", 0o644)
        write_session(
            home.project("/closed"), session_id(2), conversation(1, session_id=session_id(2))
        )
        opened, closed = home.project("/open"), home.project("/closed")
        closed.chmod(mode)
        try:
            done = run_as_another_user("fsck", "--all")
            lines = [
                f"{closed}  can't be listed: check its permissions",
                "1 session, 1 clean, 0 with problems.",
            ]
            assert done.stdout.decode().splitlines()[:2] == lines
            assert (done.returncode, done.stderr) == (1, b"")
            data = json.loads(run_as_another_user("fsck", "--all", "--json").stdout)["data"]
            assert (data["unlistable"], len(data["sessions"])) == ([str(closed)], 1)
            for wanted in (session_id(2), "00000002", "A title"):
                assert (
                    f"check the permissions of {closed}"
                    in run_as_another_user("info", wanted).stderr.decode()
                )
            check_reports_of_hidden_folder(run_as_another_user, closed)
            for project, told in (("/closed", True), ("/open", False)):
                said = run_as_another_user("search", "linter", "--project", project).stderr.decode()
                assert (f"check the permissions of {closed}" in said) is told
            closed.parent.chmod(mode)
            check_reports_of_hidden_folder(run_as_another_user, closed if mode else closed.parent)
            data = json.loads(run_as_another_user("fsck", "--all", "--json").stdout)["data"]
            assert data["unlistable"] == (
                [str(closed), str(opened)] if mode else [str(closed.parent)]
            )
        finally:
            closed.parent.chmod(0o700)
            closed.chmod(0o700)


def check_reports_of_hidden_folder(run_as_another_user: Cli, folder: Path) -> None:
    """Check that ``search`` and ``doctor`` report a folder that they cannot list."""
    found = json.loads(run_as_another_user("search", "linter", "--all", "--json").stdout)
    assert any(f"check the permissions of {folder}" in warning for warning in found["warnings"])
    findings = json.loads(run_as_another_user("doctor", "--json").stdout)["data"]["findings"]
    finding = next(each for each in findings if each["name"] == "transcripts")
    assert (finding["level"], finding["code"]) == ("problem", "transcripts-hidden")
    assert finding["detail"].startswith(str(folder))


def test_repair_writes_a_clean_child(config_home: ConfigHome, cli: Cli, document: Document) -> None:
    """``fsck --repair`` writes a child without defects and does not change the broken session."""
    write_broken_session("history lost: the parent is not in the file", config_home)
    data = document("fsck", SESSION, "--repair")["data"]
    child = data["repair"]
    assert (child["kind"], child["written"], child["parent_session_id"], data["lost"]) == (
        "repair",
        True,
        SESSION,
        [],
    )
    assert all(check["ok"] for check in child["checks"])
    assert cli("fsck", child["session_id"]).returncode == 0
    assert cli("fsck", SESSION).returncode == 1


def test_repair_prints_a_receipt_and_lost_contents(config_home: ConfigHome, cli: Cli) -> None:
    """``fsck --repair`` prints a receipt and then a list of the contents that are missing in the child."""
    write_broken_session("a line of garbage", config_home)
    lines = cli("fsck", SESSION, "--repair").stdout.decode().splitlines()
    assert lines[0].startswith("wrote ")
    assert lines[-2:] == [
        "The following could not be kept:",
        "  record 2: 12 bytes that are not a JSON object",
    ]


def test_a_dry_run_of_a_repair_writes_nothing(config_home: ConfigHome, document: Document) -> None:
    """``fsck --repair --dry-run`` prints a receipt that names no child, and writes nothing."""
    write_broken_session("history lost: the parent is not in the file", config_home)
    child = document("fsck", SESSION, "--repair", "--dry-run")["data"]["repair"]
    assert (child["written"], child["session_id"], child["file"]) == (False, "", "")


def test_repair_of_a_clean_session_writes_nothing(config_home: ConfigHome, cli: Cli) -> None:
    """For a clean session, ``fsck --repair`` says that no repair is needed and writes nothing."""
    write_session(config_home.project(), SESSION, VALID_RECORDS)
    done = cli("fsck", SESSION, "--repair")
    assert (done.returncode, done.stdout.decode()) == (0, f"{SESSION}: clean, nothing to repair\n")
    assert len(list(config_home.project().iterdir())) == 1
