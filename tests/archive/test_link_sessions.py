"""Tests of the hard links that preserve sessions which the client deletes early."""

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
from tests.archive.retention.sessions_of_age import (
    DAY,
    always_over_time_limit,
    never_over_time_limit,
    session_of_age,
    write_tool_output,
)
from tests.archive.vault.full_sessions import archived_contents
from tests.builders import CWD, ConfigHome, session_id
from tests.crashes import kill_before_each_change

AGENT_FILE_PATH = "subagents/deep/agent-a1.jsonl"
OUTPUT_FILE_PATH = "tool-results/out.txt"


def write_session_with_files(home: ConfigHome, number: int = 1, days: float = 1) -> SessionFile:
    """Write a session with a sub-agent and a large output, ``days`` days old."""
    found = session_of_age(home, number, days)
    write_tool_output(found, days)
    agent = session_folder(found) / AGENT_FILE_PATH
    agent.parent.mkdir(parents=True)
    agent.write_text('{"isSidechain":true}\n', encoding="utf-8")
    os.utime(agent, (time.time() - days * DAY,) * 2)
    agent.chmod(0o640)
    return found


def session_folder(session: SessionFile) -> Path:
    """Return the session's own folder."""
    return Path(session.path.removesuffix(".jsonl"))


def check_links(home: ConfigHome) -> None:
    """Run the check of links, as after the start of a session."""
    link_sessions.link_all_sessions(home.where, never_over_time_limit)


def link_counts(home: ConfigHome) -> dict[str, int]:
    """Return the number of hard links to each linked file, by the path of the link."""
    top = Path(held_links.links_folder(home.where))
    return {
        str(path.relative_to(top)): path.stat().st_nlink
        for path in sorted(top.rglob("*"))
        if path.is_file()
    }


def client_file_states(home: ConfigHome) -> dict[str, tuple[bytes, int, int]]:
    """Return the content, time and mode of each file of the client."""
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


def verified_archived_copy(home: ConfigHome, number: int = 1) -> ArchivedSession:
    """Return the archived copy of a session after verifying it."""
    kept = find_archived(session_id(number), home.where)
    assert kept is not None
    assert verify_archived(kept) == []
    return kept


def set_retention_days(home: ConfigHome, days: int) -> None:
    """Set the client's retention period."""
    (home.config / "settings.json").write_text(f'{{"cleanupPeriodDays":{days}}}')


def test_all_files_of_a_session_are_linked(config_home: ConfigHome) -> None:
    """The transcript, the sub-agents and the outputs of a session are linked.

    Symbolic links and empty files are not linked, and a second check changes nothing.
    """
    found = write_session_with_files(config_home)
    (config_home.project() / f"{session_id(2)}.jsonl").touch()
    (config_home.project() / f"{session_id(3)}.jsonl").symlink_to(found.path)
    (session_folder(found) / "tool-results" / "elsewhere").symlink_to("/etc/passwd")
    (session_folder(found) / "tool-results" / ".resume-hooks-1-x.tmp").write_text("half")
    check_links(config_home)
    key = config_home.project().name
    expected = {
        f"{key}/{session_id(1)}{rest}": 2
        for rest in (".jsonl", f"/{AGENT_FILE_PATH}", f"/{OUTPUT_FILE_PATH}")
    }
    assert link_counts(config_home) == expected
    before = {
        path: path.stat().st_ctime_ns for path in config_home.config.rglob("*") if path.is_file()
    }
    check_links(config_home)
    assert {path: path.stat().st_ctime_ns for path in before} == before
    folders = [
        path
        for path in Path(held_links.links_folder(config_home.where)).rglob("*")
        if path.is_dir()
    ]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    assert list_archived(config_home.where) == []


@pytest.mark.parametrize("days", [0.7, 9, 20])
@pytest.mark.parametrize("deletion_kind", ["file", "whole", "folders left", "project", "stub"])
def test_a_session_that_the_client_deletes_early_is_archived(
    config_home: ConfigHome, days: float, deletion_kind: str
) -> None:
    """If the client deletes a session early, the check archives it and removes its links.

    A restore returns the old contents, times and modes.
    """
    found = write_session_with_files(config_home, days=days)
    check_links(config_home)
    before = client_file_states(config_home)
    Path(found.path).unlink()
    if deletion_kind == "whole":
        shutil.rmtree(session_folder(found))
    elif deletion_kind == "folders left":
        (session_folder(found) / AGENT_FILE_PATH).unlink()
        (session_folder(found) / OUTPUT_FILE_PATH).unlink()
    elif deletion_kind == "project":
        shutil.rmtree(config_home.project())
    elif deletion_kind == "stub":
        Path(found.path).touch()
    check_links(config_home)
    assert link_counts(config_home) == {}
    kept = verified_archived_copy(config_home)
    assert {place: row[0] for place, row in before.items()} == archived_contents(kept, config_home)
    restore.execute_restore_plan(restore.plan_restore(kept, config_home.where), config_home.where)
    assert client_file_states(config_home) == before
    check_links(config_home)
    assert set(link_counts(config_home).values()) == {2}


