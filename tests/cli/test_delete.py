"""Tests of ``delete``: it asks first and reports dependent sessions, and ``restore`` reverts it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pexpect
import pytest

from resume_hooks.derive.originals import OriginalFinder
from resume_hooks.transcripts.placeholders import Origin
from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.needs import REPO

OLD_MTIME = 1_700_000_000
CHILD_ID, THIRD_ID = session_id(2), session_id(3)


@pytest.fixture
def old_parent(config_home: ConfigHome) -> Path:
    """Write an old session with a trimmed child, and return the path of the parent."""
    metadata = {"trim_metadata": {"parent_file": str(config_home.project() / f"{SESSION}.jsonl")}}
    child = [metadata, *conversation(1, session_id=CHILD_ID), custom_title("The child", CHILD_ID)]
    write_session(config_home.project(), CHILD_ID, child, mtime=OLD_MTIME)
    return Path(
        write_session(
            config_home.project(),
            SESSION,
            [*conversation(2), custom_title("Mine")],
            mtime=OLD_MTIME,
        )
    )


def start_command_on_terminal(home: ConfigHome, *words: str) -> pexpect.spawn[str]:
    """Run the command line on a pseudo-terminal."""
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPO / "src"), "TERM": "dumb", **home.environ}
    command = ["-m", "resume_hooks", *words]
    return pexpect.spawn(
        sys.executable, command, env=env, cwd=str(home.root), encoding="utf-8", timeout=30
    )


@pytest.mark.parametrize("verb", ["info", "handoff", "continue", "resume", "outline"])
def test_other_verbs_suggest_restoring_a_deleted_session(
    old_parent: Path, cli: Cli, document: Document, verb: str
) -> None:
    """If a session is in the trash, other verbs name the command that restores it.

    They recognize the session by its id, a prefix of the id, its path, or its title.
    """
    document("delete", SESSION, "--yes")
    document("restore", SESSION)
    document("delete", SESSION, "--yes")
    for words in (SESSION, SESSION[:8], str(old_parent), "title:Mine"):
        error = document(verb, words, code=1)["error"]
        assert (error["code"], error["message"]) == (
            "session-not-found",
            f"'Mine' ({SESSION}) is in the trash",
        )
    way = error["remedy"].partition(": resume-hooks ")[2]
    assert cli(*way.split()).returncode == 0
    assert old_parent.exists()


def test_restore_prefers_an_exact_title(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """If a session in the vault has exactly the typed title, ``restore`` prefers it to one in the trash.

    The title of the session in the trash only contains the typed title.
    """
    for number, title in ((SESSION, "Mine and more"), (CHILD_ID, "Mine")):
        write_session(
            config_home.project(),
            number,
            [*conversation(2, session_id=number), custom_title(title, number)],
        )
    assert cli("archive", CHILD_ID).returncode == 0
    assert cli("delete", SESSION, "--yes", "--force").returncode == 0
    assert document("restore", "Mine", "--dry-run")["data"]["kept"]["session_id"] == CHILD_ID
    assert document("restore", "and more", "--dry-run")["data"]["session"]["session_id"] == SESSION


def test_a_deleted_session_is_listed_and_restored(
    old_parent: Path, cli: Cli, document: Document
) -> None:
    """``restore`` without a session lists the deleted session; ``restore`` with its title restores it.

    While the session is deleted, its child's ``lineage`` shows that the file is missing.
    """
    before = old_parent.read_bytes()
    data = document("delete", "Mine", "--yes")["data"]
    assert (data["written"], data["session"]["file"], data["session"]["complete"]) == (
        True,
        str(old_parent),
        True,
    )
    assert [row["session_id"] for row in data["derived"]] == [CHILD_ID]
    assert not old_parent.exists()
    assert b"(file gone)" in cli("lineage", CHILD_ID).stdout
    assert document("info", SESSION, code=1)["error"]["code"] == "session-not-found"
    (row,) = document("restore")["data"]["trash"]
    assert (row["title"], row["kept_in"]) == ("Mine", data["session"]["kept_in"])
    assert row["locator"] == f"{SESSION}@{os.path.basename(row['kept_in'])}"
    assert b"Mine\n" in cli("restore", "--list").stdout
    assert document("restore", "Mine", "--dry-run")["data"]["written"] is False
    assert not old_parent.exists()
    back = document("restore", "Mine")
    assert (back["data"]["session"]["file"], back["data"]["written"]) == (str(old_parent), True)
    assert "keeps it for 7 days more" in back["warnings"][0]
    assert old_parent.read_bytes() == before
    assert cli("restore").stdout == b"The trash is empty.\n"


def test_delete_asks_for_confirmation(old_parent: Path, config_home: ConfigHome) -> None:
    """``delete`` asks for confirmation and shows the session's title, age and descendants.

    If the user only presses Enter, nothing is deleted.
    """
    terminal = start_command_on_terminal(config_home, "delete", SESSION)
    for words in (
        "Mine",
        SESSION,
        "last written",
        "2023-11-14",
        "not deleted: 1 session",
        "The child",
        "untrim",
    ):
        terminal.expect_exact(words)
    terminal.expect_exact("Move the session to the trash? [y/N]")
    terminal.sendline("")
    terminal.expect_exact("Nothing was deleted.")
    terminal.expect(pexpect.EOF)
    assert old_parent.exists()
    terminal = start_command_on_terminal(config_home, "delete", SESSION)
    terminal.expect_exact("[y/N]")
    terminal.sendline("y")
    terminal.expect_exact(f"restore {SESSION}")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert (terminal.exitstatus, old_parent.exists()) == (0, False)


def test_interrupting_the_question_deletes_nothing(
    old_parent: Path, config_home: ConfigHome
) -> None:
    """Ctrl+C at the question ends the command with exit code 130, and nothing is deleted."""
    terminal = start_command_on_terminal(config_home, "delete", SESSION)
    terminal.expect_exact("[y/N]")
    terminal.sendintr()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert (terminal.exitstatus, old_parent.exists()) == (130, True)


def test_empty_trash_asks_and_removes_entries(
    old_parent: Path, config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """``delete --empty-trash`` asks before it removes sessions; ``--older-than`` spares recent deletions."""
    assert b"nothing in the trash" in cli("delete", "--empty-trash", "--yes").stdout
    cli("delete", SESSION, "--yes")
    assert (
        document("delete", "--empty-trash", "--older-than", "1", "--yes")["data"]["emptied"] == []
    )
    would = document("delete", "--empty-trash", "--dry-run")["data"]
    assert ([row["session_id"] for row in would["emptied"]], would["written"]) == ([SESSION], False)
    terminal = start_command_on_terminal(config_home, "delete", "--empty-trash")
    terminal.expect_exact("for good? [y/N]")
    terminal.sendline("n")
    terminal.expect_exact("Nothing was removed.")
    terminal.expect(pexpect.EOF)
    done = cli("delete", "--empty-trash", "--yes")
    assert done.stdout.startswith(b"Removed for good: 1 session, ")
    assert document("restore", SESSION, code=1)["error"]["code"] == "session-not-found"


def test_delete_refuses_an_open_session_without_force(
    config_home: ConfigHome, document: Document
) -> None:
    """``delete`` refuses to delete an open session, but ``delete --force`` moves it to the trash.

    ``--dry-run`` shows why ``delete`` considers the session open.
    """
    write_session(config_home.project(), SESSION, conversation(1))
    assert document("delete", SESSION, "--yes", code=1)["error"]["code"] == "session-open"
    assert "seconds ago" in document("delete", SESSION, "--dry-run")["data"]["open"]
    assert document("delete", SESSION, "--yes", "--force")["data"]["written"]


def test_restore_of_an_unknown_id_suggests_a_list(old_parent: Path, document: Document) -> None:
    """If ``restore`` does not find the session, it suggests ``restore --list``.

    If there are no deleted and no archived sessions, it suggests ``sessions`` instead.
    """
    unknown = document("restore", "abcdef12", code=1)["error"]
    assert unknown["message"].endswith("'abcdef12': both are empty")
    assert unknown["remedy"] == "See: resume-hooks sessions"
    document("delete", old_parent.stem, "--yes")
    assert "restore --list" in document("restore", "abcdef12", code=1)["error"]["remedy"]
    assert "'#72' for" in document("info", "abcdef12", code=1)["error"]["remedy"]


def test_doctor_shows_the_trash(old_parent: Path, cli: Cli, document: Document) -> None:
    """``doctor`` shows the number of deleted sessions, and reports an interrupted deletion."""
    kept = document("delete", SESSION, "--yes")["data"]["session"]["kept_in"]

    def read_trash_finding() -> tuple[str, str]:
        findings = json.loads(cli("doctor", "--json").stdout)["data"]["findings"]
        (row,) = [row for row in findings if row["name"] == "trash"]
        return row["level"], row["detail"]

    assert read_trash_finding()[0] == "ok"
    assert "deleted sessions: 1, " in read_trash_finding()[1]
    manifest = Path(kept) / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"complete": False}))
    assert read_trash_finding() == ("note", "a deletion was interrupted")
    assert b"interrupted" in cli("restore", "--list").stdout


def test_an_error_suggests_restoring_a_deleted_original(
    old_parent: Path, config_home: ConfigHome, document: Document
) -> None:
    """If a placeholder's original is in a deleted session, the error names the ``restore`` command."""
    record = user("shortened", uuid="x") | Origin(
        SESSION, str(old_parent), "r0", 0
    ).make_trim_fields(0)
    assert "restore" not in OriginalFinder(config_home.where).describe_original_location(record)
    document("delete", SESSION, "--yes")
    assert (
        OriginalFinder(config_home.where)
        .describe_original_location(record)
        .endswith(f"resume-hooks restore {SESSION}")
    )


