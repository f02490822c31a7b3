"""Packing, rewriting, forgetting, verifying; and death at every step of them."""

from __future__ import annotations

import errno
import lzma
import os
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.archive.vault import commit, pack_writer, put, restore
from resume_hooks.archive.vault import forget as forgetting
from resume_hooks.archive.vault import keep as keeping
from resume_hooks.archive.vault import pack as packing
from resume_hooks.archive.vault import rewrite as rewriting
from resume_hooks.archive.vault.forget import forget
from resume_hooks.archive.vault.keep import keep
from resume_hooks.archive.vault.pack import is_packed, pack
from resume_hooks.archive.vault.pack_writer import lines_of
from resume_hooks.archive.vault.rewrite import rewrite
from resume_hooks.archive.vault.verify import unreadable, verify
from resume_hooks.errors import SessionLive, SessionNotFound, WriteFailed
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived import packs, unpack
from resume_hooks.sessions.archived.layout import unpacked, vault
from resume_hooks.sessions.archived.manifest import Kept, find, held
from resume_hooks.sessions.archived.unpack import opened
from resume_hooks.storage import locks, state_file
from tests.archive.vault.laid_out import OLD, client_files, crash_at, kept_files, laid_out, vault_files
from tests.builders import SESSION, ConfigHome, session_id
from tests.needs import REPO

MODULES = {
    str(module.__file__)
    for module in (
        locks, forgetting, keeping, commit, unpack, pack_writer, packing, packs, state_file, put, restore,
        rewriting,
    )
}  # fmt: skip


def packed(home: ConfigHome) -> Kept:
    """The session, packed."""
    return pack(keep(laid_out(home), home.where), home.where)


def test_a_pack_takes_the_place_of_links(config_home: ConfigHome) -> None:
    """One file, every byte of all parts in it, each with its hash; what is read from it lies in the state folder."""
    session = laid_out(config_home, turns=50)
    kept = packed(config_home)
    before = client_files(config_home)
    assert vault_files(config_home) == [f"{SESSION}/note.json", f"{SESSION}/{kept.transcript.where}"]
    assert (kept.form, kept.size, is_packed(kept)) == ("packed", sum(map(len, before.values())), True)
    assert kept.stored == os.path.getsize(os.path.join(kept.folder, kept.transcript.where)) < kept.size / 3
    assert all(part.sha256 and not part.linked for part in kept.parts)
    Path(session.path).write_bytes(b"")  # cut short in place
    assert kept_files(kept, config_home) == before
    assert opened(kept, config_home.where).startswith(unpacked(config_home.where))
    assert unpack.home_of(opened(kept, config_home.where), config_home.where) == os.path.dirname(session.path)
    assert int(os.stat(opened(kept, config_home.where)).st_mtime) == int(OLD)
    assert verify(kept, config_home.where) == []
    assert pack(kept, config_home.where) == kept


def test_a_live_session_is_not_packed(config_home: ConfigHome) -> None:
    """Nor one that is written meanwhile; it stays linked."""
    kept = keep(laid_out(config_home), config_home.where)
    os.utime(os.path.join(config_home.config, *kept.place.split("/")))
    with pytest.raises(SessionLive, match="seconds ago"):
        pack(kept, config_home.where)
    assert find(SESSION, config_home.where) == kept


