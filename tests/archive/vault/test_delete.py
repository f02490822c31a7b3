"""Deleting and restoring: a session goes whole and comes back byte for byte, whatever happens in between."""

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
from resume_hooks.archive.vault.trash import REMOVED_SUFFIX
from resume_hooks.errors import (
    AmbiguousLocator,
    PlaceTaken,
    SessionNotFound,
    SessionOpen,
    UsageError,
    WriteFailed,
)
from resume_hooks.paths import Where
from resume_hooks.search.index.connect import opened_index
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived.layout import MANIFEST, path_in_config_home
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.sessions.archived.unpack import stored_path
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage import hard_links, removal
from tests.archive.vault import former_trash
from tests.archive.vault.laid_out import OLD, laid_out
from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    write_session,
)
from tests.crashes import crashes, outcome
from tests.needs import corpus, corpus_sessions
from tests.storage.test_hard_links import forbid_moves, run_after_digest

OTHER = session_id(2)


def everything(home: ConfigHome) -> dict[str, tuple[bytes, int]]:
    """Every file of the client's folders, with its bytes and its second."""
    roots = [home.config / name for name in ("projects", "file-history", "tasks")]
    files = (path for root in roots for path in root.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), int(path.stat().st_mtime)) for path in files}


def delete(session: SessionFile, home: ConfigHome, **how: bool) -> ArchivedSession:
    """Plan and write."""
    return deletion.move_to_trash(deletion.plan_delete(session, home.where), home.where, **how)


def trash_entries(locator: str, where: Where) -> ArchivedSession:
    """Return the entries of the trash."""
    return locate_archived.find_archived(locator, where, trash.list_deleted(where))


def restore(home: ConfigHome, locator: str = SESSION) -> restoring.RestorePlan:
    """Find, plan and write."""
    decided = restoring.plan_restore(trash_entries(locator, home.where), home.where)
    restoring.restore_session(decided, home.where)
    return decided


@pytest.fixture(params=["same", "other", "no links"])
def file_systems(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """Put the trash on the same file system, on another one, or on one without hard links, when called."""

    def set_up() -> None:
        if request.param == "other":
            forbid_moves(monkeypatch)
        elif request.param == "no links":
            monkeypatch.setattr(os, "link", refused)

    def refused(source: str, target: str, **how: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), source)

    return set_up


def test_a_session_goes_whole_and_comes_back(
    config_home: ConfigHome, file_systems: Callable[[], None]
) -> None:
    """Transcript, sub-agents, outputs, backups: nothing stays.

    All comes back with its time, and the trash is empty.
    """
    bystander = write_session(
        config_home.project(), OTHER, conversation(1, session_id=OTHER), mtime=OLD
    )
    session = laid_out(config_home)
    before = everything(config_home)
    file_systems()
    entry = delete(session, config_home)
    assert set(everything(config_home)) == {bystander}
    assert (len(entry.parts), entry.size) == (
        7,
        sum(len(b) for p, (b, _) in before.items() if p != bystander),
    )
    assert entry.complete
    assert trash.list_deleted(config_home.where) == [entry]
    assert os.stat(entry.folder).st_mode & 0o777 == 0o700
    assert restore(config_home).warnings == ()
    assert everything(config_home) == before
    assert not (config_home.config / "resume-hooks" / "trash").exists()


@pytest.mark.parametrize("verb", ["delete", "restore"])
def test_killed_anywhere_nothing_is_lost(
    config_home: ConfigHome, file_systems: Callable[[], None], verb: str
) -> None:
    """At every step: the trash names the missing files, and a restore returns all of them unchanged."""
    path = laid_out(config_home).path
    before = everything(config_home)
    file_systems()

    def prepare() -> Callable[[], object]:
        session = locate.session_file(path)
        if verb == "delete":
            return lambda: delete(session, config_home)
        delete(session, config_home)
        return lambda: restore(config_home)

    for _ in crashes(prepare):
        transcript = everything(config_home).get(path)
        # Where there are no links, a moment before it has its name.
        reserved = transcript is not None and not transcript[0]
        assert reserved or transcript in (None, before[path])
        while trash.list_deleted(config_home.where):
            restore(config_home)
        assert everything(config_home) == before


