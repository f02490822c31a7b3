"""Files restored: whole or not at all, with copies of what was there, and the way back from it."""

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
from tests.parts.rewind_files.project import SESSION, Project, manifest_of, protected_path
from tests.sessions.archived.test_verbs import assert_refused
from tests.test_clock_jumps import YEAR, Clock, hands

__all__ = ["hands"]


NAMES = ("a", "b", "sub/c", "sub/deep/d")
OLD: dict[str, str | None] = {
    "a": "old a\n",
    "b": None,
    "sub/c": "old c\n",
    "sub/deep/d": "old d\n",
}
NEW = {"a": "new a\n", "b": "new b\n", "sub/c": "new c\n"}


def planned(project: Project) -> FilesPlan:
    """Two files to be restored, one to be deleted, one to be created with its folder."""
    for name, content in NEW.items():
        project.put(name, content)
    return project.plan(
        project.simple({name: project.keep(name, content) for name, content in OLD.items()})
    )


def as_old() -> dict[str, bytes]:
    """Return the project's contents after a complete restore."""
    return {name: content.encode() for name, content in OLD.items() if content is not None}


def contents(project: Project) -> dict[str, bytes]:
    """Every file of the project."""
    return {name: content for name, (_, content) in project.tree().items()}


def test_all_is_put_back_and_withdrawn(project: Project) -> None:
    """Files, modes and folders; an undo is itself a run that can be undone."""
    decided = planned(project)
    before = project.tree()
    restore_files.write_files(decided, project.home.where)
    assert contents(project) == as_old()
    restore_files.write_files(
        restore_files.plan_undo(SESSION, project.home.where), project.home.where
    )
    assert project.tree() == before
    assert not project.path("sub/deep").exists()
    restore_files.write_files(
        restore_files.plan_undo(SESSION, project.home.where), project.home.where
    )
    assert contents(project) == as_old()


def test_copies_are_private_and_complete(project: Project) -> None:
    """A manifest lists the copies with their files, and distinguishes old from new."""
    kept = restore_files.write_files(planned(project), project.home.where)
    rows = {row["path"]: row for row in manifest_of(kept)["files"]}
    assert {name: (Path(kept) / rows[name]["before"]["copy"]).read_text() for name in NEW} == NEW
    assert rows["sub/deep/d"]["before"] is None
    assert rows["b"]["after"] is None
    modes = {stat.S_IMODE(os.stat(os.path.join(kept, name)).st_mode) for name in os.listdir(kept)}
    assert (modes, stat.S_IMODE(os.stat(kept).st_mode)) == ({0o600}, 0o700)


