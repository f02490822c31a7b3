"""scrub --list: kinds, places and ages; one checked document for programs; 1 where there are secrets."""

from __future__ import annotations

import json
import random
from typing import Any

from resume_hooks.cli.schema import form
from tests.builders import SESSION, ConfigHome, conversation, session_id, user, write_session
from tests.cli.conftest import Cli, Document
from tests.redaction.planted import some

GITHUB = "ghp_" + some(random.Random(4), 36)


def leaky(home: ConfigHome, own: str = SESSION) -> None:
    """A session that holds a secret."""
    write_session(home.project(), own, [*conversation(2, session_id=own), user(f"use {GITHUB}", uuid="u", parent=None)])


def found(cli: Cli, *words: str) -> dict[str, Any]:
    """The answer of a list that found something, checked against its model."""
    done = cli("scrub", "--list", *words, "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"]) == (1, True)
    return form("scrub").model_validate(document["data"]).model_dump()


def test_a_clean_session(config_home: ConfigHome, cli: Cli) -> None:
    """One line, and 0."""
    write_session(config_home.project(), SESSION, conversation(2))
    done = cli("scrub", "--list", SESSION)
    said = "No secrets found in 1 file of session 11111111 alone (others: --project, --all).\n"
    assert (done.returncode, done.stdout.decode()) == (0, said)
    done = cli("scrub", "--list", "--all")
    assert (done.returncode, done.stdout.decode()) == (0, "No secrets found in 1 file of all sessions.\n")


def test_a_place_that_can_not_be_looked_at(config_home: ConfigHome, cli: Cli) -> None:
    """A sentence on stderr, another in the answer, and 1: there may be secrets in it."""
    write_session(config_home.project(), SESSION, conversation(2))
    note = config_home.config / "resume-hooks" / "vault" / session_id(9) / "manifest.json"
    note.parent.mkdir(parents=True)
    note.write_text("{")
    done = cli("scrub", "--list", "--all")
    assert done.returncode == 1
    assert done.stdout.decode() == "No secrets found in 2 files of all sessions. Some could not be looked at.\n"
    assert f"{note.parent} could not be looked at" in done.stderr.decode()
    assert cli("scrub", "--list", SESSION).returncode == 0


def test_a_session_with_secrets(config_home: ConfigHome, cli: Cli) -> None:
    """Where it lies and what to do, with 1; no part of the secret anywhere."""
    leaky(config_home)
    done = cli("scrub", "--list", SESSION)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 1
    assert lines[0] == f"2026-01-31 09:30  github-pat, 40 characters  transcript  {SESSION}:4"
    assert (
        lines[1] == "1 place with secrets in 1 file of session 11111111 alone (others: --project, --all): 1 github-pat."
    )
    assert f"resume-hooks scrub {SESSION}" in lines[3]
    data = found(cli, SESSION)
    assert (data["kinds"], data["secrets"][0]["reference"]) == ({"github-pat": 1}, f"{SESSION}:4")
    assert GITHUB[4:14] not in done.stdout.decode() + str(data)
    shown = cli("read", data["secrets"][0]["reference"])
    assert GITHUB in shown.stdout.decode()


def test_all_and_options(config_home: ConfigHome, cli: Cli, document: Document) -> None:
    """Every session, one kind, what is young."""
    leaky(config_home)
    leaky(config_home, session_id(2))
    assert len(found(cli, "--all")["secrets"]) == 2
    assert document("scrub", "--list", "--all", "--kind", "jwt")["data"]["secrets"] == []
    assert document("scrub", "--list", "--all", "--since", "2026-02-01")["data"]["secrets"] == []
    assert cli("scrub", "--list", "--all", "--project").returncode == 2
    assert cli("scrub", "--list", "--all", "--since", "never").returncode == 2
