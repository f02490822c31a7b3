"""Tests that archiving packs all files of a session and never loses an earlier state."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from resume_hooks.archive.vault import archive_session as keeping
from resume_hooks.archive.vault import commit
from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.archive.vault.locate_archived import list_earlier_states, select_earlier_state
from resume_hooks.archive.vault.packs import PackWriter, verify_archived
from resume_hooks.errors import SessionInUse, SessionNotFound, UsageError, VaultOff, WriteFailed
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived import unpack
from resume_hooks.sessions.archived.layout import archive_folder, unpacked_folder, vault_folder
from resume_hooks.sessions.archived.manifest import find_archived, list_archived, unreadable_reason
from resume_hooks.sessions.archived.sessions import project_folder_of_session
from resume_hooks.sessions.archived.unpack import unpacked_transcript
from resume_hooks.storage import locks, stored_settings
from resume_hooks.system import claude_settings
from tests.archive.vault.full_sessions import (
    FIVE_DAYS_AGO,
    archived_contents,
    client_files,
    session_with_every_file,
    vault_files,
)
from tests.builders import SESSION, ConfigHome, session_id

PROJECT_FOLDER = "projects/-home-user-proj"


def test_archiving_packs_every_file_of_a_session(config_home: ConfigHome) -> None:
    """Archiving packs all files of a session into one private file.

    Later changes of the client's files do not affect the copy.
    """
    session = session_with_every_file(config_home, turns=50)
    kept = archive_session(session, config_home.where)
    before = client_files(config_home)
    assert (kept.complete, kept.title, kept.cwd) == (True, "Fix the parser", "/home/user/proj")
    assert vault_files(config_home) == [
        f"{SESSION}/manifest.json",
        f"{SESSION}/{kept.transcript.where}",
    ]
    assert kept.size == sum(map(len, before.values()))
    assert (
        kept.stored
        == os.path.getsize(os.path.join(kept.folder, kept.transcript.where))
        < kept.size / 3
    )
    for place in before:
        (config_home.config / place).write_bytes(b"")  # The file is truncated in place.
    assert archived_contents(kept, config_home) == before
    assert unpacked_transcript(kept, config_home.where).startswith(
        unpacked_folder(config_home.where)
    )
    assert int(os.stat(unpacked_transcript(kept, config_home.where)).st_mtime) == int(FIVE_DAYS_AGO)
    assert list_archived(config_home.where) == [kept]
    assert verify_archived(kept) == []
    assert project_folder_of_session(
        unpacked_transcript(kept, config_home.where), config_home.where
    ) == os.path.dirname(session.path)
    assert {
        os.stat(path).st_mode & 0o777 for path in (kept.folder, vault_folder(config_home.where))
    } == {0o700}
    assert {path.stat().st_mode & 0o777 for path in Path(kept.folder).iterdir()} == {0o600}


def test_archiving_an_unchanged_session_writes_nothing(config_home: ConfigHome) -> None:
    """Archiving an unchanged session writes nothing.

    After an append, the session has one new pack and no earlier state.
    """
    session = session_with_every_file(config_home)
    kept = archive_session(session, config_home.where)
    before = os.stat(os.path.join(kept.folder, "manifest.json"))
    assert archive_session(session, config_home.where) == kept
    assert os.stat(os.path.join(kept.folder, "manifest.json")).st_ino == before.st_ino
    with open(session.path, "ab") as stream:
        stream.write(b'{"type":"x"}\n')
    again = archive_session(locate.session_file(session.path), config_home.where)
    assert (again.earlier, archived_contents(again, config_home)) == ((), client_files(config_home))
    assert vault_files(config_home) == [
        f"{SESSION}/manifest.json",
        f"{SESSION}/{again.transcript.where}",
    ]
    # A program that read the older manifest can still read the copy.
    assert archived_contents(kept, config_home) == archived_contents(again, config_home)


@pytest.mark.parametrize("replacement_kind", ["shorter", "other", "in place"])
def test_a_replaced_transcript_becomes_an_earlier_state(
    config_home: ConfigHome, replacement_kind: str
) -> None:
    """If a shorter or different transcript replaces the old one, both can be read from the vault."""
    session = session_with_every_file(config_home)
    archive_session(session, config_home.where)
    long = Path(session.path).read_bytes()
    new = (
        long[: len(long) // 2]
        if replacement_kind == "shorter"
        else long.replace(b"prompt", b"promise")
    )
    if replacement_kind == "in place":
        Path(session.path).write_bytes(long[:100])
    else:
        Path(session.path + ".new").write_bytes(new)
        os.replace(session.path + ".new", session.path)
    os.utime(session.path, (FIVE_DAYS_AGO, FIVE_DAYS_AGO))
    again = archive_session(locate.session_file(session.path), config_home.where)
    (state,) = list_earlier_states(again)
    for renewed in (True, False):
        assert archived_contents(again, config_home) == client_files(config_home)
        assert (
            archived_contents(select_earlier_state(again, state), config_home)[again.place] == long
        )
        assert verify_archived(again) == []
        if renewed:
            Path(session.path.replace(".jsonl", "/tool-results/toolu_2.txt")).write_bytes(b"more")
            again = archive_session(locate.session_file(session.path), config_home.where)
            (state,) = list_earlier_states(again)


@pytest.mark.parametrize("damage_kind", ["flipped", "gone"])
def test_a_session_with_a_damaged_pack_can_be_archived(
    config_home: ConfigHome, damage_kind: str
) -> None:
    """If a pack is damaged, the client's files go into a new pack.

    The damaged pack is kept if the client no longer has one of its files.
    """
    session = session_with_every_file(config_home)
    kept = archive_session(session, config_home.where)
    output = Path(session.path.replace(".jsonl", "/tool-results/toolu_1.txt"))
    output.unlink()
    pack = Path(kept.folder, kept.transcript.where)
    if damage_kind == "gone":
        pack.unlink()
    else:
        raw = pack.read_bytes()
        pack.write_bytes(raw[:100] + bytes([raw[100] ^ 1]) + raw[101:])
    with open(session.path, "ab") as stream:
        stream.write(b'{"type":"x"}\n')
    again = archive_session(locate.session_file(session.path), config_home.where)
    assert again.transcript.where != pack.name
    assert {part.where for part in again.parts} == {again.transcript.where, pack.name}
    ((content, sha256),) = [
        (b"".join(pieces), part.sha256)
        for part, pieces in unpack.read_pack_contents(again.folder, [again.transcript])
    ]
    assert (content, hashlib.sha256(content).hexdigest()) == (
        Path(session.path).read_bytes(),
        sha256,
    )
    assert {finding.kind for finding in verify_archived(again)} == {
        "missing" if damage_kind == "gone" else "damaged"
    }


@pytest.mark.parametrize("change_kind", ["cut", "appended"])
def test_a_file_that_changes_during_archiving_is_archived_or_refused(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, change_kind: str
) -> None:
    """Lines that are appended during archiving are left for the next copy.

    If a file is truncated during archiving, no copy is written.
    """
    session = session_with_every_file(config_home)
    before = client_files(config_home)

    def read_after_change(descriptor: int, size: int) -> Iterator[bytes]:
        if size == len(before[f"{PROJECT_FOLDER}/{SESSION}.jsonl"]):
            with open(session.path, "r+b") as stream:
                stream.truncate(size // 2 if change_kind == "cut" else size + 100)
        yield os.pread(descriptor, size, 0)

    monkeypatch.setattr(keeping, "read_chunks", read_after_change)
    if change_kind == "appended":
        assert archived_contents(archive_session(session, config_home.where), config_home) == before
    else:
        with pytest.raises(WriteFailed, match="cut short while it was read"):
            archive_session(session, config_home.where)
        assert vault_files(config_home) == []


def test_deleted_files_stay_archived(config_home: ConfigHome) -> None:
    """Files that the client deletes later stay in the archived copy."""
    session = session_with_every_file(config_home)
    before = client_files(config_home)
    archive_session(session, config_home.where)
    os.unlink(session.path.replace(".jsonl", "/tool-results/toolu_1.txt"))
    Path(session.path.replace(".jsonl", "/tool-results/toolu_2.txt")).write_bytes(b"more")
    again = archive_session(session, config_home.where)
    more = {f"{PROJECT_FOLDER}/{SESSION}/tool-results/toolu_2.txt": b"more"}
    assert archived_contents(again, config_home) == before | more
    os.unlink(session.path)
    with pytest.raises(SessionNotFound):
        archive_session(session, config_home.where)
    assert archived_contents(again, config_home) == before | more


def test_an_overwritten_backup_becomes_an_earlier_state(config_home: ConfigHome) -> None:
    """If an old client overwrites a backup, the backup's old content becomes an earlier state."""
    session = session_with_every_file(config_home)
    archive_session(session, config_home.where)
    backup = config_home.config / "file-history" / SESSION / "abc@v1"
    backup.write_bytes(b"another one")
    again = archive_session(session, config_home.where)
    assert archived_contents(again, config_home) == client_files(config_home)
    (earlier,) = again.earlier
    assert (
        archived_contents(select_earlier_state(again, earlier), config_home)[
            f"file-history/{SESSION}/abc@v1"
        ]
        == b"the user's file"
    )
    assert list_earlier_states(again) == []