@pytest.mark.parametrize(("period", "days"), [(None, 31), (5, 6), (0, 400)])
def test_a_due_session_is_archived_before_its_last_link_is_removed(
    config_home: ConfigHome, period: int | None, days: float
) -> None:
    """If a session that was due for deletion has no copy, it is archived before its links are removed."""
    if period is not None:
        set_retention_days(config_home, period)
    found = write_session_with_files(config_home, days=days)
    check_links(config_home)
    before = client_file_states(config_home)
    Path(found.path).unlink()
    shutil.rmtree(session_folder(found))
    check_links(config_home)
    assert link_counts(config_home) == {}
    assert archived_contents(verified_archived_copy(config_home), config_home) == {
        place: row[0] for place, row in before.items()
    }


def test_a_deleted_output_is_archived_with_its_session(config_home: ConfigHome) -> None:
    """If the client deletes only an output, the whole session is archived.

    The session's other files stay linked.
    """
    found = write_session_with_files(config_home)
    old = write_tool_output(found, 31, "old.txt")
    check_links(config_home)
    (session_folder(found) / OUTPUT_FILE_PATH).unlink()
    old.unlink()
    check_links(config_home)
    parts = {part.place.rpartition("/")[2] for part in verified_archived_copy(config_home).parts}
    assert parts == {f"{session_id(1)}.jsonl", "agent-a1.jsonl", "out.txt", "old.txt"}
    assert {place.rpartition("/")[2] for place in link_counts(config_home)} == {
        f"{session_id(1)}.jsonl",
        "agent-a1.jsonl",
    }


def test_a_longer_replacement_of_a_transcript_is_linked(config_home: ConfigHome) -> None:
    """If a longer transcript replaces the old one, it is linked and nothing is archived."""
    found = write_session_with_files(config_home)
    check_links(config_home)
    new = Path(found.path).with_suffix(".new")
    new.write_bytes(Path(found.path).read_bytes() + b'{"type":"x"}\n')
    new.replace(found.path)
    check_links(config_home)
    assert list_archived(config_home.where) == []
    assert set(link_counts(config_home).values()) == {2}


def test_the_deleted_content_of_a_recreated_file_is_archived(config_home: ConfigHome) -> None:
    """If a transcript is deleted and written again, the deleted content is archived.

    It becomes an earlier state when the new content is archived.
    """
    found = write_session_with_files(config_home)
    before = Path(found.path).read_bytes()
    check_links(config_home)
    Path(found.path).unlink()
    Path(found.path).write_bytes(b'{"type":"x"}\n')
    check_links(config_home)
    assert (
        archived_contents(verified_archived_copy(config_home), config_home)[
            verified_archived_copy(config_home).place
        ]
        == before
    )
    assert set(link_counts(config_home).values()) == {2}
    archive_session(session_file(found.path), config_home.where)
    kept = verified_archived_copy(config_home)
    assert [
        archived_contents(select_earlier_state(kept, each), config_home)[kept.place]
        for each in list_earlier_states(kept)
    ] == [before]


@pytest.mark.parametrize("write_kind", ["truncated", "rewritten", "appended"])
def test_a_write_in_place_changes_the_linked_content(
    config_home: ConfigHome, write_kind: str
) -> None:
    """After a write in place, the archived content is the client's last version of the file."""
    found = write_session_with_files(config_home)
    check_links(config_home)
    with open(found.path, "r+b") as stream:
        if write_kind == "truncated":
            stream.truncate(200)
        elif write_kind == "rewritten":
            stream.write(b'{"type":"another"}\n')
        else:
            stream.seek(0, os.SEEK_END)
            stream.write(b'{"type":"more"}\n')
    last = Path(found.path).read_bytes()
    check_links(config_home)
    assert set(link_counts(config_home).values()) == {2}
    Path(found.path).unlink()
    check_links(config_home)
    assert (
        archived_contents(verified_archived_copy(config_home), config_home)[
            verified_archived_copy(config_home).place
        ]
        == last
    )


