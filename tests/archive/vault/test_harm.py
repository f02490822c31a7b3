"""Tests that damage to the vault is reported and that damaged files are never returned as valid."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from resume_hooks.archive.vault import commit, restore
from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.archive.vault.locate_archived import find_archived as named
from resume_hooks.archive.vault.locate_archived import list_earlier_states, make_earlier_state_name
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived.layout import archive_folder, vault_folder
from resume_hooks.sessions.archived.manifest import (
    ArchiveDetails,
    find_archived,
    list_archived,
    unreadable_folders,
    unreadable_reason,
)
from resume_hooks.sessions.archived.unpack import unpacked_transcript
from resume_hooks.sessions.expiry import is_archived
from resume_hooks.storage.locks import lock_folder
from tests.archive.vault.full_sessions import FIVE_DAYS_AGO, client_files, session_with_every_file
from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    write_session,
)


def delete_client_files(home: ConfigHome) -> dict[str, bytes]:
    """Delete the client's files and return their contents."""
    before = client_files(home)
    for place in before:
        (home.config / place).unlink()
    return before


@pytest.mark.parametrize("has_old_mtime", [False, True])
def test_a_zeroed_unpacked_file_is_not_used(config_home: ConfigHome, has_old_mtime: bool) -> None:
    """An unpacked file that a power cut filled with zeros is not used.

    A reader notices the changed time of the file, and a restore checks every byte.
    """
    kept = archive_session(session_with_every_file(config_home), config_home.where)
    before = delete_client_files(config_home)
    path = Path(unpacked_transcript(kept, config_home.where))
    status = path.stat()
    path.write_bytes(bytes(status.st_size))
    if has_old_mtime:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    else:
        assert Path(unpacked_transcript(kept, config_home.where)).read_bytes() == before[kept.place]
        path.write_bytes(bytes(status.st_size))
    restore.execute_restore_plan(restore.plan_restore(kept, config_home.where), config_home.where)
    assert client_files(config_home) == before


