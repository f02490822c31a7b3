"""Tests of the verb ``import``, which reads a file, standard input or a bundle."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from pathlib import Path

import pytest

from resume_hooks.cli.schema import schema_of_verb
from resume_hooks.paths import project_key
from tests import strangers
from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_bytes,
    session_id,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.cli.terminal_home import TerminalHome
from tests.derive.imports.test_bundle import write_bundle, write_project_session

TRANSCRIPT_BYTES = session_bytes([*conversation(3), custom_title("Fix the parser")])


def list_all_files(home: ConfigHome) -> list[str]:
    """Return the paths of all files in the client's folder."""
    return sorted(
        str(path.relative_to(home.config)) for path in home.config.rglob("*") if path.is_file()
    )


def test_import_reads_standard_input(document: Document, config_home: ConfigHome) -> None:
    """``import -`` reads standard input and adds the session to the project of the current folder.

    No other file is written.
    """
    data = document("import", "-", stdin=TRANSCRIPT_BYTES)["data"]
    assert data["imported"] == {
        "source": "the standard input",
        "bytes": len(TRANSCRIPT_BYTES),
        "sha256": hashlib.sha256(TRANSCRIPT_BYTES).hexdigest(),
        "lines": 7,
        "damaged": 0,
        "records": 6,
        "hidden": 0,
        "existing": None,
    }
    assert (data["written"], data["kind"], data["parent_session_id"]) == (True, "import", "")
    assert Path(data["file"]).parent.name == project_key(str(config_home.root / "here"))
    assert all(check["ok"] for check in data["checks"])
    assert list_all_files(config_home) == [str(Path(data["file"]).relative_to(config_home.config))]


def test_import_reads_a_file(cli: Cli, config_home: ConfigHome, tmp_path: Path) -> None:
    """``import`` reads a file, which may be compressed, and warns that its content is not verified."""
    path = tmp_path / "x.jsonl"
    packed = gzip.compress(TRANSCRIPT_BYTES)
    path.write_bytes(packed)
    done = cli("import", str(path))
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    for part in (
        "Fix the parser · import",
        str(path),
        "6 records of 7 lines",
        "17 of 17 checks passed",
        "The file's content is unverified: its author could write anything.",
        "/resume ",
        f"cd {config_home.root / 'here'} && claude --resume ",
    ):
        assert part in text
    assert path.read_bytes() == packed


def test_import_home_chooses_the_folder(
    document: Document, config_home: ConfigHome, tmp_path: Path
) -> None:
    """``import --home`` adds the session to the project of the given folder, which must exist."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(TRANSCRIPT_BYTES)
    data = document("import", str(path), "--home", str(tmp_path))["data"]
    assert Path(data["file"]).parent == config_home.config / "projects" / project_key(str(tmp_path))
    assert data["commands"]["shell"].startswith(f"cd {tmp_path} && ")
    document("import", str(path), "--home", str(tmp_path / "nowhere"), code=2)


def test_a_dry_run_imports_nothing(
    cli: Cli, document: Document, config_home: ConfigHome, tmp_path: Path
) -> None:
    """``import --dry-run`` prints the number of records, but no session id, and writes no file."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(TRANSCRIPT_BYTES)
    data = document("import", str(path), "--dry-run")["data"]
    assert (data["written"], data["checks"], data["imported"]["records"]) == (False, [], 6)
    assert (data["session_id"], data["file"]) == ("", "")
    said = cli("import", str(path), "--dry-run").stdout.decode()
    assert "would import" in said
    assert not re.search(r"[0-9a-f]{8}-|/resume", said)
    assert list_all_files(config_home) == []
    assert not Path(config_home.where.state).exists()


def test_a_second_import_names_the_existing_session(
    cli: Cli, document: Document, config_home: ConfigHome, tmp_path: Path
) -> None:
    """A second import of the same content writes no session and names the existing one.

    ``--force`` imports it again.
    """
    path = tmp_path / "x.jsonl"
    path.write_bytes(TRANSCRIPT_BYTES)
    first = document("import", str(path))["data"]
    again = document("import", "-", stdin=gzip.compress(TRANSCRIPT_BYTES))["data"]
    assert (again["written"], again["session_id"], again["file"]) == (False, "", "")
    assert again["parent_session_id"] == again["imported"]["existing"] == first["session_id"]
    text = cli("import", str(path)).stdout.decode()
    assert (
        "the same file was imported before, so nothing was written (--force creates another)"
        in text
    )
    assert f"/resume {first['session_id']}" in text
    assert len(list_all_files(config_home)) == 1
    forced = document("import", str(path), "--force")["data"]
    assert (forced["title"], forced["imported"]["existing"]) == ("Fix the parser · import 2", None)
    assert len(list_all_files(config_home)) == 2


