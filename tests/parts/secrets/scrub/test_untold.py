"""Places of which it can't be told whether they hold secrets: they are left, and told, never passed over."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.archive.vault import archive_session, delete
from resume_hooks.parts.secrets import findings
from resume_hooks.parts.secrets.audit import audit
from resume_hooks.parts.secrets.findings import LEFT, OUTSIDE, Holding
from resume_hooks.parts.secrets.purge import clear_left, purge
from resume_hooks.sessions.archived.layout import folder_of, vault
from resume_hooks.sessions.session_files import session_file
from tests.builders import SESSION, ConfigHome, session_bytes, session_id, user
from tests.parts.secrets.scrub.planting import SECRETS, laid, places_with

KEPT = session_id(5)
NOTES = (b"{", json.dumps({"version": 99}).encode())


@pytest.fixture
def path(config_home: ConfigHome) -> Path:
    """A session with a secret, and a kept one, gone from its project, of which nothing else is known."""
    path = laid(config_home.project() / f"{SESSION}.jsonl", session_bytes([user(SECRETS[0], uuid="u")]))
    other = laid(path.with_name(f"{KEPT}.jsonl"), session_bytes([user(SECRETS[0], uuid="o")]))
    archive_session.archive_session(session_file(str(other)), config_home.where)
    other.unlink()
    return path


def scrub(home: ConfigHome, path: Path) -> list[Holding]:
    """Scrub a session in place; what is left."""
    clear_left(home.where)
    rows = purge(findings.look_everywhere(session_file(str(path)), home.where), home.where)
    assert SECRETS[0].encode() not in path.read_bytes()
    return [row for row in rows if row.state == LEFT]


def test_what_has_no_note_is_swept(config_home: ConfigHome, path: Path) -> None:
    """Somebody was killed between the link and the note: nobody can ever read it."""
    os.unlink(os.path.join(folder_of(KEPT, config_home.where), "manifest.json"))
    assert scrub(config_home, path) == []
    assert places_with(config_home) == {}


@pytest.mark.parametrize("note", NOTES)
def test_a_note_that_can_not_be_read(config_home: ConfigHome, path: Path, note: bytes) -> None:
    """Damaged, or of a newer version: what is kept with it is left, and an audit tells it."""
    folder = folder_of(KEPT, config_home.where)
    Path(folder, "manifest.json").write_bytes(note)
    (left,) = scrub(config_home, path)
    assert (left.place.kind, left.place.path, "could not be looked at" in left.why) == ("vault", folder, True)
    assert any(folder in said for said in audit(config_home.where, sessions=None).unread)
    assert audit(config_home.where, sessions={SESSION}).unread == []


def test_a_linked_vault(config_home: ConfigHome, path: Path) -> None:
    """Nothing is read or changed behind it, and every session may be in it."""
    home = vault(config_home.where)
    os.rename(home, config_home.root / "elsewhere")
    os.symlink(config_home.root / "elsewhere", home)
    (left,) = scrub(config_home, path)
    assert (left.place.path, "symbolic link" in left.why) == (home, True)
    assert any(home in said for said in audit(config_home.where, sessions={SESSION}).unread)


def test_a_newer_note_in_the_trash(config_home: ConfigHome, path: Path) -> None:
    """The deleted session's files are seen, but none can be changed so that they are restored."""
    gone = laid(path.with_name(f"{session_id(6)}.jsonl"), session_bytes([user(SECRETS[0], uuid="g")]))
    delete.write(delete.plan(session_file(str(gone)), config_home.where), config_home.where)
    (note,) = (config_home.config / "resume-hooks" / "trash").rglob("*.json")
    note.write_text(json.dumps({**json.loads(note.read_text()), "version": 99}))
    left = scrub(config_home, path)
    assert {(row.place.kind, "manifest can't be read" in row.why) for row in left} == {("trash", True)}
    assert note.parent.name in left[0].place.path


@pytest.mark.parametrize("below", ["subagents", "tool-results", "."])
def test_a_folder_that_can_not_be_listed(
    config_home: ConfigHome, path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    """It stands for what is in it."""
    closed = os.path.normpath(path.with_suffix("") / below)
    laid(Path(closed) / "a.txt", SECRETS[0].encode())
    refuse(monkeypatch, closed)
    assert [row.place.path for row in scrub(config_home, path)] == [closed]
    assert any(closed in said for said in audit(config_home.where, sessions={SESSION}).unread)


def test_a_linked_project_folder(config_home: ConfigHome, path: Path) -> None:
    """Children may lie behind it."""
    linked = path.parent.with_name("-elsewhere")
    linked.symlink_to(config_home.root)
    (left,) = scrub(config_home, path)
    assert left.place.path == str(linked)


def test_what_was_not_asked_for_is_no_failure(
    config_home: ConfigHome, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the client's that can't be read is told among what was not touched."""
    closed = config_home.config / "todos"
    closed.mkdir()
    refuse(monkeypatch, str(closed))
    assert scrub(config_home, path) == []
    found = findings.look_everywhere(session_file(str(path)), config_home.where)
    assert [row.state for row in found.rows if row.place.path == str(closed)] == [OUTSIDE]


def refuse(monkeypatch: pytest.MonkeyPatch, closed: str) -> None:
    """Have a folder refuse to be listed, as it would anybody but root."""
    scandir = os.scandir

    def refusing(folder: Any = ".") -> Any:
        if not isinstance(folder, int) and os.fspath(folder) == closed:
            raise PermissionError(13, "Permission denied", closed)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
