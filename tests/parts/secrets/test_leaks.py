"""Tests of an audit, which searches all files of sessions for secrets.

A second audit reads only the bytes that were appended since the first. An audit never shows a
secret.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from resume_hooks.archive.vault import delete
from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.cli.schema import schema_of_verb
from resume_hooks.parts.secrets.audit import CACHE_FILE_NAME, Audit, audit_sessions_for_secrets
from resume_hooks.redaction.json_lines import redact_line
from resume_hooks.sessions.locate import session_file
from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    session_bytes,
    session_id,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.redaction.planted import private_key, random_chars

RANDOM_GENERATOR = random.Random(9)
GITHUB_TOKEN = "ghp_" + random_chars(RANDOM_GENERATOR, 36)
PRIVATE_KEY = private_key(RANDOM_GENERATOR)


@pytest.fixture
def session_with_secret(config_home: ConfigHome) -> Path:
    """Write a session with a secret in its last prompt and return its path."""
    records = [*conversation(3), user(f"use {GITHUB_TOKEN}", uuid="leak", parent=None, ts=99)]
    path = Path(write_session(config_home.project(), SESSION, records))
    os.utime(
        path, (1_770_000_000, 1_770_000_000)
    )  # With this old time, the session does not count as open.
    return path


def audit_everything(home: ConfigHome) -> Audit:
    """Search all sessions for secrets."""
    return audit_sessions_for_secrets(home.where, sessions=None)


def audit_state_file(home: ConfigHome) -> Path:
    """Return the path of the audit's state file."""
    return home.config / "resume-hooks" / CACHE_FILE_NAME


def test_a_secret_is_reported_with_its_kind_place_and_time(
    config_home: ConfigHome, session_with_secret: Path
) -> None:
    """A secret is reported with its kind, place, time, length and reference, but without its text."""
    (leak,) = audit_everything(config_home).leaks
    number = session_with_secret.read_bytes().count(b"\n") - 1
    assert (leak.kind, leak.place, leak.record_reference) == (
        "github-pat",
        "transcript",
        f"{SESSION}:{number}",
    )
    assert (leak.record_uuid, leak.time, leak.length) == ("leak", "2026-01-31T09:31:39.000Z", 40)
    assert (
        session_with_secret.read_bytes()[leak.offset : leak.offset + leak.length]
        == GITHUB_TOKEN.encode()
    )


def test_a_secret_in_a_folder_name_is_reported_once(config_home: ConfigHome) -> None:
    """A secret in the name of a session's folder is reported once, although each record has it."""
    records = [{**record, "cwd": f"/home/user/{GITHUB_TOKEN}"} for record in conversation(3)]
    write_session(config_home.project(), SESSION, records)
    (leak,) = audit_everything(config_home).leaks
    assert (leak.kind, leak.place, leak.record_reference) == (
        "github-pat",
        "folder name",
        f"{SESSION}:0",
    )
    assert leak.file_path.endswith(f"{SESSION}.jsonl")


def test_secrets_in_names_of_plans_and_models_are_redacted() -> None:
    """Secrets in the names of plans and models are redacted.

    These names may be changed, because they do not link records.
    """
    line = session_bytes(
        [
            {
                "slug": GITHUB_TOKEN,
                "message": {"role": "assistant", "model": GITHUB_TOKEN, "content": "done"},
            }
        ]
    )
    redacted, secrets = redact_line(line.replace(b"\n", b""))
    assert GITHUB_TOKEN.encode() not in redacted
    assert [secret.kind for secret in secrets] == ["github-pat"] * 2


def test_the_audit_state_contains_no_secret(
    config_home: ConfigHome, session_with_secret: Path
) -> None:
    """The audit's state file is private and contains no part of a secret."""
    audit_everything(config_home)
    raw = audit_state_file(config_home).read_bytes()
    assert not any(GITHUB_TOKEN[at : at + 6].encode() in raw for at in range(4, 34))
    assert audit_state_file(config_home).stat().st_mode & 0o777 == 0o600