def test_written_while_it_is_packed(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client goes on at that very moment: the links stay, and the half-made pack goes."""
    session = laid_out(config_home)
    kept = keep(session, config_home.where)

    real = packs.write

    def grown(path: str, pieces: Any) -> int:
        size = real(path, pieces)
        with open(session.path, "ab") as stream:
            stream.write(b'{"type":"x"}\n')
        return size

    monkeypatch.setattr(packs, "write", grown)
    with pytest.raises(SessionLive, match="was written while it was packed"):
        pack(kept, config_home.where)
    assert find(SESSION, config_home.where) == kept
    assert os.listdir(kept.folder).count("pack-2.xz") == 0


@pytest.mark.parametrize("what", ["gone", "cut", "flipped", "longer", "no pack"])
def test_damage_is_found_and_never_handed_out(config_home: ConfigHome, what: str) -> None:
    """Verifying says so; opening says so; nothing else of the vault is touched."""
    kept = packed(config_home)
    path = Path(kept.folder, kept.transcript.where)
    raw = path.read_bytes()
    if what == "gone":
        path.unlink()
    elif what == "cut":
        path.write_bytes(raw[: len(raw) // 2])
    elif what == "flipped":
        path.write_bytes(raw[:100] + bytes([raw[100] ^ 1]) + raw[101:])
    elif what == "longer":
        path.write_bytes(lzma.compress(lzma.decompress(raw).replace(b"prompt", b"promqt")))
    else:
        path.write_bytes(b"no pack at all")
    assert {finding.name for finding in verify(kept, config_home.where)} == {"missing" if what == "gone" else "damaged"}
    with pytest.raises((WriteFailed, SessionNotFound), match=r"could not be unpacked|can't be read"):
        opened(kept, config_home.where)
    assert not any(Path(unpacked(config_home.where), SESSION).iterdir())


def test_a_kept_file_that_was_changed(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a copy every byte is vouched for, of a link the size."""
    monkeypatch.setattr(put, "_linked", lambda *_: None)
    kept = keep(laid_out(config_home), config_home.where)
    path = Path(opened(kept, config_home.where))
    path.write_bytes(path.read_bytes().replace(b"prompt", b"promqt"))
    (finding,) = verify(kept, config_home.where)
    assert (finding.name, finding.place) == ("damaged", kept.place)
    with pytest.raises(WriteFailed, match="hash differs"):
        pack(kept, config_home.where)
    path.unlink()
    assert [each.name for each in verify(kept, config_home.where)] == ["missing"]


def test_the_bound_of_what_is_unpacked(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody opened for long goes; what was opened within the hour stays."""
    first = packed(config_home)
    other = pack(keep(laid_out(config_home, session_id(2)), config_home.where), config_home.where)
    old, new = (os.path.dirname(opened(kept, config_home.where)) for kept in (first, other))
    Path(unpacked(config_home.where), SESSION, "tmp-999999999-ab").mkdir()
    monkeypatch.setattr(unpack, "MAX_UNPACKED", 1)
    os.utime(old, (OLD, OLD))
    third = pack(keep(laid_out(config_home, session_id(3)), config_home.where), config_home.where)
    opened(third, config_home.where)
    assert (os.path.exists(old), os.path.exists(new)) == (False, True)
    assert not Path(unpacked(config_home.where), SESSION).exists()
    assert kept_files(first, config_home)  # unpacked anew


def test_rewriting(config_home: ConfigHome) -> None:
    """Every line of every text, of all states, and the title; nothing of it is left anywhere; binaries stay."""
    session = laid_out(config_home, title="Fix the parser")
    own = Path(session.path.removesuffix(".jsonl"))
    (own / "tool-results" / "image").write_bytes(b"\0parser\0")
    kept = keep(session, config_home.where)
    before = client_files(config_home)
    opened(pack(kept, config_home.where), config_home.where)
    changed = rewrite(
        kept, lambda line: line.replace(b"parser", b"[gone]").replace(b"large", b"[big]"), config_home.where
    )
    now = find(SESSION, config_home.where)
    assert now is not None
    assert changed == 1 + 10
    assert client_files(config_home) == before
    wanted = {
        place: raw if place.endswith("image") else raw.replace(b"parser", b"[gone]").replace(b"large", b"[big]")
        for place, raw in before.items()
    }
    assert kept_files(now, config_home) == wanted
    assert (now.title, now.about.titles) == ("Fix the [gone]", ("Fix the [gone]",))
    assert b"parser" not in Path(now.folder, "note.json").read_bytes()
    assert verify(now, config_home.where) == []
    assert rewrite(now, lambda line: line, config_home.where) == 0
    assert keep(session, config_home.where) == now  # the client's file did not change, so it does not come back


def test_texts_may_come_whole(config_home: ConfigHome) -> None:
    """What runs over several lines of a tool's output is seen, and what stands in lines of transcripts still is."""
    kept = keep(laid_out(config_home), config_home.where)
    none = rewrite(kept, lambda line: line, config_home.where, text=lambda raw: raw)
    assert (none, find(SESSION, config_home.where)) == (0, kept)
    assert rewrite(kept, lambda line: line, config_home.where, text=lambda raw: raw.replace(b"e\nl", b"")) == 1


def test_lines_come_whole(config_home: ConfigHome) -> None:
    """Whatever pieces a content is read in."""
    del config_home
    raw = b"\n".join(random.Random(7).randbytes(40).replace(b"\n", b"") for _ in range(50))
    for size in (1, 3, 41, 5000):
        pieces = (raw[start : start + size] for start in range(0, len(raw), size))
        lines = list(lines_of(pieces))
        assert b"".join(lines) == raw
        assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines[:-1])


def test_forgetting(config_home: ConfigHome) -> None:
    """Nothing is left of it in the state folder; the client's files are not touched."""
    kept = packed(config_home)
    before = client_files(config_home)
    opened(kept, config_home.where)
    forget(kept, config_home.where)
    assert (held(config_home.where), vault_files(config_home)) == ([], [])
    assert not Path(unpacked(config_home.where), SESSION).exists()
    assert client_files(config_home) == before
    with pytest.raises(SessionNotFound):
        pack(kept, config_home.where)


def test_memory_is_bounded(config_home: ConfigHome) -> None:
    """A session of three times the size takes no more memory to be kept, packed and opened."""
    peaks = []
    for number, megabytes in ((1, 6), (2, 18)):
        session = laid_out(config_home, session_id(number))
        with open(session.path, "ab") as stream:
            stream.write((b'{"type":"x","text":"%s"}\n' % (b"0123456789" * 100)) * (megabytes * 1000))
        os.utime(session.path, (OLD, OLD))
        tracemalloc.start()
        kept = keep(locate.session_file(session.path), config_home.where)
        opened(pack(kept, config_home.where), config_home.where)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2 * 1024 * 1024


WORK: dict[str, Callable[[ConfigHome], Any]] = {
    "keep": lambda home: keep(locate.session_file(str(home.project() / f"{SESSION}.jsonl")), home.where),
    "pack": lambda home: pack(held(home.where)[0], home.where),
    "rewrite": lambda home: rewrite(held(home.where)[0], lambda line: line.replace(b"large", b"LARGE"), home.where),
    "open": lambda home: opened(held(home.where)[0], home.where),
    "restore": lambda home: restore.write(restore.plan(held(home.where)[0], home.where), home.where),
}
"""What may be killed; each begins where the one before it left the session."""


def ready(home: ConfigHome, verb: str) -> None:
    """The vault as it is before ``verb``."""
    session = laid_out(home)
    if verb != "keep":
        kept = keep(session, home.where)
        if verb in {"open", "restore", "rewrite"}:
            pack(kept, home.where)


@pytest.mark.parametrize("form", ["links", "copies"])
@pytest.mark.parametrize("verb", WORK)
def test_killed_anywhere(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, verb: str, form: str) -> None:
    """At every step: what was kept is whole, nothing half-made counts, and doing it again does it."""
    if form == "copies":
        monkeypatch.setattr(put, "_linked", lambda *_: None)
    line, ended = 0, False
    ready(config_home, verb)
    before = client_files(config_home)
    large = f"projects/-home-user-proj/{SESSION}/tool-results/toolu_1.txt"
    while not ended:
        line += 13
        if verb == "restore":
            for place in before:
                (config_home.config / place).unlink(missing_ok=True)
        ended = crash_at(line, MODULES, lambda: WORK[verb](config_home))
        kept = find(SESSION, config_home.where)
        if verb == "keep" and kept is None:
            assert all("note.json" not in name for name in vault_files(config_home))
            continue
        assert kept is not None
        assert verify(kept, config_home.where) == []
        found = kept_files(kept, config_home)
        assert found in (before, before | {large: before[large].replace(b"large", b"LARGE")}), line
        if verb == "restore":
            there = {place: raw for place, raw in client_files(config_home).items() if ".resume-hooks-" not in place}
            assert there.items() <= before.items()
    WORK[verb](config_home)
    assert line > 13
    kept = find(SESSION, config_home.where)
    assert kept is not None
    assert verify(kept, config_home.where) == []
    assert unreadable(config_home.where) == []
    named = {part.where for part in kept.parts}
    assert {name.split("/")[1] for name in vault_files(config_home)} == {"note.json", *named}
    if verb == "restore":
        assert client_files(config_home) == before


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_disk_that_refuses_a_pack(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """No space, at any of the calls: the links stay, and what was begun goes."""
    kept = keep(laid_out(config_home), config_home.where)

    def refused(*_: object, **__: object) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if call == "write":
        monkeypatch.setattr(packs, "write", refused)
    else:
        monkeypatch.setattr(os, call, refused)
    with pytest.raises(WriteFailed, match="No space left"):
        pack(kept, config_home.where)
    monkeypatch.undo()
    assert find(SESSION, config_home.where) == kept
    assert {name.split("/")[1] for name in vault_files(config_home)} == {"note.json", "files-1"}


def test_two_at_once(config_home: ConfigHome) -> None:
    """Six processes keep and pack the same sessions while a client appends: one vault, whole, nothing left over."""
    ids = [session_id(number) for number in range(1, 5)]
    for number in ids:
        laid_out(config_home, number)
    program = (
        "import os, sys\n"
        "from resume_hooks.paths import Where\n"
        "from resume_hooks.sessions import locate\n"
        "from resume_hooks.errors import SessionLive\n"
        "from resume_hooks.archive.vault.keep import keep\n"
        "from resume_hooks.archive.vault.pack import pack\n"
        "for session in locate.all_sessions(Where()):\n"
        "    kept = keep(session, Where())\n"
        "    try:\n"
        "        pack(kept, Where())\n"
        "    except SessionLive: pass\n"
    )
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPO / "src"), **config_home.environ}
    running = [subprocess.Popen([sys.executable, "-c", program], env=env, stderr=subprocess.PIPE) for _ in range(6)]
    path = config_home.project() / f"{ids[0]}.jsonl"
    for _ in range(40):
        with path.open("ab") as stream:
            stream.write(b'{"type":"x"}\n')
    for process in running:
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (0, b"")
    keep(locate.session_file(str(path)), config_home.where)
    found: dict[str, bytes] = {}
    for kept in held(config_home.where):
        assert verify(kept, config_home.where) == []
        found |= kept_files(kept, config_home)
        named = {part.where for part in kept.all_parts}
        assert {name for name in os.listdir(kept.folder) if name not in {"note.json", "lock"}} == named
    assert found == client_files(config_home)
    assert sorted(os.listdir(vault(config_home.where))) == ids
