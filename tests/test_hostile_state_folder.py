"""Tests of links, pipes and folders in place of the plugin's state files.

Whatever is in their place, no file outside the state folder is changed.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks import clock
from resume_hooks.archive.vault import commit, trash
from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks import confirmations, hook_state
from resume_hooks.hooks.confirmations import StoredQuestion
from resume_hooks.maintenance.doctor import find_state_folder_problems
from resume_hooks.paths import Where, is_private_folder, make_private_folder
from resume_hooks.search.index.connect import index_status, open_index
from resume_hooks.search.index.database import TABLE_FILE_NAME
from resume_hooks.sessions import link_log
from resume_hooks.sessions.link_log import Link
from resume_hooks.storage import backups, stored_settings
from tests.builders import SESSION, ConfigHome, conversation, session_id, write_session
from tests.fuzz.targets.target import assert_expected_error

HANDOFF_LINK = Link(session_id(2), SESSION, "handoff", "2026-01-31T09:30:00.000Z")
OLD_MTIME = 1_000_000_000.0

Snapshot = dict[str, tuple[int, int, bytes]]


def state_folder(home: ConfigHome) -> Path:
    """Create the state folder and return it."""
    return Path(make_private_folder(home.where.state, home.where))


def outside_folder(home: ConfigHome) -> Path:
    """Create a folder outside the state folder, and return it.

    Its files have the names of state files.
    """
    folder = home.root / "outside"
    folder.mkdir()
    names = [
        "links.jsonl",
        "settings.json",
        "index.db",
        "index.db-wal",
        "index.db-shm",
        "index.db.lock",
        "lock",
    ]
    names += [
        f"trim-{SESSION}.json",
        f"handoff-7-{SESSION}.json",
        f"mark-{SESSION}.json",
        "clear-7.json",
        "errors.log",
    ]
    for name in names:
        (folder / name).write_text(f"precious {name}\n")
        os.utime(folder / name, (OLD_MTIME, OLD_MTIME))
    (folder / "lines.jsonl").write_text(json.dumps(HANDOFF_LINK._asdict()) + "\n")
    return folder


def folder_snapshot(folder: Path) -> Snapshot:
    """Return the mode, inode and bytes of every file in a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.name: (path.stat().st_mode, path.stat().st_ino, path.read_bytes()) for path in files
    }


def _record_link(home: ConfigHome) -> None:
    link_log.record_link(HANDOFF_LINK, home.where)


def _store_setting(home: ConfigHome) -> None:
    stored_settings.store_setting("notice_percent", "70", home.where)


def _write_notes(home: ConfigHome) -> None:
    confirmations.store_question(StoredQuestion(SESSION, "", 2e9))
    hook_state.delete_old_notes("", 0.0)
    hook_state.consume_note(f"mark-{SESSION}.json")
    hook_state.claim_note("x")
    hook_state.release_note("x")


def _update_index(home: ConfigHome) -> None:
    for rebuild in (False, True):
        with open_index(home.where, rebuild=rebuild) as index:
            assert index.postings.record_count == 6
    index_status(home.where)


def _create_trash_entry(home: ConfigHome) -> None:
    with commit.lock_trash(home.where):
        trash.create_trash_folder(SESSION, clock.now(), home.where)


def _back_up_session(home: ConfigHome) -> None:
    with backups.open_and_copy_for_rewrite(
        SESSION, str(home.project() / f"{SESSION}.jsonl"), home.where, keep_copy=True
    ):
        pass


STATE_WRITER_FUNCTIONS: dict[str, Callable[[ConfigHome], None]] = {
    "link": _record_link,
    "setting": _store_setting,
    "note": _write_notes,
    "index": _update_index,
    "trash": _create_trash_entry,
    "backup": _back_up_session,
}


