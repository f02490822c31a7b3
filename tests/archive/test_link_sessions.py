"""Held sessions: what the client unlinks early is in the vault afterwards.

What was due, deleted or moved is not.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path

import pytest

from resume_hooks.archive import link_sessions
from resume_hooks.archive.retention.archive_sessions import BackgroundArchiver
from resume_hooks.archive.vault import delete as deletion
from resume_hooks.archive.vault import restore
from resume_hooks.archive.vault import restore as restoring
from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.archive.vault.locate_archived import list_earlier_states, select_earlier_state
from resume_hooks.archive.vault.packs import verify_archived
from resume_hooks.maintenance import doctor
from resume_hooks.paths import Where
from resume_hooks.sessions import held_links, rename
from resume_hooks.sessions.archived.layout import vault_folder
from resume_hooks.sessions.archived.manifest import ArchivedSession, find_archived, list_archived
from resume_hooks.sessions.archived.unpack import stored_path
from resume_hooks.sessions.session_files import SessionFile, session_file
from resume_hooks.storage import stored_settings
from resume_hooks.system import claude_settings
from tests.archive.retention.aged import DAY, aged, at_once, never, with_output
from tests.archive.vault.laid_out import kept_files
from tests.builders import CWD, ConfigHome, session_id
from tests.crashes import crashes

AGENT = "subagents/deep/agent-a1.jsonl"
OUTPUT = "tool-results/out.txt"


def session(home: ConfigHome, number: int = 1, days: float = 1) -> SessionFile:
    """A session with a sub-agent and a large output, last written so many days ago."""
    found = aged(home, number, days)
    with_output(found, days)
    agent = own(found) / AGENT
    agent.parent.mkdir(parents=True)
    agent.write_text('{"isSidechain":true}\n', encoding="utf-8")
    os.utime(agent, (time.time() - days * DAY,) * 2)
    agent.chmod(0o640)
    return found


def own(found: SessionFile) -> Path:
    """The session's own folder."""
    return Path(found.path.removesuffix(".jsonl"))


def look(home: ConfigHome) -> None:
    """Run the work that follows a start."""
    link_sessions.link_all_sessions(home.where, never)


def links(home: ConfigHome) -> dict[str, int]:
    """Every link by its place, with the names that its file has."""
    top = Path(held_links.links_folder(home.where))
    return {
        str(path.relative_to(top)): path.stat().st_nlink
        for path in sorted(top.rglob("*"))
        if path.is_file()
    }


def snapshot(home: ConfigHome) -> dict[str, tuple[bytes, int, int]]:
    """The client's files: bytes, time and mode."""
    root = home.config / "projects"
    return {
        str(path.relative_to(home.config)): (
            path.read_bytes(),
            path.stat().st_mtime_ns,
            path.stat().st_mode,
        )
        for path in root.rglob("*")
        if path.is_file()
    }


def vaulted_session(home: ConfigHome, number: int = 1) -> ArchivedSession:
    """Return the vault's sound copy of a session."""
    kept = find_archived(session_id(number), home.where)
    assert kept is not None
    assert verify_archived(kept) == []
    return kept


def retain(home: ConfigHome, days: int) -> None:
    """Set the client's own period."""
    (home.config / "settings.json").write_text(f'{{"cleanupPeriodDays":{days}}}')


def test_every_session_is_held_whole(config_home: ConfigHome) -> None:
    """Its transcript, sub-agents, outputs; nothing that is a link or empty.

    Once, in a private folder.
    """
    found = session(config_home)
    (config_home.project() / f"{session_id(2)}.jsonl").touch()
    (config_home.project() / f"{session_id(3)}.jsonl").symlink_to(found.path)
    (own(found) / "tool-results" / "elsewhere").symlink_to("/etc/passwd")
    (own(found) / "tool-results" / ".resume-hooks-1-x.tmp").write_text("half")
    look(config_home)
    key = config_home.project().name
    expected = {f"{key}/{session_id(1)}{rest}": 2 for rest in (".jsonl", f"/{AGENT}", f"/{OUTPUT}")}
    assert links(config_home) == expected
    before = {
        path: path.stat().st_ctime_ns for path in config_home.config.rglob("*") if path.is_file()
    }
    look(config_home)
    assert {path: path.stat().st_ctime_ns for path in before} == before
    folders = [
        path
        for path in Path(held_links.links_folder(config_home.where)).rglob("*")
        if path.is_dir()
    ]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    assert list_archived(config_home.where) == []


