"""Tests of the verb ``scrub``: its report, its question and its errors."""

from __future__ import annotations

import errno
import json
import os
import random
import sys
from pathlib import Path

import pexpect
import pytest

from resume_hooks.derive.child.write_child import write_child
from resume_hooks.errors import WriteFailed
from resume_hooks.parts.secrets import child, purge
from resume_hooks.parts.secrets.cleaner import SecretCleaner
from resume_hooks.sessions.locate import session_file
from tests.builders import SESSION, ConfigHome, assistant, session_bytes, session_id, user
from tests.cli.conftest import Cli, Document
from tests.needs import REPO
from tests.parts.secrets.scrub.planting import (
    OLD_FILE_TIME,
    SECRETS,
    find_secrets_by_path,
    write_old_file,
)
from tests.redaction.examples import examples
from tests.redaction.planted import random_chars

FIRST_SECRET = SECRETS[0]


@pytest.fixture
def session_with_secret(config_home: ConfigHome) -> Path:
    """Write a session with a secret and return its path."""
    rows = [user(f"it is {FIRST_SECRET}", uuid="u"), assistant("noted", uuid="a", parent="u", ts=1)]
    return write_old_file(config_home.project() / f"{SESSION}.jsonl", session_bytes(rows))


def test_scrub_lists_the_places_that_still_contain_secrets(
    session_with_secret: Path, document: Document
) -> None:
    """``scrub`` writes a child without secrets.

    The output lists each place that still contains a secret, with the command that removes the
    secret there.
    """
    found = document("scrub", SESSION)
    data = found["data"]
    assert (data["written"], data["in_place"], data["receipt"]["kind"]) == (True, False, "scrub")
    assert FIRST_SECRET.encode() not in Path(data["receipt"]["file"]).read_bytes()
    assert [
        (place["kind"], place["relation"], place["secrets"], place["state"])
        for place in data["places"]
    ] == [("transcript", "own", {"github-pat": 1}, "held")]
    assert any(
        f"resume-hooks scrub {SESSION} --in-place" in warning for warning in found["warnings"]
    )
    assert FIRST_SECRET in session_with_secret.read_text()
    assert FIRST_SECRET not in json.dumps(found)


def test_scrub_in_place_rewrites_the_file(session_with_secret: Path, document: Document) -> None:
    """``scrub --in-place`` rewrites the file and keeps its time; a second run finds no secret."""
    data = document("scrub", SESSION, "--in-place", "--yes")["data"]
    assert (data["written"], data["receipt"], data["places"][0]["state"]) == (True, None, "removed")
    assert FIRST_SECRET not in session_with_secret.read_text()
    assert session_with_secret.stat().st_mtime == OLD_FILE_TIME
    again = document("scrub", SESSION, "--in-place", "--yes")["data"]
    assert (again["written"], again["places"]) == (False, [])
    assert document("scrub", SESSION)["data"]["receipt"] is None


def test_scrub_reports_an_unreadable_place(
    session_with_secret: Path, config_home: ConfigHome, cli: Cli
) -> None:
    """``scrub`` fails and reports a folder that it cannot read, because it may contain a secret."""
    note = config_home.config / "resume-hooks" / "vault" / session_id(9) / "manifest.json"
    note.parent.mkdir(parents=True)
    note.write_text("{")
    for _ in range(2):
        done = cli("scrub", SESSION, "--in-place", "--yes")
        assert done.returncode == 1
        assert (
            f"Not removed, or possibly not removed, from:\n  other vault  {note.parent}\n    It could not be read"
            in done.stdout.decode()
        )
    assert FIRST_SECRET not in session_with_secret.read_text()


def test_scrub_in_place_rewrites_an_archived_copy(
    session_with_secret: Path, config_home: ConfigHome, cli: Cli
) -> None:
    """``scrub --in-place`` rewrites an archived copy and shows the session's title without the secret."""
    assert cli("archive", SESSION).returncode == 0
    write_old_file(
        config_home.config / "resume-hooks" / "pending" / "waiting-x", FIRST_SECRET.encode()
    )
    session_with_secret.unlink()
    done = cli("scrub", SESSION, "--in-place", "--yes")
    assert done.returncode == 0
    assert "session      it is [secret removed: github-pat]" in done.stdout.decode()
    assert find_secrets_by_path(config_home) == {}
    assert cli("scrub", SESSION, "--in-place", "--yes").stdout.decode().count("none was found") == 1


