"""import: of a file, the standard input, a bundle; what is said of it, for people and as JSON."""

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
from tests.cli.desk import Desk
from tests.derive.imports.test_bundle import bundled, project_session

CONTENT = session_bytes([*conversation(3), custom_title("Fix the parser")])


def all_files(home: ConfigHome) -> list[str]:
    """Return every file below the config home."""
    return sorted(
        str(path.relative_to(home.config)) for path in home.config.rglob("*") if path.is_file()
    )


def test_the_standard_input(document: Document, config_home: ConfigHome) -> None:
    """What a pipe brings is checked, and a new session of the current folder.

    Nothing else is left of it.
    """
    data = document("import", "-", stdin=CONTENT)["data"]
    assert data["imported"] == {
        "source": "the standard input",
        "bytes": len(CONTENT),
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "lines": 7,
        "damaged": 0,
        "records": 6,
        "hidden": 0,
        "existing": None,
    }
    assert (data["written"], data["kind"], data["parent_session_id"]) == (True, "import", "")
    assert Path(data["file"]).parent.name == project_key(str(config_home.root / "here"))
    assert all(check["ok"] for check in data["checks"])
    assert all_files(config_home) == [str(Path(data["file"]).relative_to(config_home.config))]


def test_a_file(cli: Cli, config_home: ConfigHome, tmp_path: Path) -> None:
    """Any path, packed or not; the text says what was taken over, how to continue, and that nobody verified it."""
    path = tmp_path / "x.jsonl"
    packed = gzip.compress(CONTENT)
    path.write_bytes(packed)
    done = cli("import", str(path))
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    for part in (
        "Fix the parser · import",
        str(path),
        "6 records of 7 lines",
        "17 of 17 checks passed",
        "Its content is unverified: its author could write anything.",
        "/resume ",
        f"cd {config_home.root / 'here'} && claude --resume ",
    ):
        assert part in text
    assert path.read_bytes() == packed


def test_another_folder(document: Document, config_home: ConfigHome, tmp_path: Path) -> None:
    """--home names it; one that is not there is a usage error."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(CONTENT)
    data = document("import", str(path), "--home", str(tmp_path))["data"]
    assert Path(data["file"]).parent == config_home.config / "projects" / project_key(str(tmp_path))
    assert data["commands"]["shell"].startswith(f"cd {tmp_path} && ")
    document("import", str(path), "--home", str(tmp_path / "nowhere"), code=2)


def test_a_dry_run(cli: Cli, document: Document, config_home: ConfigHome, tmp_path: Path) -> None:
    """The same numbers, and nothing is written."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(CONTENT)
    data = document("import", str(path), "--dry-run")["data"]
    assert (data["written"], data["checks"], data["imported"]["records"]) == (False, [], 6)
    assert (data["session_id"], data["file"]) == ("", "")
    said = cli("import", str(path), "--dry-run").stdout.decode()
    assert "would import" in said
    assert not re.search(r"[0-9a-f]{8}-|/resume", said)
    assert all_files(config_home) == []
    assert not Path(config_home.where.state).exists()


def test_the_same_twice(
    cli: Cli, document: Document, config_home: ConfigHome, tmp_path: Path
) -> None:
    """The session that is there is named, and nothing is written unless that is forced."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(CONTENT)
    first = document("import", str(path))["data"]
    again = document("import", "-", stdin=gzip.compress(CONTENT))["data"]
    assert (again["written"], again["session_id"], again["file"]) == (False, "", "")
    assert again["parent_session_id"] == again["imported"]["existing"] == first["session_id"]
    text = cli("import", str(path)).stdout.decode()
    assert (
        "the same file was imported before, so nothing was written (--force creates another)"
        in text
    )
    assert f"/resume {first['session_id']}" in text
    assert len(all_files(config_home)) == 1
    forced = document("import", str(path), "--force")["data"]
    assert (forced["title"], forced["imported"]["existing"]) == ("Fix the parser · import 2", None)
    assert len(all_files(config_home)) == 2


def test_hidden_and_damaged_records_are_reported(cli: Cli, tmp_path: Path) -> None:
    """They are counted in the line about the imported records."""
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
    ("end", "warned"), [(b'{"type":"us', True), (b'{"type":"x"}', False), (b"garbage\n", False)]
)
def test_a_truncated_input_is_reported(
    cli: Cli, document: Document, tmp_path: Path, end: bytes, warned: bool
) -> None:
    """A last line that is half a record, where no length tells that more was to come.

    Also of a pipe, and before.
    """
    path = tmp_path / "x.jsonl"
    path.write_bytes(CONTENT + end)
    told = "It ends in the middle of a record: it may not be whole."
    assert document("import", str(path), "--dry-run")["warnings"] == [told] * warned
    done = cli("import", "-", stdin=CONTENT + end)
    assert (done.returncode, told in done.stderr.decode()) == (0, warned)


def test_a_hostile_name_and_title(cli: Cli, tmp_path: Path) -> None:
    """Nothing of them drives the terminal."""
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
def test_refused_imports(
    document: Document, config_home: ConfigHome, source: str, code: int, message: str
) -> None:
    """One sentence, the documented exit code, no secret and no file. An address may contain a key."""
    os.mkfifo(config_home.root / "here" / "pipe")
    error = document("import", source, code=code)["error"]
    assert message in error["message"]
    assert error["remedy"]
    assert code == 1 or error["remedy"] == "curl URL | resume-hooks import -"
    assert "secret" not in error["message"] + error["remedy"]
    assert all_files(config_home) == []


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
def test_the_inputs_that_a_pipe_may_contain(
    document: Document, config_home: ConfigHome, content: bytes, code: str, message: str
) -> None:
    """It is a page, empty, or too large: each case is reported, and nothing is kept."""
    error = document("import", "-", "--max-bytes", "100000", code=1, stdin=content)["error"]
    assert error["code"] == code
    assert message in error["message"]
    assert all_files(config_home) == []


@pytest.mark.parametrize(
    ("option", "message"), [("--start", "--start needs the terminal"), ("--whole", "not a bundle")]
)
def test_options_without_effect(
    document: Document, config_home: ConfigHome, option: str, message: str
) -> None:
    """A client on the rest of a pipe could not be typed into; a mere transcript is nobody's own."""
    assert message in document("import", "-", option, code=2, stdin=CONTENT)["error"]["message"]
    assert all_files(config_home) == []