@pytest.mark.parametrize("days", [0.7, 9, 20])
@pytest.mark.parametrize("how", ["file", "whole", "folders left", "project", "stub"])
def test_an_early_sweep_loses_nothing(config_home: ConfigHome, days: float, how: str) -> None:
    """The vault has every file, the links are removed, and a restore has the old times and modes."""
    found = session(config_home, days=days)
    look(config_home)
    before = snapshot(config_home)
    Path(found.path).unlink()
    if how == "whole":
        shutil.rmtree(own(found))
    elif how == "folders left":
        (own(found) / AGENT).unlink()
        (own(found) / OUTPUT).unlink()
    elif how == "project":
        shutil.rmtree(config_home.project())
    elif how == "stub":
        Path(found.path).touch()
    look(config_home)
    assert links(config_home) == {}
    kept = vaulted_session(config_home)
    assert {place: row[0] for place, row in before.items()} == kept_files(kept, config_home)
    restore.restore_session(restore.plan_restore(kept, config_home.where), config_home.where)
    assert snapshot(config_home) == before
    look(config_home)
    assert set(links(config_home).values()) == {2}


@pytest.mark.parametrize(("period", "days"), [(None, 31), (5, 6), (0, 400)])
def test_a_due_session_is_archived_before_its_last_link_is_removed(
    config_home: ConfigHome, period: int | None, days: float
) -> None:
    """The vault may never have had time, or there were only headless starts."""
    if period is not None:
        retain(config_home, period)
    found = session(config_home, days=days)
    look(config_home)
    before = snapshot(config_home)
    Path(found.path).unlink()
    shutil.rmtree(own(found))
    look(config_home)
    assert links(config_home) == {}
    assert kept_files(vaulted_session(config_home), config_home) == {
        place: row[0] for place, row in before.items()
    }


def test_parts_that_go_by_themselves(config_home: ConfigHome) -> None:
    """An output that the client removed is archived with its session, which stays linked."""
    found = session(config_home)
    old = with_output(found, 31, "old.txt")
    look(config_home)
    (own(found) / OUTPUT).unlink()
    old.unlink()
    look(config_home)
    parts = {part.place.rpartition("/")[2] for part in vaulted_session(config_home).parts}
    assert parts == {f"{session_id(1)}.jsonl", "agent-a1.jsonl", "out.txt", "old.txt"}
    assert {place.rpartition("/")[2] for place in links(config_home)} == {
        f"{session_id(1)}.jsonl",
        "agent-a1.jsonl",
    }


def test_a_file_that_continued_under_another_number(config_home: ConfigHome) -> None:
    """A longer copy replaced the file: nothing is lost, and the new file is linked."""
    found = session(config_home)
    look(config_home)
    new = Path(found.path).with_suffix(".new")
    new.write_bytes(Path(found.path).read_bytes() + b'{"type":"x"}\n')
    new.replace(found.path)
    look(config_home)
    assert list_archived(config_home.where) == []
    assert set(links(config_home).values()) == {2}


def test_a_file_that_a_client_recreated(config_home: ConfigHome) -> None:
    """A client wrote after the loss: the lost content is an earlier state, and the new file is linked."""
    found = session(config_home)
    before = Path(found.path).read_bytes()
    look(config_home)
    Path(found.path).unlink()
    Path(found.path).write_bytes(b'{"type":"x"}\n')
    look(config_home)
    assert (
        kept_files(vaulted_session(config_home), config_home)[vaulted_session(config_home).place]
        == before
    )
    assert set(links(config_home).values()) == {2}
    archive_session(session_file(found.path), config_home.where)
    kept = vaulted_session(config_home)
    assert [
        kept_files(select_earlier_state(kept, each), config_home)[kept.place]
        for each in list_earlier_states(kept)
    ] == [before]


@pytest.mark.parametrize("how", ["truncated", "rewritten", "appended"])
def test_a_write_in_place_is_seen_through_both_names(config_home: ConfigHome, how: str) -> None:
    """Our link shows the client's last version, and the vault's copy is unchanged."""
    found = session(config_home)
    look(config_home)
    with open(found.path, "r+b") as stream:
        if how == "truncated":
            stream.truncate(200)
        elif how == "rewritten":
            stream.write(b'{"type":"another"}\n')
        else:
            stream.seek(0, os.SEEK_END)
            stream.write(b'{"type":"more"}\n')
    last = Path(found.path).read_bytes()
    look(config_home)
    assert set(links(config_home).values()) == {2}
    Path(found.path).unlink()
    look(config_home)
    assert (
        kept_files(vaulted_session(config_home), config_home)[vaulted_session(config_home).place]
        == last
    )


