"""Harm done to what is kept, from outside: told, and never handed back as if it were whole."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.archive.vault import commit, put, restore
from resume_hooks.archive.vault.keep import keep
from resume_hooks.archive.vault.lookup import find as named
from resume_hooks.archive.vault.lookup import instant, states
from resume_hooks.archive.vault.pack import pack
from resume_hooks.archive.vault.tamper_seal import harms
from resume_hooks.archive.vault.verify import verify
from resume_hooks.errors import SessionLive, SessionNotFound, WriteFailed
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived.layout import folder_of, vault
from resume_hooks.sessions.archived.manifest import Kept, find, held, unreadable, why_unreadable
from resume_hooks.sessions.archived.unpack import opened
from resume_hooks.sessions.expiry import is_kept
from tests.archive.vault.laid_out import OLD, client_files, laid_out
from tests.builders import SESSION, ConfigHome, conversation, custom_title, session_id, write_session


def gone(home: ConfigHome) -> dict[str, bytes]:
    """What the client had, which it has no more."""
    before = client_files(home)
    for place in before:
        (home.config / place).unlink()
    return before


def names(kept: Kept, home: ConfigHome) -> list[str]:
    """What verifying finds."""
    return [finding.name for finding in verify(kept, home.where)]


@pytest.mark.parametrize("quietly", [False, True])
def test_an_unpacked_copy_of_nothing_is_not_believed(config_home: ConfigHome, quietly: bool) -> None:
    """As a power cut leaves it, with the right size: readers see its time, ``restore`` every byte."""
    kept = pack(keep(laid_out(config_home), config_home.where), config_home.where)
    before = gone(config_home)
    path = Path(opened(kept, config_home.where))
    status = path.stat()
    path.write_bytes(bytes(status.st_size))
    if quietly:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    else:
        assert Path(opened(kept, config_home.where)).read_bytes() == before[kept.place]
        path.write_bytes(bytes(status.st_size))
    restore.write(restore.plan(kept, config_home.where), config_home.where)
    assert client_files(config_home) == before


def test_what_is_unpacked_is_synced(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file, before the folder has its name."""
    kept = pack(keep(laid_out(config_home), config_home.where), config_home.where)
    synced, real = [], os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    folder = Path(opened(kept, config_home.where)).parent
    assert {path.stat().st_ino for path in (folder, *folder.rglob("*"))} <= set(synced)


