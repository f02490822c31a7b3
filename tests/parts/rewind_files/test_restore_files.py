"""Tests of writing restored files.

Either all files are written or none. The files are copied before they are overwritten, and an undo
restores the copies.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resume_hooks import clock
from resume_hooks.errors import Interrupted, NoFileHistory, WriteFailed
from resume_hooks.parts.rewind_files import restore_files
from resume_hooks.parts.rewind_files.plan import FilesPlan
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from resume_hooks.storage import state_file
from tests.builders import SESSION as ARCHIVED
from tests.builders import ConfigHome
from tests.cli.conftest import Cli
from tests.parts.rewind_files.project import SESSION, Project, deny_writing, read_manifest
from tests.sessions.archived.test_verbs import assert_archived_session_is_refused
from tests.test_clock_jumps import YEAR_SECONDS, ShiftedClock, shifted_clock

__all__ = ["shifted_clock"]


FILE_NAMES = ("a", "b", "sub/c", "sub/deep/d")
OLD_CONTENTS: dict[str, str | None] = {
    "a": "old a\n",
    "b": None,
    "sub/c": "old c\n",
    "sub/deep/d": "old d\n",
}
NEW_CONTENTS = {"a": "new a\n", "b": "new b\n", "sub/c": "new c\n"}


def plan_four_changes(project: Project) -> FilesPlan:
    """Return a plan with two files to restore, one to delete, and one to create with its folder."""
    for name, content in NEW_CONTENTS.items():
        project.write_file(name, content)
    return project.plan_restore(
        project.session_with_backups(
            {name: project.write_backup(name, content) for name, content in OLD_CONTENTS.items()}
        )
    )


def old_contents() -> dict[str, bytes]:
    """Return the contents that the project's files have after a complete restore."""
    return {name: content.encode() for name, content in OLD_CONTENTS.items() if content is not None}


def contents_of_project(project: Project) -> dict[str, bytes]:
    """Return the bytes of each file of the project."""
    return {name: content for name, (_, content) in project.list_files().items()}


def test_a_restore_can_be_undone(project: Project) -> None:
    """An undo restores files, modes and folders, and can itself be undone."""
    decided = plan_four_changes(project)
    before = project.list_files()
    restore_files.write_files(decided, project.home.where)
    assert contents_of_project(project) == old_contents()
    restore_files.write_files(
        restore_files.plan_undo(SESSION, project.home.where), project.home.where
    )
    assert project.list_files() == before
    assert not project.path_of("sub/deep").exists()
    restore_files.write_files(
        restore_files.plan_undo(SESSION, project.home.where), project.home.where
    )
    assert contents_of_project(project) == old_contents()


def test_copies_are_private_and_complete(project: Project) -> None:
    """The copies of the earlier files are private, and the manifest lists them."""
    kept = restore_files.write_files(plan_four_changes(project), project.home.where)
    rows = {row["path"]: row for row in read_manifest(kept)["files"]}
    assert {
        name: (Path(kept) / rows[name]["before"]["copy"]).read_text() for name in NEW_CONTENTS
    } == NEW_CONTENTS
    assert rows["sub/deep/d"]["before"] is None
    assert rows["b"]["after"] is None
    modes = {stat.S_IMODE(os.stat(os.path.join(kept, name)).st_mode) for name in os.listdir(kept)}
    assert (modes, stat.S_IMODE(os.stat(kept).st_mode)) == ({0o600}, 0o700)