def test_our_own_appends_unshare_nothing(config_home: ConfigHome) -> None:
    """``rename`` adds to the one file that both names lead to; its time stays.

    Nobody is advised to part them.
    """
    found = session(config_home)
    look(config_home)
    was = os.stat(found.path)
    rename.write_label(rename.plan_title(found, "A better name", config_home.where))
    now = os.stat(found.path)
    assert (now.st_ino, now.st_nlink, now.st_mtime_ns) == (was.st_ino, 2, was.st_mtime_ns)
    assert now.st_size > was.st_size
    assert doctor.problems_in_state(config_home.where.state) == []


def test_a_deleted_session_is_not_lost(config_home: ConfigHome) -> None:
    """It is in the trash and nowhere else, and gone when that is emptied.

    A look in between makes no difference.
    """
    for number, looking in ((1, False), (2, True)):
        found = session(config_home, number)
        look(config_home)
        entry = deletion.move_to_trash(
            deletion.plan_delete(found, config_home.where), config_home.where
        )
        assert not [place for place in links(config_home) if session_id(number) in place]
        if looking:
            link = Path(
                held_links.links_folder(config_home.where),
                config_home.project().name,
                f"{session_id(number)}.jsonl",
            )
            link.parent.mkdir(exist_ok=True)
            os.link(
                stored_path(entry.folder, entry.transcript), link
            )  # as one that was made while the delete began
            look(config_home)
        deletion.empty_trash([entry], config_home.where)
        look(config_home)
    assert (links(config_home), list_archived(config_home.where)) == ({}, [])


def test_a_session_back_from_the_trash_is_held_again(config_home: ConfigHome) -> None:
    """The next check links it."""
    found = session(config_home)
    look(config_home)
    entry = deletion.move_to_trash(
        deletion.plan_delete(found, config_home.where), config_home.where
    )
    restoring.restore_session(restoring.plan_restore(entry, config_home.where), config_home.where)
    look(config_home)
    assert len(links(config_home)) == 3
    assert set(links(config_home).values()) == {2}


def test_a_session_that_was_moved_is_not_lost(config_home: ConfigHome) -> None:
    """To another project, where it is held then.

    To where the user keeps it, while that is there.
    """
    found, other = session(config_home), session(config_home, 2)
    look(config_home)
    there = config_home.project("/elsewhere")
    os.rename(found.path, there / os.path.basename(found.path))
    os.rename(own(found), there / session_id(1))
    mine = config_home.root / "mine.jsonl"
    os.rename(other.path, mine)
    look(config_home)
    assert list_archived(config_home.where) == []
    assert [place.partition("/")[0] for place in links(config_home) if session_id(1) in place] == [
        there.name
    ] * 3
    mine.unlink()
    look(config_home)
    assert vaulted_session(config_home, 2).complete


def test_a_home_that_was_copied(config_home: ConfigHome) -> None:
    """No file has a second name in the copy: the next check links the files and archives nothing."""
    session(config_home)
    look(config_home)
    copy = config_home.root / "copy"
    shutil.copytree(config_home.config, copy, symlinks=True)
    shutil.rmtree(config_home.config)
    copy.rename(config_home.config)
    assert set(links(config_home).values()) == {1}
    look(config_home)
    assert set(links(config_home).values()) == {2}
    assert list_archived(config_home.where) == []