@pytest.mark.parametrize("part", range(7))
def test_a_failed_move_leaves_every_file_in_place(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    """If the disk fails in the middle, every file is moved back, and the trash is unchanged."""
    session = laid_out(config_home)
    before = everything(config_home)
    calls = 0

    def refused(path: str, where: Where) -> None:
        nonlocal calls
        calls += 1
        if calls == part + 1:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(deletion, "remove_links", refused)
    with pytest.raises(WriteFailed, match="Permission denied"):
        delete(session, config_home)
    assert everything(config_home) == before
    assert trash.list_deleted(config_home.where) == []


def test_nothing_goes_under_a_manifest_that_can_not_be_read(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read back before the first file leaves its place."""
    session = laid_out(config_home)
    before = everything(config_home)
    monkeypatch.setattr(deletion, "read_manifest", lambda *_: None)
    with pytest.raises(WriteFailed, match="differs from what was written"):
        delete(session, config_home)
    assert everything(config_home) == before
    assert (trash.list_deleted(config_home.where), trash.list_stray_folders(config_home.where)) == (
        [],
        [],
    )


def test_an_interrupt_puts_all_back(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl+C during the hashing, the session is in its place."""
    session = laid_out(config_home)
    before = everything(config_home)
    plan = deletion.plan_delete(session, config_home.where)

    def interrupted(path: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(trash, "hash_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        deletion.move_to_trash(plan, config_home.where)
    assert everything(config_home) == before


def test_a_failed_undo_is_reported(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files stay in the trash, whose entry says so, and restore joins both halves."""
    session = laid_out(config_home)
    before = everything(config_home)
    calls = 0

    def refused(path: str) -> str:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def worse_and_worse(source: str, target: str) -> None:
        nonlocal calls
        calls += 1
        if calls > 7:
            raise OSError(errno.EIO, os.strerror(errno.EIO), source)
        hard_links.link_or_copy(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(deletion, "link_or_copy", worse_and_worse)
        patch.setattr(trash, "hash_file", refused)
        with pytest.raises(WriteFailed, match="could not be put back") as told:
            delete(session, config_home)
    assert f"restore {SESSION}" in told.value.remedy
    (entry,) = trash.list_deleted(config_home.where)
    assert not entry.complete
    assert deletion.empty_trash([entry], config_home.where) == []
    restore(config_home)
    assert everything(config_home) == before


def test_of_two_deletes_at_once_one_has_it(config_home: ConfigHome) -> None:
    """The other one reports a missing session, and leaves no entry."""
    session = laid_out(config_home)
    first = deletion.plan_delete(session, config_home.where)
    second = deletion.plan_delete(session, config_home.where)
    entry = deletion.move_to_trash(first, config_home.where)
    time.sleep(0.002)  # an entry is named by its millisecond
    with pytest.raises((SessionNotFound, SessionOpen)):
        deletion.move_to_trash(second, config_home.where, force=True)
    assert trash.list_deleted(config_home.where) == [entry]


def test_a_live_session_stays(config_home: ConfigHome) -> None:
    """It is deleted only with ``force``."""
    session = locate.session_file(write_session(config_home.project(), SESSION, conversation(1)))
    with pytest.raises(SessionOpen, match="seconds ago"):
        delete(session, config_home)
    assert delete(session, config_home, force=True).complete


@pytest.mark.parametrize("place", ["outside", "other name", "link", "linked folder"])
def test_a_file_outside_the_client_is_not_deleted(
    config_home: ConfigHome, tmp_path: Path, place: str
) -> None:
    """Any locator may name it, but rm exists for such files."""
    folder = config_home.project()
    path = {
        "outside": tmp_path / f"{SESSION}.jsonl",
        "other name": folder / "notes.jsonl",
        "link": folder / f"{SESSION}.jsonl",
        "linked folder": config_home.config / "projects" / "link" / f"{SESSION}.jsonl",
    }[place]
    if place == "linked folder":
        path.parent.symlink_to(tmp_path)
    real = Path(
        write_session(tmp_path, OTHER if place == "link" else SESSION, conversation(1), mtime=OLD)
    )
    if place == "other name":
        real.rename(path)
    elif place == "link":
        path.symlink_to(real)
    with pytest.raises(UsageError):
        deletion.plan_delete(SessionFile(SESSION, str(path), OLD, 1), config_home.where)


def test_links_next_to_a_session_are_not_followed(config_home: ConfigHome, tmp_path: Path) -> None:
    """They and what they lead to stay.

    A link inside its own folder moves as a link, and comes back as one.
    """
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "precious").write_bytes(b"precious")
    folder = config_home.project()
    path = write_session(folder, SESSION, conversation(1), mtime=OLD)
    (folder / SESSION).symlink_to(mine)
    delete(locate.session_file(path), config_home)
    assert (folder / SESSION).is_symlink()
    restore(config_home)
    (folder / SESSION).unlink()
    (folder / SESSION).mkdir()
    (folder / SESSION / "out").symlink_to(mine)
    entry = delete(locate.session_file(path), config_home)
    assert not (folder / SESSION).exists()
    restore(config_home)
    assert (folder / SESSION / "out").is_symlink()
    delete(locate.session_file(path), config_home)
    deletion.empty_trash(trash.list_deleted(config_home.where), config_home.where)
    assert (mine / "precious").read_bytes() == b"precious"
    assert not os.path.lexists(entry.folder)


def test_a_taken_place_is_never_written_over(config_home: ConfigHome) -> None:
    """A client that had the session open begun it again: nothing is moved, and both are whole."""
    session = laid_out(config_home)
    entry = delete(session, config_home)
    write_session(config_home.project(), SESSION, conversation(1), mtime=OLD)
    before = everything(config_home)
    with pytest.raises(PlaceTaken):
        restoring.plan_restore(entry, config_home.where)
    assert everything(config_home) == before
    assert trash.list_deleted(config_home.where) == [entry]


def test_an_identical_existing_file_is_reported(config_home: ConfigHome) -> None:
    """The user restored a copy by hand, so the trash drops its own."""
    session = laid_out(config_home)
    before = everything(config_home)
    entry = delete(session, config_home)
    for path, (content, _) in before.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)
    assert restoring.REMOVED_FROM_TRASH_NOTE in restore(config_home).warnings
    assert {path: content for path, (content, _) in everything(config_home).items()} == {
        path: content for path, (content, _) in before.items()
    }
    assert not os.path.lexists(entry.folder)


def test_a_folder_that_came_back_is_filled(config_home: ConfigHome) -> None:
    """New files in it stay next to the restored ones; one file that differs stops the restore."""
    session = laid_out(config_home)
    delete(session, config_home)
    own = config_home.project() / SESSION / "tool-results"
    own.mkdir(parents=True)
    (own / "new.txt").write_bytes(b"new")
    restore(config_home)
    assert sorted(os.listdir(own)) == ["new.txt", "toolu_1.txt"]
    entry = delete(session, config_home)
    own.mkdir(parents=True)
    (own / "toolu_1.txt").write_bytes(b"other")
    with pytest.raises(PlaceTaken, match="toolu_1"):
        restoring.plan_restore(entry, config_home.where)


@pytest.mark.parametrize("linked", ["project", "own folder", "inner folder", "backups"])
def test_nothing_is_restored_through_a_link(
    config_home: ConfigHome, tmp_path: Path, linked: str
) -> None:
    """Somebody has put a link to another place there."""
    session = laid_out(config_home)
    entry = delete(session, config_home)
    away = tmp_path / "away"
    away.mkdir()
    folder = config_home.project()
    place = {
        "project": folder,
        "own folder": folder / SESSION,
        "inner folder": folder / SESSION / "tool-results",
        "backups": config_home.config / "file-history" / SESSION,
    }[linked]
    if linked == "project":
        folder.rmdir()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(away)
    with pytest.raises(PlaceTaken):
        restoring.plan_restore(entry, config_home.where)
    assert os.listdir(away) == []


def test_folders_that_went_are_rebuilt(config_home: ConfigHome) -> None:
    """For us alone to read."""
    session = laid_out(config_home)
    delete(session, config_home)
    config_home.project().rmdir()
    (config_home.config / "file-history").rmdir()
    restore(config_home)
    assert config_home.project().stat().st_mode & 0o777 == 0o700
    assert (config_home.config / "file-history").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("setting", "left"), [(None, 7), (4, 2), (1, 1), (400, None)])
def test_an_old_session_does_not_expire_at_once(
    config_home: ConfigHome, setting: int | None, left: int | None
) -> None:
    """The client deletes by time at its next start: what is too old is left some days, younger files keep theirs."""
    if setting:
        (config_home.config / "settings.json").write_text(
            json.dumps({"cleanupPeriodDays": setting})
        )
    session = laid_out(config_home)
    long_ago = time.time() - 100 * 24 * 60 * 60
    for path in everything(config_home):
        os.utime(path, (long_ago, long_ago))
    delete(session, config_home)
    told = restore(config_home).warnings
    ages = [(time.time() - mtime) / (24 * 60 * 60) for _, mtime in everything(config_home).values()]
    expected = 100 if left is None else (setting or 30) - left
    assert all(abs(age - expected) < 0.1 for age in ages)
    assert bool(told) is (left is not None)
    assert locate.latest_session("/home/user/proj", config_home.where).session_id == SESSION


def test_a_locator_over_the_trash(config_home: ConfigHome) -> None:
    """Id, title, their parts, the path it had.

    Ambiguity lists, and each of several deletes by its instant.
    """
    for number, title in (
        (SESSION, "One"),
        ("11111111-2222-4111-8111-111111111111", "Two"),
        (OTHER, "One"),
    ):
        delete(laid_out(config_home, number, title), config_home)
    assert trash_entries("00000002", config_home.where).session_id == OTHER
    for locator in ("Two", "two", "title:Two"):
        assert trash_entries(locator, config_home.where).title == "Two"
    assert (
        trash_entries(str(config_home.project() / f"{OTHER}.jsonl"), config_home.where).session_id
        == OTHER
    )
    for locator in ("1111", "One"):
        with pytest.raises(AmbiguousLocator) as told:
            trash_entries(locator, config_home.where)
        assert len(told.value.candidates) == 2
    for locator in ("111", "tw", "x" * 300):
        with pytest.raises(SessionNotFound):
            trash_entries(locator, config_home.where)
    with pytest.raises(UsageError):
        trash_entries(" ", config_home.where)
    again = delete(laid_out(config_home, OTHER, "Later"), config_home)
    with pytest.raises(AmbiguousLocator) as several:
        trash_entries(OTHER, config_home.where)
    first, second = (str(row["locator"]) for row in several.value.candidates)
    assert [row["title"] for row in several.value.candidates] == ["Later", "One"]
    assert first == again.locator
    for named in (
        first,
        first[:8] + first[36:],
        f"{OTHER}@{again.deleted_at}",
        f"Later@{again.deletion_folder_name}",
    ):
        assert trash_entries(named, config_home.where) == again
    assert trash_entries(second, config_home.where).title == "One"
    with pytest.raises(SessionNotFound):
        trash_entries(f"{OTHER}@2020-01-01T00-00-00.000Z", config_home.where)
    restoring.restore_session(restoring.plan_restore(again, config_home.where), config_home.where)
    assert trash_entries(OTHER, config_home.where).title == "One"


def test_emptying_completes_a_deletion(config_home: ConfigHome) -> None:
    """Nothing of the existing sessions is removed."""
    session = laid_out(config_home)
    entry = delete(session, config_home)
    laid_out(config_home)
    before = everything(config_home)
    assert deletion.empty_trash(trash.list_deleted(config_home.where), config_home.where) == [entry]
    assert everything(config_home) == before
    assert trash.list_deleted(config_home.where) == []


@pytest.mark.parametrize(
    "change",
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
def test_a_note_that_was_tampered_with_moves_nothing(
    config_home: ConfigHome, change: dict[str, object]
) -> None:
    """Another version, damage, or a path outside a session: it is not an entry, and is left alone."""
    entry = delete(laid_out(config_home), config_home)
    note = Path(entry.folder) / MANIFEST
    note.write_text(json.dumps(json.loads(note.read_text()) | change))
    assert trash.list_deleted(config_home.where) == []
    assert os.path.isdir(entry.folder)


def test_a_trash_that_is_a_link_is_not_used(config_home: ConfigHome, tmp_path: Path) -> None:
    """It is neither written nor read."""
    session = laid_out(config_home)
    before = everything(config_home)
    state = config_home.config / "resume-hooks"
    state.mkdir()
    (state / "trash").symlink_to(tmp_path)
    with pytest.raises(WriteFailed):
        delete(session, config_home)
    assert everything(config_home) == before


def test_changes_in_the_trash_are_reported(config_home: ConfigHome) -> None:
    """They are found by digest; a session whose transcript is missing there cannot be restored."""
    entry = delete(laid_out(config_home), config_home)
    (Path(entry.folder) / f"{SESSION}.jsonl").write_bytes(b"{}\n")
    removal.remove_permanently(os.path.join(entry.folder, "file-history"), entry.folder)
    warnings = restoring.plan_restore(entry, config_home.where).warnings
    assert [
        word in " ".join(warnings) for word in ("changed in the trash", "neither in the trash")
    ] == [True, True]
    os.unlink(os.path.join(entry.folder, f"{SESSION}.jsonl"))
    with pytest.raises(SessionNotFound, match="gone from the trash"):
        restoring.plan_restore(entry, config_home.where)


def test_the_index_forgets_and_learns_again(config_home: ConfigHome) -> None:
    """A deleted session is not found by a search, a restored one is."""

    def sessions() -> int:
        with opened_index(config_home.where) as index:
            return int(index.db.execute("SELECT count(*) FROM files").fetchone()[0])

    session = laid_out(config_home)
    known = sessions()
    delete(session, config_home)
    assert sessions() == 0
    restore(config_home)
    assert sessions() == known > 0


def begun_anew(home: ConfigHome) -> str:
    """Write the file of a client that had a deleted session open."""
    return write_session(
        home.project(), SESSION, [*conversation(1), custom_title("anew")], mtime=OLD
    )


def test_both_sessions_of_a_crash_and_a_restart_are_restored(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed deletion, and a client that recreated the file and was deleted: the first one is restored whole."""
    laid_out(config_home)
    before = everything(config_home)
    forbid_moves(monkeypatch)

    def dies_unlinked(folder: str) -> None:
        if not os.path.exists(path):
            os._exit(9)

    path = str(config_home.project() / f"{SESSION}.jsonl")
    with monkeypatch.context() as patch:
        patch.setattr(deletion, "sync_folder", dies_unlinked)
        assert outcome(lambda: delete(locate.session_file(path), config_home)) == 9
    (first,) = trash.list_deleted(config_home.where)
    anew = begun_anew(config_home)
    with pytest.raises(PlaceTaken) as told:
        restore(config_home)
    assert f"delete {anew}, then: resume-hooks restore {first.locator}" in told.value.remedy
    delete(locate.session_file(anew), config_home)
    restore(config_home, first.locator)
    assert everything(config_home) == before


def test_a_session_that_continued_after_a_killed_delete_stays(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kill was between two file systems: the file that contains the whole copy is the session."""
    session = laid_out(config_home)
    forbid_moves(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(deletion, "remove_links", lambda *_: os._exit(9))
        assert outcome(lambda: delete(session, config_home)) == 9
    with open(session.path, "ab") as stream:
        stream.write(b"{}\n")
    went_on = everything(config_home)
    (entry,) = trash.list_deleted(config_home.where)
    assert not entry.complete
    restore(config_home)
    assert (everything(config_home), trash.list_deleted(config_home.where)) == (went_on, [])


def test_a_writer_that_continues_leaves_the_session_where_it_was(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion is refused, the new lines are kept, and the trash is empty."""
    session = laid_out(config_home)
    forbid_moves(monkeypatch)
    plan = deletion.plan_delete(session, config_home.where)
    with open(session.path, "ab", buffering=0) as held:
        run_after_digest(monkeypatch, 2, lambda: held.write(b"{}\n"))
        with pytest.raises(WriteFailed, match="Changed while"):
            deletion.move_to_trash(plan, config_home.where)
    assert Path(session.path).read_bytes().endswith(b"{}\n")
    assert len(everything(config_home)) == 7
    assert (trash.list_deleted(config_home.where), trash.list_stray_folders(config_home.where)) == (
        [],
        [],
    )


def test_the_next_deletion_completes_an_interrupted_one(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then it is counted. A failure names the path, and the other files are removed."""
    entries = [delete(laid_out(config_home, number), config_home) for number in (SESSION, OTHER)]
    whole = removal.remove_permanently

    def refused(path: str, root: str, **more: bool) -> None:
        if SESSION in path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        whole(path, root, **more)

    for strays in ([], [entries[0].folder + REMOVED_SUFFIX]):
        with monkeypatch.context() as patch:
            patch.setattr(removal, "remove_permanently", refused)
            with pytest.raises(WriteFailed, match=f"{SESSION}.*Permission denied"):
                deletion.empty_trash(
                    trash.list_deleted(config_home.where),
                    config_home.where,
                    trash.list_stray_folders(config_home.where),
                )
        (stray,) = trash.list_stray_folders(config_home.where)
        assert (stray.folder, stray.gone, stray.files) == (
            entries[0].folder + REMOVED_SUFFIX,
            True,
            8,
        ), strays
    assert trash.list_deleted(config_home.where) == []
    assert (
        deletion.empty_trash([], config_home.where, trash.list_stray_folders(config_home.where))
        == []
    )
    assert not (config_home.config / "resume-hooks" / "trash").exists()


def test_killed_before_it_took_anything(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kill was while files got second names: the session is in its place, and the trash has no entry."""
    session = laid_out(config_home)
    before = everything(config_home)
    with monkeypatch.context() as patch:
        patch.setattr(deletion, "link_or_copy", lambda *_: os._exit(9))
        assert outcome(lambda: delete(session, config_home)) == 9
    assert everything(config_home) == before
    assert trash.list_deleted(config_home.where) == []
    (stray,) = trash.list_stray_folders(config_home.where)
    assert stray.gone
    deletion.empty_trash([], config_home.where, [stray])
    assert not (config_home.config / "resume-hooks" / "trash").exists()


def test_a_folder_of_no_session_is_none(config_home: ConfigHome) -> None:
    """Its note does not matter; a completely deleted session stays an entry even without files."""
    entry = delete(laid_out(config_home), config_home)
    other = Path(entry.folder).parent.with_name("other")
    other.mkdir()
    (other / MANIFEST).write_text(
        (Path(entry.folder) / MANIFEST).read_text().replace(SESSION, "other")
    )
    for part in entry.parts:
        os.unlink(stored_path(entry.folder, part))
    assert trash.list_deleted(config_home.where) == [entry]
    (stray,) = trash.list_stray_folders(config_home.where)
    assert (stray.folder, stray.gone) == (str(other), False)


@pytest.mark.parametrize("note", [None, b"{", b"{}"])
def test_an_entry_that_can_not_be_told_is_counted(
    config_home: ConfigHome, note: bytes | None
) -> None:
    """Without a valid note it does not count as empty, and only a command that names it removes it."""
    entry = delete(laid_out(config_home), config_home)
    path = Path(entry.folder) / MANIFEST
    path.unlink() if note is None else path.write_bytes(note)
    (stray,) = trash.list_stray_folders(config_home.where)
    assert (stray.folder, stray.gone, stray.files) == (entry.folder, False, 7 + (note is not None))
    assert stray.size >= entry.size
    deletion.empty_trash([entry], config_home.where, [])
    assert not os.path.exists(entry.folder)


def test_copies_of_one_id_share_its_files(config_home: ConfigHome) -> None:
    """The backups go with the last copy.

    Whichever comes back has them, and emptying does not take them from it.
    """
    first = laid_out(config_home)
    second = locate.session_file(
        write_session(config_home.project("/elsewhere"), SESSION, conversation(1), mtime=OLD)
    )
    backup = config_home.config / "file-history" / SESSION / "abc@v1"
    one = delete(first, config_home)
    assert backup.exists()
    two = delete(second, config_home)
    assert not backup.exists()
    restore(config_home, one.locator)
    assert backup.read_bytes() == b"the user's file"
    (warning,) = restore(config_home, two.locator).warnings
    assert warning.startswith(f"{first.path} has the same id"), (
        "newer clients refuse an id that lies in two folders"
    )
    delete(first, config_home)
    last = delete(second, config_home)
    Path(first.path).write_bytes(b"{}\n")  # back by hand
    deletion.empty_trash(trash.list_deleted(config_home.where), config_home.where)
    assert not os.path.exists(last.folder)
    assert backup.read_bytes() == b"the user's file"


def test_one_command_at_a_time_is_at_work_in_the_trash(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others wait for the packing, or report it and change nothing."""
    monkeypatch.setattr(commit, "MAX_LOCK_SECONDS", 0.1)
    entry = delete(laid_out(config_home), config_home)
    decided = restoring.plan_restore(entry, config_home.where)
    other = deletion.plan_delete(laid_out(config_home, OTHER), config_home.where)
    tries: list[Callable[[], object]] = [
        lambda: restoring.restore_session(decided, config_home.where),
        lambda: deletion.empty_trash([entry], config_home.where),
        lambda: deletion.move_to_trash(other, config_home.where),
    ]
    with commit.lock_trash(config_home.where):
        for act in tries:
            with pytest.raises(SessionOpen, match="using the trash"):
                act()
    assert trash.list_deleted(config_home.where) == [entry]
    restoring.restore_session(decided, config_home.where)


@pytest.mark.parametrize("how", ["emptied", "restored"])
def test_a_late_restore_reports_the_current_state(config_home: ConfigHome, how: str) -> None:
    """Another command took the entry between plan and write, so the session is looked up again."""
    entry = delete(laid_out(config_home), config_home)
    decided = restoring.plan_restore(entry, config_home.where)
    if how == "emptied":
        deletion.empty_trash([entry], config_home.where)
    else:
        restoring.restore_session(decided, config_home.where)
    with pytest.raises(SessionNotFound) as told:
        restoring.restore_session(decided, config_home.where)
    assert ("is in its place" in told.value.remedy) is (how == "restored")
    assert deletion.empty_trash([entry], config_home.where) == []


def test_nothing_is_called_safe_that_is_not_there(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed restore checks the files before it claims that nothing is lost."""
    entry = delete(laid_out(config_home), config_home)

    def refused(source: str, target: str) -> None:
        os.unlink(stored_path(entry.folder, entry.parts[0]))
        raise OSError(errno.EIO, os.strerror(errno.EIO), source)

    monkeypatch.setattr(restoring, "link_or_copy", refused)
    with pytest.raises(WriteFailed) as told:
        restore(config_home)
    assert "Nothing is lost" not in told.value.remedy
    assert path_in_config_home(entry.place, config_home.where) in told.value.remedy


def modes(home: ConfigHome) -> dict[str, tuple[int, int]]:
    """Every file of the client's folders, with its mode and its time to the nanosecond."""
    files = [Path(path) for path in everything(home)]
    return {str(path): (path.stat().st_mode, path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("packed", [False, True])
def test_there_and_back_is_the_identity(config_home: ConfigHome, *, packed: bool) -> None:
    """Bytes, modes and times to the nanosecond, a link, an empty file.

    Stored as it is, or packed by then.
    """
    session = laid_out(config_home)
    own = config_home.project() / SESSION
    (own / "empty").touch()
    (own / "nowhere").symlink_to("/nowhere")
    for number, path in enumerate(everything(config_home)):
        os.chmod(path, (0o600, 0o644, 0o400, 0o640)[number % 4])
        os.utime(path, ns=(1, time.time_ns() - 5 * 86_400 * 10**9 + number))
    before = everything(config_home), modes(config_home)
    entry = delete(session, config_home)
    if packed:
        trash.pack_deleted(config_home.where, lambda: False)
        assert sorted(os.listdir(entry.folder)) == [MANIFEST, "pack-1.xz"]
    assert restore(config_home).warnings == ()
    assert (everything(config_home), modes(config_home)) == before
    assert os.readlink(own / "nowhere") == "/nowhere"
    assert not (config_home.config / "resume-hooks" / "trash").exists()


def test_packing_killed_anywhere_loses_nothing(config_home: ConfigHome) -> None:
    """The files as they were stored, or the pack; the next run removes what the other left."""
    path = laid_out(config_home).path
    before = everything(config_home)

    def prepare() -> Callable[[], object]:
        delete(locate.session_file(path), config_home)
        return lambda: trash.pack_deleted(config_home.where, lambda: False)

    for _ in crashes(prepare, every=3):
        trash.pack_deleted(config_home.where, lambda: False)
        (entry,) = trash.list_deleted(config_home.where)
        assert len(os.listdir(entry.folder)) == 2
        restore(config_home)
        assert everything(config_home) == before


def test_packing_waits_for_nobody_and_nobody_for_it(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that is restored while it is packed is back.

    No delete waits, and time that is over is kept.
    """
    session = laid_out(config_home)
    before = everything(config_home)
    delete(session, config_home)
    trash.pack_deleted(config_home.where, lambda: True)
    (entry,) = trash.list_deleted(config_home.where)
    assert not entry.transcript.where
    real_finish = PackWriter.finish

    def meanwhile(writer: PackWriter) -> None:
        real_finish(writer)
        restore(config_home)

    monkeypatch.setattr(PackWriter, "finish", meanwhile)
    trash.pack_deleted(config_home.where, lambda: False)
    assert everything(config_home) == before
    assert trash.list_deleted(config_home.where) == []


def test_a_client_that_continues_writing_is_not_lost(config_home: ConfigHome) -> None:
    """Lines that it appends to its open file are restored, packed or not."""
    session = laid_out(config_home)
    for packed in (False, True):
        with open(session.path, "ab", buffering=0) as held:
            entry = delete(session, config_home, force=True)
            held.write(b'{"late":1}\n')
        if packed:
            trash.pack_deleted(config_home.where, lambda: False)
        restore(config_home, entry.locator)
        assert Path(session.path).read_bytes().count(b'{"late":1}\n') == 1 + packed


@pytest.mark.parametrize("packed", [False, True])
def test_the_trash_of_0_2_0_is_read(config_home: ConfigHome, *, packed: bool) -> None:
    """It is listed, restored byte for byte, and converted when it is packed."""
    laid_out(config_home)
    before = everything(config_home), modes(config_home)
    folder = former_trash.move_as_former(config_home, SESSION)
    (entry,) = trash.list_deleted(config_home.where)
    assert (entry.locator, entry.title, len(entry.parts)) == (
        f"{SESSION}@{folder.name}",
        "Fix the parser",
        7,
    )
    assert entry.complete
    if packed:
        trash.pack_deleted(config_home.where, lambda: False)
        assert sorted(os.listdir(folder)) == [MANIFEST, "pack-1.xz"]
    assert restore(config_home).warnings == ()
    assert (everything(config_home), modes(config_home)) == before
    former_trash.move_as_former(config_home, SESSION)
    assert [
        each.session_id
        for each in deletion.empty_trash(trash.list_deleted(config_home.where), config_home.where)
    ] == [SESSION]
    assert everything(config_home) == {}


def test_an_interrupted_delete_of_0_2_0_is_joined(config_home: ConfigHome) -> None:
    """It was killed on the way to another file system: its hidden files are restored, too."""
    laid_out(config_home)
    before = everything(config_home)
    former_trash.move_as_former(
        config_home, SESSION, complete=False, hidden=(f"{SESSION}.jsonl", SESSION, "tasks")
    )
    (entry,) = trash.list_deleted(config_home.where)
    assert not entry.complete
    restore(config_home)
    assert everything(config_home) == before


def test_a_session_that_grew_after_a_copy_of_0_2_0_is_kept(config_home: ConfigHome) -> None:
    """Its client wrote while it was copied to another file system: nothing is removed that was not copied."""
    laid_out(config_home)
    transcript = config_home.project() / f"{SESSION}.jsonl"
    copied = transcript.read_bytes()
    folder = former_trash.move_as_former(
        config_home, SESSION, complete=False, hidden=(transcript.name,)
    )
    (folder / transcript.name).write_bytes(copied)
    (hidden,) = transcript.parent.glob(".*.moving")
    hidden.write_bytes(copied + b'{"late":1}\n')
    restore(config_home)
    assert transcript.read_bytes() == copied
    assert hidden.read_bytes() == copied + b'{"late":1}\n'


def test_a_file_that_no_manifest_can_name_stays_unchanged(config_home: ConfigHome) -> None:
    """Its name is not UTF-8, and it is in a folder that was moved whole. Everything else in the trash is packed."""
    laid_out(config_home)
    (config_home.project() / SESSION / os.fsdecode(b"\xff")).write_bytes(b"odd")
    before = everything(config_home)
    folder = former_trash.move_as_former(config_home, SESSION)
    other = delete(laid_out(config_home, OTHER), config_home)
    trash.pack_deleted(config_home.where, lambda: False)
    assert os.path.exists(os.path.join(other.folder, "pack-1.xz"))
    assert (folder / f"{SESSION}.jsonl").exists()
    restore(config_home, OTHER)
    restore(config_home)
    assert before.items() <= everything(config_home).items()


def test_a_pack_that_fails_leaves_nothing(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is not made fuller, however often it is tried."""
    session = laid_out(config_home)
    before, entry = everything(config_home), delete(session, config_home)
    monkeypatch.setattr(PackWriter, "finish", lambda _: os.stat("/nowhere"))
    stored = sorted(os.listdir(entry.folder))
    trash.pack_deleted(config_home.where, lambda: False)
    assert sorted(os.listdir(entry.folder)) == stored
    restore(config_home)
    assert everything(config_home) == before


def test_packed_since_it_was_looked_up_it_comes_back(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """The restore found it unpacked; a vault that is a link does not matter."""
    session = laid_out(config_home)
    link = config_home.project() / SESSION / "nowhere"
    link.symlink_to("/nowhere")
    os.utime(link, ns=(1, int(OLD) * 10**9), follow_symlinks=False)
    before, entry = everything(config_home), delete(session, config_home)
    (config_home.config / "resume-hooks" / "vault").symlink_to(tmp_path)
    trash.pack_deleted(config_home.where, lambda: False)
    assert not os.path.lexists(stored_path(entry.folder, entry.transcript))
    assert (
        restoring.restore_session(
            restoring.plan_restore(entry, config_home.where), config_home.where
        ).warnings
        == ()
    )
    assert everything(config_home) == before
    assert link.lstat().st_mtime_ns == int(OLD) * 10**9


def test_restored_files_are_synced_before_the_trash_drops_them(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every folder that gets a file back is synced first."""
    entry = delete(laid_out(config_home), config_home)
    synced: list[str] = []
    monkeypatch.setattr(
        restoring,
        "sync_folder",
        lambda path: synced.append(path) if os.path.exists(entry.folder) else 0,
    )
    restore(config_home)
    assert {os.path.dirname(path) for path in everything(config_home)} <= set(synced)


def test_a_backup_that_the_trash_lost_blocks_nothing(config_home: ConfigHome) -> None:
    """A backup with its name exists, and is left alone."""
    entry = delete(laid_out(config_home), config_home)
    backup = config_home.config / "file-history" / SESSION / "abc@v1"
    backup.parent.mkdir(parents=True)
    backup.write_bytes(b"another")
    os.unlink(os.path.join(entry.folder, "file-history", "abc@v1"))
    restore(config_home)
    assert backup.read_bytes() == b"another"
    assert os.path.exists(path_in_config_home(entry.place, config_home.where))


@pytest.mark.parametrize("packed", [False, True])
def test_there_and_back_is_the_identity_over_the_corpus(
    config_home: ConfigHome, *, packed: bool
) -> None:
    """Every session of it, with all that is next to: bytes, modes and times."""
    corpus()
    for number, folder in enumerate(sorted({session.parent for session in corpus_sessions()})):
        shutil.copytree(folder, config_home.project(f"/corpus/{number}"), dirs_exist_ok=True)
    for number, path in enumerate(everything(config_home)):
        os.chmod(path, (0o600, 0o644)[number % 2])
        os.utime(path, ns=(1, time.time_ns() - 5 * 86_400 * 10**9 + number))
    before = everything(config_home), modes(config_home)
    sessions = locate.all_sessions(config_home.where)
    for session in sessions:
        delete(session, config_home)
    assert locate.all_sessions(config_home.where) == []
    if packed:
        trash.pack_deleted(config_home.where, lambda: False)
    for entry in trash.list_deleted(config_home.where):
        assert bool(entry.transcript.where) is packed
        restore(config_home, entry.locator)
    assert (everything(config_home), modes(config_home)) == before
    assert len(sessions) > 50
