"""Archiving: all of a session in one pack of our own, and never less than there was."""

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
from resume_hooks.errors import SessionNotFound, SessionOpen, UsageError, VaultOff, WriteFailed
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived import unpack
from resume_hooks.sessions.archived.layout import archive_folder, unpacked_folder, vault_folder
from resume_hooks.sessions.archived.manifest import find_archived, list_archived, unreadable_reason
from resume_hooks.sessions.archived.sessions import project_folder_of_session
from resume_hooks.sessions.archived.unpack import unpacked_transcript
from resume_hooks.storage import locks, stored_settings
from resume_hooks.system import claude_settings
from tests.archive.vault.laid_out import OLD, client_files, kept_files, laid_out, vault_files
from tests.builders import SESSION, ConfigHome, session_id

SLOT = "projects/-home-user-proj"


def test_everything_is_packed_at_once(config_home: ConfigHome) -> None:
    """One private file with all that belongs to a session.

    Nothing that happens to the client's files changes it.
    """
    session = laid_out(config_home, turns=50)
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
        (config_home.config / place).write_bytes(b"")  # cut short in place
    assert kept_files(kept, config_home) == before
    assert unpacked_transcript(kept, config_home.where).startswith(
        unpacked_folder(config_home.where)
    )
    assert int(os.stat(unpacked_transcript(kept, config_home.where)).st_mtime) == int(OLD)
    assert list_archived(config_home.where) == [kept]
    assert verify_archived(kept) == []
    assert project_folder_of_session(
        unpacked_transcript(kept, config_home.where), config_home.where
    ) == os.path.dirname(session.path)
    assert {
        os.stat(path).st_mode & 0o777 for path in (kept.folder, vault_folder(config_home.where))
    } == {0o700}
    assert {path.stat().st_mode & 0o777 for path in Path(kept.folder).iterdir()} == {0o600}


def test_nothing_changed_costs_nothing(config_home: ConfigHome) -> None:
    """The manifest is not even written again.

    What was appended makes one new pack, and is not an earlier state.
    """
    session = laid_out(config_home)
    kept = archive_session(session, config_home.where)
    before = os.stat(os.path.join(kept.folder, "manifest.json"))
    assert archive_session(session, config_home.where) == kept
    assert os.stat(os.path.join(kept.folder, "manifest.json")).st_ino == before.st_ino
    with open(session.path, "ab") as stream:
        stream.write(b'{"type":"x"}\n')
    again = archive_session(locate.session_file(session.path), config_home.where)
    assert (again.earlier, kept_files(again, config_home)) == ((), client_files(config_home))
    assert vault_files(config_home) == [
        f"{SESSION}/manifest.json",
        f"{SESSION}/{again.transcript.where}",
    ]
    assert kept_files(kept, config_home) == kept_files(
        again, config_home
    )  # for whoever has read the older manifest