@pytest.mark.parametrize("words", [(), ("--in-place",)])
def test_a_dry_run_changes_no_file(
    session_with_secret: Path, config_home: ConfigHome, cli: Cli, words: tuple[str, ...]
) -> None:
    """``scrub --dry-run`` lists the places of a secret, does not print the secret, and changes no file."""
    before = {each: each.read_bytes() for each in config_home.root.rglob("*") if each.is_file()}
    done = cli("scrub", SESSION, "--dry-run", *words)
    assert done.returncode == 0
    assert str(session_with_secret) in done.stdout.decode()
    assert "Nothing was written." in done.stdout.decode()
    assert FIRST_SECRET not in (done.stdout + done.stderr).decode()
    assert {
        each: each.read_bytes() for each in config_home.root.rglob("*") if each.is_file()
    } == before


def test_scrub_removes_a_secret_from_standard_input(
    session_with_secret: Path, document: Document, cli: Cli
) -> None:
    """``scrub --secret-stdin`` removes the secret on standard input and never prints it."""
    write_old_file(
        session_with_secret,
        session_with_secret.read_bytes().replace(FIRST_SECRET.encode(), b"open sesame today"),
    )
    assert document("scrub", SESSION, "--in-place", "--yes")["data"]["written"] is False
    done = cli(
        "scrub", SESSION, "--in-place", "--yes", "--secret-stdin", stdin=b"open sesame today\n"
    )
    assert done.returncode == 0
    assert b"sesame" not in done.stdout + done.stderr
    assert "[secret removed: named]" in session_with_secret.read_text()


def test_an_unscrubbed_place_sets_the_exit_code(
    session_with_secret: Path, document: Document, cli: Cli
) -> None:
    """``scrub`` fails if a file of the session still contains a secret."""
    picture = write_old_file(
        session_with_secret.with_suffix("") / "tool-results" / "a.bin",
        b"\0" + FIRST_SECRET.encode(),
    )
    done = cli("scrub", SESSION, "--in-place", "--yes", "--json")
    data = json.loads(done.stdout)["data"]
    assert (done.returncode, [place["state"] for place in data["places"]]) == (
        1,
        ["left", "removed"],
    )
    assert picture.stat().st_mtime == OLD_FILE_TIME
    assert document("scrub", SESSION)["data"]["receipt"] is None


def test_scrub_can_be_limited_to_one_kind_of_secret(
    session_with_secret: Path, document: Document
) -> None:
    """``scrub --kind`` removes only secrets of that kind."""
    assert document("scrub", SESSION, "--kind", "aws-access-token")["data"]["receipt"] is None
    assert (
        document("scrub", SESSION, "--kind", "github-pat", "--in-place", "--yes")["data"]["written"]
        is True
    )
    assert FIRST_SECRET not in session_with_secret.read_text()


def test_an_open_session_is_not_scrubbed_in_place(
    session_with_secret: Path, document: Document
) -> None:
    """``scrub --in-place`` refuses an open session. Without ``--in-place``, ``scrub`` makes a child of it."""
    os.utime(session_with_secret)
    assert (
        document("scrub", SESSION, "--in-place", "--yes", code=1)["error"]["code"] == "session-open"
    )
    assert FIRST_SECRET in session_with_secret.read_text()
    assert document("scrub", SESSION)["data"]["open"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--in-place"], "needs a confirmation"),
        (["--in-place", "--json"], "needs a confirmation"),
        (["--in-place", "--yes", "--start"], "creates no child"),
        (["--everywhere"], "works only with --in-place"),
        (["--secret-stdin"], "No secret was given"),
        (["--all", "--in-place", "--yes"], "--all works only with --list"),
        (["--project"], "--project works only with --list"),
        (["--since", "7d"], "--since works only with --list"),
        (["--list", "--in-place", "--yes"], "--in-place and --list can't be combined"),
        (["--list", "--secret-stdin"], "--secret-stdin and --list can't be combined"),
        (["--list", "--start"], "--start and --list can't be combined"),
        (["--list", "--output-dir", "."], "--output-dir and --list can't be combined"),
    ],
)
def test_contradictory_scrub_options_are_refused(
    session_with_secret: Path, cli: Cli, words: list[str], message: str
) -> None:
    """``scrub`` refuses contradictory options before it reads or writes a file."""
    before = sorted(session_with_secret.parents[3].rglob("*"))
    done = cli("scrub", SESSION, *words)
    assert done.returncode == 2
    assert message in (done.stdout + done.stderr).decode()
    assert FIRST_SECRET in session_with_secret.read_text()
    assert sorted(session_with_secret.parents[3].rglob("*")) == before