@pytest.mark.parametrize("writer_name", STATE_WRITER_FUNCTIONS)
@pytest.mark.parametrize("subfolder", ["", "pending", "trash", "backups", "log"])
def test_a_linked_state_folder_is_not_followed(
    config_home: ConfigHome, subfolder: str, writer_name: str
) -> None:
    """If the state folder or a folder inside it is a link, no file is written to the link's target.

    Functions either work without the folder or fail.
    """
    write_session(config_home.project(), SESSION, conversation(3))
    there = outside_folder(config_home)
    before = folder_snapshot(there)
    state = config_home.config / "resume-hooks"
    if subfolder:
        (state_folder(config_home) / subfolder).symlink_to(there)
    else:
        state.symlink_to(there)
    try:
        STATE_WRITER_FUNCTIONS[writer_name](config_home)
    except (ResumeHooksError, OSError) as error:
        assert_expected_error(error)
    assert folder_snapshot(there) == before
    assert sorted(path.name for path in there.iterdir()) == sorted(before), "nothing was added"


@pytest.mark.parametrize("writer_name", STATE_WRITER_FUNCTIONS)
@pytest.mark.parametrize("kind", ["link", "dangling link", "second name", "pipe", "folder"])
def test_a_link_or_pipe_in_place_of_a_state_file_is_not_used(
    config_home: ConfigHome, kind: str, writer_name: str
) -> None:
    """If a state file is replaced with a link, a pipe or a folder, no function hangs.

    The target of the link stays unchanged.
    """
    write_session(config_home.project(), SESSION, conversation(3))
    there = outside_folder(config_home)
    before = folder_snapshot(there)
    state = state_folder(config_home)
    (state / "pending").mkdir(mode=0o700)
    (state / "trash").mkdir(mode=0o700)
    (state / "backups" / SESSION).mkdir(parents=True, mode=0o700)
    places = [
        state / name
        for name in ("links.jsonl", "settings.json", "index.db", "index.db-wal", "index.db-shm")
    ]
    places += [
        state / "index.db.lock",
        state / "trash" / "lock",
        state / "backups" / SESSION / "lock",
    ]
    places += [
        state / "pending" / f"trim-{SESSION}.json",
        state / "pending" / f"mark-{SESSION}.json",
    ]
    for place in places:
        _create_hostile_entry(kind, place, there / place.name)
    try:
        STATE_WRITER_FUNCTIONS[writer_name](config_home)
    except (ResumeHooksError, OSError) as error:
        assert_expected_error(error)
    assert folder_snapshot(there) == before


def _create_hostile_entry(kind: str, path: Path, target: Path) -> None:
    if kind == "link":
        path.symlink_to(target)
    elif kind == "dangling link":
        path.symlink_to(target.parent / "nobody" / "made" / path.name)
    elif kind == "second name":
        path.hardlink_to(target)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()


def test_a_linked_log_of_the_index_is_not_written(config_home: ConfigHome) -> None:
    """If a log file of the index is a link, it is replaced, and its target is unchanged.

    SQLite would otherwise write to the target.
    """
    write_session(config_home.project(), SESSION, conversation(3))
    _update_index(config_home)
    there = outside_folder(config_home)
    before = folder_snapshot(there)
    state = state_folder(config_home)
    for ending in ("-wal", "-shm", "-journal"):
        for make in (Path.symlink_to, Path.hardlink_to):
            place = state / f"{TABLE_FILE_NAME}{ending}"
            place.unlink(missing_ok=True)
            make(place, there / "index.db-wal")
            _update_index(config_home)
            assert folder_snapshot(there) == before


def test_a_database_of_another_program_is_left_unchanged(config_home: ConfigHome) -> None:
    """If the index is a hard link to another program's database, this database stays unchanged.

    The engine builds a new index.
    """
    import sqlite3

    write_session(config_home.project(), SESSION, conversation(3))
    other = config_home.root / "other.db"
    db = sqlite3.connect(other)
    db.execute("CREATE TABLE precious(x)")
    db.commit()
    db.close()
    before = other.read_bytes()
    (state_folder(config_home) / TABLE_FILE_NAME).hardlink_to(other)
    _update_index(config_home)
    assert other.read_bytes() == before
    assert index_status(config_home.where).state == "ready"