def test_links_and_pipes_are_not_archived(config_home: ConfigHome) -> None:
    """Symbolic links and pipes are not archived, and the copy is marked as incomplete."""
    session = session_with_every_file(config_home)
    own = Path(session.path.removesuffix(".jsonl"))
    (own / "tool-results" / "link").symlink_to("/etc/passwd")
    (own / "away").symlink_to("/etc")
    os.mkfifo(own / "pipe")
    kept = archive_session(session, config_home.where)
    assert not kept.complete
    assert not {"link", "away", "pipe"} & {part.place.split("/")[-1] for part in kept.parts}
    assert archive_session(session, config_home.where) == kept


def test_archiving_refuses_a_symlinked_vault(config_home: ConfigHome, tmp_path: Path) -> None:
    """Archiving is refused if the vault, or the session's folder in it, is a symbolic link."""
    session = session_with_every_file(config_home)
    (tmp_path / "away").mkdir()
    Path(vault_folder(config_home.where)).parent.mkdir(parents=True)
    Path(vault_folder(config_home.where)).symlink_to(tmp_path / "away")
    with pytest.raises(WriteFailed, match="is a symbolic link"):
        archive_session(session, config_home.where)
    assert list_archived(config_home.where) == []
    Path(vault_folder(config_home.where)).unlink()
    Path(vault_folder(config_home.where)).mkdir()
    Path(archive_folder(SESSION, config_home.where)).symlink_to(tmp_path / "away")
    with pytest.raises(WriteFailed, match="is a symbolic link"):
        archive_session(session, config_home.where)
    assert list((tmp_path / "away").iterdir()) == []


