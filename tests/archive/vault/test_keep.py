"""Keeping: links where they are safe, copies elsewhere, and never less than there was."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.archive.vault import commit, put
from resume_hooks.archive.vault.keep import keep
from resume_hooks.archive.vault.lookup import as_it_was, states
from resume_hooks.archive.vault.pack import pack
from resume_hooks.archive.vault.verify import verify
from resume_hooks.errors import SessionLive, SessionNotFound, UsageError, VaultOff, WriteFailed
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived import unpack
from resume_hooks.sessions.archived.layout import folder_of, vault
from resume_hooks.sessions.archived.manifest import find, held, why_unreadable
from resume_hooks.sessions.archived.unpack import home_of, opened
from resume_hooks.storage import locks, stored_settings
from resume_hooks.system import claude_settings
from tests.archive.vault.laid_out import OLD, client_files, kept_files, laid_out, vault_files
from tests.builders import SESSION, ConfigHome, session_id
from tests.storage.test_move import across

SLOT = "projects/-home-user-proj"


def test_links_at_once(config_home: ConfigHome) -> None:
    """Everything that belongs to a session is kept; transcripts and outputs are the client's own bytes."""
    session = laid_out(config_home)
    kept = keep(session, config_home.where)
    assert (kept.form, kept.complete, kept.title, kept.cwd) == ("linked", True, "Fix the parser", "/home/user/proj")
    assert kept_files(kept, config_home) == client_files(config_home)
    assert kept.size == kept.stored == sum(map(len, client_files(config_home).values()))
    assert os.path.samefile(opened(kept, config_home.where), session.path)
    assert {part.place: part.linked for part in kept.parts if not part.linked} == {
        f"file-history/{SESSION}/abc@v1": False
    }
    assert held(config_home.where) == [kept]
    assert home_of(opened(kept, config_home.where), config_home.where) == os.path.dirname(session.path)
    assert os.stat(kept.folder).st_mode & 0o777 == 0o700
    assert os.stat(os.path.join(kept.folder, "note.json")).st_mode & 0o777 == 0o600


def test_nothing_changed_costs_nothing(config_home: ConfigHome) -> None:
    """The note is not even written again; what was appended is in the link."""
    session = laid_out(config_home)
    kept = keep(session, config_home.where)
    before = os.stat(os.path.join(kept.folder, "note.json"))
    assert keep(session, config_home.where) == kept
    assert os.stat(os.path.join(kept.folder, "note.json")).st_ino == before.st_ino
    with open(session.path, "ab") as stream:
        stream.write(b'{"type":"x"}\n')
    again = keep(locate.session_file(session.path), config_home.where)
    assert again.transcript.size == os.path.getsize(session.path)
    assert again.transcript.where == kept.transcript.where
    assert kept_files(again, config_home) == client_files(config_home)