def test_renaming_a_session_keeps_its_link(config_home: ConfigHome) -> None:
    """``rename`` appends to the linked file and keeps its time, and doctor reports no problem."""
    found = write_session_with_files(config_home)
    check_links(config_home)
    was = os.stat(found.path)
    rename.write_label(rename.plan_title(found, "A better name", config_home.where))
    now = os.stat(found.path)
    assert (now.st_ino, now.st_nlink, now.st_mtime_ns) == (was.st_ino, 2, was.st_mtime_ns)
    assert now.st_size > was.st_size
    assert doctor.find_state_folder_problems(config_home.where.state) == []


def test_deleting_a_session_does_not_archive_it(config_home: ConfigHome) -> None:
    """A session in the trash is not archived, even if a link to it was made during the deletion."""
    for number, looking in ((1, False), (2, True)):
        found = write_session_with_files(config_home, number)
        check_links(config_home)
        entry = deletion.move_to_trash(
            deletion.plan_delete(found, config_home.where), config_home.where
        )
        assert not [place for place in link_counts(config_home) if session_id(number) in place]
        if looking:
            link = Path(
                held_links.links_folder(config_home.where),
                config_home.project().name,
                f"{session_id(number)}.jsonl",
            )
            link.parent.mkdir(exist_ok=True)
            # A check made this link while the deletion began.
            os.link(stored_path(entry.folder, entry.transcript), link)
            check_links(config_home)
        deletion.empty_trash([entry], config_home.where)
        check_links(config_home)
    assert (link_counts(config_home), list_archived(config_home.where)) == ({}, [])


def test_a_session_restored_from_the_trash_is_linked_again(config_home: ConfigHome) -> None:
    """The next check links every file of a session that was restored from the trash."""
    found = write_session_with_files(config_home)
    check_links(config_home)
    entry = deletion.move_to_trash(
        deletion.plan_delete(found, config_home.where), config_home.where
    )
    restoring.execute_restore_plan(
        restoring.plan_restore(entry, config_home.where), config_home.where
    )
    check_links(config_home)
    assert len(link_counts(config_home)) == 3
    assert set(link_counts(config_home).values()) == {2}


def test_moving_a_session_does_not_archive_it(config_home: ConfigHome) -> None:
    """A session that moved to another project is linked there and not archived.

    A session that moved out of the projects' folders is archived after the moved file is deleted.
    """
    found, other = write_session_with_files(config_home), write_session_with_files(config_home, 2)
    check_links(config_home)
    there = config_home.project("/elsewhere")
    os.rename(found.path, there / os.path.basename(found.path))
    os.rename(session_folder(found), there / session_id(1))
    mine = config_home.root / "mine.jsonl"
    os.rename(other.path, mine)
    check_links(config_home)
    assert list_archived(config_home.where) == []
    assert [
        place.partition("/")[0] for place in link_counts(config_home) if session_id(1) in place
    ] == [there.name] * 3
    mine.unlink()
    check_links(config_home)
    assert verified_archived_copy(config_home, 2).complete


def test_a_copied_home_is_linked_again(config_home: ConfigHome) -> None:
    """If the home was copied, the next check links each file again and archives nothing."""
    write_session_with_files(config_home)
    check_links(config_home)
    copy = config_home.root / "copy"
    shutil.copytree(config_home.config, copy, symlinks=True)
    shutil.rmtree(config_home.config)
    copy.rename(config_home.config)
    assert set(link_counts(config_home).values()) == {1}
    check_links(config_home)
    assert set(link_counts(config_home).values()) == {2}
    assert list_archived(config_home.where) == []