def test_a_hard_linked_log_of_links_is_replaced_by_a_copy(config_home: ConfigHome) -> None:
    """If the log of links is a hard link, it is replaced with a copy before a row is added.

    The file's other name still leads to the old rows.
    """
    state = state_folder(config_home)
    link_log.record_link(HANDOFF_LINK, config_home.where)
    (config_home.root / "copy").hardlink_to(state / "links.jsonl")
    before = (config_home.root / "copy").read_bytes()
    other = HANDOFF_LINK._replace(child_id=session_id(3))
    link_log.record_link(other, config_home.where)
    assert link_log.read_links(config_home.where) == [HANDOFF_LINK, other]
    assert (config_home.root / "copy").read_bytes() == before
    assert [path.name for path in state.iterdir()] == ["links.jsonl"]
    assert stat.S_IMODE((state / "links.jsonl").stat().st_mode) == 0o600


def test_a_folder_of_another_user_is_not_used(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state folder that belongs to another user is not used, because that user could read its files.

    Root may use the folder.
    """
    state = state_folder(config_home)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 4_711)
    assert not is_private_folder(str(state), config_home.where)
    with pytest.raises(PermissionError, match="another user"):
        make_private_folder(str(state / "pending"), config_home.where)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert is_private_folder(str(state), config_home.where), (
        "root works in homes of others, as in a container"
    )


def test_a_linked_state_folder_of_another_home_is_not_followed(config_home: ConfigHome) -> None:
    """If the state folder of another config home is a link, a setting for that home is not stored."""
    other = Where({"CLAUDE_CONFIG_DIR": str(config_home.root / "other")})
    os.mkdir(other.config)
    elsewhere = config_home.root / "elsewhere"
    elsewhere.mkdir()
    os.symlink(elsewhere, other.state)
    with pytest.raises(ResumeHooksError, match=r"settings\.json"):
        stored_settings.store_setting("vault", "off", other)
    assert not list(elsewhere.iterdir())


def test_new_folders_are_private(config_home: ConfigHome) -> None:
    """New state folders are private, whatever the umask is."""
    old = os.umask(0)
    try:
        made = Path(
            make_private_folder(str(Path(config_home.where.state) / "a" / "b"), config_home.where)
        )
    finally:
        os.umask(old)
    assert [
        stat.S_IMODE(path.stat().st_mode) for path in (made, made.parent, made.parent.parent)
    ] == [0o700] * 3


def test_doctor_finds_unexpected_entries(config_home: ConfigHome) -> None:
    """``doctor`` reports links, pipes, and files that others can read or write.

    For each of them, it suggests a command. It never reports files that the plugin has written.
    """
    write_session(config_home.project(), SESSION, conversation(3))
    for act in STATE_WRITER_FUNCTIONS.values():
        act(config_home)
    state = state_folder(config_home)
    assert find_state_folder_problems(str(state)) == []
    (state / "a-link").symlink_to("/etc/passwd")
    os.mkfifo(state / "b-pipe")
    os.chmod(state / "links.jsonl", 0o644)
    (config_home.root / "copy").hardlink_to(state / "settings.json")
    (state / "pending" / "z").write_text("")
    os.chmod(state / "pending" / "z", 0o666)
    if os.getuid() == 0:
        (state / "b-theirs").write_text("")
        os.chmod(state / "b-theirs", 0o600)
    found = {Path(one.path).name: one.remedy for one in find_state_folder_problems(str(state))}
    assert set(found) == {"a-link", "b-pipe", "links.jsonl", "settings.json", "z"}
    assert "chmod" in found["links.jsonl"]
    assert all(remedy.startswith("Run: ") for remedy in found.values())


def test_suggested_commands_repair_the_state_folder(config_home: ConfigHome) -> None:
    """If the commands that ``doctor`` suggests are run, no problem of the state folder is left."""
    import subprocess

    state = state_folder(config_home)
    _record_link(config_home)
    _store_setting(config_home)
    os.chmod(state / "links.jsonl", 0o644)
    (config_home.root / "copy").hardlink_to(state / "settings.json")
    (state / "a link").symlink_to("/etc/passwd")
    for one in find_state_folder_problems(str(state)):
        command = one.remedy.removeprefix("Run: ")
        subprocess.run(["sh", "-c", f"umask 077; {command}"], check=True, timeout=10)
    assert find_state_folder_problems(str(state)) == []
    assert shutil.which("sh")