def test_a_copy_with_other_bytes_does_not_come_back(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transcript is refused, also to readers; of what belongs to it the rest comes, and that is told."""
    monkeypatch.setattr(put, "_linked", lambda *_: None)
    kept = keep(laid_out(config_home), config_home.where)
    before = gone(config_home)
    output = Path(kept.folder, "files-1", SESSION, "tool-results", "toolu_1.txt")
    output.write_bytes(output.read_bytes().replace(b"large", b"LARGE"))
    place = f"projects/-home-user-proj/{SESSION}/tool-results/toolu_1.txt"
    decided = restore.write(restore.plan(kept, config_home.where), config_home.where)
    assert decided.warnings == (restore.DAMAGED.format(place=place),)
    assert gone(config_home) == {name: raw for name, raw in before.items() if name != place}
    path = Path(opened(kept, config_home.where))
    path.write_bytes(path.read_bytes().replace(b"prompt", b"promqt"))
    with pytest.raises(SessionNotFound, match="hash differs"):
        opened(kept, config_home.where)
    os.utime(path, ns=(kept.transcript.mtime_ns, kept.transcript.mtime_ns))
    with pytest.raises(WriteFailed, match="hash differs"):
        restore.plan(kept, config_home.where)
    assert client_files(config_home) == {}


@pytest.mark.parametrize("how", ["cut", "cut and grown", "same size"])
def test_harm_to_a_link_is_remembered(config_home: ConfigHome, how: str) -> None:
    """It is found where it is a link, where it was kept again since, and where it was packed since."""
    session = laid_out(config_home, turns=8)
    kept = keep(session, config_home.where)
    path = Path(session.path)
    raw = path.read_bytes()
    rows = {"cut": raw[:3000], "cut and grown": raw[:3000] + b'{"type":"x"}\n' * 900, "same size": bytes(len(raw))}
    with path.open("r+b") as stream:
        stream.truncate(0)
        stream.write(rows[how])
    os.utime(path, (OLD + 60, OLD + 60))
    expected = ["cut-short" if how == "cut" else "rewritten"]
    assert (names(kept, config_home), harms(kept)) == (expected, [])
    again = keep(locate.session_file(session.path), config_home.where)
    assert (names(again, config_home), len(harms(again))) == (expected, 1)
    packed = pack(again, config_home.where)
    assert (packed.form, names(packed, config_home), harms(packed)) == ("packed", expected, harms(again))
    assert f"{len(raw):,} bytes" in harms(packed)[0]
    with path.open("ab") as stream:
        stream.write(b'{"type":"y"}\n')
    os.utime(path, (OLD + 90, OLD + 90))
    grown = pack(keep(locate.session_file(session.path), config_home.where), config_home.where)
    assert (names(grown, config_home), harms(grown)) == (expected, harms(again))
    gone(config_home)
    assert harms(again)[0].split(": ")[1] in restore.plan(grown, config_home.where).warnings[0]


def test_harm_that_only_packing_sees(config_home: ConfigHome) -> None:
    """Nobody kept it again in between."""
    session = laid_out(config_home, turns=8)
    kept = keep(session, config_home.where)
    os.truncate(session.path, 3000)
    os.utime(session.path, (OLD, OLD))
    packed = pack(kept, config_home.where)
    assert (names(packed, config_home), len(harms(packed))) == (["cut-short"], 1)


def test_growing_is_no_harm(config_home: ConfigHome) -> None:
    """What clients do all day."""
    session = laid_out(config_home)
    kept = keep(session, config_home.where)
    for _ in range(3):
        with open(session.path, "ab") as stream:
            stream.write(b'{"type":"x","text":"%s"}\n' % os.urandom(900).hex().encode())
        os.utime(session.path, (OLD, OLD))
        assert names(kept, config_home) == []
        kept = keep(locate.session_file(session.path), config_home.where)
    assert (names(pack(kept, config_home.where), config_home), harms(kept)) == ([], [])


@pytest.mark.parametrize(
    ("field", "number"), [(1, 2**60), (3, 2**63), (3, -(2**63) - 1), (4, -1), (6, 2**60), (8, 2**60), (11, -1)]
)
def test_numbers_that_no_file_has(config_home: ConfigHome, field: int, number: int) -> None:
    """Such a note is none, so that nothing computes with it."""
    kept = keep(laid_out(config_home), config_home.where)
    note = Path(kept.folder, "note.json")
    row = json.loads(note.read_bytes())
    row["parts"][0][field] = number
    note.write_text(json.dumps(row))
    assert find(SESSION, config_home.where) is None
    assert "can't be read as a note" in why_unreadable(SESSION, config_home.where)
    assert unreadable(config_home.where) == [kept.folder]


def test_a_note_without_seals_is_read(config_home: ConfigHome) -> None:
    """It is of an earlier engine; the next time it is kept it has them."""
    session = laid_out(config_home)
    kept = keep(session, config_home.where)
    note = Path(kept.folder, "note.json")
    row = json.loads(note.read_bytes())
    row["parts"] = [part[:9] for part in row["parts"]]
    del row["home"]
    note.write_text(json.dumps(row))
    old = find(SESSION, config_home.where)
    assert old is not None
    assert (names(old, config_home), old.transcript.seal) == ([], "")
    os.utime(session.path, (OLD + 60, OLD + 60))
    assert keep(locate.session_file(session.path), config_home.where).transcript.seal == kept.transcript.seal


def test_a_time_before_all_clocks(config_home: ConfigHome) -> None:
    """A file of 1960 is kept like any other."""
    session = laid_out(config_home)
    os.utime(session.path, (-300_000_000, -300_000_000))
    kept = pack(keep(locate.session_file(session.path), config_home.where), config_home.where)
    assert held(config_home.where) == [kept]
    assert Path(opened(kept, config_home.where)).read_bytes() == Path(session.path).read_bytes()


def test_a_note_of_the_future_proves_nothing(config_home: ConfigHome) -> None:
    """It is read; and it gets today's time as soon as somebody has looked at all of its files."""
    session = laid_out(config_home)
    kept = keep(session, config_home.where)
    note = os.path.join(kept.folder, "note.json")
    os.utime(note, (time.time() + 9e6,) * 2)
    assert is_kept(SESSION, os.stat(session.path).st_mtime, config_home.where)
    assert not is_kept(SESSION, os.stat(session.path).st_mtime + 60, config_home.where)
    assert keep(session, config_home.where) == kept
    assert abs(os.stat(note).st_mtime - time.time()) < 60


def test_what_an_interrupted_keep_left(config_home: ConfigHome) -> None:
    """It is told, and swept where there is no note at all; not where somebody is at it, nor where a note is damaged."""
    assert unreadable(config_home.where) == []
    kept = keep(laid_out(config_home), config_home.where)
    left, damaged, busy = (folder_of(session_id(number), config_home.where) for number in (2, 3, 4))
    for folder in (left, damaged, busy):
        Path(folder, "files-1").mkdir(parents=True)
        Path(folder, "files-1", "x.jsonl").write_text("secret")
    Path(damaged, "note.json").write_text("{")
    assert unreadable(config_home.where) == [left, damaged, busy]
    with commit.only_one(session_id(4), config_home.where):
        commit.sweep_leftovers(config_home.where)
    assert unreadable(config_home.where) == [damaged, busy]
    assert (os.path.exists(left), find(SESSION, config_home.where)) == (False, kept)
    os.rename(vault(config_home.where), vault(config_home.where) + "-2")
    os.symlink(vault(config_home.where) + "-2", vault(config_home.where))
    assert unreadable(config_home.where) == [vault(config_home.where)]
    commit.sweep_leftovers(config_home.where)
    assert os.path.exists(os.path.join(busy, "files-1", "x.jsonl"))


def test_an_earlier_state_has_its_own_title(config_home: ConfigHome) -> None:
    """Not that of what took its place."""
    session = laid_out(config_home, title="Fix the parser")
    keep(session, config_home.where)
    os.unlink(session.path)
    rows = [*conversation(1, session_id=SESSION), custom_title("Something else", SESSION)]
    write_session(config_home.project(), SESSION, rows, mtime=OLD)
    now = keep(locate.session_file(session.path), config_home.where)
    (state,) = states(now)
    earlier = named(f"{SESSION}@{instant(state)}", config_home.where)
    assert restore.plan(earlier, config_home.where).kept.title == "Fix the parser"
    assert restore.plan(now, config_home.where).kept.title == "Something else"


def test_a_full_disk_is_told_once(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of the session, and what the system said."""
    session = laid_out(config_home)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("resume_hooks.archive.vault.keep.put", full)
    with pytest.raises(WriteFailed) as failure:
        keep(session, config_home.where)
    assert str(failure.value).startswith(f"{session.path} could not be kept: No space left on device")


def counted(most: int) -> Callable[[], bool]:
    """Time that is over once it was asked for more often than this."""
    asked = iter(range(10**9))
    return lambda: next(asked) >= most


@pytest.mark.parametrize("most", [0, 1, 2])
def test_packing_ends_when_its_time_is_over(config_home: ConfigHome, most: int) -> None:
    """At any piece, of the writing and of the reading back; nothing of it is left."""
    kept = keep(laid_out(config_home), config_home.where)
    with pytest.raises(SessionLive, match="no time left"):
        pack(kept, config_home.where, is_over=counted(most))
    assert find(SESSION, config_home.where) == kept
    assert not [name for name in os.listdir(kept.folder) if name.startswith("pack-")]