def test_control_characters_in_a_title_are_not_printed(config_home: ConfigHome, cli: Cli) -> None:
    """``delete`` and ``restore`` remove control characters from a title that they print."""
    write_session(config_home.project(), SESSION, [*conversation(1)], mtime=OLD_MTIME)
    target = config_home.project() / f"{SESSION}.jsonl"
    escaped = '{"type":"custom-title","customTitle":"\\u001b]0;owned\\u0007red \\u001b[31m\\u202eevil \\ud800"}\n'
    target.write_bytes(target.read_bytes() + escaped.encode())
    os.utime(target, (OLD_MTIME, OLD_MTIME))
    shown = b"".join(
        done.stdout + done.stderr
        for done in (
            cli("delete", SESSION, "--dry-run"),
            cli("delete", SESSION, "--yes"),
            cli("restore"),
        )
    )
    assert b"red evil" in shown
    assert not any(byte in shown for byte in (b"\x1b", b"\x07", "\u202e".encode()))


def test_the_receipt_of_a_deletion_names_the_restore_command(old_parent: Path, cli: Cli) -> None:
    """``delete`` prints the file, the project, and a command that restores exactly this deletion."""
    told = cli("delete", SESSION, "--yes").stdout.decode()
    assert str(old_parent) in told
    assert "/home/user/proj" in told
    assert f"resume-hooks restore {SESSION}@20" in told


