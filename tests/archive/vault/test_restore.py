"""Tests that a restore from the vault returns every file, under a new id if the old one is in use."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path

import pytest

from resume_hooks.archive.vault import restore as retrieval
from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.archive.vault.locate_archived import (
    find_archived,
    list_earlier_states,
    make_earlier_state_name,
)
from resume_hooks.errors import (
    AmbiguousLocator,
    PathTaken,
    SessionNotFound,
    UsageError,
    WriteFailed,
)
from resume_hooks.paths import is_session_id
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.storage import atomic
from tests.archive.vault.full_sessions import FIVE_DAYS_AGO, client_files, session_with_every_file
from tests.builders import SESSION, ConfigHome, session_id

DAY = 24 * 60 * 60


def restore_archived(home: ConfigHome, locator: str = SESSION) -> retrieval.RestorePlan:
    """Restore an archived session and return the plan."""
    return retrieval.execute_restore_plan(
        retrieval.plan_restore(find_archived(locator, home.where), home.where), home.where
    )


def archive_new_session(home: ConfigHome) -> ArchivedSession:
    """Write a session with every kind of file, and archive it."""
    return archive_session(session_with_every_file(home), home.where)


def delete_client_files(home: ConfigHome) -> dict[str, bytes]:
    """Delete the client's files and return their contents."""
    before = client_files(home)
    for place in before:
        (home.config / place).unlink()
    return before


@pytest.mark.parametrize("age_days", [5, 400])
def test_a_restore_returns_every_file_byte_for_byte(config_home: ConfigHome, age_days: int) -> None:
    """A restore returns every file unchanged with its time.

    A file that the client would delete immediately gets a later time.
    """
    session = session_with_every_file(config_home)
    written = time.time_ns() - age_days * DAY * 10**9
    for place in client_files(config_home):
        os.utime(config_home.config / place, ns=(written, written))
    archived = archive_session(locate.session_file(session.path), config_home.where)
    before = delete_client_files(config_home)
    done = restore_archived(config_home)
    assert (done.session_id, done.target_path, client_files(config_home)) == (
        SESSION,
        session.path,
        before,
    )
    left = [
        os.stat(config_home.config / place).st_mtime - (time.time() - 30 * DAY) for place in before
    ]
    assert min(left) > 6.9 * DAY
    assert [bool(warning) for warning in done.warnings] == ([True] if age_days == 400 else [])
    if age_days == 5:
        assert {os.stat(config_home.config / place).st_mtime_ns for place in before} == {written}
        assert archive_session(locate.session_file(session.path), config_home.where) == archived
    again = restore_archived(config_home)
    assert (
        again.files,
        "already has the session's transcript, byte for byte" in again.warnings[0],
    ) == (
        (),
        True,
    )


def test_a_restore_leaves_a_continued_session_unchanged(config_home: ConfigHome) -> None:
    """If the existing transcript continues the archived one, only missing files are restored."""
    archive_new_session(config_home)
    path = config_home.project() / f"{SESSION}.jsonl"
    with path.open("ab") as stream:
        stream.write(b'{"type":"x"}\n')
    output = config_home.project() / SESSION / "tool-results" / "toolu_1.txt"
    output.unlink()
    done = restore_archived(config_home)
    assert [piece.target_path for piece in done.files] == [str(output)]
    assert "was continued after it was archived" in done.warnings[0]
    assert output.read_bytes() == b"large\n" * 10


def test_a_restore_uses_a_new_id_if_another_session_has_the_old_one(
    config_home: ConfigHome,
) -> None:
    """If another session has the old id, the restored session gets a new id.

    A second restore uses the same new id. The other session is unchanged.
    """
    found = archive_new_session(config_home)
    path = config_home.project() / f"{SESSION}.jsonl"
    long = path.read_bytes()
    path.write_bytes(long[:300])
    done = restore_archived(config_home)
    assert is_session_id(done.session_id)
    assert done.session_id != SESSION
    assert (path.read_bytes(), "a different session now" in done.warnings[0]) == (long[:300], True)
    assert Path(done.target_path).read_bytes() == long.replace(
        SESSION.encode(), done.session_id.encode()
    )
    new = {place for place in client_files(config_home) if done.session_id in place}
    assert new == {
        f"projects/-home-user-proj/{done.session_id}.jsonl",
        f"projects/-home-user-proj/{done.session_id}/subagents/agent-1111.jsonl",
        f"projects/-home-user-proj/{done.session_id}/subagents/agent-1111.meta.json",
        f"projects/-home-user-proj/{done.session_id}/subagents/deep/agent-a1.jsonl",
        f"projects/-home-user-proj/{done.session_id}/tool-results/toolu_1.txt",
        f"file-history/{done.session_id}/abc@v1",
    }
    agent = config_home.project() / done.session_id / "subagents" / "deep" / "agent-a1.jsonl"
    assert json.loads(agent.read_bytes()) == {"sessionId": done.session_id}
    again = restore_archived(config_home)
    assert (again.session_id, again.files) == (done.session_id, ())
    assert found.session_id == SESSION