def test_a_session_of_this_machine(
    document: Document, config_home: ConfigHome, tmp_path: Path
) -> None:
    """A copy of one is a fork, which stays linked; a link to one is one, too."""
    path = write_session(config_home.project(), SESSION, conversation(1))
    link = tmp_path / "x.jsonl"
    link.symlink_to(path)
    for name in (path, str(link)):
        error = document("import", name, code=2)["error"]
        assert "is a session of this machine" in error["message"]
        assert "resume-hooks fork" in error["remedy"]


def test_start(cli: Cli, tmp_path: Path) -> None:
    """Starts the client on the new session, in its folder; without a client nothing is made."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(session_bytes(strangers.hostile()))
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


ONE, TWO = session_id(1), session_id(2)


@pytest.fixture
def path(config_home: ConfigHome) -> Path:
    """A bundle of two sessions that are here no more."""
    sessions = [
        project_session(config_home, conversation(3, session_id=each), each) for each in (ONE, TWO)
    ]
    made = bundled(config_home, *sessions)
    for session in sessions:
        os.unlink(session.path)
    return made


def test_whole(document: Document, path: Path) -> None:
    """The receipt is that of the last session; each is reported with both of its names.

    Through a pipe as of a file.
    """
    data = document("import", "-", "--whole", stdin=path.read_bytes())["data"]
    schema_of_verb("import").model_validate(data)
    assert (data["session_id"], data["kind"], data["written"]) == (TWO, "import", True)
    assert data["imported"] is None
    assert [(row["was"], row["session_id"], row["existing"]) for row in data["bundle"]] == [
        (ONE, ONE, False),
        (TWO, TWO, False),
    ]


def test_conversations(cli: Cli, path: Path) -> None:
    """In words: what came, how, and the way on; then once more: it is known."""
    done = cli("import", str(path))
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    for part in ("brought in", "only their conversations", "in Claude Code", "/resume "):
        assert part in text
    again = cli("import", str(path))
    assert again.stdout.count(b"known") == 2
    assert again.returncode == 0


def test_a_dry_run_of_a_bundle(document: Document, path: Path, config_home: ConfigHome) -> None:
    """It says what would come; nothing does."""
    answer = document("import", str(path), "--whole", "--dry-run")
    assert answer["data"]["written"] is False
    assert answer["warnings"] == ["A bundle has no file backups: rewind-files starts without any."]
    assert {row["session_id"] for row in answer["data"]["bundle"]} == {""}
    assert list(config_home.config.rglob("*.jsonl")) == []


def test_a_page_is_asked_about_and_imported(desk: Desk, tmp_path: Path) -> None:
    """It becomes a session of this folder, and the client starts on that.

    Without a yes nothing is made.
    """
    page = tmp_path / "far.html"
    page.write_bytes(session_bytes([*conversation(2), custom_title("From afar")]))
    known = desk.session_ids()
    words = ("resume", str(page), "--way", "go on")
    screen = desk.run(*words)
    screen.wait_for(r"Y/n")
    screen.type("n\r")
    assert (screen.ended(), desk.session_ids()) == (130, known)
    screen = desk.run(*words)
    screen.wait_for(r"Y/n")
    screen.type("\r")
    screen.wait_for(r"STARTED --resume \S+ IN proj")
    assert screen.ended() == 0
    (made,) = desk.session_ids() - known
    assert f"STARTED --resume {made}".encode() in screen.raw
    assert b"unverified" in screen.raw