def test_a_run_of_the_same_instant_gets_another_name(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the newer one; the copies of the first stay."""
    monkeypatch.setattr(clock, "now", lambda: "2026-01-31T09:30:00.000Z")
    kept = restore_files.write_files(planned(project), project.home.where)
    project.put("a", "newer\n")
    again = restore_files.write_files(_planned_again(project), project.home.where)
    assert manifest_of(kept) != manifest_of(again)
    restore_files.write_files(
        restore_files.plan_undo(SESSION, project.home.where), project.home.where
    )
    assert contents(project) == as_old() | {"a": b"newer\n"}


def _planned_again(project: Project) -> FilesPlan:
    return project.plan(
        locate.session_file(str(project.home.project(str(project.folder)) / f"{SESSION}.jsonl"))
    )


def test_an_undo_never_means_an_older_run(project: Project) -> None:
    """Where the newest is withdrawn by hand, nothing is left: work of between the two would be overwritten."""
    restore_files.write_files(planned(project), project.home.where)
    project.put("a", "a day's work\n")
    kept = restore_files.write_files(_planned_again(project), project.home.where)
    project.put("a", "a day's work\n")
    undo = restore_files.plan_undo(SESSION, project.home.where)
    assert (undo.changes_to_write, undo.undone_run_time) == ((), manifest_of(kept)["time"])


def test_a_run_without_a_manifest_touched_nothing(project: Project) -> None:
    """It was ended while it made its copies, so the one before it is the last, however long its manifest is."""
    kept = restore_files.write_files(planned(project), project.home.where)
    (Path(kept).parent / "9999").mkdir()
    (Path(kept).parent / "9999" / "manifest.json.new").write_text("{")
    with (Path(kept) / "manifest.json").open("a") as stream:
        stream.write(" " * 2 * 1024 * 1024)  # as that of thousands of files
    assert len(restore_files.plan_undo(SESSION, project.home.where).changes_to_write) == 4


def test_an_undo_marks_files_that_were_changed_by_hand(project: Project) -> None:
    """The undo would overwrite the file, so a copy is kept."""
    restore_files.write_files(planned(project), project.home.where)
    project.put("a", "by hand\n")
    undo = restore_files.plan_undo(SESSION, project.home.where)
    assert {change.project_path.path: change.changed_since for change in undo.changes_to_write} == {
        "a": True, "b": False, "sub/c": False, "sub/deep/d": False,
    }  # fmt: skip
    kept = restore_files.write_files(undo, project.home.where)
    assert b"by hand\n" in [(Path(kept) / name).read_bytes() for name in os.listdir(kept)]


@pytest.mark.parametrize(
    "damage", [b"", b"[]", b"{", b'{"version":1}', b'{"version":9,"root":"/","files":[]}']
)
def test_a_damaged_manifest_ends_it(project: Project, damage: bytes) -> None:
    """Nothing is guessed, and no older run is undone instead."""
    restore_files.write_files(planned(project), project.home.where)
    project.put("a", "newer\n")
    kept = restore_files.write_files(_planned_again(project), project.home.where)
    (Path(kept) / "manifest.json").write_bytes(damage)
    with pytest.raises(NoFileHistory, match="can't be read"):
        restore_files.plan_undo(SESSION, project.home.where)


def replace_folder_by_link(project: Project) -> None:
    """Replace a folder by a link to a place outside."""
    outside = project.folder.parent / "outside"
    project.path("sub").rename(outside)
    os.symlink(outside, project.path("sub"))


@pytest.mark.parametrize(
    "act",
    [
        lambda project: project.put("sub/c", "by hand\n"),
        lambda project: os.utime(
            project.put("sub/c", "new c\n"), ns=(1, 1)
        ),  # saved anew as it was
        lambda project: project.path("sub/c").unlink(),
        lambda project: project.put("sub/deep/d", "by hand\n"),  # where there was none
        replace_folder_by_link,
    ],
)
def test_a_file_that_changed_meanwhile_is_kept(
    project: Project, act: Callable[[Project], object]
) -> None:
    """In this case nothing is written, and no copy is kept."""
    decided = planned(project)
    act(project)
    before = project.tree()
    with pytest.raises(WriteFailed):
        restore_files.write_files(decided, project.home.where)
    assert project.tree() == before
    assert os.listdir(restore_files.copies_folder_path(SESSION, project.home.where)) == []
    if act is replace_folder_by_link:
        assert (project.folder.parent / "outside" / "c").read_text() == NEW["sub/c"]


def test_a_folder_that_takes_no_files_any_more(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is seen before the first file is written."""
    decided = planned(project)
    before = project.tree()
    protected_path(monkeypatch, os.curdir)
    with pytest.raises(WriteFailed, match="nothing can be written"):
        restore_files.write_files(decided, project.home.where)
    assert project.tree() == before


def test_an_interruption_before_the_first_file(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was changed, and no copies are left."""
    decided = planned(project)
    before = project.tree()
    monkeypatch.setattr(
        restore_files, "remove_stale_temporaries", lambda _: signal.raise_signal(signal.SIGINT)
    )
    with pytest.raises(Interrupted, match="0 of 4 files"):
        restore_files.write_files(decided, project.home.where)
    assert project.tree() == before
    assert os.listdir(restore_files.copies_folder_path(SESSION, project.home.where)) == []


def test_each_folder_is_swept_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """This is so for any number of files in it."""
    swept: list[str] = []
    decided = planned(project)
    monkeypatch.setattr(restore_files, "remove_stale_temporaries", swept.append)
    restore_files.write_files(decided, project.home.where)
    folders = [project.folder, project.path("sub"), project.path("sub/deep")]
    assert sorted(swept) == [str(folder) for folder in folders]


def test_a_killed_runs_file_is_removed(project: Project) -> None:
    """It is a temporary file."""
    left = project.put(f".resume-hooks-{2**30}-0000.tmp", "half")
    restore_files.write_files(planned(project), project.home.where)
    assert not left.exists()


def test_a_set_group_id_bit_of_the_file_stays(project: Project) -> None:
    """If the permissions are equal, because no backup has this bit."""
    path = project.put("a", "new\n", 0o2755)
    restore_files.write_files(
        project.plan(project.simple({"a": project.keep("a", "old\n", mode=0o755)})),
        project.home.where,
    )
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("old\n", 0o2755)


def test_a_backup_that_changed_meanwhile_is_not_taken(project: Project) -> None:
    """Only the shown content is written."""
    decided = planned(project)
    for path in project.store.iterdir():
        path.write_text("other\n")
    before = project.tree()
    with pytest.raises(WriteFailed, match="changed while it was read"):
        restore_files.write_files(decided, project.home.where)
    assert project.tree() == before


def test_a_folder_swapped_for_a_link_in_between_leads_nowhere(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the copies and the first write, the worst moment: nothing outside is touched."""
    decided = planned(project)
    outside = project.folder.parent / "outside"
    keep = restore_files.back_up_files

    def keep_and_swap(*arguments: Any) -> str:
        kept = keep(*arguments)
        replace_folder_by_link(project)
        return kept

    monkeypatch.setattr(restore_files, "back_up_files", keep_and_swap)
    with pytest.raises(WriteFailed, match="symbolic link"):
        restore_files.write_files(decided, project.home.where)
    assert (outside / "c").read_text() == NEW["sub/c"]
    assert not (outside / "deep").exists()


class Crash(BaseException):
    """The process ends here."""


STEPS = ("link", "replace", "unlink", "fsync", "mkdir", "open")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "fails", [Crash(), OSError(28, "No space left on device")], ids=["crash", "full"]
)
def test_wherever_it_stops_each_file_is_old_or_new(
    config_home: ConfigHome, tmp_path: Path, step: str, fails: BaseException
) -> None:
    """And an undo brings back what was there; each call of the step is the last one once."""
    for count in range(200):
        environ = {"CLAUDE_CONFIG_DIR": str(tmp_path / f"{count}")}
        home = config_home._replace(config=tmp_path / f"{count}", environ=environ)
        project = Project(home, tmp_path / f"proj{count}")
        decided = planned(project)
        before = project.tree()
        failing = Failing(getattr(os, step), count, fails)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, step, failing)
            with contextlib.suppress(Crash, WriteFailed):
                restore_files.write_files(decided, Where(environ))
        _require_old_or_new(project, before)
        _recover(environ)
        assert project.tree() == before
        if not failing.reached:
            break
    assert count, "the step was never taken"