def test_only_appended_bytes_are_read(config_home: ConfigHome, session_with_secret: Path) -> None:
    """A second audit reads no bytes, and an audit after an append reads only the appended bytes."""
    first = audit_everything(config_home)
    assert first.bytes_read == first.total_bytes == session_with_secret.stat().st_size
    assert audit_everything(config_home).bytes_read == 0
    with session_with_secret.open("ab") as stream:
        stream.write(
            session_bytes(
                [
                    user(
                        f"and PASSWORD={random_chars(RANDOM_GENERATOR, 14)}",
                        uuid="more",
                        parent="leak",
                        ts=120,
                    )
                ]
            )
        )
    again = audit_everything(config_home)
    assert again.bytes_read == session_with_secret.stat().st_size - first.total_bytes
    assert [leak.kind for leak in again.leaks] == ["github-pat", "password"]


def test_an_unfinished_line_is_read_again_when_complete(
    config_home: ConfigHome, session_with_secret: Path
) -> None:
    """An unfinished line is read again when it is complete, and its secret is counted once."""
    whole = session_bytes(
        [user(f"again {GITHUB_TOKEN} " + "x" * 200, uuid="torn", parent="leak", ts=130)]
    )
    with session_with_secret.open("ab") as stream:
        stream.write(whole[:-60])
    assert len(audit_everything(config_home).leaks) == 2
    with session_with_secret.open("ab") as stream:
        stream.write(whole[-60:])
    leaks = audit_everything(config_home).leaks
    assert [leak.record_uuid for leak in leaks] == ["leak", "torn"]


@pytest.mark.parametrize("change", ["replaced", "cut", "rewritten"])
def test_a_rewritten_file_is_read_again(
    config_home: ConfigHome, session_with_secret: Path, change: str
) -> None:
    """A file that was replaced, shortened or rewritten is read again."""
    audit_everything(config_home)
    clean = session_bytes(conversation(3, prefix="n"))
    if change == "replaced":
        temporary = session_with_secret.with_suffix(".tmp")
        temporary.write_bytes(clean * 3)
        os.replace(temporary, session_with_secret)
    else:
        with session_with_secret.open("r+b") as stream:
            stream.write(clean * 3 if change == "rewritten" else clean[:50])
            stream.truncate(len(clean) * 3 if change == "rewritten" else 50)
    assert audit_everything(config_home).leaks == []


def test_a_damaged_audit_state_is_ignored(
    config_home: ConfigHome, session_with_secret: Path
) -> None:
    """A damaged or outdated state file is ignored, and all files are read again."""
    audit_everything(config_home)
    value = orjson.loads(audit_state_file(config_home).read_bytes())
    hostile = orjson.dumps(value | {"files": {str(session_with_secret): ["a", {}, None]}})
    for content in (
        b"",
        b"[]",
        b"{",
        b'{"version":1,"rules":"other","files":{}}',
        b'{"files":[1]}',
        hostile,
    ):
        audit_state_file(config_home).write_bytes(content)
        found = audit_everything(config_home)
        assert len(found.leaks) == 1
        assert found.bytes_read >= session_with_secret.stat().st_size