def test_hidden_and_damaged_records_are_reported(cli: Cli, tmp_path: Path) -> None:
    """``import`` reports damaged records and hidden records.

    A hidden record is seen by the model but not shown on the screen.
    """
    path = tmp_path / "x.jsonl"
    records = conversation(2)
    records[2]["isMeta"] = True
    path.write_bytes(session_bytes([*records, b"garbage"]))
    text = cli("import", str(path)).stdout.decode()
    assert (
        "4 records of 5 lines, 1 damaged; 1 of them visible to the model but not on the screen"
        in text
    )


@pytest.mark.parametrize(
    ("last_bytes", "must_warn"),
    [(b'{"type":"us', True), (b'{"type":"x"}', False), (b"garbage\n", False)],
)
def test_a_truncated_input_is_reported(
    cli: Cli, document: Document, tmp_path: Path, last_bytes: bytes, must_warn: bool
) -> None:
    """``import`` warns if the input ends in the middle of a record."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(TRANSCRIPT_BYTES + last_bytes)
    told = "The file may be incomplete: it ends in the middle of a record."
    assert document("import", str(path), "--dry-run")["warnings"] == [told] * must_warn
    done = cli("import", "-", stdin=TRANSCRIPT_BYTES + last_bytes)
    assert (done.returncode, told in done.stderr.decode()) == (0, must_warn)


def test_hostile_names_are_printed_without_control_characters(cli: Cli, tmp_path: Path) -> None:
    """Control characters in the file's name and title are not printed."""
    path = tmp_path / "\x1b[31mred\x1b]0;owned\x07.jsonl"
    path.write_bytes(session_bytes([*conversation(1), custom_title("\x1b[2Jgone\u202e")]))
    done = cli("import", str(path))
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout
    assert "\u202e" not in done.stdout.decode()


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("https://me:secret@example.com/x.jsonl?key=secret", 2, "Web addresses are not supported"),
        ("file:///etc/passwd", 2, "Web addresses are not supported"),
        ("nowhere.jsonl", 1, "can't be read: No such file"),
        ("/etc", 1, "can't be read"),
        ("/dev/zero", 1, "can't be read"),
        ("/etc/passwd", 1, "has no Claude Code conversation"),
        ("", 1, "can't be read"),
        ("pipe", 1, "can't be read"),
    ],
)
def test_invalid_imports_are_refused(
    document: Document, config_home: ConfigHome, source: str, code: int, message: str
) -> None:
    """An invalid source is refused with one sentence and the documented exit code.

    The sentence does not repeat a web address, which may contain a key.
    """
    os.mkfifo(config_home.root / "here" / "pipe")
    error = document("import", source, code=code)["error"]
    assert message in error["message"]
    assert error["remedy"]
    assert code == 1 or error["remedy"] == "curl URL | resume-hooks import -"
    assert "secret" not in error["message"] + error["remedy"]
    assert list_all_files(config_home) == []


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (
            b"<!doctype html><title>Sign in</title>",
            "not-a-transcript",
            "is a web page, not a transcript",
        ),
        (b"", "not-a-transcript", "has no Claude Code conversation"),
        (bytes(200_000), "import-failed", "larger than"),
        (gzip.compress(bytes(10_000_000)), "import-failed", "larger than"),
    ],
)
def test_unusable_standard_input_is_refused(
    document: Document, config_home: ConfigHome, content: bytes, code: str, message: str
) -> None:
    """Standard input that is a page, empty or too large is refused, and no file is written."""
    error = document("import", "-", "--max-bytes", "100000", code=1, stdin=content)["error"]
    assert error["code"] == code
    assert message in error["message"]
    assert list_all_files(config_home) == []


@pytest.mark.parametrize(
    ("option", "message"), [("--start", "--start needs a terminal"), ("--whole", "not a bundle")]
)
def test_import_refuses_options_without_effect(
    document: Document, config_home: ConfigHome, option: str, message: str
) -> None:
    """``import`` refuses ``--start`` without a terminal, and ``--whole`` without a bundle."""
    assert (
        message
        in document("import", "-", option, code=2, stdin=TRANSCRIPT_BYTES)["error"]["message"]
    )
    assert list_all_files(config_home) == []


