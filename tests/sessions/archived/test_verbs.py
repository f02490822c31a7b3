"""Tests of verbs for archived sessions.

Verbs that would change an archived copy name the restore command. Read-only verbs say that the
session is an archived copy.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.hooks.lineage import lineage_card
from resume_hooks.sessions.archived.unpack import unpacked_transcript
from resume_hooks.sessions.lineage import LineageFinder
from tests.archive.vault.full_sessions import session_with_every_file
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    write_session,
)
from tests.cli.conftest import Cli, Document, cli, document, terminal_home
from tests.cli.terminal_home import TerminalHome
from tests.cli.test_resume_terminal import client_output_pattern
from tests.sessions.archived.removed_sessions import archive_and_remove

__all__ = ["cli", "document", "terminal_home"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("trim", SESSION, "--in-place"), ("rename", SESSION, "Other"), ("rename", SESSION, "--tag", "later"),
        ("delete", SESSION, "--yes"), ("resume", SESSION, "--print"), ("resume", SESSION, "--way", "go on"),
        ("continue", SESSION),
        ("continue", SESSION, "--print"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_changes_to_an_archived_copy_are_refused(
    config_home: ConfigHome, cli: Cli, arguments: tuple[str, ...]
) -> None:
    """Verbs that change or resume a session refuse an archived one and name the restore command."""
    assert_archived_session_is_refused(config_home, cli, arguments)


def assert_archived_session_is_refused(
    config_home: ConfigHome, cli: Cli, arguments: tuple[str, ...]
) -> None:
    """Check that a verb names the restore command and leaves the archived copy unchanged."""
    kept = archive_and_remove(
        session_with_every_file(config_home, turns=3).path, config_home.environ
    )
    before = {path: path.read_bytes() for path in Path(kept.folder).rglob("*") if path.is_file()}
    done = cli(*arguments)
    said = done.stderr.decode()
    assert done.returncode == 1, said + done.stdout.decode()
    assert "Only its archived copy is left" in said
    assert f"resume-hooks restore {SESSION}" in said
    assert {
        path: path.read_bytes() for path in Path(kept.folder).rglob("*") if path.is_file()
    } == before


def test_an_archived_copy_is_labeled(config_home: ConfigHome, document: Document) -> None:
    """``info`` shows the format and the time of an archived copy, and ``sessions --archived`` lists it."""
    path = session_with_every_file(config_home).path
    present = document("info", SESSION)["data"]
    assert (present["kept"], present["form"], present["kept_at"]) == (False, None, None)
    kept = archive_and_remove(path, config_home.environ)
    data = document("info", SESSION)["data"]
    assert (data["kept"], data["form"], data["kept_at"]) == (True, "packed", kept.archived_at)
    assert os.path.isfile(data["session_file"])
    (row,) = document("sessions", "--archived", "--all")["data"]["archived"]
    assert (row["session_id"], row["title"], row["form"], row["kept_at"]) == (
        SESSION, "Fix the parser", "packed", kept.archived_at,
    )  # fmt: skip
    assert (row["size"], row["stored"], row["present"]) == (kept.size, kept.stored, False)
    (row,) = document("lineage", SESSION)["data"]["rows"]
    assert (row["status"], row["session_file"]) == ("kept", path)


def test_archived_sessions_are_listed_by_page(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """``sessions --archived`` lists archived sessions by project and page.

    Sessions that are still in the client's folder are not listed.
    """
    for number in range(1, 5):
        folder = "/other" if number == 4 else CWD
        rows = [
            *conversation(1, session_id=session_id(number)),
            custom_title(f"Title {number}", session_id(number)),
        ]
        path = write_session(
            config_home.project(folder), session_id(number), rows, mtime=1e9 + number
        )
        raw = Path(path).read_bytes()
        archive_and_remove(path, config_home.environ)
        if number == 1:
            Path(path).write_bytes(raw)
    found = document("sessions", "--archived", "--project", CWD)["data"]
    assert [row["title"] for row in found["archived"]] == ["Title 3", "Title 2"]
    found = document("sessions", "--archived", "--all", "--limit", "1", "--offset", "1")["data"]
    assert ([row["title"] for row in found["archived"]], found["more"]) == (["Title 3"], True)
    text = cli("sessions", "--archived", "--all").stdout.decode()
    assert "Title 4" in text
    assert "resume-hooks restore ID" in text
    assert (
        "No archived session of the project needs to be restored"
        in cli("sessions", "--archived", "--project", "/nowhere").stdout.decode()
    )


@pytest.mark.parametrize("verb", ["fork", "trim", "handoff"])
def test_a_child_of_an_archived_session_needs_no_restore(
    config_home: ConfigHome, cli: Cli, verb: str
) -> None:
    """``fork``, ``trim`` and ``handoff`` of an archived session do not restore the session.

    The child is written to the folder in which the client stored the session.
    """
    home = config_home.root / "home"
    home.mkdir()
    rows = [{**record, "cwd": str(home)} for record in conversation(8)]
    path = write_session(config_home.project(str(home)), SESSION, rows, mtime=1e9)
    archive_and_remove(path, config_home.environ)
    done = cli(
        verb,
        SESSION,
        "--json",
        *(["--min-savings", "0"] if verb == "trim" else []),
    )
    receipt: dict[str, Any] = json.loads(done.stdout)["data"]
    assert done.returncode == 0, done.stdout
    assert receipt["parent_file"] == path
    if receipt["file"]:
        assert os.path.dirname(receipt["file"]) == os.path.dirname(path)
    assert not os.path.exists(path)


def test_resume_of_an_archived_session_gives_the_restore_command(
    config_home: ConfigHome, document: Document
) -> None:
    """``resume`` of an archived session gives the restore command and warns that this is the only copy."""
    archive_and_remove(session_with_every_file(config_home).path, config_home.environ)
    found = document("resume", SESSION)
    assert found["data"]["commands"]["shell"] == f"resume-hooks restore {SESSION}"
    assert "only copy" in found["warnings"][0]


def test_the_lineage_card_marks_archived_sessions(config_home: ConfigHome) -> None:
    """The card of ``lineage`` marks an archived session and shows the restore command."""
    path = session_with_every_file(config_home).path
    kept = archive_and_remove(path, config_home.environ)
    card = lineage_card(
        LineageFinder(config_home.where).find_lineage(unpacked_transcript(kept, config_home.where))
    )
    assert "1 · Fix the parser (archived copy)" in card
    assert f"resume-hooks restore {SESSION}" in card


@pytest.mark.parametrize(("verb", "arguments"), [("resume", ("--way", "go on")), ("continue", ())])
def test_resume_restores_an_archived_session_in_a_terminal(
    terminal_home: TerminalHome, verb: str, arguments: tuple[str, ...]
) -> None:
    """In a terminal, ``resume`` and ``continue`` ask before they restore an archived session.

    If the user agrees, the client starts with the session. Otherwise, the session is not restored.
    """
    path = terminal_home.home.project(str(terminal_home.project)) / f"{session_id(2)}.jsonl"
    os.utime(path, (1e9, 1e9))
    raw = path.read_bytes()
    archive_and_remove(path, terminal_home.home.environ)
    screen = terminal_home.run(verb, session_id(2), *arguments)
    screen.wait_for("Restore the session and continue")
    screen.type("n")
    screen.key("Enter")
    assert screen.wait_for_end() == 130
    assert not path.exists()
    screen = terminal_home.run(verb, session_id(2), *arguments)
    screen.wait_for("Restore the session and continue")
    screen.key("Enter")
    screen.wait_for(client_output_pattern(2, terminal_home.project))
    assert path.read_bytes() == raw