def test_a_failed_write_of_the_audit_state_is_repeated(
    config_home: ConfigHome, session_with_secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the state file cannot be written, the audit warns; the next audit writes it."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        found = audit_everything(config_home)
    assert (len(found.leaks), "reads all files again" in found.warnings[0]) == (1, True)
    assert not [
        path
        for path in audit_state_file(config_home).parent.iterdir()
        if path.name.endswith(".tmp")
    ]
    assert not audit_everything(config_home).warnings
    assert audit_state_file(config_home).exists()


def test_an_audit_covers_sidecars_trash_and_sub_agents(
    config_home: ConfigHome, session_with_secret: Path
) -> None:
    """An audit finds secrets in tool outputs, in sub-agents and in deleted sessions."""
    own = session_with_secret.with_suffix("")
    (own / "tool-results").mkdir(parents=True)
    (own / "tool-results" / "a.txt").write_text(f"cat id_rsa\n{PRIVATE_KEY}\n")
    (own / "subagents").mkdir()
    agent = own / "subagents" / "agent-a1b2c3d4.jsonl"
    agent.write_bytes(
        session_bytes(
            [user(f"use {GITHUB_TOKEN}", uuid="sub", parent=None, ts=1, isSidechain=True)]
        )
    )
    found = {(leak.place, leak.kind): leak for leak in audit_everything(config_home).leaks}
    assert set(found) == {
        ("transcript", "github-pat"), ("sidecar", "private-key"), ("sub-agent", "github-pat"),
    }  # fmt: skip
    assert found["sub-agent", "github-pat"].record_reference == f"{SESSION}/agent-a1b2c3d4:0"
    os.utime(session_with_secret, (1_770_000_000, 1_770_000_000))
    delete.move_to_trash(
        delete.plan_delete(session_file(str(session_with_secret)), config_home.where),
        config_home.where,
    )
    after = audit_everything(config_home)
    assert {leak.place for leak in after.leaks} == {"trash"}
    assert len(after.leaks) == 3
    assert {leak.session_id for leak in after.leaks} == {SESSION}


def test_a_deleted_file_is_removed_from_the_audit_state(
    config_home: ConfigHome, session_with_secret: Path
) -> None:
    """The audit's state file does not list a file that was deleted."""
    audit_everything(config_home)
    session_with_secret.unlink()
    shutil.rmtree(session_with_secret.with_suffix(""), ignore_errors=True)
    audit_everything(config_home)
    assert orjson.loads(audit_state_file(config_home).read_bytes())["files"] == {}


def test_archived_sessions_are_scanned(config_home: ConfigHome, session_with_secret: Path) -> None:
    """An audit finds secrets in archived sessions, and reads an archived session only once."""
    archive_session(session_file(str(session_with_secret)), config_home.where)
    found = audit_everything(config_home)
    places = {leak.place: leak for leak in found.leaks}
    assert set(places) == {"transcript", "vault"}
    assert places["vault"].record_reference == places["transcript"].record_reference
    assert audit_everything(config_home).bytes_read == 0


LISTED_SECRET = "ghp_" + random_chars(random.Random(4), 36)


def write_session_with_secret(home: ConfigHome, written_id: str = SESSION) -> None:
    """Write a session with a secret."""
    write_session(
        home.project(),
        written_id,
        [
            *conversation(2, session_id=written_id),
            user(f"use {LISTED_SECRET}", uuid="u", parent=None),
        ],
    )


def list_secrets(cli: Cli, *words: str) -> dict[str, Any]:
    """Return the JSON of ``scrub --list``, which must report a secret."""
    done = cli("scrub", "--list", *words, "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"]) == (1, True)
    return schema_of_verb("scrub").model_validate(document["data"]).model_dump()


def test_the_list_of_a_session_without_secrets_has_one_line(
    config_home: ConfigHome, cli: Cli
) -> None:
    """``scrub --list`` of a session without secrets prints one line and succeeds."""
    write_session(config_home.project(), SESSION, conversation(2))
    done = cli("scrub", "--list", SESSION)
    said = "No secrets found in 1 file of session 11111111 only (for other sessions: --project, --all).\n"
    assert (done.returncode, done.stdout.decode()) == (0, said)
    done = cli("scrub", "--list", "--all")
    assert (done.returncode, done.stdout.decode()) == (
        0,
        "No secrets found in 1 file of all sessions.\n",
    )


def test_the_list_reports_an_unreadable_place(config_home: ConfigHome, cli: Cli) -> None:
    """``scrub --list`` reports a folder that it cannot read, and fails."""
    write_session(config_home.project(), SESSION, conversation(2))
    note = config_home.config / "resume-hooks" / "vault" / session_id(9) / "manifest.json"
    note.parent.mkdir(parents=True)
    note.write_text("{")
    done = cli("scrub", "--list", "--all")
    assert done.returncode == 1
    assert (
        done.stdout.decode()
        == "No secrets found in 2 files of all sessions. Some could not be read.\n"
    )
    assert f"{note.parent} could not be read" in done.stderr.decode()
    assert cli("scrub", "--list", SESSION).returncode == 0