def test_archiving_never_replaces_an_unreadable_manifest(config_home: ConfigHome) -> None:
    """A manifest that is damaged or of a newer version is reported and not replaced."""
    session = session_with_every_file(config_home)
    kept = archive_session(session, config_home.where)
    note = Path(kept.folder, "manifest.json")
    for content, why in (
        (b'{"version":2}', "newer resume-hooks"),
        (b"[]", "is not a readable manifest"),
    ):
        note.write_bytes(content)
        with pytest.raises(WriteFailed, match=why):
            archive_session(session, config_home.where)
        assert (note.read_bytes(), find_archived(SESSION, config_home.where)) == (content, None)
        assert why in unreadable_reason(SESSION, config_home.where)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"pack-1.xz"', b'"../../x"'),
        (b'"pack-1.xz"', b'"pack-1/../x"'),
        (PROJECT_FOLDER.encode(), b"projects/../../x"),
        (b"file-history/", b"file-history/../"),
        (f"{PROJECT_FOLDER}/{SESSION}.jsonl".encode(), b"projects/p/other.jsonl"),
        (f'"session_id":"{SESSION}"'.encode(), b'"session_id":"x"'),
        (b'"pack-1.xz",0,', b'"pack-1.xz",-1,'),
        (b'"complete":true', b'"complete":1'),
    ],
)
def test_a_forged_manifest_is_not_read(config_home: ConfigHome, old: bytes, new: bytes) -> None:
    """A manifest with an invalid path, id or number is not read at all."""
    kept = archive_session(session_with_every_file(config_home), config_home.where)
    note = Path(kept.folder, "manifest.json")
    assert old in note.read_bytes()
    note.write_bytes(note.read_bytes().replace(old, new))
    assert find_archived(SESSION, config_home.where) is None


def test_only_sessions_of_the_client_are_archived(config_home: ConfigHome, tmp_path: Path) -> None:
    """Archiving a file outside the client's folders is refused."""
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(Path(session_with_every_file(config_home).path).read_bytes())
    with pytest.raises(UsageError):
        archive_session(locate.session_file(str(path)), config_home.where)