def test_import_refuses_a_session_of_this_machine(
    document: Document, config_home: ConfigHome, tmp_path: Path
) -> None:
    """``import`` refuses a session of this machine, and a link to one, and suggests a fork."""
    path = write_session(config_home.project(), SESSION, conversation(1))
    link = tmp_path / "x.jsonl"
    link.symlink_to(path)
    for name in (path, str(link)):
        error = document("import", name, code=2)["error"]
        assert "is a session of this machine" in error["message"]
        assert "resume-hooks fork" in error["remedy"]


def test_import_can_start_the_client(cli: Cli, tmp_path: Path) -> None:
    """``import --start`` starts the client with the new session, and fails without a client."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(session_bytes(strangers.hostile_records()))
    assert cli("import", str(path), "--start").returncode == 1
    client = tmp_path / "bin" / "claude"
    client.parent.mkdir()
    client.write_text('#!/bin/sh\necho "started in $PWD: $*"\n')
    client.chmod(0o755)
    done = cli(
        "import",
        str(path),
        "--start",
        "--home",
        str(tmp_path),
        environ={"PATH": f"{client.parent}:/usr/bin:/bin"},
    )
    assert done.returncode == 0
    assert f"started in {tmp_path}: --resume ".encode() in done.stdout


FIRST_ID, SECOND_ID = session_id(1), session_id(2)


@pytest.fixture
def bundle_of_two_sessions(config_home: ConfigHome) -> Path:
    """Write a bundle of two sessions, delete the sessions, and return the bundle's path."""
    sessions = [
        write_project_session(config_home, conversation(3, session_id=each), each)
        for each in (FIRST_ID, SECOND_ID)
    ]
    made = write_bundle(config_home, *sessions)
    for session in sessions:
        os.unlink(session.path)
    return made


def test_import_lists_the_sessions_of_a_bundle(
    document: Document, bundle_of_two_sessions: Path
) -> None:
    """The import of a bundle lists the old and the new id of each session.

    The receipt is that of the last session.
    """
    data = document("import", "-", "--whole", stdin=bundle_of_two_sessions.read_bytes())["data"]
    schema_of_verb("import").model_validate(data)
    assert (data["session_id"], data["kind"], data["written"]) == (SECOND_ID, "import", True)
    assert data["imported"] is None
    assert [(row["was"], row["session_id"], row["existing"]) for row in data["bundle"]] == [
        (FIRST_ID, FIRST_ID, False),
        (SECOND_ID, SECOND_ID, False),
    ]


def test_import_prints_how_to_continue_a_bundle(cli: Cli, bundle_of_two_sessions: Path) -> None:
    """The import of a bundle prints the commands that continue its sessions.

    A second import reports that both sessions are known.
    """
    done = cli("import", str(bundle_of_two_sessions))
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    for part in ("brought in", "only the conversations", "in Claude Code", "/resume "):
        assert part in text
    again = cli("import", str(bundle_of_two_sessions))
    assert again.stdout.count(b"known") == 2
    assert again.returncode == 0


def test_a_dry_run_of_a_bundle_imports_nothing(
    document: Document, bundle_of_two_sessions: Path, config_home: ConfigHome
) -> None:
    """``import --dry-run`` of a bundle writes no session."""
    answer = document("import", str(bundle_of_two_sessions), "--whole", "--dry-run")
    assert answer["data"]["written"] is False
    assert answer["warnings"] == [
        "A bundle has no file backups, so rewind-files can't restore files from before the import."
    ]
    assert {row["session_id"] for row in answer["data"]["bundle"]} == {""}
    assert list(config_home.config.rglob("*.jsonl")) == []


def test_resume_imports_a_file_after_a_question(
    terminal_home: TerminalHome, tmp_path: Path
) -> None:
    """``resume`` with a file asks whether to import it, and starts the client only after a yes."""
    page = tmp_path / "far.html"
    page.write_bytes(session_bytes([*conversation(2), custom_title("From afar")]))
    known = terminal_home.session_ids()
    words = ("resume", str(page), "--way", "go on")
    screen = terminal_home.run(*words)
    screen.wait_for(r"Y/n")
    screen.type("n\r")
    assert (screen.wait_for_end(), terminal_home.session_ids()) == (130, known)
    screen = terminal_home.run(*words)
    screen.wait_for(r"Y/n")
    screen.type("\r")
    screen.wait_for(r"STARTED --resume \S+ IN proj")
    assert screen.wait_for_end() == 0
    (made,) = terminal_home.session_ids() - known
    assert f"STARTED --resume {made}".encode() in screen.raw
    assert b"unverified" in screen.raw