def test_runs_at_the_same_time_get_different_names(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs at the same time have different names, and an undo reverts the second."""
    monkeypatch.setattr(clock, "now", lambda: "2026-01-31T09:30:00.000Z")
    kept = restore_files.write_files(plan_four_changes(project), project.home.where)
    project.write_file("a", "newer\n")
    again = restore_files.write_files(_plan_again(project), project.home.where)
    assert read_manifest(kept) != read_manifest(again)
    restore_files.write_files(
        restore_files.plan_undo(SESSION, project.home.where), project.home.where
    )
    assert contents_of_project(project) == old_contents() | {"a": b"newer\n"}


def _plan_again(project: Project) -> FilesPlan:
    return project.plan_restore(
        locate.session_file(str(project.home.project(str(project.folder)) / f"{SESSION}.jsonl"))
    )


def test_an_undo_never_undoes_an_older_run(project: Project) -> None:
    """If the user has reverted the newest run by hand, an undo changes nothing.

    It does not revert an older run instead.
    """
    restore_files.write_files(plan_four_changes(project), project.home.where)
    project.write_file("a", "a day's work\n")
    kept = restore_files.write_files(_plan_again(project), project.home.where)
    project.write_file("a", "a day's work\n")
    undo = restore_files.plan_undo(SESSION, project.home.where)
    assert (undo.changes_to_write, undo.time_of_undone_run) == ((), read_manifest(kept)["time"])


def test_a_run_without_a_manifest_is_ignored(project: Project) -> None:
    """An undo ignores a run that has no manifest, and undoes the run before it."""
    kept = restore_files.write_files(plan_four_changes(project), project.home.where)
    (Path(kept).parent / "9999").mkdir()
    (Path(kept).parent / "9999" / "manifest.json.new").write_text("{")
    with (Path(kept) / "manifest.json").open("a") as stream:
        # A manifest that lists thousands of files has this size, too.
        stream.write(" " * 2 * 1024 * 1024)
    assert len(restore_files.plan_undo(SESSION, project.home.where).changes_to_write) == 4


def test_an_undo_marks_files_that_were_changed_by_hand(project: Project) -> None:
    """An undo marks a file that was changed by hand and keeps a copy of it."""
    restore_files.write_files(plan_four_changes(project), project.home.where)
    project.write_file("a", "by hand\n")
    undo = restore_files.plan_undo(SESSION, project.home.where)
    assert {change.path_in_project.path: change.differs_from_known_state for change in undo.changes_to_write} == {
        "a": True, "b": False, "sub/c": False, "sub/deep/d": False,
    }  # fmt: skip
    kept = restore_files.write_files(undo, project.home.where)
    assert b"by hand\n" in [(Path(kept) / name).read_bytes() for name in os.listdir(kept)]


@pytest.mark.parametrize(
    "damage", [b"", b"[]", b"{", b'{"version":1}', b'{"version":9,"root":"/","files":[]}']
)
def test_a_damaged_manifest_prevents_an_undo(project: Project, damage: bytes) -> None:
    """A damaged manifest raises ``NoFileHistory``, and no older run is undone instead."""
    restore_files.write_files(plan_four_changes(project), project.home.where)
    project.write_file("a", "newer\n")
    kept = restore_files.write_files(_plan_again(project), project.home.where)
    (Path(kept) / "manifest.json").write_bytes(damage)
    with pytest.raises(NoFileHistory, match="can't be read"):
        restore_files.plan_undo(SESSION, project.home.where)


def replace_folder_by_link(project: Project) -> None:
    """Replace the folder ``sub`` with a link to a folder outside the project."""
    outside = project.folder.parent / "outside"
    project.path_of("sub").rename(outside)
    os.symlink(outside, project.path_of("sub"))


@pytest.mark.parametrize(
    "change_project",
    [
        lambda project: project.write_file("sub/c", "by hand\n"),
        # The content is the same, but the time differs.
        lambda project: os.utime(project.write_file("sub/c", "new c\n"), ns=(1, 1)),
        lambda project: project.path_of("sub/c").unlink(),
        # The plan creates this file, which did not exist when the plan was made.
        lambda project: project.write_file("sub/deep/d", "by hand\n"),
        replace_folder_by_link,
    ],
)
def test_a_file_that_changed_meanwhile_is_kept(
    project: Project, change_project: Callable[[Project], object]
) -> None:
    """If a file changed after the plan, no file is written, and no copies remain."""
    decided = plan_four_changes(project)
    change_project(project)
    before = project.list_files()
    with pytest.raises(WriteFailed):
        restore_files.write_files(decided, project.home.where)
    assert project.list_files() == before
    assert os.listdir(restore_files.get_file_copies_folder(SESSION, project.home.where)) == []
    if change_project is replace_folder_by_link:
        assert (project.folder.parent / "outside" / "c").read_text() == NEW_CONTENTS["sub/c"]


def test_a_folder_that_became_read_only_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a folder became read-only after the plan, no file is written."""
    decided = plan_four_changes(project)
    before = project.list_files()
    deny_writing(monkeypatch, os.curdir)
    with pytest.raises(WriteFailed, match="nothing can be written"):
        restore_files.write_files(decided, project.home.where)
    assert project.list_files() == before


def test_an_early_interruption_changes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interruption before the first write changes no file and leaves no copies."""
    decided = plan_four_changes(project)
    before = project.list_files()
    monkeypatch.setattr(
        restore_files, "remove_stale_temporaries", lambda _: signal.raise_signal(signal.SIGINT)
    )
    with pytest.raises(Interrupted, match="0 of 4 files"):
        restore_files.write_files(decided, project.home.where)
    assert project.list_files() == before
    assert os.listdir(restore_files.get_file_copies_folder(SESSION, project.home.where)) == []


def test_each_folder_is_cleaned_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old temporary files are removed once in each folder."""
    swept: list[str] = []
    decided = plan_four_changes(project)
    monkeypatch.setattr(restore_files, "remove_stale_temporaries", swept.append)
    restore_files.write_files(decided, project.home.where)
    folders = [project.folder, project.path_of("sub"), project.path_of("sub/deep")]
    assert sorted(swept) == [str(folder) for folder in folders]


def test_the_temporary_file_of_a_killed_run_is_removed(project: Project) -> None:
    left = project.write_file(f".resume-hooks-{2**30}-0000.tmp", "half")
    restore_files.write_files(plan_four_changes(project), project.home.where)
    assert not left.exists()


def test_the_set_group_id_bit_of_a_file_stays(project: Project) -> None:
    """A restored file keeps its set-group-id bit, although the mode of the backup lacks it."""
    path = project.write_file("a", "new\n", 0o2755)
    restore_files.write_files(
        project.plan_restore(
            project.session_with_backups({"a": project.write_backup("a", "old\n", mode=0o755)})
        ),
        project.home.where,
    )
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("old\n", 0o2755)


def test_a_backup_that_changed_meanwhile_is_refused(project: Project) -> None:
    """If a backup changed after the plan, no file is written."""
    decided = plan_four_changes(project)
    for path in project.store.iterdir():
        path.write_text("other\n")
    before = project.list_files()
    with pytest.raises(WriteFailed, match="changed while it was read"):
        restore_files.write_files(decided, project.home.where)
    assert project.list_files() == before


def test_a_folder_replaced_by_a_link_is_not_followed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a folder is replaced with a link before the first write, no file outside changes."""
    decided = plan_four_changes(project)
    outside = project.folder.parent / "outside"
    keep = restore_files.back_up_files

    def copy_then_swap(*arguments: Any) -> str:
        kept = keep(*arguments)
        replace_folder_by_link(project)
        return kept

    monkeypatch.setattr(restore_files, "back_up_files", copy_then_swap)
    with pytest.raises(WriteFailed, match="symbolic link"):
        restore_files.write_files(decided, project.home.where)
    assert (outside / "c").read_text() == NEW_CONTENTS["sub/c"]
    assert not (outside / "deep").exists()


class SimulatedCrash(BaseException):
    """Raised at a step to simulate that the process ends there."""


SYSTEM_CALLS = ("link", "replace", "unlink", "fsync", "mkdir", "open")


@pytest.mark.parametrize("step", SYSTEM_CALLS)
@pytest.mark.parametrize(
    "error", [SimulatedCrash(), OSError(28, "No space left on device")], ids=["crash", "full"]
)
def test_after_a_crash_each_file_has_its_old_or_new_content(
    config_home: ConfigHome, tmp_path: Path, step: str, error: BaseException
) -> None:
    """After a crash at any step, each file has its old or its new content. An undo restores all files."""
    for count in range(200):
        environ = {"CLAUDE_CONFIG_DIR": str(tmp_path / f"{count}")}
        home = config_home._replace(config=tmp_path / f"{count}", environ=environ)
        project = Project(home, tmp_path / f"proj{count}")
        decided = plan_four_changes(project)
        before = project.list_files()
        failing = FailingCall(getattr(os, step), count, error)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, step, failing)
            with contextlib.suppress(SimulatedCrash, WriteFailed):
                restore_files.write_files(decided, Where(environ))
        _assert_old_or_new_contents(project, before)
        _undo_in_another_process(environ)
        assert project.list_files() == before
        if not failing.reached:
            break
    assert count, "the step was never taken"


class FailingCall:
    """A function that works ``count`` times and then always fails."""

    def __init__(self, real: Callable[..., Any], count: int, error: BaseException) -> None:
        self._real, self._left, self._error = real, count, error
        self.reached = False

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the real function, or fail."""
        self._left -= 1
        if self._left < 0:
            self.reached = True
            raise self._error
        return self._real(*arguments, **named)


def _undo_in_another_process(environ: dict[str, str]) -> None:
    """Undo the run in a process other than the killed one."""
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(NoFileHistory):
        patch.setattr(state_file, "is_process_running", lambda _: False)
        undo = restore_files.plan_undo(SESSION, Where(environ))
        assert not undo.refused_changes
        if undo.changes_to_write:
            restore_files.write_files(undo, Where(environ))


def _assert_old_or_new_contents(project: Project, before: dict[str, tuple[int, bytes]]) -> None:
    there = {
        name: content
        for name, content in contents_of_project(project).items()
        if not name.endswith(".tmp")
    }
    assert there.keys() <= set(FILE_NAMES)
    for name in FILE_NAMES:
        old, new = old_contents().get(name), before.get(name, (0, None))[1]
        assert there.get(name) in (old, new), name


FILE_CONTENT_STRATEGY = st.one_of(
    st.none(), st.binary(max_size=40), st.text("ab\n\r\u2028", max_size=20).map(str.encode)
)
PROJECT_FILES = st.dictionaries(
    st.sampled_from(FILE_NAMES),
    st.tuples(FILE_CONTENT_STRATEGY, FILE_CONTENT_STRATEGY, st.sampled_from([0o644, 0o755, 0o600])),
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PROJECT_FILES)
def test_an_undo_returns_to_the_earlier_state(
    tmp_path_factory: pytest.TempPathFactory, tracked: dict[str, Any]
) -> None:
    """For any files, a restore gives the contents of the backups, and an undo gives the earlier files."""
    root = tmp_path_factory.mktemp("any")
    environ = {"CLAUDE_CONFIG_DIR": str(root / "config")}
    project = Project(ConfigHome(root, root / "config", environ), root / "proj")
    for name, (_old, new, mode) in tracked.items():
        if new is not None:
            project.write_file(name, new, mode)
    before = project.list_files()
    decided = project.plan_restore(
        project.session_with_backups(
            {
                name: project.write_backup(name, old, mode=0o640)
                for name, (old, _new, _mode) in tracked.items()
            }
        )
    )
    if decided.changes_to_write:
        restore_files.write_files(decided, Where(environ))
    assert contents_of_project(project) == {
        name: old for name, (old, _new, _mode) in tracked.items() if old is not None
    }
    if decided.changes_to_write:
        restore_files.write_files(restore_files.plan_undo(SESSION, Where(environ)), Where(environ))
    assert project.list_files() == before


def test_rewind_files_of_an_archived_session_is_refused(config_home: ConfigHome, cli: Cli) -> None:
    """``rewind-files`` refuses an archived session and shows the command that restores the session."""
    assert_archived_session_is_refused(
        config_home, cli, ("rewind-files", ARCHIVED, "--to", "last", "--yes")
    )


def test_undo_reverts_the_last_run(
    tmp_path: Path, config_home: ConfigHome, shifted_clock: ShiftedClock
) -> None:
    """``--undo`` reverts the last run even if the clock went back, because runs have numbers."""
    project = Project(config_home, tmp_path / "work" / "proj")
    names: list[str] = []
    for ahead in (0, -YEAR_SECONDS, -2 * YEAR_SECONDS, -YEAR_SECONDS, 10):
        shifted_clock.ahead = ahead
        project.write_file("a", f"new {len(names)}")
        decided = project.plan_restore(
            project.session_with_backups({"a": project.write_backup("a", "old")})
        )
        names.append(os.path.basename(restore_files.write_files(decided, project.home.where)))
        found = restore_files.plan_undo(SESSION, project.home.where)
        names.append(os.path.basename(restore_files.write_files(found, project.home.where)))
        assert project.path_of("a").read_text() == f"new {len(names) - 2}"
    assert names == sorted(names)
    assert len(set(names)) == len(names)