@pytest.mark.parametrize("how", ["shorter", "other", "in place"])
def test_a_replaced_transcript_is_kept(config_home: ConfigHome, how: str) -> None:
    """A shortened or rewritten transcript becomes another state; the longer one is unchanged."""
    session = laid_out(config_home)
    archive_session(session, config_home.where)
    long = Path(session.path).read_bytes()
    new = long[: len(long) // 2] if how == "shorter" else long.replace(b"prompt", b"promise")
    if how == "in place":
        Path(session.path).write_bytes(long[:100])
    else:
        Path(session.path + ".new").write_bytes(new)
        os.replace(session.path + ".new", session.path)
    os.utime(session.path, (OLD, OLD))
    again = archive_session(locate.session_file(session.path), config_home.where)
    (state,) = list_earlier_states(again)
    for renewed in (True, False):
        assert kept_files(again, config_home) == client_files(config_home)
        assert kept_files(select_earlier_state(again, state), config_home)[again.place] == long
        assert verify_archived(again) == []
        if renewed:
            Path(session.path.replace(".jsonl", "/tool-results/toolu_2.txt")).write_bytes(b"more")
            again = archive_session(locate.session_file(session.path), config_home.where)
            (state,) = list_earlier_states(again)


@pytest.mark.parametrize("how", ["flipped", "gone"])
def test_a_damaged_pack_keeps_no_session_from_being_archived(
    config_home: ConfigHome, how: str
) -> None:
    """What the client has goes into a new pack.

    The damaged one stays for what only it holds, and verifying tells.
    """
    session = laid_out(config_home)
    kept = archive_session(session, config_home.where)
    output = Path(session.path.replace(".jsonl", "/tool-results/toolu_1.txt"))
    output.unlink()
    pack = Path(kept.folder, kept.transcript.where)
    if how == "gone":
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
    assert {finding.name for finding in verify_archived(again)} == {
        "missing" if how == "gone" else "damaged"
    }


@pytest.mark.parametrize("how", ["cut", "appended"])
def test_written_while_it_is_packed(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Appended bytes are archived the next time; a truncated file is not archived."""
    session = laid_out(config_home)
    before = client_files(config_home)

    def meanwhile(descriptor: int, size: int) -> Iterator[bytes]:
        if size == len(before[f"{SLOT}/{SESSION}.jsonl"]):
            with open(session.path, "r+b") as stream:
                stream.truncate(size // 2 if how == "cut" else size + 100)
        yield os.pread(descriptor, size, 0)

    monkeypatch.setattr(keeping, "read_chunks", meanwhile)
    if how == "appended":
        assert kept_files(archive_session(session, config_home.where), config_home) == before
    else:
        with pytest.raises(WriteFailed, match="cut short while it was read"):
            archive_session(session, config_home.where)
        assert vault_files(config_home) == []


def test_deleted_files_stay_archived(config_home: ConfigHome) -> None:
    """An output that was deleted from a recent session, and a deleted session."""
    session = laid_out(config_home)
    before = client_files(config_home)
    archive_session(session, config_home.where)
    os.unlink(session.path.replace(".jsonl", "/tool-results/toolu_1.txt"))
    Path(session.path.replace(".jsonl", "/tool-results/toolu_2.txt")).write_bytes(b"more")
    again = archive_session(session, config_home.where)
    more = {f"{SLOT}/{SESSION}/tool-results/toolu_2.txt": b"more"}
    assert kept_files(again, config_home) == before | more
    os.unlink(session.path)
    with pytest.raises(SessionNotFound):
        archive_session(session, config_home.where)
    assert kept_files(again, config_home) == before | more


def test_a_backup_written_in_place(config_home: ConfigHome) -> None:
    """Old clients write a new version into the file: the old one is an earlier state."""
    session = laid_out(config_home)
    archive_session(session, config_home.where)
    backup = config_home.config / "file-history" / SESSION / "abc@v1"
    backup.write_bytes(b"another one")
    again = archive_session(session, config_home.where)
    assert kept_files(again, config_home) == client_files(config_home)
    (earlier,) = again.earlier
    assert (
        kept_files(select_earlier_state(again, earlier), config_home)[
            f"file-history/{SESSION}/abc@v1"
        ]
        == b"the user's file"
    )
    assert list_earlier_states(again) == []


def test_links_and_odd_files_are_left(config_home: ConfigHome) -> None:
    """A symbolic link and a pipe among a session's files are reported as incomplete, and not followed."""
    session = laid_out(config_home)
    own = Path(session.path.removesuffix(".jsonl"))
    (own / "tool-results" / "link").symlink_to("/etc/passwd")
    (own / "away").symlink_to("/etc")
    os.mkfifo(own / "pipe")
    kept = archive_session(session, config_home.where)
    assert not kept.complete
    assert not {"link", "away", "pipe"} & {part.place.split("/")[-1] for part in kept.parts}
    assert archive_session(session, config_home.where) == kept


def test_a_symlinked_vault_is_refused(config_home: ConfigHome, tmp_path: Path) -> None:
    """The vault, or a session's folder in it: nothing is written behind the link."""
    session = laid_out(config_home)
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


def test_a_newer_note_is_left_alone(config_home: ConfigHome) -> None:
    """It is reported and never replaced; so is an unreadable one."""
    session = laid_out(config_home)
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
        (SLOT.encode(), b"projects/../../x"),
        (b"file-history/", b"file-history/../"),
        (f"{SLOT}/{SESSION}.jsonl".encode(), b"projects/p/other.jsonl"),
        (f'"session_id":"{SESSION}"'.encode(), b'"session_id":"x"'),
        (b'"pack-1.xz",0,', b'"pack-1.xz",-1,'),
        (b'"complete":true', b'"complete":1'),
    ],
)
def test_a_forged_note_is_none(config_home: ConfigHome, old: bytes, new: bytes) -> None:
    """A path outside the session's folder, or outside the config home, makes the whole manifest unreadable."""
    kept = archive_session(laid_out(config_home), config_home.where)
    note = Path(kept.folder, "manifest.json")
    assert old in note.read_bytes()
    note.write_bytes(note.read_bytes().replace(old, new))
    assert find_archived(SESSION, config_home.where) is None