def test_unpacked_files_are_synced(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each unpacked file is synced before its folder gets its final name."""
    kept = archive_session(session_with_every_file(config_home), config_home.where)
    synced, real = [], os.fsync

    def record_fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", record_fsync)
    folder = Path(unpacked_transcript(kept, config_home.where)).parent
    assert {path.stat().st_ino for path in (folder, *folder.rglob("*"))} <= set(synced)


@pytest.mark.parametrize(
    ("field_index", "number"),
    [(1, 2**60), (3, 2**63), (3, -(2**63) - 1), (4, -1), (6, 2**60), (7, 2**60)],
)
def test_a_manifest_with_impossible_numbers_is_not_read(
    config_home: ConfigHome, field_index: int, number: int
) -> None:
    """A size or time that no file can have makes the manifest unreadable."""
    kept = archive_session(session_with_every_file(config_home), config_home.where)
    note = Path(kept.folder, "manifest.json")
    row = json.loads(note.read_bytes())
    row["parts"][0][field_index] = number
    note.write_text(json.dumps(row))
    assert find_archived(SESSION, config_home.where) is None
    assert "is not a readable manifest" in unreadable_reason(SESSION, config_home.where)
    assert unreadable_folders(config_home.where) == [kept.folder]


@pytest.mark.parametrize(
    "changed_fields",
    [
        {"parts": []},
        {"earlier": [{"archived_at": "2026-01-31T09:30:00.000Z", "parts": []}]},
        {"place": f"projects/elsewhere/{SESSION}.jsonl"},
        {"session_id": session_id(2)},
        {"stored": -1},
    ],
)
def test_an_inconsistent_manifest_is_not_read(
    config_home: ConfigHome, changed_fields: dict[str, object]
) -> None:
    """A manifest without files, or of another session, is reported as unreadable."""
    kept = archive_session(session_with_every_file(config_home), config_home.where)
    note = Path(kept.folder, "manifest.json")
    note.write_text(json.dumps(json.loads(note.read_bytes()) | changed_fields))
    assert (find_archived(SESSION, config_home.where), unreadable_folders(config_home.where)) == (
        None,
        [kept.folder],
    )


def test_optional_fields_of_a_manifest_may_be_invalid(config_home: ConfigHome) -> None:
    """An invalid optional field of a manifest counts as empty, and the archived copy is still found."""
    kept = archive_session(session_with_every_file(config_home), config_home.where)
    note = Path(kept.folder, "manifest.json")
    row = json.loads(note.read_bytes()) | {"about": ["created"], "home": 7}
    note.write_text(json.dumps(row))
    assert find_archived(SESSION, config_home.where) == kept._replace(
        about=ArchiveDetails(), home=""
    )


def test_a_file_dated_before_1970_is_archived(config_home: ConfigHome) -> None:
    """A file with a negative time is archived and read like any other."""
    session = session_with_every_file(config_home)
    os.utime(session.path, (-300_000_000, -300_000_000))
    kept = archive_session(locate.session_file(session.path), config_home.where)
    assert list_archived(config_home.where) == [kept]
    assert (
        Path(unpacked_transcript(kept, config_home.where)).read_bytes()
        == Path(session.path).read_bytes()
    )


def test_a_manifest_dated_in_the_future_is_corrected(config_home: ConfigHome) -> None:
    """If a manifest's time is in the future, archiving checks the files and sets the present time."""
    session = session_with_every_file(config_home)
    kept = archive_session(session, config_home.where)
    note = os.path.join(kept.folder, "manifest.json")
    os.utime(note, (time.time() + 9e6,) * 2)
    assert is_archived(SESSION, os.stat(session.path).st_mtime, config_home.where)
    assert not is_archived(SESSION, os.stat(session.path).st_mtime + 60, config_home.where)
    assert archive_session(session, config_home.where) == kept
    assert abs(os.stat(note).st_mtime - time.time()) < 60


def test_leftovers_of_an_interrupted_copy_are_removed(config_home: ConfigHome) -> None:
    """The folder of an interrupted copy, which has no manifest, is reported and then removed.

    A folder with a damaged manifest, or one that a command has locked, is kept.
    """
    assert unreadable_folders(config_home.where) == []
    kept = archive_session(session_with_every_file(config_home), config_home.where)
    left, damaged, busy = (
        archive_folder(session_id(number), config_home.where) for number in (2, 3, 4)
    )
    for folder in (left, damaged, busy):
        Path(folder).mkdir(parents=True)
        Path(folder, "pack-1.xz").write_text("secret")
    Path(damaged, "manifest.json").write_text("{")
    assert unreadable_folders(config_home.where) == [left, damaged, busy]
    with lock_folder(busy, config_home.where, "busy", "failed"):
        commit.remove_leftover_files(config_home.where)
    assert unreadable_folders(config_home.where) == [damaged, busy]
    commit.remove_unused_packs(damaged, session_id(3), config_home.where)
    # A newer engine may be able to read this pack.
    assert os.path.exists(os.path.join(damaged, "pack-1.xz"))
    assert (os.path.exists(left), find_archived(SESSION, config_home.where)) == (False, kept)
    os.rename(vault_folder(config_home.where), vault_folder(config_home.where) + "-2")
    os.symlink(vault_folder(config_home.where) + "-2", vault_folder(config_home.where))
    assert unreadable_folders(config_home.where) == [vault_folder(config_home.where)]
    commit.remove_leftover_files(config_home.where)
    assert os.path.exists(os.path.join(busy, "pack-1.xz"))


def test_an_earlier_state_has_its_own_title(config_home: ConfigHome) -> None:
    """An earlier state of a session is restored with its own title."""
    session = session_with_every_file(config_home, title="Fix the parser")
    archive_session(session, config_home.where)
    os.unlink(session.path)
    rows = [*conversation(1, session_id=SESSION), custom_title("Something else", SESSION)]
    write_session(config_home.project(), SESSION, rows, mtime=FIVE_DAYS_AGO)
    now = archive_session(locate.session_file(session.path), config_home.where)
    (state,) = list_earlier_states(now)
    earlier = named(f"{SESSION}@{make_earlier_state_name(state)}", config_home.where)
    assert (
        restore.plan_restore(earlier, config_home.where).archived_session.title == "Fix the parser"
    )
    assert restore.plan_restore(now, config_home.where).archived_session.title == "Something else"