def test_the_list_shows_places_but_no_secret(config_home: ConfigHome, cli: Cli) -> None:
    """``scrub --list`` prints where a secret is and how to remove it, but not the secret.

    The exit code is 1.
    """
    write_session_with_secret(config_home)
    done = cli("scrub", "--list", SESSION)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 1
    assert lines[0] == f"2026-01-31 09:30  github-pat, 40 characters  transcript  {SESSION}:4"
    assert (
        lines[1]
        == "1 place with secrets in 1 file of session 11111111 only (for other sessions: --project, --all): "
        "1 github-pat."
    )
    assert f"resume-hooks scrub {SESSION}" in lines[3]
    data = list_secrets(cli, SESSION)
    assert (data["kinds"], data["secrets"][0]["reference"]) == ({"github-pat": 1}, f"{SESSION}:4")
    assert LISTED_SECRET[4:14] not in done.stdout.decode() + str(data)
    shown = cli("read", data["secrets"][0]["reference"])
    assert LISTED_SECRET in shown.stdout.decode()


def test_options_select_sessions_and_kinds(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """Options of ``scrub --list`` select all sessions, one kind of secret, or recent sessions."""
    write_session_with_secret(config_home)
    write_session_with_secret(config_home, session_id(2))
    assert len(list_secrets(cli, "--all")["secrets"]) == 2
    assert document("scrub", "--list", "--all", "--kind", "jwt")["data"]["secrets"] == []
    assert document("scrub", "--list", "--all", "--since", "2026-02-01")["data"]["secrets"] == []
    assert cli("scrub", "--list", "--all", "--project").returncode == 2
    assert cli("scrub", "--list", "--all", "--since", "never").returncode == 2


PRINTED_SECRET = "vkWqzTe482Q"


def records_that_print_a_secret() -> list[dict[str, Any]]:
    """Return the records of a session in which a command printed a password."""
    command = {"command": "printenv DB_PASSWORD"}
    return [
        user("the database refuses us", uuid="a", parent=None),
        tool_use("toolu_1", uuid="b", parent="a", name="Bash", tool_input=command),
        tool_result("toolu_1", f"{PRINTED_SECRET}\n", uuid="c", parent="b"),
    ]


def test_a_printed_secret_is_found_by_its_command(config_home: ConfigHome) -> None:
    """A password that a command printed is found, because the command names a variable for passwords."""
    path = Path(write_session(config_home.project(), SESSION, records_that_print_a_secret()))
    (leak,) = audit_everything(config_home).leaks
    assert (leak.record_uuid, leak.line_number, leak.length) == ("c", 2, len(PRINTED_SECRET))
    assert path.read_bytes()[leak.offset : leak.offset + leak.length] == PRINTED_SECRET.encode()
    assert PRINTED_SECRET.encode() not in audit_state_file(config_home).read_bytes()


def test_an_output_appended_after_a_scan_is_found(config_home: ConfigHome) -> None:
    """A password in an output is found even if an earlier audit had read only the output's command."""
    path = Path(write_session(config_home.project(), SESSION, records_that_print_a_secret()[:2]))
    assert not audit_everything(config_home).leaks
    with path.open("ab") as stream:
        stream.write(session_bytes(records_that_print_a_secret()[2:]))
    (leak,) = audit_everything(config_home).leaks
    assert (leak.record_uuid, leak.line_number) == ("c", 2)


def test_a_printed_secret_in_the_vault_is_found(config_home: ConfigHome) -> None:
    """A printed password is found in an archived copy."""
    path = write_session(config_home.project(), SESSION, records_that_print_a_secret())
    archive_session(session_file(path), config_home.where)
    os.unlink(path)
    assert {(leak.place, leak.record_uuid) for leak in audit_everything(config_home).leaks} == {
        ("vault", "c")
    }
