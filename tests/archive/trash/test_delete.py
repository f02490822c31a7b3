"""Deleting and restoring: a session goes whole and comes back byte for byte, whatever happens in between."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.archive.trash import contents
from resume_hooks.archive.trash import delete as deletion
from resume_hooks.archive.trash import restore as restoring
from resume_hooks.archive.trash.contents import GONE, MANIFEST, TrashEntry
from resume_hooks.errors import AmbiguousLocator, PlaceTaken, SessionLive, SessionNotFound, UsageError, WriteFailed
from resume_hooks.paths import Where
from resume_hooks.search.index.connect import opened_index
from resume_hooks.sessions import locate
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage import move
from tests.builders import SESSION, ConfigHome, conversation, custom_title, session_id, write_session
from tests.crashes import crashes, outcome
from tests.storage.test_move import across, digested

OLD = time.time() - 5 * 24 * 60 * 60
OTHER = session_id(2)


def laid_out(home: ConfigHome, number: str = SESSION, title: str = "Fix the parser") -> SessionFile:
    """A session with everything that may belong to one."""
    folder = home.project()
    path = write_session(folder, number, [*conversation(2, session_id=number), custom_title(title, number)], mtime=OLD)
    own, history = folder / number, home.config / "file-history" / number
    for place, content in (
        (own / "subagents" / "agent-a1.jsonl", b'{"isSidechain":true}\n'),
        (own / "tool-results" / "toolu_1.txt", b"large"),
        (history / "abc@v1", b"the user's file"),
        (home.config / "tasks" / number / "1.json", b'{"id":"1"}'),
        (folder / f"agent-{number[:4]}.jsonl", json.dumps({"sessionId": number}).encode() + b"\n"),
        (folder / f"agent-{number[:4]}.meta.json", b"{}"),
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        os.utime(place, (OLD, OLD))
    return locate.session_file(path)


def everything(home: ConfigHome) -> dict[str, tuple[bytes, int]]:
    """Every file of the client's folders, with its bytes and its second."""
    roots = [home.config / name for name in ("projects", "file-history", "tasks")]
    files = (path for root in roots for path in root.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), int(path.stat().st_mtime)) for path in files}


def delete(session: SessionFile, home: ConfigHome, **how: bool) -> TrashEntry:
    """Plan and write."""
    return deletion.write(deletion.plan(session, home.where), home.where, **how)


def restore(home: ConfigHome, locator: str = SESSION) -> restoring.TrashRestoration:
    """Find, plan and write."""
    decided = restoring.plan(contents.find(locator, home.where), home.where)
    restoring.write(decided, home.where)
    return decided