def test_copies_where_no_link_leads(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another file system, one without links, others' files: a copy, with its hash, and a new one once it grew."""
    session = laid_out(config_home)
    across(monkeypatch)
    kept = keep(session, config_home.where)
    assert kept.form == "copied"
    assert all(part.sha256 for part in kept.parts)
    assert verify(kept, config_home.where) == []
    with open(session.path, "ab") as stream:
        stream.write(b'{"type":"x"}\n')
    again = keep(locate.session_file(session.path), config_home.where)
    assert kept_files(again, config_home) == client_files(config_home)
    assert states(again) == []
    assert len({name.split("/")[1] for name in vault_files(config_home)}) == 2  # the note and one folder


@pytest.mark.parametrize("code", [errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES])
def test_a_link_refused_for_any_reason_is_a_copy(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """FAT, too many links, somebody else's file."""
    session = laid_out(config_home)

    def refused(source: str, target: str, **_: object) -> None:
        raise OSError(code, os.strerror(code), source)

    monkeypatch.setattr(os, "link", refused)
    assert keep(session, config_home.where).form == "copied"
    assert find(SESSION, config_home.where) is not None


@pytest.mark.parametrize("form", ["linked", "copied", "packed"])
@pytest.mark.parametrize("how", ["shorter", "other", "in place"])
def test_what_something_else_took_the_place_of_stays(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, form: str, how: str
) -> None:
    """A shortened or rewritten transcript is a further state; the longer one is there as it was."""
    session = laid_out(config_home)
    if form == "copied":
        monkeypatch.setattr(put, "_linked", lambda *_: None)
    kept = keep(session, config_home.where)
    if form == "packed":
        kept = pack(kept, config_home.where)
    assert kept.form == form
    long = Path(session.path).read_bytes()
    new = long[: len(long) // 2] if how == "shorter" else long.replace(b"prompt", b"promise")
    if how == "in place":
        Path(session.path).write_bytes(long[:100])
    else:
        Path(session.path + ".new").write_bytes(new)
        os.replace(session.path + ".new", session.path)
    os.utime(session.path, (OLD, OLD))
    again = keep(locate.session_file(session.path), config_home.where)
    if (form, how) == ("linked", "in place"):  # the one thing that a link does not outlive, and verify tells
        assert states(again) == []
        assert [finding.name for finding in verify(again, config_home.where)] == ["cut-short"]
        return
    assert kept_files(again, config_home) == client_files(config_home)
    (state,) = states(again)
    assert kept_files(as_it_was(again, state), config_home)[again.place] == long
    assert verify(again, config_home.where) == []
    packed = pack(again, config_home.where)
    assert kept_files(packed, config_home) == client_files(config_home)
    assert kept_files(as_it_was(packed, states(packed)[0]), config_home)[again.place] == long


def test_a_pack_that_was_gone_on_from(config_home: ConfigHome) -> None:
    """The session is linked again, the pack stays until all is packed anew, and is no state of its own then."""
    session = laid_out(config_home)
    packed = pack(keep(session, config_home.where), config_home.where)
    with open(session.path, "ab") as stream:
        stream.write(b'{"type":"x"}\n')
    os.utime(session.path, (OLD, OLD))
    again = keep(locate.session_file(session.path), config_home.where)
    assert (again.form, len({part.where for part in again.parts})) == ("linked", 2)
    assert kept_files(again, config_home) == client_files(config_home)
    assert packed.transcript.where in os.listdir(again.folder)
    whole = pack(again, config_home.where)
    assert (whole.earlier, kept_files(whole, config_home)) == ((), client_files(config_home))
    assert [name.split("/")[1] for name in vault_files(config_home)] == ["note.json", whole.transcript.where]


def test_what_the_client_drops_stays(config_home: ConfigHome) -> None:
    """An output that is swept out of a young session, a session that is gone."""
    session = laid_out(config_home)
    before = client_files(config_home)
    keep(session, config_home.where)
    os.unlink(session.path.replace(".jsonl", "/tool-results/toolu_1.txt"))
    Path(session.path.replace(".jsonl", "/tool-results/toolu_2.txt")).write_bytes(b"more")
    again = keep(session, config_home.where)
    more = {f"{SLOT}/{SESSION}/tool-results/toolu_2.txt": b"more"}
    assert kept_files(again, config_home) == before | more
    os.unlink(session.path)
    with pytest.raises(SessionNotFound):
        keep(session, config_home.where)
    assert kept_files(again, config_home) == before | more


def test_a_backup_written_in_place(config_home: ConfigHome) -> None:
    """Old clients write a new version into the file: the old one is an earlier state."""
    session = laid_out(config_home)
    keep(session, config_home.where)
    backup = config_home.config / "file-history" / SESSION / "abc@v1"
    backup.write_bytes(b"another one")
    again = keep(session, config_home.where)
    assert kept_files(again, config_home) == client_files(config_home)
    (earlier,) = again.earlier
    assert kept_files(as_it_was(again, earlier), config_home)[f"file-history/{SESSION}/abc@v1"] == b"the user's file"
    assert states(again) == []


def test_links_and_odd_files_are_left(config_home: ConfigHome) -> None:
    """A symbolic link among a session's files, a pipe: told as not complete, and not followed."""
    session = laid_out(config_home)
    own = Path(session.path.removesuffix(".jsonl"))
    (own / "tool-results" / "link").symlink_to("/etc/passwd")
    (own / "away").symlink_to("/etc")
    os.mkfifo(own / "pipe")
    kept = keep(session, config_home.where)
    assert not kept.complete
    assert not {"link", "away", "pipe"} & {part.place.split("/")[-1] for part in kept.parts}
    assert keep(session, config_home.where) == kept


def test_a_symlinked_vault_is_refused(config_home: ConfigHome, tmp_path: Path) -> None:
    """The vault, or a session's folder in it: nothing is written behind the link."""
    session = laid_out(config_home)
    (tmp_path / "away").mkdir()
    Path(vault(config_home.where)).parent.mkdir(parents=True)
    Path(vault(config_home.where)).symlink_to(tmp_path / "away")
    with pytest.raises(WriteFailed, match="is a symbolic link"):
        keep(session, config_home.where)
    assert held(config_home.where) == []
    Path(vault(config_home.where)).unlink()
    Path(vault(config_home.where)).mkdir()
    Path(folder_of(SESSION, config_home.where)).symlink_to(tmp_path / "away")
    with pytest.raises(WriteFailed, match="is a symbolic link"):
        keep(session, config_home.where)
    assert list((tmp_path / "away").iterdir()) == []


def test_a_newer_note_is_left_alone(config_home: ConfigHome) -> None:
    """Told, and never replaced; so is one that can't be read."""
    session = laid_out(config_home)
    kept = keep(session, config_home.where)
    note = Path(kept.folder, "note.json")
    for content, why in ((b'{"version":2}', "newer resume-hooks"), (b"[]", "can't be read as a note")):
        note.write_bytes(content)
        with pytest.raises(WriteFailed, match=why):
            keep(session, config_home.where)
        assert (note.read_bytes(), find(SESSION, config_home.where)) == (content, None)
        assert why in why_unreadable(SESSION, config_home.where)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"files-1"', b'"../../x"'),
        (b'"files-1"', b'"pack-1/../x"'),
        (SLOT.encode(), b"projects/../../x"),
        (b"file-history/", b"file-history/../"),
        (f"{SLOT}/{SESSION}.jsonl".encode(), b"projects/p/other.jsonl"),
        (f'"session_id":"{SESSION}"'.encode(), b'"session_id":"x"'),
        (b",0,true,", b",-1,true,"),
        (b'"complete":true', b'"complete":1'),
    ],
)
def test_a_forged_note_is_none(config_home: ConfigHome, old: bytes, new: bytes) -> None:
    """Whatever leads out of the session's folder, or of the config home, makes the whole note unreadable."""
    kept = keep(laid_out(config_home), config_home.where)
    note = Path(kept.folder, "note.json")
    assert old in note.read_bytes()
    note.write_bytes(note.read_bytes().replace(old, new))
    assert find(SESSION, config_home.where) is None


def test_only_the_clients_sessions(config_home: ConfigHome, tmp_path: Path) -> None:
    """A file elsewhere is the user's own to keep."""
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(Path(laid_out(config_home).path).read_bytes())
    with pytest.raises(UsageError):
        keep(locate.session_file(str(path)), config_home.where)


def test_switched_off(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the setting, by an employer: nothing is kept, and both say why."""
    session = laid_out(config_home)
    stored_settings.store("vault", "off", config_home.where)
    with pytest.raises(VaultOff, match="setting 'vault' is off"):
        keep(session, config_home.where)
    stored_settings.store("vault", "on", config_home.where)
    managed = tmp_path / "managed-settings.json"
    managed.write_text('{"cleanupPeriodDays":20}')
    monkeypatch.setattr(claude_settings, "settings_files", lambda *_: [str(managed)])
    with pytest.raises(VaultOff, match="after 20 days"):
        keep(session, config_home.where)
    assert not os.path.lexists(vault(config_home.where))


def test_a_session_that_moved_to_another_project(config_home: ConfigHome) -> None:
    """Its files are kept where they belong now; the vault has one of each."""
    session = laid_out(config_home)
    keep(session, config_home.where)
    other = config_home.project("/home/user/other")
    for name in (f"{SESSION}.jsonl", SESSION):
        os.rename(os.path.join(os.path.dirname(session.path), name), other / name)
    again = keep(locate.session_file(str(other / f"{SESSION}.jsonl")), config_home.where)
    assert (again.project, len(again.parts)) == (other.name, 6)
    assert opened(again, config_home.where).endswith(f"{SESSION}.jsonl")


@pytest.mark.parametrize("form", ["linked", "packed"])
def test_two_copies_of_one_id(config_home: ConfigHome, form: str) -> None:
    """In two projects, each other than the other: both are kept, once, however often each is."""
    session = laid_out(config_home)
    other = config_home.project("/home/user/other") / f"{SESSION}.jsonl"
    other.write_bytes(Path(session.path).read_bytes().replace(b"prompt", b"promise"))
    os.utime(other, (OLD, OLD))
    copies = [session, locate.session_file(str(other))]
    for copy in copies:
        kept = keep(copy, config_home.where)
    if form == "packed":
        kept = pack(kept, config_home.where)
    for copy in [*copies, *copies]:
        assert keep(copy, config_home.where) == kept
    (state,) = states(kept)
    both = {kept_files(each, config_home)[kept.place] for each in (kept, as_it_was(kept, state))}
    assert both == {Path(copy.path).read_bytes() for copy in copies}


def test_packed_since_its_note_was_read(config_home: ConfigHome) -> None:
    """Whoever has the older note reads the pack."""
    kept = keep(laid_out(config_home), config_home.where)
    pack(kept, config_home.where)
    assert kept_files(kept, config_home) == client_files(config_home)


def test_one_at_a_time(config_home: ConfigHome) -> None:
    """A second command waits as long as it was told to; one for which nothing is to do does not."""
    session = laid_out(config_home)
    with commit.only_one(SESSION, config_home.where), pytest.raises(SessionLive):
        keep(session, config_home.where, patience=0)
    kept = keep(session, config_home.where)
    with commit.only_one(SESSION, config_home.where):
        assert keep(session, config_home.where, patience=0) == kept


def test_a_vault_that_can_not_be_written(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept as it is needs nothing written, and can be read; anything else says where and why."""
    session = laid_out(config_home)
    kept = keep(session, config_home.where)
    packed = pack(keep(laid_out(config_home, session_id(2)), config_home.where), config_home.where)

    def read_only(path: str, _where: object = None) -> str:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    monkeypatch.setattr(locks, "private_folder", read_only)
    monkeypatch.setattr(unpack, "private_folder", read_only)
    assert keep(session, config_home.where) == kept
    assert kept_files(kept, config_home) == {
        place: raw for place, raw in client_files(config_home).items() if SESSION[:4] in place
    }
    os.utime(session.path, (OLD + 60, OLD + 60))
    with pytest.raises(WriteFailed, match="Read-only file system"):
        keep(session, config_home.where)
    with pytest.raises(WriteFailed, match="Read-only file system"):
        opened(packed, config_home.where)
    assert find(SESSION, config_home.where) == kept


@pytest.mark.parametrize("call", ["link", "fsync", "replace"])
def test_a_full_disk_leaves_what_was(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """What was kept before still is; of what was begun nothing is left."""
    first = keep(laid_out(config_home), config_home.where)
    other = laid_out(config_home, session_id(2), "Other")
    real: Callable[..., None] = getattr(os, call)

    def full(*paths: object, **how: object) -> None:
        if call == "link" and "abc@v1" not in str(paths[1]) and "files-" not in str(paths[1]):
            return real(*paths, **how)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    monkeypatch.setattr(put, "copy", lambda *_: full("", "files-"))
    with pytest.raises(WriteFailed, match="No space left"):
        keep(other, config_home.where)
    monkeypatch.undo()
    assert held(config_home.where) == [first]
    assert verify(first, config_home.where) == []
    assert {name.split("/")[0] for name in vault_files(config_home)} == {SESSION}
    assert keep(other, config_home.where).complete