def test_each_deletion_of_a_session_can_be_restored(
    old_parent: Path, config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """If a session was deleted twice, ``restore`` lists both deletions, newest first.

    If a session with the same id exists again, the error names the commands that replace this
    session.
    """
    document("delete", SESSION, "--yes")
    write_session(
        config_home.project(), SESSION, [*conversation(1), custom_title("anew")], mtime=OLD_MTIME
    )
    document("delete", SESSION, "--yes")
    refused = cli("restore", SESSION)
    newest, oldest = [
        line for line in refused.stderr.decode().splitlines() if f"{SESSION}@" in line
    ]
    assert refused.returncode == 2
    assert ("anew" in newest, "Mine" in oldest, "bytes" in newest) == (True, True, True)
    assert newest.split()[0] in cli("restore", "--list").stdout.decode()
    document("restore", newest.split()[0])
    taken = document("restore", oldest.split()[0], code=1)["error"]
    assert (
        taken["remedy"]
        == f"First: resume-hooks delete {old_parent}, then: resume-hooks restore {oldest.split()[0]}"
    )
    document("delete", str(old_parent), "--yes")
    assert document("restore", oldest.split()[0])["data"]["session"]["title"] == "Mine"


def test_a_stray_folder_in_the_trash_is_reported(
    old_parent: Path, cli: Cli, document: Document
) -> None:
    """``restore``, ``doctor`` and ``--empty-trash`` report invalid folders in the trash.

    ``--empty-trash`` finishes the removal of folders that were only partly removed. With
    ``--damaged`` it also removes folders of unknown origin.
    """
    kept = Path(document("delete", SESSION, "--yes")["data"]["session"]["kept_in"])
    half = kept.parent / "2026-01-01T00-00-00.000Z.gone"
    half.mkdir()
    (half / "x").write_bytes(b"x" * 10)
    (kept / "manifest.json").write_bytes(b"{")
    shown = cli("restore", "--list").stdout.decode()
    assert "1 partly removed folder, 10 B" in shown
    assert "1 unknown folder" in shown
    assert str(kept) in shown
    assert b"1 partly removed folder, 1 unknown folder" in cli("doctor").stdout
    assert len(document("restore")["data"]["strays"]) == 2
    done = cli("delete", "--empty-trash", "--yes")
    assert done.stdout.startswith(b"Removed for good: 1 partly removed folder, 10 B")
    assert str(kept) in done.stderr.decode()
    assert (half.exists(), kept.exists()) == (False, True)
    assert cli("delete", "--empty-trash", "--damaged", "--yes").stdout.startswith(
        b"Removed for good: 1 unknown folder"
    )
    assert cli("restore").stdout == b"The trash is empty.\n"
