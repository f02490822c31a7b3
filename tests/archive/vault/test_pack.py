"""Tests of rewriting, removing and verifying archived copies, and of a kill at each step."""

from __future__ import annotations

import lzma
import os
import random
import stat
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.archive.vault import restore
from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.archive.vault.commit import remove_archived
from resume_hooks.archive.vault.locate_archived import select_earlier_state
from resume_hooks.archive.vault.packs import find_unreadable_folders, split_lines, verify_archived
from resume_hooks.archive.vault.rewrite import rewrite_archived
from resume_hooks.errors import SessionNotFound, WriteFailed
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived import unpack
from resume_hooks.sessions.archived.layout import unpacked_folder, vault_folder
from resume_hooks.sessions.archived.manifest import find_archived, list_archived
from resume_hooks.sessions.archived.unpack import unpacked_transcript
from resume_hooks.sessions.session_files import SessionFile
from tests.archive.vault.full_sessions import (
    FIVE_DAYS_AGO,
    archived_contents,
    client_files,
    session_with_every_file,
    vault_files,
)
from tests.builders import SESSION, ConfigHome, session_id
from tests.crashes import kill_before_each_change
from tests.needs import REPO


@pytest.mark.parametrize("damage_kind", ["gone", "cut", "flipped", "longer", "no pack"])
def test_a_damaged_pack_is_reported_and_never_unpacked(
    config_home: ConfigHome, damage_kind: str
) -> None:
    """Verifying the vault reports a damaged pack, and a copy with a damaged pack cannot be opened."""
    kept = archive_session(session_with_every_file(config_home), config_home.where)
    path = Path(kept.folder, kept.transcript.where)
    raw = path.read_bytes()
    if damage_kind == "gone":
        path.unlink()
    elif damage_kind == "cut":
        path.write_bytes(raw[: len(raw) // 2])
    elif damage_kind == "flipped":
        path.write_bytes(raw[:100] + bytes([raw[100] ^ 1]) + raw[101:])
    elif damage_kind == "longer":
        path.write_bytes(lzma.compress(lzma.decompress(raw).replace(b"prompt", b"promqt")))
    else:
        path.write_bytes(b"no pack at all")
    assert {finding.kind for finding in verify_archived(kept)} == {
        "missing" if damage_kind == "gone" else "damaged"
    }
    with pytest.raises(
        (WriteFailed, SessionNotFound), match=r"could not be unpacked|can't be read"
    ):
        unpacked_transcript(kept, config_home.where)
    assert not any(Path(unpacked_folder(config_home.where), SESSION).iterdir())


def test_a_pack_of_another_state_is_refused(config_home: ConfigHome) -> None:
    """Opening an archived copy raises an error if its pack was replaced by the pack of another state."""
    session = session_with_every_file(config_home)
    kept = archive_session(session, config_home.where)
    path = Path(session.path)
    path.with_suffix(".new").write_bytes(path.read_bytes().replace(b"prompt", b"promise"))
    path.with_suffix(".new").replace(path)
    assert archive_session(locate.session_file(session.path), config_home.where).earlier
    with pytest.raises(SessionNotFound):
        unpacked_transcript(kept, config_home.where)


def test_old_unpacked_sessions_are_removed_above_a_size_limit(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the size limit, old unpacked sessions are removed, and those of the last hour are kept."""
    first = archive_session(session_with_every_file(config_home), config_home.where)
    other = archive_session(session_with_every_file(config_home, session_id(2)), config_home.where)
    old, new = (
        os.path.dirname(unpacked_transcript(kept, config_home.where)) for kept in (first, other)
    )
    Path(unpacked_folder(config_home.where), SESSION, ".resume-hooks-999999999-ab.tmp").mkdir()
    monkeypatch.setattr(unpack, "MAX_UNPACKED_BYTES", 1)
    os.utime(old, (FIVE_DAYS_AGO, FIVE_DAYS_AGO))
    third = archive_session(session_with_every_file(config_home, session_id(3)), config_home.where)
    unpacked_transcript(third, config_home.where)
    assert (os.path.exists(old), os.path.exists(new)) == (False, True)
    assert not Path(unpacked_folder(config_home.where), SESSION).exists()
    assert archived_contents(first, config_home)  # The copy is unpacked again.


def test_unpacked_files_are_private(config_home: ConfigHome) -> None:
    """Only the owner can read unpacked files. Backups keep their original mode."""
    session = session_with_every_file(config_home)
    for path in (p for p in config_home.config.rglob("*") if p.is_file()):
        path.chmod(0o644)
    kept = archive_session(session, config_home.where)
    folder = Path(unpacked_transcript(kept, config_home.where)).parent
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}
    backups = folder / "file-history"
    assert modes == {0o600, 0o644}
    assert all(
        path.stat().st_mode & 0o077 == 0 or backups in path.parents for path in folder.rglob("*")
    )


def test_rewriting_a_copy_changes_every_text(config_home: ConfigHome) -> None:
    """Rewriting a copy changes each text in it, including the title, but changes no binary file."""
    session = session_with_every_file(config_home, title="Fix the parser")
    own = Path(session.path.removesuffix(".jsonl"))
    (own / "tool-results" / "image").write_bytes(b"\0parser\0")
    kept = archive_session(session, config_home.where)
    before = client_files(config_home)
    unpacked_transcript(kept, config_home.where)
    changed = rewrite_archived(
        kept,
        lambda line: line.replace(b"parser", b"[gone]").replace(b"large", b"[big]"),
        config_home.where,
    )
    now = find_archived(SESSION, config_home.where)
    assert now is not None
    assert changed == 1 + 10
    assert client_files(config_home) == before
    wanted = {
        place: raw
        if place.endswith("image")
        else raw.replace(b"parser", b"[gone]").replace(b"large", b"[big]")
        for place, raw in before.items()
    }
    assert archived_contents(now, config_home) == wanted
    assert (now.title, now.about.titles) == ("Fix the [gone]", ("Fix the [gone]",))
    assert b"parser" not in Path(now.folder, "manifest.json").read_bytes()
    assert verify_archived(now) == []
    assert rewrite_archived(now, lambda line: line, config_home.where) == 0
    # The client's file did not change, so its original text is not archived again.
    assert archive_session(session, config_home.where) == now


def test_rewriting_may_change_a_whole_text(config_home: ConfigHome) -> None:
    """A function that changes whole texts can replace a match across several lines."""
    kept = archive_session(session_with_every_file(config_home), config_home.where)
    none = rewrite_archived(kept, lambda line: line, config_home.where, change_text=lambda raw: raw)
    assert (none, find_archived(SESSION, config_home.where)) == (0, kept)
    assert (
        rewrite_archived(
            kept,
            lambda line: line,
            config_home.where,
            change_text=lambda raw: raw.replace(b"e\nl", b""),
        )
        == 1
    )


def test_split_lines_joins_pieces_into_lines(config_home: ConfigHome) -> None:
    """``split_lines`` turns pieces of any size into whole lines."""
    del config_home
    raw = b"\n".join(random.Random(7).randbytes(40).replace(b"\n", b"") for _ in range(50))
    for size in (1, 3, 41, 5000):
        pieces = (raw[start : start + size] for start in range(0, len(raw), size))
        lines = list(split_lines(pieces))
        assert b"".join(lines) == raw
        assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines[:-1])


def test_removing_a_copy_deletes_all_of_its_files(config_home: ConfigHome) -> None:
    """Removing a copy deletes all of its files in the state folder, and no file of the client."""
    kept = archive_session(session_with_every_file(config_home), config_home.where)
    before = client_files(config_home)
    unpacked_transcript(kept, config_home.where)
    remove_archived(kept, config_home.where)
    assert (list_archived(config_home.where), vault_files(config_home)) == ([], [])
    assert not Path(unpacked_folder(config_home.where), SESSION).exists()
    assert client_files(config_home) == before
    with pytest.raises(SessionNotFound):
        rewrite_archived(kept, lambda line: line, config_home.where)


def test_archiving_a_large_session_needs_little_memory(config_home: ConfigHome) -> None:
    """Archiving and opening 18 MB needs about as much memory as archiving and opening 6 MB."""
    peaks = []
    for number, megabytes in ((1, 6), (2, 18)):
        session = session_with_every_file(config_home, session_id(number))
        with open(session.path, "ab") as stream:
            stream.write(
                (b'{"type":"x","text":"%s"}\n' % (b"0123456789" * 100)) * (megabytes * 1000)
            )
        os.utime(session.path, (FIVE_DAYS_AGO, FIVE_DAYS_AGO))
        tracemalloc.start()
        kept = archive_session(locate.session_file(session.path), config_home.where)
        unpacked_transcript(kept, config_home.where)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2 * 1024 * 1024


VAULT_CHANGE_FUNCTIONS: dict[str, Callable[[ConfigHome], Any]] = {
    "keep": lambda home: archive_session(
        locate.session_file(str(home.project() / f"{SESSION}.jsonl")), home.where
    ),
    "renew": lambda home: archive_session(grow_session(home), home.where),
    "rewrite": lambda home: rewrite_archived(
        list_archived(home.where)[0], lambda line: line.replace(b"large", b"LARGE"), home.where
    ),
    "open": lambda home: unpacked_transcript(list_archived(home.where)[0], home.where),
    "restore": lambda home: restore.execute_restore_plan(
        restore.plan_restore(list_archived(home.where)[0], home.where), home.where
    ),
}
"""Changes of the vault, by name. A test kills each of them at every step."""


def grow_session(home: ConfigHome) -> SessionFile:
    """Append a record to the session and replace its backup."""
    path = home.project() / f"{SESSION}.jsonl"
    if not path.read_bytes().endswith(b"{}\n"):
        with path.open("ab") as stream:
            stream.write(b"{}\n")
    (home.config / "file-history" / SESSION / "abc@v1").write_bytes(b"another file")
    return locate.session_file(str(path))


@pytest.mark.parametrize("verb", VAULT_CHANGE_FUNCTIONS)
def test_a_change_of_the_vault_killed_at_any_step_loses_nothing(
    config_home: ConfigHome, verb: str
) -> None:
    """After a change of the vault is killed at any step, archived contents are complete.

    A second run completes the change.
    """
    session = session_with_every_file(config_home)
    before = client_files(config_home)
    if verb != "keep":
        archive_session(session, config_home.where)
    backup = f"file-history/{SESSION}/abc@v1"
    large = f"projects/-home-user-proj/{SESSION}/tool-results/toolu_1.txt"
    after = {
        "renew": {
            f"projects/-home-user-proj/{SESSION}.jsonl": Path(session.path).read_bytes() + b"{}\n"
        }
        | {backup: b"another file"},
        "rewrite": {large: before[large].replace(b"large", b"LARGE")},
    }.get(verb, {})

    def prepare() -> Callable[[], object]:
        if verb == "restore":
            for place in before:
                (config_home.config / place).unlink(missing_ok=True)
        return lambda: VAULT_CHANGE_FUNCTIONS[verb](config_home)

    for _ in kill_before_each_change(prepare):
        kept = find_archived(SESSION, config_home.where)
        if verb == "keep" and kept is None:
            assert all("manifest.json" not in name for name in vault_files(config_home))
            continue
        assert kept is not None
        assert verify_archived(kept) == []
        assert archived_contents(kept, config_home) in (before, before | after)
        if verb == "renew" and kept.earlier:
            earlier = select_earlier_state(kept, kept.earlier[0])
            assert archived_contents(earlier, config_home)[backup] == before[backup]
        if verb == "restore":
            there = {
                place: raw
                for place, raw in client_files(config_home).items()
                if ".resume-hooks-" not in place
            }
            assert there.items() <= before.items()
            stamps = {part.place: (part.mtime_ns, part.mode) for part in kept.parts}
            found = {place: os.stat(config_home.config / place) for place in there}
            assert {
                place: (each.st_mtime_ns, stat.S_IMODE(each.st_mode))
                for place, each in found.items()
            } == {place: stamps[place] for place in there}
    VAULT_CHANGE_FUNCTIONS[verb](config_home)
    kept = find_archived(SESSION, config_home.where)
    assert kept is not None
    assert verify_archived(kept) == []
    assert archived_contents(kept, config_home) == before | after
    assert find_unreadable_folders(config_home.where) == []
    assert vault_files(config_home) == [
        f"{SESSION}/manifest.json",
        f"{SESSION}/{kept.transcript.where}",
    ]
    if verb == "restore":
        assert client_files(config_home) == before


def test_several_processes_archive_the_same_sessions(config_home: ConfigHome) -> None:
    """If six processes archive the same sessions while a client appends, the vault is valid."""
    ids = [session_id(number) for number in range(1, 5)]
    for number in ids:
        session_with_every_file(config_home, number)
    program = (
        "import os, sys\n"
        "from resume_hooks.paths import Where\n"
        "from resume_hooks.sessions import locate\n"
        "from resume_hooks.archive.vault.archive_session import archive_session\n"
        "for session in locate.all_sessions(Where()):\n"
        "    archive_session(session, Where())\n"
    )
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPO / "src"), **config_home.environ}
    running = [
        subprocess.Popen([sys.executable, "-c", program], env=env, stderr=subprocess.PIPE)
        for _ in range(6)
    ]
    path = config_home.project() / f"{ids[0]}.jsonl"
    for _ in range(40):
        with path.open("ab") as stream:
            stream.write(b'{"type":"x"}\n')
    for process in running:
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (0, b"")
    archive_session(locate.session_file(str(path)), config_home.where)
    found: dict[str, bytes] = {}
    for kept in list_archived(config_home.where):
        assert verify_archived(kept) == []
        found |= archived_contents(kept, config_home)
        named = {part.where for part in kept.all_parts}
        assert {
            name for name in os.listdir(kept.folder) if name not in {"manifest.json", "lock"}
        } == named
    assert found == client_files(config_home)
    assert sorted(os.listdir(vault_folder(config_home.where))) == ids