class Failing:
    """A call that fails, and continues failing, after it went well ``count`` times."""

    def __init__(self, real: Callable[..., Any], count: int, error: BaseException) -> None:
        self._real, self._left, self._error = real, count, error
        self.reached = False

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Do it, or fail."""
        self._left -= 1
        if self._left < 0:
            self.reached = True
            raise self._error
        return self._real(*arguments, **named)


def _recover(environ: dict[str, str]) -> None:
    """Undo the run in another process than the killed one."""
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(NoFileHistory):
        patch.setattr(state_file, "is_process_running", lambda _: False)
        undo = restore_files.plan_undo(SESSION, Where(environ))
        assert not undo.refused_changes
        if undo.changes_to_write:
            restore_files.write_files(undo, Where(environ))


def _require_old_or_new(project: Project, before: dict[str, tuple[int, bytes]]) -> None:
    there = {
        name: content for name, content in contents(project).items() if not name.endswith(".tmp")
    }
    assert there.keys() <= set(NAMES)
    for name in NAMES:
        old, new = as_old().get(name), before.get(name, (0, None))[1]
        assert there.get(name) in (old, new), name


TEXTS = st.one_of(
    st.none(), st.binary(max_size=40), st.text("ab\n\r\u2028", max_size=20).map(str.encode)
)
FILES = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(TEXTS, TEXTS, st.sampled_from([0o644, 0o755, 0o600]))
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILES)
def test_there_and_back_is_where_it_began(
    tmp_path_factory: pytest.TempPathFactory, tracked: dict[str, Any]
) -> None:
    """For any files: restored they equal the backups, undone they equal the earlier state."""
    root = tmp_path_factory.mktemp("any")
    environ = {"CLAUDE_CONFIG_DIR": str(root / "config")}
    project = Project(ConfigHome(root, root / "config", environ), root / "proj")
    for name, (_old, new, mode) in tracked.items():
        if new is not None:
            project.put(name, new, mode)
    before = project.tree()
    decided = project.plan(
        project.simple(
            {
                name: project.keep(name, old, mode=0o640)
                for name, (old, _new, _mode) in tracked.items()
            }
        )
    )
    if decided.changes_to_write:
        restore_files.write_files(decided, Where(environ))
    assert contents(project) == {
        name: old for name, (old, _new, _mode) in tracked.items() if old is not None
    }
    if decided.changes_to_write:
        restore_files.write_files(restore_files.plan_undo(SESSION, Where(environ)), Where(environ))
    assert project.tree() == before


def test_it_is_refused(config_home: ConfigHome, cli: Cli) -> None:
    """The error has the one command that restores it; the copy is unchanged."""
    assert_refused(config_home, cli, ("rewind-files", ARCHIVED, "--to", "last", "--yes"))


def test_undo_means_the_run_that_was_last(
    tmp_path: Path, config_home: ConfigHome, hands: Clock
) -> None:
    """Even if the clock went back between two runs, because runs are sorted by number."""
    project = Project(config_home, tmp_path / "work" / "proj")
    names: list[str] = []
    for ahead in (0, -YEAR, -2 * YEAR, -YEAR, 10):
        hands.ahead = ahead
        project.put("a", f"new {len(names)}")
        decided = project.plan(project.simple({"a": project.keep("a", "old")}))
        names.append(os.path.basename(restore_files.write_files(decided, project.home.where)))
        found = restore_files.plan_undo(SESSION, project.home.where)
        names.append(os.path.basename(restore_files.write_files(found, project.home.where)))
        assert project.path("a").read_text() == f"new {len(names) - 2}"
    assert names == sorted(names)
    assert len(set(names)) == len(names)