def test_the_links_of_an_unreadable_project_folder_stay(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links are kept if the project's folder can't be listed or is a symbolic link."""
    write_session_with_files(config_home)
    check_links(config_home)
    held_before = link_counts(config_home)
    closed, real = str(config_home.project()), os.scandir

    def fail_for_project_folder(path: str) -> object:
        if path == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", fail_for_project_folder)
        check_links(config_home)
    assert link_counts(config_home) == held_before
    aside = config_home.root / "aside"
    config_home.project().rename(aside)
    Path(config_home.config / "projects" / next(iter(held_before)).partition("/")[0]).symlink_to(
        aside
    )
    check_links(config_home)
    assert link_counts(config_home) == held_before


def test_switching_the_vault_off_removes_all_links(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the user or an employer switches the vault off, the next check removes all links.

    The client's files are unchanged.
    """
    write_session_with_files(config_home)
    before = client_file_states(config_home)
    check_links(config_home)
    stored_settings.store_setting("vault", "off", config_home.where)
    check_links(config_home)
    assert not os.path.lexists(held_links.links_folder(config_home.where))
    stored_settings.store_setting("vault", "on", config_home.where)
    check_links(config_home)
    assert link_counts(config_home)
    managed = config_home.root / "managed-settings.json"
    managed.write_text('{"cleanupPeriodDays":20}')
    monkeypatch.setattr(claude_settings, "settings_files", lambda *_: [str(managed)])
    check_links(config_home)
    assert not os.path.lexists(held_links.links_folder(config_home.where))
    assert client_file_states(config_home) == before


def test_switching_the_vault_off_for_one_start_keeps_links(config_home: ConfigHome) -> None:
    """If a variable switches the vault off for one start, links are kept and nothing is archived."""
    found = write_session_with_files(config_home)
    check_links(config_home)
    before = link_counts(config_home)
    Path(found.path).unlink()
    write_session_with_files(config_home, 2)
    link_sessions.link_all_sessions(
        Where({**config_home.where.environ, "RESUME_HOOKS_VAULT": "off"}), never_over_time_limit
    )
    assert (link_counts(config_home).keys(), list_archived(config_home.where)) == (
        before.keys(),
        [],
    )
    check_links(config_home)
    assert verified_archived_copy(config_home).session_id == found.session_id


@pytest.mark.parametrize("error_number", [errno.EPERM, errno.EMLINK, errno.EXDEV, errno.EOPNOTSUPP])
def test_doctor_reports_sessions_that_cannot_be_linked(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, error_number: int
) -> None:
    """After ``MAX_FAILED_LINKS`` failures, a check makes no more links.

    Doctor has one finding for all sessions without links.
    """
    for number in range(1, 121):
        session_of_age(config_home, number, 2)
    tried = []

    def fail_to_link(*_: object, **__: object) -> None:
        tried.append(1)
        raise OSError(error_number, os.strerror(error_number))

    monkeypatch.setattr(os, "link", fail_to_link)
    check_links(config_home)
    assert (len(tried), link_counts(config_home)) == (link_sessions.MAX_FAILED_LINKS, {})
    said = [each.detail for each in doctor.check_installation(CWD) if each.code == "vault-unheld"]
    assert len(said) == 1
    assert "120 sessions not protected" in said[0]


def test_no_links_are_made_in_an_external_state_folder(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No links are made in a state folder outside the config home, and doctor reports the reason.

    Several clients may share such a folder.
    """
    write_session_with_files(config_home)
    monkeypatch.setenv("RESUME_HOOKS_HOME", str(config_home.root / "state"))
    home = config_home._replace(
        environ={**config_home.environ, "RESUME_HOOKS_HOME": str(config_home.root / "state")}
    )
    check_links(home)
    assert not os.path.lexists(held_links.links_folder(home.where))
    assert any(
        "is outside" in each.detail
        for each in doctor.check_installation(CWD)
        if each.code == "vault-unheld"
    )


def test_doctor_accepts_a_new_session_without_links(config_home: ConfigHome) -> None:
    """Doctor reports no problem for a session of today that is not linked yet."""
    session_of_age(config_home, 1, 2)
    check_links(config_home)
    session_of_age(config_home, 2, 0.1)
    assert [each.code for each in doctor.check_installation(CWD) if each.name == "vault"] == [
        "vault-ok"
    ]


def test_a_failed_copy_keeps_the_link(config_home: ConfigHome) -> None:
    """If a deleted session can't be archived, its link is kept, and the next check archives it."""
    found = write_session_with_files(config_home)
    check_links(config_home)
    Path(found.path).unlink()
    Path(vault_folder(config_home.where)).write_text("in the way")
    check_links(config_home)
    assert f"{config_home.project().name}/{session_id(1)}.jsonl" in link_counts(config_home)
    Path(vault_folder(config_home.where)).unlink()
    check_links(config_home)
    assert (verified_archived_copy(config_home).complete, link_counts(config_home)) == (True, {})


def test_lines_written_during_archiving_stay_linked(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a client appends lines during archiving, the link is kept, and the next check archives them."""
    found = write_session_with_files(config_home)
    check_links(config_home)
    real = BackgroundArchiver.archive_path
    with open(found.path, "ab") as stream:
        Path(found.path).unlink()

        def archive_then_append(self: BackgroundArchiver, path: str) -> bool:
            done = real(self, path)
            stream.write(b'{"type":"late"}\n')
            stream.flush()
            return done

        monkeypatch.setattr(BackgroundArchiver, "archive_path", archive_then_append)
        check_links(config_home)
    monkeypatch.setattr(BackgroundArchiver, "archive_path", real)
    assert link_counts(config_home)
    check_links(config_home)
    kept = verified_archived_copy(config_home)
    assert archived_contents(kept, config_home)[kept.place].endswith(b'{"type":"late"}\n')
    assert link_counts(config_home) == {}


def test_a_verb_archives_a_session_that_was_just_deleted(config_home: ConfigHome) -> None:
    """A verb archives deleted sessions that have links, but makes no links itself."""
    found, other = write_session_with_files(config_home), write_session_with_files(config_home, 2)
    link_sessions.archive_lost_sessions(config_home.where)
    assert not os.path.lexists(held_links.links_folder(config_home.where))
    check_links(config_home)
    Path(found.path).unlink()
    other_link = Path(
        held_links.links_folder(config_home.where),
        config_home.project().name,
        os.path.basename(other.path),
    )
    other_link.unlink()
    link_sessions.archive_lost_sessions(config_home.where)
    assert verified_archived_copy(config_home).complete
    assert not other_link.exists()


def test_a_check_stops_at_its_time_limit(config_home: ConfigHome) -> None:
    """A check whose time is over links nothing, and the next check links all files."""
    write_session_with_files(config_home)
    link_sessions.link_all_sessions(config_home.where, always_over_time_limit)
    assert link_counts(config_home) == {}
    check_links(config_home)
    assert len(link_counts(config_home)) == 3


def test_symbolic_links_in_the_folder_of_links_are_not_followed(config_home: ConfigHome) -> None:
    """If the folder of links, or a project's folder in it, is a symbolic link, its target is unchanged."""
    found = write_session_with_files(config_home)
    outside = config_home.root / "outside"
    outside.mkdir()
    (outside / f"{session_id(1)}.jsonl").write_text("precious")
    top = Path(held_links.links_folder(config_home.where))
    top.parent.mkdir(mode=0o700)
    top.symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link"):
        check_links(config_home)
    link_sessions.archive_lost_sessions(config_home.where)
    held_links.remove_links(found.path, config_home.where)
    top.unlink()
    top.mkdir(mode=0o700)
    (top / config_home.project().name).symlink_to(outside)
    check_links(config_home)
    held_links.remove_links(str(session_folder(found)), config_home.where)
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [
        (f"{session_id(1)}.jsonl", "precious")
    ]


def test_existing_links_stay_if_no_more_can_be_made(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no more links can be made, existing links are kept.

    When links are possible again, deleted sessions are archived from them.
    """
    found = write_session_with_files(config_home)
    check_links(config_home)
    held_now = link_counts(config_home)
    Path(found.path).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(link_sessions, "find_reason_not_to_link", lambda _: "no links are made here")
        check_links(config_home)
        assert link_counts(config_home).keys() == held_now.keys()
    check_links(config_home)
    assert verified_archived_copy(config_home).session_id == found.session_id


def test_a_check_killed_at_any_step_loses_no_content(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """After a check is killed at any step, no content of a file is lost.

    Each content is in the client's file, in a linked file or in the vault. The next check completes
    the work.
    """
    start = config_home.root / "start"
    gone, replaced, parted = (write_session_with_files(config_home, number) for number in (1, 2, 3))
    check_links(config_home)
    write_session_with_files(config_home, 4)
    wanted = {path.read_bytes() for path in config_home.project().rglob("*") if path.is_file()}
    Path(gone.path).unlink()
    shutil.rmtree(session_folder(gone))
    Path(replaced.path).unlink()
    Path(replaced.path).write_bytes(b'{"type":"x"}\n')
    (session_folder(parted) / OUTPUT_FILE_PATH).unlink()
    shutil.copytree(config_home.config, start, symlinks=True)

    def restore_initial_home() -> None:
        """Copy the initial home back, and restore the hard links, which a copy of the home does not keep."""
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
        restore_initial_home()
        return lambda: check_links(config_home)

    for killed in kill_before_each_change(prepare):  # type: ignore[arg-type]
        kept = {
            content
            for each in list_archived(config_home.where)
            for content in archived_contents(each, config_home).values()
        }
        here = {path.read_bytes() for path in config_home.config.rglob("*") if path.is_file()}
        assert wanted <= kept | here
        check_links(config_home)
        assert {each.session_id for each in list_archived(config_home.where)} == {
            session_id(n) for n in (1, 2, 3)
        }
        assert set(link_counts(config_home).values()) == {2}
        assert (
            len(
                [
                    place
                    for place in link_counts(config_home)
                    if place.endswith(".jsonl") and "agent" not in place
                ]
            )
            == 3
        )
        assert killed or wanted <= kept | here
