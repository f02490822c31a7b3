"""Tests of ``archive``, and of ``restore`` from the vault, on the command line."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from resume_hooks.archive import link_sessions
from resume_hooks.archive.vault import trash
from resume_hooks.sessions import held_links
from resume_hooks.sessions.archived.manifest import list_archived
from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    conversation,
    custom_title,
    session_id,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document

OLD_MTIME = 1_700_000_000
OTHER_ID = session_id(2)


@pytest.fixture
def old_session(config_home: ConfigHome) -> Path:
    """Write an old session and a second session, and return the path of the old one."""
    rows = [*conversation(1, session_id=OTHER_ID), custom_title("The other", OTHER_ID)]
    write_session(config_home.project(), OTHER_ID, rows, mtime=OLD_MTIME)
    return Path(
        write_session(
            config_home.project(),
            SESSION,
            [*conversation(2), custom_title("Mine")],
            mtime=OLD_MTIME,
        )
    )


def run_archive_verify(cli: Cli) -> list[dict[str, str]]:
    """Return the findings of ``archive --verify``."""
    done = cli("archive", "--verify", "--json")
    assert done.returncode == 1
    found: list[dict[str, str]] = json.loads(done.stdout)["data"]["findings"]
    return found


def test_an_archived_session_is_verified_and_restored(
    old_session: Path, cli: Cli, document: Document
) -> None:
    """``archive`` copies a session, ``--verify`` checks the copy, and ``restore`` writes it back.

    The first copy causes a warning that explains how to turn archiving off. A second ``archive``
    does not change the copy.
    """
    before = old_session.read_bytes()
    assert document("archive", "Mine", "--dry-run")["data"]["archived"][0]["result"] == "kept"
    assert document("archive", "--list")["data"]["vault"] == []
    first = document("archive", "Mine")
    (row,) = first["data"]["archived"]
    assert (row["result"], row["packed"], row["kept"]["form"]) == ("kept", True, "packed")
    assert any("config vault off" in warning for warning in first["warnings"])
    again = document("archive", "Mine")
    assert (
        again["data"]["archived"][0]["result"],
        again["data"]["written"],
        again["warnings"],
    ) == (
        "unchanged",
        False,
        [],
    )
    assert b"2 sessions" in cli("archive", "--all").stdout
    verified = document("archive", "--verify")["data"]
    assert (verified["findings"], verified["unhashed"]) == ([], 0)
    assert verified["verified"] > len(before)
    old_session.unlink()
    assert b"Mine" in cli("restore", "--list").stdout
    assert document("restore", "Mine", "--dry-run")["data"]["written"] is False
    back = document("restore", SESSION[:8])["data"]
    assert (back["kept"]["session_id"], back["kept"]["file"], back["written"]) == (
        SESSION,
        str(old_session),
        True,
    )
    assert old_session.read_bytes() == before
    assert b"is there" in cli("restore", SESSION).stdout


def test_verify_reports_damaged_and_unreadable_copies(
    old_session: Path, config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """``archive --verify`` reports damaged and unreadable copies, and exits with code 1.

    ``archive --list`` and ``doctor`` also report an unreadable folder.
    """
    cli("archive", "--all")
    kept = next(each for each in list_archived(config_home.where) if each.session_id == SESSION)
    pack = Path(kept.folder, kept.transcript.where)
    pack.write_bytes(pack.read_bytes()[:50])
    found = run_archive_verify(cli)
    assert [(each["session_id"], each["name"]) for each in found] == [(SESSION, "damaged")]
    assert document("archive", "--verify", OTHER_ID)["data"]["findings"] == []
    assert document("restore", SESSION, code=1)["error"]["code"] == "write-failed"
    Path(kept.folder, "manifest.json").write_bytes(b"{}")
    assert {each["name"] for each in run_archive_verify(cli)} == {"unreadable"}
    assert "is not a readable manifest" in document("archive", "--list")["warnings"][0]
    doctor = {
        each["name"]: each
        for each in json.loads(cli("doctor", "--json").stdout)["data"]["findings"]
    }
    assert (doctor["vault"]["level"], doctor["vault"]["code"]) == ("problem", "vault-odd")
    assert old_session.exists()


def test_verify_finds_damage_in_the_trash(
    old_session: Path, config_home: ConfigHome, cli: Cli
) -> None:
    """``archive --verify`` reports a damaged copy in the trash.

    The error of a failed ``restore`` suggests this command.
    """
    cli("delete", SESSION, "--yes")
    trash.pack_deleted_sessions(config_home.where, lambda: False)
    (entry,) = trash.list_trashed_sessions(config_home.where)
    pack = Path(entry.folder, entry.transcript.where)
    pack.write_bytes(pack.read_bytes()[:50])
    assert b"archive --verify" in cli("restore", SESSION).stderr
    assert [(each["session_id"], each["name"]) for each in run_archive_verify(cli)] == [
        (SESSION, "damaged")
    ]


def test_forget_removes_a_named_copy(old_session: Path, cli: Cli, document: Document) -> None:
    """``archive --forget`` removes the archived copy of the given session and keeps the client's file.

    It fails if no session is given or if ``--yes`` is missing.
    """
    cli("archive", "--all")
    for words in (("--forget",), ("--forget", "Mine")):
        assert (cli("archive", *words).returncode, cli("archive", *words).stdout) == (2, b"")
    assert document("archive", "--forget", "Mine", "--dry-run")["data"]["written"] is False
    assert b"Removed from the vault." in cli("archive", "--forget", "Mine", "--yes").stdout
    assert [row["session_id"] for row in document("archive", "--list")["data"]["vault"]] == [
        OTHER_ID
    ]
    assert old_session.exists()


def test_deleting_a_session_mentions_its_archived_copy(
    old_session: Path, cli: Cli, document: Document
) -> None:
    """``delete`` warns that the session is archived, and names the command that removes the copy."""
    assert document("delete", OTHER_ID, "--yes")["warnings"] == []
    cli("archive", "Mine")
    (warning,) = document("delete", "Mine", "--yes")["warnings"]
    assert f"archive --forget {SESSION}" in warning
    assert [row["session_id"] for row in document("restore", "--list")["data"]["vault"]] == [
        SESSION
    ]
    assert len(document("delete", "--empty-trash", "--yes")["warnings"]) == 1
    assert document("restore", SESSION)["data"]["kept"]["file"] == str(old_session)
    assert document("restore", "--list")["data"]["vault"] == []


def test_archive_fails_if_the_vault_is_off(old_session: Path, cli: Cli, document: Document) -> None:
    """If the vault is off, ``archive`` fails and names the command that turns it on."""
    cli("config", "vault", "off")
    error = document("archive", "Mine", code=1)["error"]
    assert (error["code"], "config vault on" in error["remedy"]) == ("vault-off", True)
    assert old_session.exists()


def test_archive_all_continues_after_a_failure(
    old_session: Path, config_home: ConfigHome, cli: Cli
) -> None:
    """If one session cannot be archived, ``archive --all`` archives the others and exits with code 1.

    It prints the failure and a remedy. If every session fails, it prints the remedy only once.
    """
    folder = config_home.config / "resume-hooks" / "vault" / SESSION
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"version": 2}))
    done = cli("archive", "--all")
    assert done.returncode == 1
    assert b"1 archived, 1 failed" in done.stdout
    assert b"newer resume-hooks" in done.stderr
    assert done.stderr.endswith(b"note: Update resume-hooks, or move that folder somewhere else.\n")
    assert old_session.exists()
    done = cli("archive", "--all", environ={"RESUME_HOOKS_HOME": str(old_session / "state")})
    assert done.stdout.decode().endswith(": 2 failed\n")
    assert done.stderr.count(b"Check free space and") == 1


def test_a_purge_leaves_the_vault(old_session: Path, config_home: ConfigHome, cli: Cli) -> None:
    """``install --remove --purge`` keeps the archived copies and says so."""
    cli("archive", "Mine")
    said = cli("install", "--remove", "--purge", "--yes").stdout
    assert (
        f"Not removed: {config_home.config / 'resume-hooks' / 'vault'} (archived copies"
        in said.decode()
    )
    assert [each.session_id for each in list_archived(config_home.where)] == [SESSION]
    assert old_session.exists()
    assert os.listdir(config_home.config / "resume-hooks") == ["vault"]


LARGE_OUTPUT = "".join(f"line {number} of a report\n" for number in range(30_000))


@pytest.fixture
def session_with_large_output(config_home: ConfigHome) -> Path:
    """Write a session in which a large tool output appears twice: in the result and in ``toolUseResult``."""
    rows = [
        user("what does the report say?", uuid="a"),
        tool_use("toolu_1", uuid="b", parent="a"),
        tool_result(
            "toolu_1",
            LARGE_OUTPUT,
            uuid="c",
            parent="b",
            toolUseResult={"file": {"content": LARGE_OUTPUT}},
        ),
        assistant("nothing of note", uuid="d", parent="c"),
    ]
    return Path(write_session(config_home.project(), SESSION, rows, mtime=OLD_MTIME))


def test_a_slim_copy_refers_to_the_archived_session(
    session_with_large_output: Path, cli: Cli, document: Document
) -> None:
    """``archive --slim`` writes a small copy and does not change the session.

    When the session has been deleted, ``read`` prints the large output, and ``untrim`` restores it.
    """
    before = session_with_large_output.read_bytes()
    planned = document("archive", "--slim", SESSION, "--dry-run")["data"]
    assert (planned["written"], planned["archived"][0]["result"]) == (False, "kept")
    assert document("archive", "--list")["data"]["vault"] == []
    assert [path.name for path in session_with_large_output.parent.glob("*.jsonl")] == [
        session_with_large_output.name
    ]
    assert b"the original" in cli("archive", "--slim", SESSION, "--dry-run").stdout
    made = document("archive", "--slim", SESSION)["data"]["slim"]
    assert session_with_large_output.read_bytes() == before
    slim = Path(made["file"])
    assert slim.stat().st_size < 20_000
    assert "what does the report say?" in slim.read_text()
    document("delete", SESSION, "--yes")
    assert b"line 29999 of a report" in cli("read", f"{SESSION[:8]}:2", "--max-chars", "0").stdout
    back = document("untrim", made["session_id"], "--all")["data"]
    restored = [json.loads(row) for row in Path(back["file"]).read_bytes().splitlines()]
    assert any(row.get("toolUseResult") == {"file": {"content": LARGE_OUTPUT}} for row in restored)


def test_info_suggests_a_slim_copy_for_a_giant_line(
    session_with_large_output: Path, cli: Cli
) -> None:
    """``info`` suggests a slim copy if a line is 10 MB or longer, because the client may hang on it."""
    assert b"may hang" not in cli("info", SESSION).stdout
    long = tool_result("c9", "x" * 10_000_000, uuid="big", parent="no-one")
    session_with_large_output.write_bytes(
        session_with_large_output.read_bytes() + json.dumps(long).encode() + b"\n"
    )
    assert (
        f"may hang on this session: resume-hooks archive --slim {SESSION}".encode()
        in cli("info", SESSION).stdout
    )


def test_slim_fails_without_an_archived_copy(
    session_with_large_output: Path, config_home: ConfigHome, document: Document
) -> None:
    """If the vault cannot be written to, ``archive --slim`` makes no copy."""
    where = config_home.config / "resume-hooks" / "vault"
    where.parent.mkdir(mode=0o700, exist_ok=True)
    where.write_text("a file")
    assert (
        "no slim copy was made"
        in document("archive", "--slim", SESSION, code=1)["error"]["message"].lower()
    )
    assert [path.name for path in session_with_large_output.parent.glob("*.jsonl")] == [
        session_with_large_output.name
    ]


@pytest.mark.parametrize("command_name", ["sessions", "restore", "forget"])
def test_a_session_that_the_client_just_deleted_is_found(
    config_home: ConfigHome, cli: Cli, document: Document, command_name: str
) -> None:
    """``sessions``, ``restore`` and ``archive --forget`` find a session that the client has just deleted.

    The session's file still exists because a link preserves it.
    """
    lost = time.time() - 17 * 60 * 60
    path = Path(
        write_session(
            config_home.project(), SESSION, [*conversation(2), custom_title("Mine")], mtime=lost
        )
    )
    link_sessions.link_all_sessions(config_home.where, lambda: False)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    path.unlink()
    if command_name == "sessions":
        found = document("sessions", "--archived", "--all")["data"]["archived"]
        assert [each["session_id"] for each in found] == [SESSION]
    elif command_name == "restore":
        assert document("restore", "Mine")["data"]["written"] is True
        assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    else:
        assert cli("archive", "--forget", "Mine", "--yes").returncode == 0
        link_sessions.link_all_sessions(config_home.where, lambda: False)
        assert list_archived(config_home.where) == []
    links = [
        path
        for path in Path(held_links.links_folder(config_home.where)).rglob("*")
        if path.is_file()
    ]
    assert links == []