def test_a_new_id_replaces_only_the_field_of_each_record(config_home: ConfigHome) -> None:
    """A new id replaces only the session id of each record, not ids inside messages or damaged lines."""
    session = session_with_every_file(config_home)
    said = b'{"type":"x","sessionId":"%s","said":"sessionId %s {\\"sessionId\\":\\"%s\\"}"}\r\n' % (
        (SESSION.encode(),) * 3
    )
    with open(session.path, "ab") as stream:
        stream.write(said + b"no record at all " + SESSION.encode())
    os.utime(session.path, (FIVE_DAYS_AGO, FIVE_DAYS_AGO))
    archive_session(locate.session_file(session.path), config_home.where)
    Path(session.path).write_bytes(b'{"type":"user"}\n')
    done = restore_archived(config_home)
    wanted = (
        said.replace(SESSION.encode(), done.session_id.encode(), 1)
        + b"no record at all "
        + SESSION.encode()
    )
    assert Path(done.target_path).read_bytes().endswith(wanted)


def test_an_earlier_state_is_restored_next_to_the_current_one(config_home: ConfigHome) -> None:
    """An earlier state, named by id and date, is restored under a new id."""
    archive_new_session(config_home)
    path = config_home.project() / f"{SESSION}.jsonl"
    long = path.read_bytes()
    path.write_bytes(long[:300])
    os.utime(path, (FIVE_DAYS_AGO, FIVE_DAYS_AGO))
    now = archive_session(locate.session_file(str(path)), config_home.where)
    (state,) = list_earlier_states(now)
    assert restore_archived(config_home).files == ()
    done = restore_archived(config_home, f"{SESSION}@{make_earlier_state_name(state)}")
    assert Path(done.target_path).read_bytes() == long.replace(
        SESSION.encode(), done.session_id.encode()
    )
    with pytest.raises(SessionNotFound):
        find_archived(f"{SESSION}@2026-01-01", config_home.where)


def test_a_restore_does_not_overwrite_a_different_file(config_home: ConfigHome) -> None:
    """A restore keeps a file with different content and warns about it.

    A symbolic link on a file's path prevents the restore.
    """
    archive_new_session(config_home)
    before = delete_client_files(config_home)
    output = config_home.project() / SESSION / "tool-results" / "toolu_1.txt"
    output.write_bytes(b"another")
    done = restore_archived(config_home)
    assert any("was not changed" in warning for warning in done.warnings)
    output.write_bytes(b"large\n" * 10)
    assert client_files(config_home) == before
    delete_client_files(config_home)
    for folder, _, _ in os.walk(config_home.project() / SESSION, topdown=False):
        os.rmdir(folder)
    (config_home.project() / SESSION).symlink_to("/tmp")
    with pytest.raises(PathTaken, match="symbolic link"):
        restore_archived(config_home)
    (config_home.project() / SESSION).unlink()
    (config_home.config / "file-history" / SESSION).rmdir()
    (config_home.config / "file-history" / SESSION).symlink_to("/tmp")
    with pytest.raises(PathTaken, match="symbolic link"):
        restore_archived(config_home)


def test_a_restore_replaces_an_empty_transcript(config_home: ConfigHome) -> None:
    """A restore replaces an empty transcript."""
    archive_new_session(config_home)
    before = delete_client_files(config_home)
    (config_home.project() / f"{SESSION}.jsonl").touch()
    restore_archived(config_home)
    assert client_files(config_home) == before


def test_a_failed_restore_shows_no_partial_session(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed restore leaves no transcript, and a second run completes it."""
    archive_new_session(config_home)
    before = delete_client_files(config_home)
    calls = 0
    real = atomic.link_exclusively

    def fail_at_fourth_file(temporary: str, path: str, within: int | None = None) -> bool:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(temporary, path, within)

    monkeypatch.setattr(atomic, "link_exclusively", fail_at_fourth_file)
    with pytest.raises(WriteFailed, match="No space left"):
        restore_archived(config_home)
    assert not (config_home.project() / f"{SESSION}.jsonl").exists()
    restore_archived(config_home)
    assert client_files(config_home) == before


def test_an_archived_session_is_found_by_id_title_or_path(config_home: ConfigHome) -> None:
    """An archived session is found by its id, the beginning of the id, its title or its path.

    An ambiguous name raises an error.
    """
    found = archive_new_session(config_home)
    other = archive_session(
        session_with_every_file(config_home, session_id(0x11111112), "Other"), config_home.where
    )
    path = str(config_home.project() / f"{SESSION}.jsonl")
    for words in (SESSION, "11111111", "Fix the parser", path):
        assert find_archived(words, config_home.where) == found
    assert find_archived("Other", config_home.where) == other
    with pytest.raises(AmbiguousLocator):
        find_archived("1111111", config_home.where)
    with pytest.raises(UsageError):
        find_archived(" ", config_home.where)
    with pytest.raises(SessionNotFound):
        find_archived("111", config_home.where)