def test_only_the_clients_sessions(config_home: ConfigHome, tmp_path: Path) -> None:
    """A file elsewhere is the user's own to keep."""
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(Path(laid_out(config_home).path).read_bytes())
    with pytest.raises(UsageError):
        archive_session(locate.session_file(str(path)), config_home.where)


def test_switched_off(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The user's or an employer's setting forbids archiving, and the error names it."""
    session = laid_out(config_home)
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


def test_a_session_that_moved_to_another_project(config_home: ConfigHome) -> None:
    """Its files are archived at their new place; the vault has one copy of each."""
    session = laid_out(config_home)
    archive_session(session, config_home.where)
    other = config_home.project("/home/user/other")
    for name in (f"{SESSION}.jsonl", SESSION):
        os.rename(os.path.join(os.path.dirname(session.path), name), other / name)
    again = archive_session(locate.session_file(str(other / f"{SESSION}.jsonl")), config_home.where)
    assert (again.project, len(again.parts)) == (other.name, 6)
    assert unpacked_transcript(again, config_home.where).endswith(f"{SESSION}.jsonl")


def test_two_copies_of_one_id(config_home: ConfigHome) -> None:
    """Two projects have different copies: both are archived, once each."""
    session = laid_out(config_home)
    other = config_home.project("/home/user/other") / f"{SESSION}.jsonl"
    other.write_bytes(Path(session.path).read_bytes().replace(b"prompt", b"promise"))
    os.utime(other, (OLD, OLD))
    copies = [session, locate.session_file(str(other))]
    for copy in copies:
        kept = archive_session(copy, config_home.where)
    for copy in [*copies, *copies]:
        assert archive_session(copy, config_home.where) == kept
    (state,) = list_earlier_states(kept)
    both = {
        kept_files(each, config_home)[kept.place]
        for each in (kept, select_earlier_state(kept, state))
    }
    assert both == {Path(copy.path).read_bytes() for copy in copies}


def test_one_at_a_time(config_home: ConfigHome) -> None:
    """A second command waits up to its limit; a command without work does not wait."""
    session = laid_out(config_home)
    with commit.lock_archived(SESSION, config_home.where), pytest.raises(SessionOpen):
        archive_session(session, config_home.where, max_wait_seconds=0)
    kept = archive_session(session, config_home.where)
    with commit.lock_archived(SESSION, config_home.where):
        assert archive_session(session, config_home.where, max_wait_seconds=0) == kept


def test_a_vault_that_can_not_be_written(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unchanged session needs no write and can be read. Any other one is an error with the place and the reason."""
    session = laid_out(config_home)
    kept = archive_session(session, config_home.where)
    unpacked_transcript(kept, config_home.where)
    other = archive_session(laid_out(config_home, session_id(2)), config_home.where)

    def read_only(path: str, _where: object = None) -> str:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr(locks, "make_private_folder", read_only)
    monkeypatch.setattr(unpack, "make_private_folder", read_only)
    assert archive_session(session, config_home.where) == kept
    assert kept_files(kept, config_home) == {
        place: raw for place, raw in client_files(config_home).items() if SESSION[:4] in place
    }
    os.utime(session.path, (OLD + 60, OLD + 60))
    with pytest.raises(WriteFailed, match="Read-only file system"):
        archive_session(session, config_home.where)
    with pytest.raises(WriteFailed, match="Read-only file system"):
        unpacked_transcript(other, config_home.where)
    assert find_archived(SESSION, config_home.where) == kept


@pytest.mark.parametrize("call", ["fsync", "replace", "write"])
@pytest.mark.parametrize("renewed", [False, True])
def test_a_full_disk_leaves_the_earlier_copy(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, call: str, renewed: bool
) -> None:
    """The earlier copy exists, and nothing of the new one. The error names the session's path once."""
    first = archive_session(laid_out(config_home), config_home.where)
    other = laid_out(config_home, session_id(2), "Other")
    if renewed:
        os.utime(config_home.config / first.place, (OLD + 60, OLD + 60))
        other = locate.session_file(str(config_home.config / first.place))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(
            PackWriter if call == "write" else os, "add" if call == "write" else call, full
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