def test_an_unlistable_folder_is_not_lost(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a project folder that this user may not list, or a link."""
    session(config_home)
    look(config_home)
    held_before = links(config_home)
    closed, real = str(config_home.project()), os.scandir

    def scandir(path: str) -> object:
        if path == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", scandir)
        look(config_home)
    assert links(config_home) == held_before
    aside = config_home.root / "aside"
    config_home.project().rename(aside)
    Path(config_home.config / "projects" / next(iter(held_before)).partition("/")[0]).symlink_to(
        aside
    )
    look(config_home)
    assert links(config_home) == held_before


def test_off_links_nothing(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's or an employer's setting is off: the next check removes all links, and the client's files stay."""
    session(config_home)
    before = snapshot(config_home)
    look(config_home)
    stored_settings.store_setting("vault", "off", config_home.where)
    look(config_home)
    assert not os.path.lexists(held_links.links_folder(config_home.where))
    stored_settings.store_setting("vault", "on", config_home.where)
    look(config_home)
    assert links(config_home)
    managed = config_home.root / "managed-settings.json"
    managed.write_text('{"cleanupPeriodDays":20}')
    monkeypatch.setattr(claude_settings, "settings_files", lambda *_: [str(managed)])
    look(config_home)
    assert not os.path.lexists(held_links.links_folder(config_home.where))
    assert snapshot(config_home) == before


def test_a_variable_that_says_off_lets_no_link_go(config_home: ConfigHome) -> None:
    """It may be set for one start alone; nothing is linked or archived meanwhile."""
    found = session(config_home)
    look(config_home)
    before = links(config_home)
    Path(found.path).unlink()
    session(config_home, 2)
    link_sessions.link_all_sessions(
        Where({**config_home.where.environ, "RESUME_HOOKS_VAULT": "off"}), never
    )
    assert (links(config_home).keys(), list_archived(config_home.where)) == (before.keys(), [])
    look(config_home)
    assert vaulted_session(config_home).session_id == found.session_id


@pytest.mark.parametrize("code", [errno.EPERM, errno.EMLINK, errno.EXDEV, errno.EOPNOTSUPP])
def test_where_no_link_can_be_made(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Nothing is copied; a hundred links are tried, and doctor reports it once."""
    for number in range(1, 121):
        aged(config_home, number, 2)
    tried = []

    def refuse(*_: object, **__: object) -> None:
        tried.append(1)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)
    look(config_home)
    assert (len(tried), links(config_home)) == (link_sessions.MAX_FAILED_LINKS, {})
    said = [each.detail for each in doctor.check_installation(CWD) if each.code == "vault-unheld"]
    assert len(said) == 1
    assert "120 sessions not held" in said[0]


def test_a_state_folder_that_lies_elsewhere(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several clients may use it, with equal project names: doctor reports that there are no links."""
    session(config_home)
    monkeypatch.setenv("RESUME_HOOKS_HOME", str(config_home.root / "state"))
    home = config_home._replace(
        environ={**config_home.environ, "RESUME_HOOKS_HOME": str(config_home.root / "state")}
    )
    look(home)
    assert not os.path.lexists(held_links.links_folder(home.where))
    assert any(
        "is outside" in each.detail
        for each in doctor.check_installation(CWD)
        if each.code == "vault-unheld"
    )


def test_all_is_well_where_all_is_held(config_home: ConfigHome) -> None:
    """A session of today without a finished turn does not count as missing."""
    aged(config_home, 1, 2)
    look(config_home)
    aged(config_home, 2, 0.1)
    assert [each.code for each in doctor.check_installation(CWD) if each.name == "vault"] == [
        "vault-ok"
    ]


def test_a_vault_that_refuses_leaves_the_link(config_home: ConfigHome) -> None:
    """A session that cannot be archived keeps its link, and the next check tries again."""
    found = session(config_home)
    look(config_home)
    Path(found.path).unlink()
    Path(vault_folder(config_home.where)).write_text("in the way")
    look(config_home)
    assert f"{config_home.project().name}/{session_id(1)}.jsonl" in links(config_home)
    Path(vault_folder(config_home.where)).unlink()
    look(config_home)
    assert (vaulted_session(config_home).complete, links(config_home)) == (True, {})


def test_lines_written_during_archiving_stay_linked(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client had the file open when it lost its name: the next check archives the rest."""
    found = session(config_home)
    look(config_home)
    real = BackgroundArchiver.archive
    with open(found.path, "ab") as stream:
        Path(found.path).unlink()

        def archive(self: BackgroundArchiver, path: str) -> bool:
            done = real(self, path)
            stream.write(b'{"type":"late"}\n')
            stream.flush()
            return done

        monkeypatch.setattr(BackgroundArchiver, "archive", archive)
        look(config_home)
    monkeypatch.setattr(BackgroundArchiver, "archive", real)
    assert links(config_home)
    look(config_home)
    kept = vaulted_session(config_home)
    assert kept_files(kept, config_home)[kept.place].endswith(b'{"type":"late"}\n')
    assert links(config_home) == {}


def test_a_verb_finds_a_session_that_was_just_lost(config_home: ConfigHome) -> None:
    """It creates no links, and reads nothing if there are not linked sessions."""
    found, other = session(config_home), session(config_home, 2)
    link_sessions.archive_lost_sessions(config_home.where)
    assert not os.path.lexists(held_links.links_folder(config_home.where))
    look(config_home)
    Path(found.path).unlink()
    other_link = Path(
        held_links.links_folder(config_home.where),
        config_home.project().name,
        os.path.basename(other.path),
    )
    other_link.unlink()
    link_sessions.archive_lost_sessions(config_home.where)
    assert vaulted_session(config_home).complete
    assert not other_link.exists()


def test_time_that_is_over_ends_a_look(config_home: ConfigHome) -> None:
    """No work begins; the next check continues."""
    session(config_home)
    link_sessions.link_all_sessions(config_home.where, at_once)
    assert links(config_home) == {}
    look(config_home)
    assert len(links(config_home)) == 3


def test_nothing_is_followed_out_of_the_folder(config_home: ConfigHome) -> None:
    """A link in the place of ours, or of a project's in it: nothing is made or removed behind it."""
    found = session(config_home)
    outside = config_home.root / "outside"
    outside.mkdir()
    (outside / f"{session_id(1)}.jsonl").write_text("precious")
    top = Path(held_links.links_folder(config_home.where))
    top.parent.mkdir(mode=0o700)
    top.symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link"):
        look(config_home)
    link_sessions.archive_lost_sessions(config_home.where)
    held_links.remove_links(found.path, config_home.where)
    top.unlink()
    top.mkdir(mode=0o700)
    (top / config_home.project().name).symlink_to(outside)
    look(config_home)
    held_links.remove_links(str(own(found)), config_home.where)
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [
        (f"{session_id(1)}.jsonl", "precious")
    ]


def test_where_no_link_can_be_made_any_more_the_last_ones_stay(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sessions' folder moved to another disk, say.

    Once links can be made again, what they hold is archived.
    """
    found = session(config_home)
    look(config_home)
    held_now = links(config_home)
    Path(found.path).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(link_sessions, "reason_not_to_link", lambda _: "no links are made here")
        look(config_home)
        assert links(config_home).keys() == held_now.keys()
    look(config_home)
    assert vaulted_session(config_home).session_id == found.session_id


def test_killed_at_any_call_nothing_is_lost(config_home: ConfigHome, tmp_path: Path) -> None:
    """Each content is in the client's file, linked or in the vault; the next check completes the work."""
    start = config_home.root / "start"
    gone, replaced, parted = (session(config_home, number) for number in (1, 2, 3))
    look(config_home)
    session(config_home, 4)
    wanted = {path.read_bytes() for path in config_home.project().rglob("*") if path.is_file()}
    Path(gone.path).unlink()
    shutil.rmtree(own(gone))
    Path(replaced.path).unlink()
    Path(replaced.path).write_bytes(b'{"type":"x"}\n')
    (own(parted) / OUTPUT).unlink()
    shutil.copytree(config_home.config, start, symlinks=True)

    def relinked() -> None:
        """The start again: a copy has each file twice, so those that had two names get them back."""
        shutil.rmtree(config_home.config)
        shutil.copytree(start, config_home.config, symlinks=True)
        top = Path(held_links.links_folder(config_home.where))
        for path in [path for path in top.rglob("*") if path.is_file()]:
            there = config_home.config / "projects" / path.relative_to(top)
            if there.is_file() and there.read_bytes() == path.read_bytes():
                path.unlink()
                os.link(there, path)
            else:
                os.utime(path)

    def prepare() -> object:
        relinked()
        return lambda: look(config_home)

    for killed in crashes(prepare):  # type: ignore[arg-type]
        kept = {
            content
            for each in list_archived(config_home.where)
            for content in kept_files(each, config_home).values()
        }
        here = {path.read_bytes() for path in config_home.config.rglob("*") if path.is_file()}
        assert wanted <= kept | here
        look(config_home)
        assert {each.session_id for each in list_archived(config_home.where)} == {
            session_id(n) for n in (1, 2, 3)
        }
        assert set(links(config_home).values()) == {2}
        assert (
            len(
                [
                    place
                    for place in links(config_home)
                    if place.endswith(".jsonl") and "agent" not in place
                ]
            )
            == 3
        )
        assert killed or wanted <= kept | here