def test_archiving_fails_if_the_vault_is_off(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the user or an employer switched the vault off, archiving fails with the reason."""
    session = session_with_every_file(config_home)
    stored_settings.store_setting("vault", "off", config_home.where)
    with pytest.raises(VaultOff, match="setting 'vault' is off"):
        archive_session(session, config_home.where)
    stored_settings.store_setting("vault", "on", config_home.where)
    managed = tmp_path / "managed-settings.json"
    managed.write_text('{"cleanupPeriodDays":20}')
    monkeypatch.setattr(claude_settings, "settings_files", lambda *_: [str(managed)])
    with pytest.raises(VaultOff, match="after 20 days"):
        archive_session(session, config_home.where)
    assert not os.path.lexists(vault_folder(config_home.where))


def test_a_session_in_a_new_project_is_archived_once(config_home: ConfigHome) -> None:
    """If a session moved to another project, its copy has each file once, at the new path."""
    session = session_with_every_file(config_home)
    archive_session(session, config_home.where)
    other = config_home.project("/home/user/other")
    for name in (f"{SESSION}.jsonl", SESSION):
        os.rename(os.path.join(os.path.dirname(session.path), name), other / name)
    again = archive_session(locate.session_file(str(other / f"{SESSION}.jsonl")), config_home.where)
    assert (again.project, len(again.parts)) == (other.name, 6)
    assert unpacked_transcript(again, config_home.where).endswith(f"{SESSION}.jsonl")


def test_different_sessions_with_one_id_are_both_archived(config_home: ConfigHome) -> None:
    """Two different sessions with the same id are both archived, one of them as an earlier state."""
    session = session_with_every_file(config_home)
    other = config_home.project("/home/user/other") / f"{SESSION}.jsonl"
    other.write_bytes(Path(session.path).read_bytes().replace(b"prompt", b"promise"))
    os.utime(other, (FIVE_DAYS_AGO, FIVE_DAYS_AGO))
    copies = [session, locate.session_file(str(other))]
    for copy in copies:
        kept = archive_session(copy, config_home.where)
    for copy in [*copies, *copies]:
        assert archive_session(copy, config_home.where) == kept
    (state,) = list_earlier_states(kept)
    both = {
        archived_contents(each, config_home)[kept.place]
        for each in (kept, select_earlier_state(kept, state))
    }
    assert both == {Path(copy.path).read_bytes() for copy in copies}


def test_two_commands_cannot_archive_a_session_at_the_same_time(config_home: ConfigHome) -> None:
    """While a session is being archived, a second command waits for the lock up to its time limit.

    If the session is unchanged, the second command does not wait.
    """
    session = session_with_every_file(config_home)
    with commit.lock_archived(SESSION, config_home.where), pytest.raises(SessionInUse):
        archive_session(session, config_home.where, max_wait_seconds=0)
    kept = archive_session(session, config_home.where)
    with commit.lock_archived(SESSION, config_home.where):
        assert archive_session(session, config_home.where, max_wait_seconds=0) == kept


def test_a_read_only_vault_can_be_read(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only vault can be read, and archiving an unchanged session succeeds.

    Archiving a changed session raises an error with the reason.
    """
    session = session_with_every_file(config_home)
    kept = archive_session(session, config_home.where)
    unpacked_transcript(kept, config_home.where)
    other = archive_session(session_with_every_file(config_home, session_id(2)), config_home.where)

    def fail_as_read_only(path: str, _where: object = None) -> str:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr(locks, "make_private_folder", fail_as_read_only)
    monkeypatch.setattr(unpack, "make_private_folder", fail_as_read_only)
    assert archive_session(session, config_home.where) == kept
    assert archived_contents(kept, config_home) == {
        place: raw for place, raw in client_files(config_home).items() if SESSION[:4] in place
    }
    os.utime(session.path, (FIVE_DAYS_AGO + 60, FIVE_DAYS_AGO + 60))
    with pytest.raises(WriteFailed, match="Read-only file system"):
        archive_session(session, config_home.where)
    with pytest.raises(WriteFailed, match="Read-only file system"):
        unpacked_transcript(other, config_home.where)
    assert find_archived(SESSION, config_home.where) == kept


@pytest.mark.parametrize("failing_call", ["fsync", "replace", "write"])
@pytest.mark.parametrize("has_earlier_copy", [False, True])
def test_a_full_disk_leaves_the_earlier_copy(
    config_home: ConfigHome,
    monkeypatch: pytest.MonkeyPatch,
    failing_call: str,
    has_earlier_copy: bool,
) -> None:
    """If the disk is full, archiving raises an error with the session's path and keeps the earlier copy."""
    first = archive_session(session_with_every_file(config_home), config_home.where)
    other = session_with_every_file(config_home, session_id(2), "Other")
    if has_earlier_copy:
        os.utime(config_home.config / first.place, (FIVE_DAYS_AGO + 60, FIVE_DAYS_AGO + 60))
        other = locate.session_file(str(config_home.config / first.place))

    def fail_as_full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(
            PackWriter if failing_call == "write" else os,
            "add_file" if failing_call == "write" else failing_call,
            fail_as_full,
        )
        with pytest.raises(WriteFailed) as failure:
            archive_session(other, config_home.where)
    assert str(failure.value).startswith(
        f"{other.path} could not be archived: No space left on device"
    )
    assert list_archived(config_home.where) == [first]
    assert verify_archived(first) == []
    assert vault_files(config_home) == [
        f"{SESSION}/manifest.json",
        f"{SESSION}/{first.transcript.where}",
    ]
    assert archive_session(other, config_home.where).complete
