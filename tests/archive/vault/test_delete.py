"""Tests that deleting and restoring keep every file unchanged, even after errors and kills."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.archive.vault import commit, locate_archived, trash
from resume_hooks.archive.vault import delete as deletion
from resume_hooks.archive.vault import restore as restoring
from resume_hooks.archive.vault.packs import PackWriter
from resume_hooks.errors import (
    AmbiguousLocator,
    PathTaken,
    SessionInUse,
    SessionNotFound,
    UsageError,
    WriteFailed,
)
from resume_hooks.paths import Where
from resume_hooks.search.index.connect import open_index
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived.layout import (
    MANIFEST_NAME,
    REMOVED_FOLDER_SUFFIX,
    path_in_config_home,
)
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.sessions.archived.unpack import stored_path
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage import hard_links, removal
from tests.archive.vault import former_trash
from tests.archive.vault.full_sessions import FIVE_DAYS_AGO, session_with_every_file
from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    write_session,
)
from tests.crashes import exit_code_of_fork, kill_before_each_change
from tests.needs import corpus, corpus_sessions
from tests.storage.test_hard_links import call_after_hash, forbid_moves_between_folders

OTHER_ID = session_id(2)


def client_files_with_times(home: ConfigHome) -> dict[str, tuple[bytes, int]]:
    """Return the content and the time in seconds of each file of the client."""
    roots = [home.config / name for name in ("projects", "file-history", "tasks")]
    files = (path for root in roots for path in root.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), int(path.stat().st_mtime)) for path in files}


def delete_session(session: SessionFile, home: ConfigHome, **options: bool) -> ArchivedSession:
    """Move a session to the trash as ``delete`` does, and return its entry."""
    return deletion.move_to_trash(deletion.plan_delete(session, home.where), home.where, **options)


def find_in_trash(locator: str, where: Where) -> ArchivedSession:
    """Return the entry of the trash that ``locator`` names."""
    return locate_archived.find_archived(locator, where, trash.list_trashed_sessions(where))


def restore_deleted(home: ConfigHome, locator: str = SESSION) -> restoring.RestorePlan:
    """Restore an entry of the trash and return the plan."""
    decided = restoring.plan_restore(find_in_trash(locator, home.where), home.where)
    restoring.execute_restore_plan(decided, home.where)
    return decided


@pytest.fixture(params=["same", "other", "no links"])
def set_up_file_systems(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """Return a function that puts the trash on the same or another file system, or forbids hard links."""

    def set_up() -> None:
        if request.param == "other":
            forbid_moves_between_folders(monkeypatch)
        elif request.param == "no links":
            monkeypatch.setattr(os, "link", fail_to_link)

    def fail_to_link(source: str, target: str, **how: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), source)

    return set_up


def test_restoring_a_deleted_session_returns_all_files(
    config_home: ConfigHome, set_up_file_systems: Callable[[], None]
) -> None:
    """Deleting moves all files of a session to the trash, and a restore returns them with their times.

    The trash is empty afterwards.
    """
    bystander = write_session(
        config_home.project(), OTHER_ID, conversation(1, session_id=OTHER_ID), mtime=FIVE_DAYS_AGO
    )
    session = session_with_every_file(config_home)
    before = client_files_with_times(config_home)
    set_up_file_systems()
    entry = delete_session(session, config_home)
    assert set(client_files_with_times(config_home)) == {bystander}
    assert (len(entry.parts), entry.size) == (
        7,
        sum(len(b) for p, (b, _) in before.items() if p != bystander),
    )
    assert entry.complete
    assert trash.list_trashed_sessions(config_home.where) == [entry]
    assert os.stat(entry.folder).st_mode & 0o777 == 0o700
    assert restore_deleted(config_home).warnings == ()
    assert client_files_with_times(config_home) == before
    assert not (config_home.config / "resume-hooks" / "trash").exists()


@pytest.mark.parametrize("verb", ["delete", "restore"])
def test_a_delete_or_restore_killed_at_any_step_loses_nothing(
    config_home: ConfigHome, set_up_file_systems: Callable[[], None], verb: str
) -> None:
    """After a kill at any step, restoring from the trash returns every file unchanged."""
    path = session_with_every_file(config_home).path
    before = client_files_with_times(config_home)
    set_up_file_systems()

    def prepare() -> Callable[[], object]:
        session = locate.session_file(path)
        if verb == "delete":
            return lambda: delete_session(session, config_home)
        delete_session(session, config_home)
        return lambda: restore_deleted(config_home)

    for _ in kill_before_each_change(prepare):
        transcript = client_files_with_times(config_home).get(path)
        # Without hard links, an empty file has the transcript's name for a moment.
        reserved = transcript is not None and not transcript[0]
        assert reserved or transcript in (None, before[path])
        while trash.list_trashed_sessions(config_home.where):
            restore_deleted(config_home)
        assert client_files_with_times(config_home) == before


@pytest.mark.parametrize("failing_file_index", range(7))
def test_a_failed_move_leaves_every_file_in_place(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, failing_file_index: int
) -> None:
    """If a move fails halfway, every file is moved back and the trash is empty."""
    session = session_with_every_file(config_home)
    before = client_files_with_times(config_home)
    calls = 0

    def fail_at_chosen_part(path: str, where: Where) -> None:
        nonlocal calls
        calls += 1
        if calls == failing_file_index + 1:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(deletion, "remove_links", fail_at_chosen_part)
    with pytest.raises(WriteFailed, match="Permission denied"):
        delete_session(session, config_home)
    assert client_files_with_times(config_home) == before
    assert trash.list_trashed_sessions(config_home.where) == []


def test_deleting_checks_the_manifest_before_it_moves_files(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the written manifest cannot be read back, no file is moved."""
    session = session_with_every_file(config_home)
    before = client_files_with_times(config_home)
    monkeypatch.setattr(deletion, "read_manifest", lambda *_: None)
    with pytest.raises(WriteFailed, match="differs from what was written"):
        delete_session(session, config_home)
    assert client_files_with_times(config_home) == before
    assert (
        trash.list_trashed_sessions(config_home.where),
        trash.list_stray_folders(config_home.where),
    ) == (
        [],
        [],
    )