@pytest.fixture(params=["same", "other", "no links"])
def file_systems(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let the trash lie on the same file system, or on another one, or have no hard links, once it is called."""

    def set_up() -> None:
        if request.param == "other":
            across(monkeypatch)
        elif request.param == "no links":
            monkeypatch.setattr(os, "link", refused)

    def refused(source: str, target: str, **how: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), source)

    return set_up


def test_a_copy_in_another_folder_is_named(config_home: ConfigHome) -> None:
    """Newer clients refuse an id that lies in two folders, so a restore says that it makes a second one."""
    session = laid_out(config_home)
    other = write_session(config_home.project("/elsewhere"), SESSION, conversation(2))
    delete(session, config_home)
    (warning,) = restore(config_home).warnings
    assert warning.startswith(f"{other} has the same id")


def test_a_session_goes_whole_and_comes_back(config_home: ConfigHome, file_systems: Callable[[], None]) -> None:
    """Transcript, sub-agents, outputs, backups: nothing stays; all comes back with its time, and the trash is empty."""
    bystander = write_session(config_home.project(), OTHER, conversation(1, session_id=OTHER), mtime=OLD)
    session = laid_out(config_home)
    before = everything(config_home)
    file_systems()
    entry = delete(session, config_home)
    assert set(everything(config_home)) == {bystander}
    assert (entry.files, entry.size) == (7, sum(len(b) for p, (b, _) in before.items() if p != bystander))
    assert entry.complete
    assert contents.all_deleted(config_home.where) == [entry]
    assert os.stat(entry.folder).st_mode & 0o777 == 0o700
    assert restore(config_home).warnings == ()
    assert everything(config_home) == before
    assert not (config_home.config / "resume-hooks" / "trash").exists()


@pytest.mark.parametrize("verb", ["delete", "restore"])
def test_killed_anywhere_nothing_is_lost(config_home: ConfigHome, file_systems: Callable[[], None], verb: str) -> None:
    """At every step: what is not in its place is told by the trash, and a restore brings all back as it was."""
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
        while contents.all_deleted(config_home.where):
            restore(config_home)
        left = {path: held for path, held in everything(config_home).items() if not path.endswith(move.PART)}
        assert left == before


@pytest.mark.parametrize("part", range(6))
def test_what_can_not_be_moved_leaves_all_in_its_place(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    """A disk that refuses half-way: every part is put back, and the trash is as it was."""
    session = laid_out(config_home)
    before = everything(config_home)
    calls = 0

    def refused(source: str, target: str, hidden: str) -> None:
        nonlocal calls
        calls += 1
        if calls == part + 1:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), source)
        move.take(source, target, hidden)

    monkeypatch.setattr(deletion, "take", refused)
    with pytest.raises(WriteFailed, match="Permission denied"):
        delete(session, config_home)
    assert everything(config_home) == before
    assert contents.all_deleted(config_home.where) == []


def test_an_interrupt_puts_all_back(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl+C while the digests are made: the session is where it was."""
    session = laid_out(config_home)
    before = everything(config_home)
    plan = deletion.plan(session, config_home.where)

    def interrupted(path: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(contents, "weigh", interrupted)
    with pytest.raises(KeyboardInterrupt):
        deletion.write(plan, config_home.where)
    assert everything(config_home) == before


def test_what_can_not_be_put_back_is_told(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays in the trash, which says so, and restore joins both halves."""
    session = laid_out(config_home)
    before = everything(config_home)
    calls = 0

    def worse_and_worse(source: str, target: str, hidden: str = "") -> None:
        nonlocal calls
        calls += 1
        if calls > 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO), source)
        move.take(source, target, hidden)

    with monkeypatch.context() as patch:
        patch.setattr(deletion, "take", worse_and_worse)
        patch.setattr(deletion, "move", worse_and_worse)
        with pytest.raises(WriteFailed, match="could not be put back") as told:
            delete(session, config_home)
    assert f"restore {SESSION}" in told.value.remedy
    (entry,) = contents.all_deleted(config_home.where)
    assert not entry.complete
    assert deletion.empty([entry], config_home.where) == []
    restore(config_home)
    assert everything(config_home) == before


def test_of_two_deletes_at_once_one_has_it(config_home: ConfigHome) -> None:
    """The other says that it is gone, and leaves no entry."""
    session = laid_out(config_home)
    first = deletion.plan(session, config_home.where)
    second = deletion.plan(session, config_home.where)
    entry = deletion.write(first, config_home.where)
    time.sleep(0.002)  # an entry is named by its millisecond
    with pytest.raises((SessionNotFound, SessionLive)):
        deletion.write(second, config_home.where, force=True)
    assert contents.all_deleted(config_home.where) == [entry]


def test_a_live_session_stays(config_home: ConfigHome) -> None:
    """Unless forced."""
    session = locate.session_file(write_session(config_home.project(), SESSION, conversation(1)))
    with pytest.raises(SessionLive, match="seconds ago"):
        delete(session, config_home)
    assert delete(session, config_home, force=True).complete


@pytest.mark.parametrize("place", ["outside", "other name", "link", "linked folder"])
def test_what_is_no_session_of_a_client_is_refused(config_home: ConfigHome, tmp_path: Path, place: str) -> None:
    """Whatever a locator may name: rm is for that."""
    folder = config_home.project()
    path = {
        "outside": tmp_path / f"{SESSION}.jsonl",
        "other name": folder / "notes.jsonl",
        "link": folder / f"{SESSION}.jsonl",
        "linked folder": config_home.config / "projects" / "link" / f"{SESSION}.jsonl",
    }[place]
    if place == "linked folder":
        path.parent.symlink_to(tmp_path)
    real = Path(write_session(tmp_path, OTHER if place == "link" else SESSION, conversation(1), mtime=OLD))
    if place == "other name":
        real.rename(path)
    elif place == "link":
        path.symlink_to(real)
    with pytest.raises(UsageError):
        deletion.plan(SessionFile(SESSION, str(path), OLD, 1), config_home.where)


def test_links_beside_a_session_are_not_followed(config_home: ConfigHome, tmp_path: Path) -> None:
    """They and what they lead to stay; a link inside its own folder moves as a link, and comes back as one."""
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
    deletion.empty(contents.all_deleted(config_home.where), config_home.where)
    assert (mine / "precious").read_bytes() == b"precious"
    assert not os.path.lexists(entry.folder)


def test_a_copy_in_another_project_keeps_the_backups(config_home: ConfigHome) -> None:
    """They lie under the id that both have."""
    session = laid_out(config_home)
    write_session(config_home.project("/elsewhere"), SESSION, conversation(1), mtime=OLD)
    delete(session, config_home)
    assert (config_home.config / "file-history" / SESSION / "abc@v1").exists()


def test_a_taken_place_is_never_written_over(config_home: ConfigHome) -> None:
    """A client that had the session open begun it anew: nothing is moved, and both are whole."""
    session = laid_out(config_home)
    entry = delete(session, config_home)
    write_session(config_home.project(), SESSION, conversation(1), mtime=OLD)
    before = everything(config_home)
    with pytest.raises(PlaceTaken):
        restoring.plan(entry, config_home.where)
    assert everything(config_home) == before
    assert contents.all_deleted(config_home.where) == [entry]


def test_what_is_there_the_same_already_is_said(config_home: ConfigHome) -> None:
    """A copy that the user put back by hand; the trash lets it go."""
    session = laid_out(config_home)
    before = everything(config_home)
    entry = delete(session, config_home)
    for path, (content, _) in before.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)
    assert restoring.THERE in restore(config_home).warnings
    assert {path: content for path, (content, _) in everything(config_home).items()} == {
        path: content for path, (content, _) in before.items()
    }
    assert not os.path.lexists(entry.folder)


def test_a_folder_that_came_back_is_filled(config_home: ConfigHome) -> None:
    """What is in it by now stays beside what comes back; one file that differs stops all of it."""
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
        restoring.plan(entry, config_home.where)


@pytest.mark.parametrize("linked", ["project", "own folder", "inner folder", "backups"])
def test_nothing_is_restored_through_a_link(config_home: ConfigHome, tmp_path: Path, linked: str) -> None:
    """What somebody linked in its place meanwhile leads elsewhere."""
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
        restoring.plan(entry, config_home.where)
    assert os.listdir(away) == []


def test_folders_that_went_are_made_anew(config_home: ConfigHome) -> None:
    """For us alone to read."""
    session = laid_out(config_home)
    delete(session, config_home)
    config_home.project().rmdir()
    (config_home.config / "file-history").rmdir()
    restore(config_home)
    assert config_home.project().stat().st_mode & 0o777 == 0o700
    assert (config_home.config / "file-history").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("setting", "left"), [(None, 7), (4, 2), (1, 1), (400, None)])
def test_an_old_session_does_not_expire_at_once(config_home: ConfigHome, setting: int | None, left: int | None) -> None:
    """The client deletes by time at its next start: what is too old is left some days, younger files keep theirs."""
    if setting:
        (config_home.config / "settings.json").write_text(json.dumps({"cleanupPeriodDays": setting}))
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
    assert locate.latest("/home/user/proj", config_home.where).session_id == SESSION


def test_a_locator_over_the_trash(config_home: ConfigHome) -> None:
    """Id, title, their parts, the path it had; ambiguity lists, and each of several deletes by its instant."""
    environ = config_home.environ
    for number, title in ((SESSION, "One"), ("11111111-2222-4111-8111-111111111111", "Two"), (OTHER, "One")):
        delete(laid_out(config_home, number, title), config_home)
    assert contents.find("00000002", Where(environ)).session_id == OTHER
    for locator in ("Two", "two", "title:Two"):
        assert contents.find(locator, Where(environ)).title == "Two"
    assert contents.find(str(config_home.project() / f"{OTHER}.jsonl"), Where(environ)).session_id == OTHER
    for locator in ("1111", "One"):
        with pytest.raises(AmbiguousLocator) as told:
            contents.find(locator, Where(environ))
        assert len(told.value.candidates) == 2
    for locator in ("111", "tw", "x" * 300):
        with pytest.raises(SessionNotFound):
            contents.find(locator, Where(environ))
    with pytest.raises(UsageError):
        contents.find(" ", Where(environ))
    again = delete(laid_out(config_home, OTHER, "Later"), config_home)
    with pytest.raises(AmbiguousLocator) as several:
        contents.find(OTHER, Where(environ))
    first, second = (str(row["locator"]) for row in several.value.candidates)
    assert [row["title"] for row in several.value.candidates] == ["Later", "One"]
    assert first == again.locator
    for named in (first, first[:8] + first[36:], f"{OTHER}@{again.deleted_at}", f"Later@{again.instant}"):
        assert contents.find(named, Where(environ)) == again
    assert contents.find(second, Where(environ)).title == "One"
    with pytest.raises(SessionNotFound):
        contents.find(f"{OTHER}@2020-01-01T00-00-00.000Z", Where(environ))
    restoring.write(restoring.plan(again, Where(environ)), Where(environ))
    assert contents.find(OTHER, Where(environ)).title == "One"


def test_emptying_removes_what_was_finished(config_home: ConfigHome) -> None:
    """And nothing of the sessions that are in their place."""
    session = laid_out(config_home)
    entry = delete(session, config_home)
    laid_out(config_home)
    before = everything(config_home)
    assert deletion.empty(contents.all_deleted(config_home.where), config_home.where) == [entry]
    assert everything(config_home) == before
    assert contents.all_deleted(config_home.where) == []


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
        {"parts": [{"place": f"projects/a/b/{SESSION}.jsonl", "files": 1, "size": 1, "sha256": ""}]},
        {"parts": [{"place": f"file-history/{SESSION}", "files": 1, "size": 1, "sha256": ""}]},
        {"parts": [{"place": "projects/a/authorized_keys", "files": 1, "size": 1, "sha256": ""}]},
    ],
)
def test_a_note_that_was_tampered_with_moves_nothing(config_home: ConfigHome, change: dict[str, object]) -> None:
    """Of another version, damaged, or with a place where no session's part belongs: no entry, left alone."""
    entry = delete(laid_out(config_home), config_home)
    note = Path(entry.folder) / MANIFEST
    note.write_text(json.dumps(json.loads(note.read_text()) | change))
    assert contents.all_deleted(config_home.where) == []
    assert os.path.isdir(entry.folder)


def test_a_trash_that_is_a_link_is_not_used(config_home: ConfigHome, tmp_path: Path) -> None:
    """Neither to put something in nor to read."""
    session = laid_out(config_home)
    before = everything(config_home)
    state = config_home.config / "resume-hooks"
    state.mkdir()
    (state / "trash").symlink_to(tmp_path)
    with pytest.raises(WriteFailed):
        delete(session, config_home)
    assert everything(config_home) == before


def test_what_was_changed_or_removed_in_the_trash_is_told(config_home: ConfigHome) -> None:
    """By digest; a transcript that is gone there can't come back."""
    entry = delete(laid_out(config_home), config_home)
    (Path(entry.folder) / f"{SESSION}.jsonl").write_bytes(b"{}\n")
    move.remove(os.path.join(entry.folder, "file-history"))
    warnings = restoring.plan(entry, config_home.where).warnings
    assert [word in " ".join(warnings) for word in ("changed in the trash", "neither in the trash")] == [True, True]
    os.unlink(os.path.join(entry.folder, f"{SESSION}.jsonl"))
    with pytest.raises(SessionNotFound, match="gone from the trash"):
        restoring.plan(entry, config_home.where)


def test_the_index_forgets_and_learns_again(config_home: ConfigHome) -> None:
    """A deleted session is not found by a search, a restored one is."""
    environ = config_home.environ

    def sessions() -> int:
        with opened_index(Where(environ)) as index:
            return int(index.db.execute("SELECT count(*) FROM files").fetchone()[0])

    session = laid_out(config_home)
    known = sessions()
    delete(session, config_home)
    assert sessions() == 0
    restore(config_home)
    assert sessions() == known > 0


def begun_anew(home: ConfigHome) -> str:
    """What a client leaves that had a deleted session open."""
    return write_session(home.project(), SESSION, [*conversation(1), custom_title("anew")], mtime=OLD)


def test_of_a_crash_and_a_session_begun_anew_both_come_out(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while it was copied, begun anew by a client, that deleted, too: the first comes back whole."""
    laid_out(config_home)
    before = everything(config_home)
    across(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(move, "_copy", lambda *_: os._exit(9))
        path = str(config_home.project() / f"{SESSION}.jsonl")
        assert outcome(lambda: delete(locate.session_file(path), config_home)) == 9
    (first,) = contents.all_deleted(config_home.where)
    anew = begun_anew(config_home)
    with pytest.raises(PlaceTaken) as told:
        restore(config_home)
    assert f"delete {anew}, then: resume-hooks restore {first.locator}" in told.value.remedy
    delete(locate.session_file(anew), config_home)
    restore(config_home, first.locator)
    assert everything(config_home) == before


def test_a_writer_that_goes_on_leaves_the_session_where_it_was(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused, with what was added, and no trace in the trash."""
    session = laid_out(config_home)
    across(monkeypatch)
    plan = deletion.plan(session, config_home.where)
    with open(session.path, "ab", buffering=0) as held:
        digested(monkeypatch, 2, lambda: held.write(b"{}\n"))
        with pytest.raises(WriteFailed, match="Changed while"):
            deletion.write(plan, config_home.where)
    assert Path(session.path).read_bytes().endswith(b"{}\n")
    assert len(everything(config_home)) == 7
    assert (contents.all_deleted(config_home.where), contents.strays(config_home.where)) == ([], [])


def test_what_was_half_removed_is_finished_by_the_next(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted until then, of whatever session; a failure names the path, and what else goes is gone."""
    environ = config_home.environ
    entries = [delete(laid_out(config_home, number), config_home) for number in (SESSION, OTHER)]
    real = move.remove

    def refused(path: str) -> None:
        if SESSION in path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        real(path)

    for strays in ([], [entries[0].folder + GONE]):
        with monkeypatch.context() as patch:
            patch.setattr(contents, "remove", refused)
            with pytest.raises(WriteFailed, match=f"{SESSION}.*Permission denied"):
                deletion.empty(contents.all_deleted(Where(environ)), Where(environ), contents.strays(Where(environ)))
        (stray,) = contents.strays(Where(environ))
        assert (stray.folder, stray.gone, stray.files) == (entries[0].folder + GONE, True, 8), strays
    assert contents.all_deleted(Where(environ)) == []
    assert deletion.empty([], Where(environ), contents.strays(Where(environ))) == []
    assert not (config_home.config / "resume-hooks" / "trash").exists()


def test_killed_before_it_took_anything(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right after its first manifest: the session is where it was, and the trash names none."""
    session = laid_out(config_home)
    before = everything(config_home)
    with monkeypatch.context() as patch:
        patch.setattr(deletion, "take", lambda *_: os._exit(9))
        assert outcome(lambda: delete(session, config_home)) == 9
    assert everything(config_home) == before
    assert contents.all_deleted(config_home.where) == []
    (stray,) = contents.strays(config_home.where)
    assert stray.gone
    deletion.empty([], config_home.where, [stray])
    assert not (config_home.config / "resume-hooks" / "trash").exists()


def test_a_folder_of_no_session_is_none(config_home: ConfigHome) -> None:
    """Whatever its note says; and what was deleted whole stays a session, were all of its files gone."""
    entry = delete(laid_out(config_home), config_home)
    other = Path(entry.folder).parent.with_name("other")
    other.mkdir()
    (other / MANIFEST).write_text((Path(entry.folder) / MANIFEST).read_text().replace(SESSION, "other"))
    for part in entry.parts:
        move.remove(entry.kept(part))
    assert contents.all_deleted(config_home.where) == [entry]
    (stray,) = contents.strays(config_home.where)
    assert (stray.folder, stray.gone) == (str(other), False)


@pytest.mark.parametrize("note", [None, b"{", b"{}"])
def test_an_entry_that_can_not_be_told_is_counted(config_home: ConfigHome, note: bytes | None) -> None:
    """Its note missing or damaged: nothing takes it for empty, and only who names it removes it."""
    environ = config_home.environ
    entry = delete(laid_out(config_home), config_home)
    path = Path(entry.folder) / MANIFEST
    path.unlink() if note is None else path.write_bytes(note)
    (stray,) = contents.strays(Where(environ))
    assert (stray.folder, stray.gone, stray.files) == (entry.folder, False, 7 + (note is not None))
    assert stray.size >= entry.size
    deletion.empty([entry], Where(environ), [])
    assert not os.path.exists(entry.folder)


def test_copies_of_one_id_share_what_belongs_to_it(config_home: ConfigHome) -> None:
    """The backups go with the last copy; whichever comes back has them, and emptying does not take them from it."""
    environ = config_home.environ
    first = laid_out(config_home)
    second = locate.session_file(write_session(config_home.project("/elsewhere"), SESSION, conversation(1), mtime=OLD))
    backup = config_home.config / "file-history" / SESSION / "abc@v1"
    one = delete(first, config_home)
    assert backup.exists()
    two = delete(second, config_home)
    assert not backup.exists()
    restore(config_home, one.locator)
    assert backup.read_bytes() == b"the user's file"
    (warning,) = restore(config_home, two.locator).warnings
    assert first.path in warning
    delete(first, config_home)
    last = delete(second, config_home)
    Path(first.path).write_bytes(b"{}\n")  # back by hand
    deletion.empty(contents.all_deleted(Where(environ)), Where(environ))
    assert not os.path.exists(last.folder)
    assert backup.read_bytes() == b"the user's file"


def test_one_command_at_a_time_is_at_work_in_the_trash(config_home: ConfigHome) -> None:
    """The others say so, and change nothing."""
    environ = config_home.environ
    entry = delete(laid_out(config_home), config_home)
    decided = restoring.plan(entry, Where(environ))
    other = deletion.plan(laid_out(config_home, OTHER), Where(environ))
    tries: list[Callable[[], object]] = [
        lambda: restoring.write(decided, Where(environ)),
        lambda: deletion.empty([entry], Where(environ)),
        lambda: deletion.write(other, Where(environ)),
    ]
    with contents.only_one(Where(environ)):
        for act in tries:
            with pytest.raises(SessionLive, match="at work in the trash"):
                act()
    assert contents.all_deleted(Where(environ)) == [entry]
    restoring.write(decided, Where(environ))


@pytest.mark.parametrize("how", ["emptied", "restored"])
def test_a_restore_that_comes_too_late_says_what_is_so(config_home: ConfigHome, how: str) -> None:
    """Between plan and write another command had the entry: whether the session is there is looked up."""
    environ = config_home.environ
    entry = delete(laid_out(config_home), config_home)
    decided = restoring.plan(entry, Where(environ))
    if how == "emptied":
        deletion.empty([entry], Where(environ))
    else:
        restoring.write(decided, Where(environ))
    with pytest.raises(SessionNotFound) as told:
        restoring.write(decided, Where(environ))
    assert ("is in its place" in told.value.remedy) is (how == "restored")
    assert deletion.empty([entry], Where(environ)) == []


def test_nothing_is_called_safe_that_is_not_there(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore that fails looks for the parts before it says that nothing is lost."""
    entry = delete(laid_out(config_home), config_home)

    def refused(source: str, target: str) -> None:
        move.remove(entry.kept(entry.parts[0]))
        raise OSError(errno.EIO, os.strerror(errno.EIO), source)

    monkeypatch.setattr(restoring, "move", refused)
    with pytest.raises(WriteFailed) as told:
        restore(config_home)
    assert "Nothing is lost" not in told.value.remedy
    assert entry.parts[0].path(config_home.where) in told.value.remedy