@pytest.mark.parametrize(("answer", "is_secret_left"), [("n", True), ("y", False)])
def test_scrub_asks_on_a_terminal(
    session_with_secret: Path, config_home: ConfigHome, answer: str, is_secret_left: bool
) -> None:
    """``scrub`` on a terminal lists the places, and removes the secrets only after a yes."""
    env = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(REPO / "src"),
        "TERM": "dumb",
        **config_home.environ,
    }
    words = ["-m", "resume_hooks", "scrub", SESSION, "--in-place"]
    with pexpect.spawn(
        sys.executable, words, env=env, cwd=str(config_home.root), encoding="utf-8", timeout=30
    ) as shell:
        shell.expect("transcript")
        shell.expect("Remove the secrets for good")
        shell.sendline(answer)
        shell.expect(pexpect.EOF)
    assert (FIRST_SECRET in session_with_secret.read_text()) is is_secret_left


TRUNCATED_KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + random_chars(random.Random(7), 64)


@pytest.fixture
def files_with_examples(config_home: ConfigHome) -> list[Path]:
    """Write a session and a text file with all examples of secrets between multi-byte characters."""
    rows, parent = [], None
    for number, one in enumerate(examples()):
        rows.append(user(f"…{one.text}…", uuid=f"u{number}", parent=parent, ts=number))
        parent = f"u{number}"
    rows.append(assistant(f"{TRUNCATED_KEY}…", uuid="a", parent=parent, ts=len(rows)))
    session = config_home.project() / f"{SESSION}.jsonl"
    text = session.with_suffix("") / "tool-results" / "out.txt"
    text.parent.mkdir(parents=True)
    text.write_text(
        "\n\n".join(f"“{one.text}”" for one in examples()) + f"\n\n{TRUNCATED_KEY}…",
        encoding="utf-8",
    )
    write_old_file(session, session_bytes(rows))
    return [session, text]


@pytest.mark.part("share")
def test_every_output_is_valid_utf_8(
    files_with_examples: list[Path], document: Document, tmp_path: Path
) -> None:
    """Exports, shares and scrubs are valid UTF-8 and keep the characters around secrets."""
    session, text = files_with_examples
    page, shared = tmp_path / "page.html", tmp_path / "shared.html"
    document("export", SESSION, "-o", str(page))
    document("share", SESSION, "-o", str(shared), "--yes")
    child = document("scrub", SESSION)["data"]["receipt"]["file"]
    document("scrub", SESSION, "--in-place", "--yes")
    for path in (page, shared, Path(child), session, text):
        assert TRUNCATED_KEY[-64:] not in path.read_text(encoding="utf-8")
    said = [
        json.loads(row)["message"]["content"]
        for row in session.read_text(encoding="utf-8").splitlines()
    ]
    assert [row[0] + row[-1] for row in said[:-1]] == ["……"] * len(examples())
    assert text.read_text(encoding="utf-8").count("”") == len(examples())


def test_a_full_disk_is_reported(
    session_with_secret: Path, config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk, a scrubbed child is not written, and the error states the reason."""
    outputs = session_with_secret.with_suffix("") / "tool-results"
    outputs.mkdir(parents=True)
    (outputs / "x.txt").write_text(f"it is {FIRST_SECRET}")

    def raise_full_disk(*_: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "scrub")

    monkeypatch.setattr(purge, "make_private_folder", raise_full_disk)
    with pytest.raises(WriteFailed, match="No space left"):
        write_child(
            child.plan_scrubbed_child(
                session_file(str(session_with_secret)), config_home.where, SecretCleaner()
            ),
            config_home.where,
        )
    assert [*session_with_secret.parent.glob("*.jsonl")] == [session_with_secret]
    assert [each.name for each in session_with_secret.parent.iterdir() if each.is_dir()] == [
        SESSION
    ]