def test_an_interrupted_delete_moves_every_file_back(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl+C during a delete, every file is back in its place."""
    session = session_with_every_file(config_home)
    before = client_files_with_times(config_home)
    plan = deletion.plan_delete(session, config_home.where)

    def interrupt(path: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(trash, "hash_file", interrupt)
    with pytest.raises(KeyboardInterrupt):
        deletion.move_to_trash(plan, config_home.where)
    assert client_files_with_times(config_home) == before


def test_a_delete_that_cannot_be_undone_is_reported(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a failed delete can't be undone, the files stay in the trash.

    The error names the command that restores them.
    """
    session = session_with_every_file(config_home)
    before = client_files_with_times(config_home)
    calls = 0

    def fail_to_hash(path: str) -> str:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def fail_after_seven_links(source: str, target: str) -> None:
        nonlocal calls
        calls += 1
        if calls > 7:
            raise OSError(errno.EIO, os.strerror(errno.EIO), source)
        hard_links.link_or_copy(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(deletion, "link_or_copy", fail_after_seven_links)
        patch.setattr(trash, "hash_file", fail_to_hash)
        with pytest.raises(WriteFailed, match="could not be put back") as told:
            delete_session(session, config_home)
    assert f"restore {SESSION}" in told.value.remedy
    (entry,) = trash.list_trashed_sessions(config_home.where)
    assert not entry.complete
    assert deletion.empty_trash([entry], config_home.where) == []
    restore_deleted(config_home)
    assert client_files_with_times(config_home) == before


def test_only_one_of_two_simultaneous_deletes_succeeds(config_home: ConfigHome) -> None:
    """If two commands delete a session at the same time, one succeeds and the other raises an error."""
    session = session_with_every_file(config_home)
    first = deletion.plan_delete(session, config_home.where)
    second = deletion.plan_delete(session, config_home.where)
    entry = deletion.move_to_trash(first, config_home.where)
    time.sleep(0.002)  # An entry of the trash is named after the time in milliseconds.
    with pytest.raises((SessionNotFound, SessionInUse)):
        deletion.move_to_trash(second, config_home.where, force=True)
    assert trash.list_trashed_sessions(config_home.where) == [entry]


def test_an_open_session_is_deleted_only_with_force(config_home: ConfigHome) -> None:
    """A session that a client wrote to seconds ago is deleted only with ``force``."""
    session = locate.session_file(write_session(config_home.project(), SESSION, conversation(1)))
    with pytest.raises(SessionInUse, match="seconds ago"):
        delete_session(session, config_home)
    assert delete_session(session, config_home, force=True).complete


@pytest.mark.parametrize("file_location", ["outside", "other name", "link", "linked folder"])
def test_deleting_refuses_files_outside_the_client(
    config_home: ConfigHome, tmp_path: Path, file_location: str
) -> None:
    """Deleting a file that is not a session in the client's folders is refused."""
    folder = config_home.project()
    path = {
        "outside": tmp_path / f"{SESSION}.jsonl",
        "other name": folder / "notes.jsonl",
        "link": folder / f"{SESSION}.jsonl",
        "linked folder": config_home.config / "projects" / "link" / f"{SESSION}.jsonl",
    }[file_location]
    if file_location == "linked folder":
        path.parent.symlink_to(tmp_path)
    real = Path(
        write_session(
            tmp_path,
            OTHER_ID if file_location == "link" else SESSION,
            conversation(1),
            mtime=FIVE_DAYS_AGO,
        )
    )
    if file_location == "other name":
        real.rename(path)
    elif file_location == "link":
        path.symlink_to(real)
    with pytest.raises(UsageError):
        deletion.plan_delete(SessionFile(SESSION, str(path), FIVE_DAYS_AGO, 1), config_home.where)


def test_deleting_does_not_follow_links_of_a_session(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """Deleting keeps a symbolic link in place of the session's folder.

    A symbolic link inside the session's folder is moved as a link, and its target is unchanged.
    """
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious").write_bytes(b"precious")
    folder = config_home.project()
    path = write_session(folder, SESSION, conversation(1), mtime=FIVE_DAYS_AGO)
    (folder / SESSION).symlink_to(mine)
    delete_session(locate.session_file(path), config_home)
    assert (folder / SESSION).is_symlink()
    restore_deleted(config_home)
    (folder / SESSION).unlink()
    (folder / SESSION).mkdir()
    (folder / SESSION / "out").symlink_to(mine)
    entry = delete_session(locate.session_file(path), config_home)
    assert not (folder / SESSION).exists()
    restore_deleted(config_home)
    assert (folder / SESSION / "out").is_symlink()
    delete_session(locate.session_file(path), config_home)
    deletion.empty_trash(trash.list_trashed_sessions(config_home.where), config_home.where)
    assert (mine / "precious").read_bytes() == b"precious"
    assert not os.path.lexists(entry.folder)


def test_a_restore_never_overwrites_a_session(config_home: ConfigHome) -> None:
    """If a client wrote the session again, the restore is refused and both files are kept."""
    session = session_with_every_file(config_home)
    entry = delete_session(session, config_home)
    write_session(config_home.project(), SESSION, conversation(1), mtime=FIVE_DAYS_AGO)
    before = client_files_with_times(config_home)
    with pytest.raises(PathTaken):
        restoring.plan_restore(entry, config_home.where)
    assert client_files_with_times(config_home) == before
    assert trash.list_trashed_sessions(config_home.where) == [entry]


def test_a_restore_reports_files_that_already_exist(config_home: ConfigHome) -> None:
    """If identical files already exist, a restore removes the files in the trash and reports the removal."""
    session = session_with_every_file(config_home)
    before = client_files_with_times(config_home)
    entry = delete_session(session, config_home)
    for path, (content, _) in before.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)
    assert restoring.REMOVED_FROM_TRASH_NOTE in restore_deleted(config_home).warnings
    assert {
        path: content for path, (content, _) in client_files_with_times(config_home).items()
    } == {path: content for path, (content, _) in before.items()}
    assert not os.path.lexists(entry.folder)


def test_a_restore_adds_missing_files_to_an_existing_folder(config_home: ConfigHome) -> None:
    """A restore into an existing folder keeps the new files in it.

    A file with different content prevents the restore.
    """
    session = session_with_every_file(config_home)
    delete_session(session, config_home)
    own = config_home.project() / SESSION / "tool-results"
    own.mkdir(parents=True)
    (own / "new.txt").write_bytes(b"new")
    restore_deleted(config_home)
    assert sorted(os.listdir(own)) == ["new.txt", "toolu_1.txt"]
    entry = delete_session(session, config_home)
    own.mkdir(parents=True)
    (own / "toolu_1.txt").write_bytes(b"other")
    with pytest.raises(PathTaken, match="toolu_1"):
        restoring.plan_restore(entry, config_home.where)


@pytest.mark.parametrize("linked_folder", ["project", "own folder", "inner folder", "backups"])
def test_a_restore_refuses_symbolic_links_in_the_path(
    config_home: ConfigHome, tmp_path: Path, linked_folder: str
) -> None:
    """A restore is refused if a folder on a file's path is now a symbolic link."""
    session = session_with_every_file(config_home)
    entry = delete_session(session, config_home)
    away = tmp_path / "away"
    away.mkdir()
    folder = config_home.project()
    place = {
        "project": folder,
        "own folder": folder / SESSION,
        "inner folder": folder / SESSION / "tool-results",
        "backups": config_home.config / "file-history" / SESSION,
    }[linked_folder]
    if linked_folder == "project":
        folder.rmdir()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(away)
    with pytest.raises(PathTaken):
        restoring.plan_restore(entry, config_home.where)
    assert os.listdir(away) == []


def test_a_restore_recreates_missing_folders(config_home: ConfigHome) -> None:
    """A restore creates missing folders so that only the user can read them."""
    session = session_with_every_file(config_home)
    delete_session(session, config_home)
    config_home.project().rmdir()
    (config_home.config / "file-history").rmdir()
    restore_deleted(config_home)
    assert config_home.project().stat().st_mode & 0o777 == 0o700
    assert (config_home.config / "file-history").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("retention_days", "days_left"), [(None, 7), (4, 2), (1, 1), (400, None)])
def test_a_restored_old_session_does_not_expire_immediately(
    config_home: ConfigHome, retention_days: int | None, days_left: int | None
) -> None:
    """If the client would soon delete a restored file, the file gets a later time and the user is told."""
    if retention_days:
        (config_home.config / "settings.json").write_text(
            json.dumps({"cleanupPeriodDays": retention_days})
        )
    session = session_with_every_file(config_home)
    long_ago = time.time() - 100 * 24 * 60 * 60
    for path in client_files_with_times(config_home):
        os.utime(path, (long_ago, long_ago))
    delete_session(session, config_home)
    told = restore_deleted(config_home).warnings
    ages = [
        (time.time() - mtime) / (24 * 60 * 60)
        for _, mtime in client_files_with_times(config_home).values()
    ]
    expected = 100 if days_left is None else (retention_days or 30) - days_left
    assert all(abs(age - expected) < 0.1 for age in ages)
    assert bool(told) is (days_left is not None)
    assert locate.latest_session("/home/user/proj", config_home.where).session_id == SESSION


def test_a_locator_finds_deleted_sessions(config_home: ConfigHome) -> None:
    """A deleted session is found by its id, its title, the beginning of its id, or its former path.

    An ambiguous name raises an error with the candidates.
    """
    for number, title in (
        (SESSION, "One"),
        ("11111111-2222-4111-8111-111111111111", "Two"),
        (OTHER_ID, "One"),
    ):
        delete_session(session_with_every_file(config_home, number, title), config_home)
    assert find_in_trash("00000002", config_home.where).session_id == OTHER_ID
    for locator in ("Two", "two", "title:Two"):
        assert find_in_trash(locator, config_home.where).title == "Two"
    assert (
        find_in_trash(
            str(config_home.project() / f"{OTHER_ID}.jsonl"), config_home.where
        ).session_id
        == OTHER_ID
    )
    for locator in ("1111", "One"):
        with pytest.raises(AmbiguousLocator) as told:
            find_in_trash(locator, config_home.where)
        assert len(told.value.candidates) == 2
    for locator in ("111", "tw", "x" * 300):
        with pytest.raises(SessionNotFound):
            find_in_trash(locator, config_home.where)
    with pytest.raises(UsageError):
        find_in_trash(" ", config_home.where)
    again = delete_session(session_with_every_file(config_home, OTHER_ID, "Later"), config_home)
    with pytest.raises(AmbiguousLocator) as several:
        find_in_trash(OTHER_ID, config_home.where)
    first, second = (str(row["locator"]) for row in several.value.candidates)
    assert [row["title"] for row in several.value.candidates] == ["Later", "One"]
    assert first == again.locator
    for named in (
        first,
        first[:8] + first[36:],
        f"{OTHER_ID}@{again.deleted_at}",
        f"Later@{again.deletion_folder_name}",
    ):
        assert find_in_trash(named, config_home.where) == again
    assert find_in_trash(second, config_home.where).title == "One"
    with pytest.raises(SessionNotFound):
        find_in_trash(f"{OTHER_ID}@2020-01-01T00-00-00.000Z", config_home.where)
    restoring.execute_restore_plan(
        restoring.plan_restore(again, config_home.where), config_home.where
    )
    assert find_in_trash(OTHER_ID, config_home.where).title == "One"


def test_emptying_the_trash_keeps_existing_sessions(config_home: ConfigHome) -> None:
    """Emptying the trash keeps a session that has the same id as a deleted one."""
    session = session_with_every_file(config_home)
    entry = delete_session(session, config_home)
    session_with_every_file(config_home)
    before = client_files_with_times(config_home)
    assert deletion.empty_trash(
        trash.list_trashed_sessions(config_home.where), config_home.where
    ) == [entry]
    assert client_files_with_times(config_home) == before
    assert trash.list_trashed_sessions(config_home.where) == []


@pytest.mark.parametrize(
    "changed_fields",
    [
        {"version": 2},
        {"parts": []},
        {"parts": None},
        {"parts": [7]},
        {"title": None},
        {"parts": [{"place": "../../etc/passwd", "files": 1, "size": 1, "sha256": ""}]},
        {"parts": [{"place": f"projects/../{SESSION}.jsonl", "files": 1, "size": 1, "sha256": ""}]},
        {
            "parts": [
                {"place": f"projects/a/b/{SESSION}.jsonl", "files": 1, "size": 1, "sha256": ""}
            ]
        },
        {"parts": [{"place": f"file-history/{SESSION}", "files": 1, "size": 1, "sha256": ""}]},
        {"parts": [{"place": "projects/a/authorized_keys", "files": 1, "size": 1, "sha256": ""}]},
    ],
)
def test_an_invalid_manifest_is_not_an_entry_of_the_trash(
    config_home: ConfigHome, changed_fields: dict[str, object]
) -> None:
    """An entry whose manifest is invalid or names forbidden paths is not listed and not removed."""
    entry = delete_session(session_with_every_file(config_home), config_home)
    note = Path(entry.folder) / MANIFEST_NAME
    note.write_text(json.dumps(json.loads(note.read_text()) | changed_fields))
    assert trash.list_trashed_sessions(config_home.where) == []
    assert os.path.isdir(entry.folder)


def test_a_symlinked_trash_is_not_used(config_home: ConfigHome, tmp_path: Path) -> None:
    """If the trash is a symbolic link, deleting fails and every file is kept."""
    session = session_with_every_file(config_home)
    before = client_files_with_times(config_home)
    state = config_home.config / "resume-hooks"
    state.mkdir()
    (state / "trash").symlink_to(tmp_path)
    with pytest.raises(WriteFailed):
        delete_session(session, config_home)
    assert client_files_with_times(config_home) == before


def test_a_restore_reports_files_that_changed_in_the_trash(config_home: ConfigHome) -> None:
    """A restore warns about files in the trash that changed or are missing.

    Without the transcript, the restore is refused.
    """
    entry = delete_session(session_with_every_file(config_home), config_home)
    (Path(entry.folder) / f"{SESSION}.jsonl").write_bytes(b"{}\n")
    removal.remove_permanently(os.path.join(entry.folder, "file-history"), entry.folder)
    warnings = restoring.plan_restore(entry, config_home.where).warnings
    assert [
        word in " ".join(warnings) for word in ("changed in the trash", "neither in the trash")
    ] == [True, True]
    os.unlink(os.path.join(entry.folder, f"{SESSION}.jsonl"))
    with pytest.raises(SessionNotFound, match="gone from the trash"):
        restoring.plan_restore(entry, config_home.where)


def test_the_index_follows_a_delete_and_a_restore(config_home: ConfigHome) -> None:
    """A deleted session is removed from the search index, and a restore adds it again."""

    def count_indexed_files() -> int:
        with open_index(config_home.where) as index:
            return int(index.db.execute("SELECT count(*) FROM files").fetchone()[0])

    session = session_with_every_file(config_home)
    known = count_indexed_files()
    delete_session(session, config_home)
    assert count_indexed_files() == 0
    restore_deleted(config_home)
    assert count_indexed_files() == known > 0


def recreate_session(home: ConfigHome) -> str:
    """Write the session's file again, as a client does if it had the deleted session open."""
    return write_session(
        home.project(), SESSION, [*conversation(1), custom_title("anew")], mtime=FIVE_DAYS_AGO
    )


def test_a_killed_delete_is_restored_after_its_session_was_recreated(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a client writes a session again after a killed delete, the restore is refused with a remedy.

    After the new session is deleted, the first one is restored in full.
    """
    session_with_every_file(config_home)
    before = client_files_with_times(config_home)
    forbid_moves_between_folders(monkeypatch)

    def exit_instead_of_removing(folder: str) -> None:
        if not os.path.exists(path):
            os._exit(9)

    path = str(config_home.project() / f"{SESSION}.jsonl")
    with monkeypatch.context() as patch:
        patch.setattr(deletion, "sync_folder", exit_instead_of_removing)
        assert (
            exit_code_of_fork(lambda: delete_session(locate.session_file(path), config_home)) == 9
        )
    (first,) = trash.list_trashed_sessions(config_home.where)
    anew = recreate_session(config_home)
    with pytest.raises(PathTaken) as told:
        restore_deleted(config_home)
    assert f"delete {anew}, then: resume-hooks restore {first.locator}" in told.value.remedy
    delete_session(locate.session_file(anew), config_home)
    restore_deleted(config_home, first.locator)
    assert client_files_with_times(config_home) == before


def test_a_session_that_continued_after_a_killed_delete_stays(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a client appends to a session after a killed delete, a restore keeps the longer file.

    The delete was moving the session to another file system.
    """
    session = session_with_every_file(config_home)
    forbid_moves_between_folders(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(deletion, "remove_links", lambda *_: os._exit(9))
        assert exit_code_of_fork(lambda: delete_session(session, config_home)) == 9
    with open(session.path, "ab") as stream:
        stream.write(b"{}\n")
    went_on = client_files_with_times(config_home)
    (entry,) = trash.list_trashed_sessions(config_home.where)
    assert not entry.complete
    restore_deleted(config_home)
    assert (
        client_files_with_times(config_home),
        trash.list_trashed_sessions(config_home.where),
    ) == (
        went_on,
        [],
    )


def test_deleting_refuses_a_session_that_changes_meanwhile(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a session changes during its deletion, the delete fails and every file is kept."""
    session = session_with_every_file(config_home)
    forbid_moves_between_folders(monkeypatch)
    plan = deletion.plan_delete(session, config_home.where)
    with open(session.path, "ab", buffering=0) as held:
        call_after_hash(monkeypatch, 2, lambda: held.write(b"{}\n"))
        with pytest.raises(WriteFailed, match="Changed while"):
            deletion.move_to_trash(plan, config_home.where)
    assert Path(session.path).read_bytes().endswith(b"{}\n")
    assert len(client_files_with_times(config_home)) == 7
    assert (
        trash.list_trashed_sessions(config_home.where),
        trash.list_stray_folders(config_home.where),
    ) == (
        [],
        [],
    )


def test_emptying_the_trash_completes_an_interrupted_removal(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If removing an entry fails, the error names its path, and all other entries are removed.

    When the trash is emptied again, the failed entry is removed too.
    """
    entries = [
        delete_session(session_with_every_file(config_home, number), config_home)
        for number in (SESSION, OTHER_ID)
    ]
    whole = removal.remove_permanently

    def fail_for_session(path: str, root: str, **options: bool) -> None:
        if SESSION in path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        whole(path, root, **options)

    for strays in ([], [entries[0].folder + REMOVED_FOLDER_SUFFIX]):
        with monkeypatch.context() as patch:
            patch.setattr(removal, "remove_permanently", fail_for_session)
            with pytest.raises(WriteFailed, match=f"{SESSION}.*Permission denied"):
                deletion.empty_trash(
                    trash.list_trashed_sessions(config_home.where),
                    config_home.where,
                    trash.list_stray_folders(config_home.where),
                )
        (stray,) = trash.list_stray_folders(config_home.where)
        assert (stray.folder, stray.is_half_removed, stray.file_count) == (
            entries[0].folder + REMOVED_FOLDER_SUFFIX,
            True,
            8,
        ), strays
    assert trash.list_trashed_sessions(config_home.where) == []
    assert (
        deletion.empty_trash([], config_home.where, trash.list_stray_folders(config_home.where))
        == []
    )
    assert not (config_home.config / "resume-hooks" / "trash").exists()


def test_a_delete_killed_before_its_first_move_changes_nothing(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a delete is killed before its first move, the session is in its place and the trash is empty."""
    session = session_with_every_file(config_home)
    before = client_files_with_times(config_home)
    with monkeypatch.context() as patch:
        patch.setattr(deletion, "link_or_copy", lambda *_: os._exit(9))
        assert exit_code_of_fork(lambda: delete_session(session, config_home)) == 9
    assert client_files_with_times(config_home) == before
    assert trash.list_trashed_sessions(config_home.where) == []
    (stray,) = trash.list_stray_folders(config_home.where)
    assert stray.is_half_removed
    deletion.empty_trash([], config_home.where, [stray])
    assert not (config_home.config / "resume-hooks" / "trash").exists()


def test_a_folder_without_a_session_id_is_not_an_entry(config_home: ConfigHome) -> None:
    """A folder of the trash whose name is not a session id is not listed as an entry.

    An entry whose files are all missing is listed.
    """
    entry = delete_session(session_with_every_file(config_home), config_home)
    other = Path(entry.folder).parent.with_name("other")
    other.mkdir()
    (other / MANIFEST_NAME).write_text(
        (Path(entry.folder) / MANIFEST_NAME).read_text().replace(SESSION, "other")
    )
    for part in entry.parts:
        os.unlink(stored_path(entry.folder, part))
    assert trash.list_trashed_sessions(config_home.where) == [entry]
    (stray,) = trash.list_stray_folders(config_home.where)
    assert (stray.folder, stray.is_half_removed) == (str(other), False)


@pytest.mark.parametrize("manifest_content", [None, b"{", b"{}"])
def test_an_entry_without_a_readable_manifest_is_counted(
    config_home: ConfigHome, manifest_content: bytes | None
) -> None:
    """An entry without a readable manifest is counted as a stray folder.

    Emptying the trash removes the folder only if the caller names the entry.
    """
    entry = delete_session(session_with_every_file(config_home), config_home)
    path = Path(entry.folder) / MANIFEST_NAME
    path.unlink() if manifest_content is None else path.write_bytes(manifest_content)
    (stray,) = trash.list_stray_folders(config_home.where)
    assert (stray.folder, stray.is_half_removed, stray.file_count) == (
        entry.folder,
        False,
        7 + (manifest_content is not None),
    )
    assert stray.size >= entry.size
    deletion.empty_trash([entry], config_home.where, [])
    assert not os.path.exists(entry.folder)


def test_sessions_with_one_id_share_their_backups(config_home: ConfigHome) -> None:
    """Two sessions with one id share their backups, which are moved to the trash with the last of them.

    Restoring either session returns the backups, and emptying the trash keeps them.
    """
    first = session_with_every_file(config_home)
    second = locate.session_file(
        write_session(
            config_home.project("/elsewhere"), SESSION, conversation(1), mtime=FIVE_DAYS_AGO
        )
    )
    backup = config_home.config / "file-history" / SESSION / "abc@v1"
    one = delete_session(first, config_home)
    assert backup.exists()
    two = delete_session(second, config_home)
    assert not backup.exists()
    restore_deleted(config_home, one.locator)
    assert backup.read_bytes() == b"the user's file"
    (warning,) = restore_deleted(config_home, two.locator).warnings
    assert warning.startswith(f"{first.path} has the same session id"), (
        "newer clients refuse an id that lies in two folders"
    )
    delete_session(first, config_home)
    last = delete_session(second, config_home)
    Path(first.path).write_bytes(b"{}\n")  # The user restored the session by hand.
    deletion.empty_trash(trash.list_trashed_sessions(config_home.where), config_home.where)
    assert not os.path.exists(last.folder)
    assert backup.read_bytes() == b"the user's file"


def test_only_one_command_uses_the_trash_at_a_time(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one command uses the trash, a second one waits and then fails without changing anything."""
    monkeypatch.setattr(commit, "MAX_LOCK_WAIT_SECONDS", 0.1)
    entry = delete_session(session_with_every_file(config_home), config_home)
    decided = restoring.plan_restore(entry, config_home.where)
    other = deletion.plan_delete(session_with_every_file(config_home, OTHER_ID), config_home.where)
    tries: list[Callable[[], object]] = [
        lambda: restoring.execute_restore_plan(decided, config_home.where),
        lambda: deletion.empty_trash([entry], config_home.where),
        lambda: deletion.move_to_trash(other, config_home.where),
    ]
    with commit.lock_trash(config_home.where):
        for act in tries:
            with pytest.raises(SessionInUse, match="using the trash"):
                act()
    assert trash.list_trashed_sessions(config_home.where) == [entry]
    restoring.execute_restore_plan(decided, config_home.where)


@pytest.mark.parametrize("removal_kind", ["emptied", "restored"])
def test_a_late_restore_reports_that_its_entry_is_gone(
    config_home: ConfigHome, removal_kind: str
) -> None:
    """If an entry of the trash is gone, the error says whether it was restored or removed."""
    entry = delete_session(session_with_every_file(config_home), config_home)
    decided = restoring.plan_restore(entry, config_home.where)
    if removal_kind == "emptied":
        deletion.empty_trash([entry], config_home.where)
    else:
        restoring.execute_restore_plan(decided, config_home.where)
    with pytest.raises(SessionNotFound) as told:
        restoring.execute_restore_plan(decided, config_home.where)
    assert ("is in its place" in told.value.remedy) is (removal_kind == "restored")
    assert deletion.empty_trash([entry], config_home.where) == []


def test_a_failed_restore_states_whether_a_file_is_lost(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed restore, the error says "Nothing is lost" only if every file exists."""
    entry = delete_session(session_with_every_file(config_home), config_home)

    def delete_file_and_fail(source: str, target: str) -> None:
        os.unlink(stored_path(entry.folder, entry.parts[0]))
        raise OSError(errno.EIO, os.strerror(errno.EIO), source)

    monkeypatch.setattr(restoring, "link_or_copy", delete_file_and_fail)
    with pytest.raises(WriteFailed) as told:
        restore_deleted(config_home)
    assert "Nothing is lost" not in told.value.remedy
    assert path_in_config_home(entry.place, config_home.where) in told.value.remedy


def file_modes_and_times(home: ConfigHome) -> dict[str, tuple[int, int]]:
    """Return the mode and the time in nanoseconds of each file of the client."""
    files = [Path(path) for path in client_files_with_times(home)]
    return {str(path): (path.stat().st_mode, path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("packed", [False, True])
def test_deleting_and_restoring_changes_nothing(config_home: ConfigHome, *, packed: bool) -> None:
    """Deleting and restoring a session keeps contents, modes, times, symbolic links and empty files.

    This is so whether the trash was packed or not.
    """
    session = session_with_every_file(config_home)
    own = config_home.project() / SESSION
    (own / "empty").touch()
    (own / "nowhere").symlink_to("/nowhere")
    for number, path in enumerate(client_files_with_times(config_home)):
        os.chmod(path, (0o600, 0o644, 0o400, 0o640)[number % 4])
        os.utime(path, ns=(1, time.time_ns() - 5 * 86_400 * 10**9 + number))
    before = client_files_with_times(config_home), file_modes_and_times(config_home)
    entry = delete_session(session, config_home)
    if packed:
        trash.pack_deleted_sessions(config_home.where, lambda: False)
        assert sorted(os.listdir(entry.folder)) == [MANIFEST_NAME, "pack-1.xz"]
    assert restore_deleted(config_home).warnings == ()
    assert (client_files_with_times(config_home), file_modes_and_times(config_home)) == before
    assert os.readlink(own / "nowhere") == "/nowhere"
    assert not (config_home.config / "resume-hooks" / "trash").exists()


def test_packing_the_trash_killed_at_any_step_loses_nothing(config_home: ConfigHome) -> None:
    """After a kill at any step of packing the trash, the deleted session can still be restored.

    The next run of packing removes leftovers.
    """
    path = session_with_every_file(config_home).path
    before = client_files_with_times(config_home)

    def prepare() -> Callable[[], object]:
        delete_session(locate.session_file(path), config_home)
        return lambda: trash.pack_deleted_sessions(config_home.where, lambda: False)

    for _ in kill_before_each_change(prepare, every=3):
        trash.pack_deleted_sessions(config_home.where, lambda: False)
        (entry,) = trash.list_trashed_sessions(config_home.where)
        assert len(os.listdir(entry.folder)) == 2
        restore_deleted(config_home)
        assert client_files_with_times(config_home) == before


def test_packing_the_trash_does_not_block_a_restore(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session can be restored while the trash is being packed. Packing stops at its time limit."""
    session = session_with_every_file(config_home)
    before = client_files_with_times(config_home)
    delete_session(session, config_home)
    trash.pack_deleted_sessions(config_home.where, lambda: True)
    (entry,) = trash.list_trashed_sessions(config_home.where)
    assert not entry.transcript.where
    real_finish = PackWriter.finish_pack

    def finish_then_restore(writer: PackWriter) -> None:
        real_finish(writer)
        restore_deleted(config_home)

    monkeypatch.setattr(PackWriter, "finish_pack", finish_then_restore)
    trash.pack_deleted_sessions(config_home.where, lambda: False)
    assert client_files_with_times(config_home) == before
    assert trash.list_trashed_sessions(config_home.where) == []


def test_lines_written_after_a_delete_are_restored(config_home: ConfigHome) -> None:
    """Lines that a client appends after a delete are restored, whether the trash was packed or not."""
    session = session_with_every_file(config_home)
    for packed in (False, True):
        with open(session.path, "ab", buffering=0) as held:
            entry = delete_session(session, config_home, force=True)
            held.write(b'{"late":1}\n')
        if packed:
            trash.pack_deleted_sessions(config_home.where, lambda: False)
        restore_deleted(config_home, entry.locator)
        assert Path(session.path).read_bytes().count(b'{"late":1}\n') == 1 + packed


@pytest.mark.parametrize("packed", [False, True])
def test_an_entry_of_version_0_2_0_can_be_restored(
    config_home: ConfigHome, *, packed: bool
) -> None:
    """An entry that version 0.2.0 wrote is listed, packed, restored unchanged, and removed."""
    session_with_every_file(config_home)
    before = client_files_with_times(config_home), file_modes_and_times(config_home)
    folder = former_trash.move_as_version_0_2_0(config_home, SESSION)
    (entry,) = trash.list_trashed_sessions(config_home.where)
    assert (entry.locator, entry.title, len(entry.parts)) == (
        f"{SESSION}@{folder.name}",
        "Fix the parser",
        7,
    )
    assert entry.complete
    if packed:
        trash.pack_deleted_sessions(config_home.where, lambda: False)
        assert sorted(os.listdir(folder)) == [MANIFEST_NAME, "pack-1.xz"]
    assert restore_deleted(config_home).warnings == ()
    assert (client_files_with_times(config_home), file_modes_and_times(config_home)) == before
    former_trash.move_as_version_0_2_0(config_home, SESSION)
    assert [
        each.session_id
        for each in deletion.empty_trash(
            trash.list_trashed_sessions(config_home.where), config_home.where
        )
    ] == [SESSION]
    assert client_files_with_times(config_home) == {}


def test_an_interrupted_delete_of_version_0_2_0_can_be_restored(config_home: ConfigHome) -> None:
    """An entry that version 0.2.0 left incomplete is restored, including files with temporary names."""
    session_with_every_file(config_home)
    before = client_files_with_times(config_home)
    former_trash.move_as_version_0_2_0(
        config_home, SESSION, is_complete=False, hidden_parts=(f"{SESSION}.jsonl", SESSION, "tasks")
    )
    (entry,) = trash.list_trashed_sessions(config_home.where)
    assert not entry.complete
    restore_deleted(config_home)
    assert client_files_with_times(config_home) == before


def test_lines_after_an_interrupted_delete_of_version_0_2_0_stay(config_home: ConfigHome) -> None:
    """If a client appends to the hidden file of an entry of version 0.2.0, a restore keeps that file."""
    session_with_every_file(config_home)
    transcript = config_home.project() / f"{SESSION}.jsonl"
    copied = transcript.read_bytes()
    folder = former_trash.move_as_version_0_2_0(
        config_home, SESSION, is_complete=False, hidden_parts=(transcript.name,)
    )
    (folder / transcript.name).write_bytes(copied)
    (hidden,) = transcript.parent.glob(".*.moving")
    hidden.write_bytes(copied + b'{"late":1}\n')
    restore_deleted(config_home)
    assert transcript.read_bytes() == copied
    assert hidden.read_bytes() == copied + b'{"late":1}\n'


def test_an_entry_with_an_invalid_file_name_is_not_packed(config_home: ConfigHome) -> None:
    """An entry of version 0.2.0 with a file name that is not UTF-8 is not packed.

    Other entries are packed.
    """
    session_with_every_file(config_home)
    (config_home.project() / SESSION / os.fsdecode(b"\xff")).write_bytes(b"odd")
    before = client_files_with_times(config_home)
    folder = former_trash.move_as_version_0_2_0(config_home, SESSION)
    other = delete_session(session_with_every_file(config_home, OTHER_ID), config_home)
    trash.pack_deleted_sessions(config_home.where, lambda: False)
    assert os.path.exists(os.path.join(other.folder, "pack-1.xz"))
    assert (folder / f"{SESSION}.jsonl").exists()
    restore_deleted(config_home, OTHER_ID)
    restore_deleted(config_home)
    assert before.items() <= client_files_with_times(config_home).items()


def test_a_failed_pack_leaves_no_files(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If packing fails, the entry has only its former files and can be restored."""
    session = session_with_every_file(config_home)
    before, entry = client_files_with_times(config_home), delete_session(session, config_home)
    monkeypatch.setattr(PackWriter, "finish_pack", lambda _: os.stat("/nowhere"))
    stored = sorted(os.listdir(entry.folder))
    trash.pack_deleted_sessions(config_home.where, lambda: False)
    assert sorted(os.listdir(entry.folder)) == stored
    restore_deleted(config_home)
    assert client_files_with_times(config_home) == before


def test_an_entry_packed_before_its_restore_is_restored_in_full(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """If an entry is packed between planning and restoring, all its files are restored from the pack."""
    session = session_with_every_file(config_home)
    link = config_home.project() / SESSION / "nowhere"
    link.symlink_to("/nowhere")
    os.utime(link, ns=(1, int(FIVE_DAYS_AGO) * 10**9), follow_symlinks=False)
    before, entry = client_files_with_times(config_home), delete_session(session, config_home)
    (config_home.config / "resume-hooks" / "vault").symlink_to(tmp_path)
    trash.pack_deleted_sessions(config_home.where, lambda: False)
    assert not os.path.lexists(stored_path(entry.folder, entry.transcript))
    assert (
        restoring.execute_restore_plan(
            restoring.plan_restore(entry, config_home.where), config_home.where
        ).warnings
        == ()
    )
    assert client_files_with_times(config_home) == before
    assert link.lstat().st_mtime_ns == int(FIVE_DAYS_AGO) * 10**9


def test_restored_files_are_synced_before_the_trash_drops_them(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore syncs each folder that gets a file before it removes the entry from the trash."""
    entry = delete_session(session_with_every_file(config_home), config_home)
    synced: list[str] = []
    monkeypatch.setattr(
        restoring,
        "sync_folder",
        lambda path: synced.append(path) if os.path.exists(entry.folder) else 0,
    )
    restore_deleted(config_home)
    assert {os.path.dirname(path) for path in client_files_with_times(config_home)} <= set(synced)


def test_a_missing_backup_in_the_trash_does_not_stop_a_restore(config_home: ConfigHome) -> None:
    """If a backup is missing in the trash, the restore succeeds and keeps an existing backup."""
    entry = delete_session(session_with_every_file(config_home), config_home)
    backup = config_home.config / "file-history" / SESSION / "abc@v1"
    backup.parent.mkdir(parents=True)
    backup.write_bytes(b"another")
    os.unlink(os.path.join(entry.folder, "file-history", "abc@v1"))
    restore_deleted(config_home)
    assert backup.read_bytes() == b"another"
    assert os.path.exists(path_in_config_home(entry.place, config_home.where))


@pytest.mark.parametrize("packed", [False, True])
def test_deleting_and_restoring_the_corpus_changes_nothing(
    config_home: ConfigHome, *, packed: bool
) -> None:
    """Deleting and restoring every real session keeps its contents, modes and times."""
    corpus()
    for number, folder in enumerate(sorted({session.parent for session in corpus_sessions()})):
        shutil.copytree(folder, config_home.project(f"/corpus/{number}"), dirs_exist_ok=True)
    for number, path in enumerate(client_files_with_times(config_home)):
        os.chmod(path, (0o600, 0o644)[number % 2])
        os.utime(path, ns=(1, time.time_ns() - 5 * 86_400 * 10**9 + number))
    before = client_files_with_times(config_home), file_modes_and_times(config_home)
    sessions = locate.all_sessions(config_home.where)
    for session in sessions:
        delete_session(session, config_home)
    assert locate.all_sessions(config_home.where) == []
    if packed:
        trash.pack_deleted_sessions(config_home.where, lambda: False)
    for entry in trash.list_trashed_sessions(config_home.where):
        assert bool(entry.transcript.where) is packed
        restore_deleted(config_home, entry.locator)
    assert (client_files_with_times(config_home), file_modes_and_times(config_home)) == before
    assert len(sessions) > 50
