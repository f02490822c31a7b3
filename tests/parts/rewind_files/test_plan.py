"""The changes of a restore, decided from the present files, with nothing written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.derive import fork
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.errors import CantRestore
from resume_hooks.parts.rewind_files import plan
from resume_hooks.parts.rewind_files.plan import FileChange
from resume_hooks.parts.rewind_files.safe_paths import MAX_PATH_DEPTH, ProjectRoot
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from resume_hooks.sessions.locate import SessionFile
from tests.builders import write_session
from tests.parts.rewind_files.project import (
    SESSION,
    Project,
    backup,
    delta,
    prompt_id,
    protected_path,
    snapshot,
    turns,
    write_call,
)


def only(project: Project, tracked: dict[str, object]) -> FileChange:
    """The one change of a plan."""
    before = project.tree()
    (change,) = project.plan(project.simple(tracked)).changes
    assert project.tree() == before, "a plan writes nothing"
    return change


def test_a_file_is_restored(project: Project) -> None:
    """With the added and removed lines."""
    project.put("a", "new\nsame\n")
    change = only(project, {"a": project.keep("a", "old\nsame\nmore\n")})
    assert (change.action, change.difference.added, change.difference.removed) == ("restore", 2, 1)
    assert "-new" in change.difference.lines


def test_a_file_that_came_later_is_deleted_and_one_that_went_created(project: Project) -> None:
    """The one with its mode and the folder that it lay in."""
    project.put("sub/a", "new\n")
    assert only(project, {"sub/a": backup(None)}).action == "delete"
    change = only(project, {"sub/deep/a": project.keep("a", "old\n", mode=0o755)})
    assert (change.action, change.new_version and change.new_version.mode) == ("create", 0o755)


@pytest.mark.parametrize("there", [True, False])
def test_a_file_that_is_as_it_was(project: Project, there: bool) -> None:
    """Or one that is still missing."""
    if there:
        project.put("a", "old\n")
    assert only(project, {"a": project.keep("a", "old\n" if there else None)}).action == "none"


def test_a_mode_alone_is_a_difference(project: Project) -> None:
    """As for the client; a backup's set-user-id bit is not restored."""
    project.put("a", "old\n", 0o600)
    change = only(project, {"a": project.keep("a", "old\n", mode=0o4755)})
    assert (change.action, change.difference.lines) == ("restore", ())
    assert change.new_version is not None
    assert change.new_version.mode == 0o755


def test_a_file_tracked_later_is_as_before_its_first_edit(project: Project) -> None:
    """The client does the same."""
    project.put("b", "third\n")
    session = project.session(
        [
            *turns(3),
            snapshot(prompt_id(1), {}),
            snapshot(prompt_id(2), {}),
            delta(prompt_id(2), "b", project.keep("b", "first\n")),
            snapshot(prompt_id(3), {"b": project.keep("b", "second\n", 2)}),
        ]
    )
    (change,) = project.plan(session, "1").changes
    assert change.source is not None
    assert plan.read_stored(change.source)[0] == b"first\n"


def test_a_file_whose_beginning_is_not_known_is_left(project: Project) -> None:
    """Its first version was never noted."""
    session = project.session(
        [
            *turns(2),
            snapshot(prompt_id(1), {}),
            snapshot(prompt_id(2), {"b": project.keep("b", "second\n", 2)}),
        ]
    )
    (change,) = project.plan(session, "1").changes
    assert (change.is_missing, "no copy of it" in change.reason) == (True, True)


def test_an_absolute_path_is_the_same_file(project: Project) -> None:
    """Clients write the one or the other."""
    path = str(project.put("a", "new\n"))
    session = project.session(
        [
            *turns(2),
            snapshot(prompt_id(1), {path: project.keep("a", "old\n")}),
            snapshot(prompt_id(2), {"a": project.keep("a", "new\n", 2)}),
        ]
    )
    (change,) = project.plan(session, "1").changes
    assert (change.project_path.path, change.action) == ("a", "restore")


@pytest.mark.parametrize(
    ("path", "make", "why"),
    [
        ("a", lambda at, inside: at.symlink_to(inside / "b"), "symbolic link"),
        ("a", lambda at, _: at.symlink_to("nowhere"), "symbolic link"),
        ("sub/b", lambda at, _: at.symlink_to(at.parent.parent), "symbolic link"),
        ("sub/b", lambda at, inside: at.symlink_to(inside), "symbolic link"),
        ("sub/b", lambda at, _: at.write_text("a file"), "not a folder"),
        ("a", lambda at, _: at.mkdir(), "not a regular file"),
        ("a", lambda at, _: os.mkfifo(at), "not a regular file"),  # to read it would take for ever
        ("a", lambda at, inside: at.hardlink_to(inside / "b"), "hard links"),
    ],
)
@pytest.mark.parametrize("gone", [False, True])
def test_a_special_file_is_refused(
    project: Project, path: str, make: Callable[[Path, Path], object], why: str, gone: bool
) -> None:
    """This is so for restores and deletions.

    A link, even out of the project, a folder, a pipe, and a file with another name.
    """
    (project.folder.parent / "b").write_text("x\n")
    make(project.path(path.partition("/")[0]), project.put("real/b", "x\n").parent)
    change = only(project, {path: project.keep(path, None if gone else "old\n")})
    assert (change.action, change.is_missing) == ("none", False)
    assert why in change.reason


def test_a_file_that_is_too_large_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On either side."""
    monkeypatch.setattr(plan, "MAX_FILE_BYTES", 4)
    project.put("a", "12345")
    project.put("b", "1234")
    session = project.simple({"a": project.keep("a", "x"), "b": project.keep("b", "12345")})
    large, kept = project.plan(session).changes
    assert "larger than 4 bytes" in large.reason
    assert (kept.is_missing, "too large" in kept.reason) == (True, True)


def test_a_name_that_no_file_system_takes_is_refused(project: Project) -> None:
    """Only this file is refused, with one sentence."""
    change = only(project, {"x" * 300: project.keep("a", "old\n")})
    assert "too long" in change.reason


def test_a_backup_that_is_gone_is_missing(project: Project) -> None:
    """The file is left alone."""
    project.put("a", "new\n")
    change = only(project, {"a": backup("aaaaaaaaaaaaaaaa@v1")})
    assert (change.action, change.is_missing) == ("none", True)


@pytest.mark.parametrize("of", ["file", "folder"])
def test_a_backup_behind_a_link_is_missing(project: Project, of: str) -> None:
    """It would bring any file of the machine into the project."""
    project.put("a", "new\n")
    kept = project.keep("a", "old\n")
    if of == "file":
        name = project.store / kept["backupFileName"]
        name.unlink()
        os.symlink("/etc/hostname", name)
    else:
        elsewhere = project.store.with_name("elsewhere")
        shutil.move(project.store, elsewhere)
        os.symlink(elsewhere, project.store)
    assert only(project, {"a": kept}).is_missing


def test_a_folder_that_was_a_link_then_is_refused(project: Project) -> None:
    """The client notes where a file really lay."""
    project.put("sub/a", "new\n")
    assert (
        "behind a link"
        in only(project, {"sub/a": project.keep("a", "old\n") | {"realParentDir": "/else"}}).reason
    )


def test_a_project_that_is_gone(project: Project) -> None:
    """One sentence."""
    session = project.simple({"a": backup(None)})
    project.folder.rmdir()
    with pytest.raises(CantRestore, match="can't be opened"):
        project.plan(session)


def test_a_session_without_a_folder_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current folder is not used instead."""
    monkeypatch.setenv("PWD", str(project.folder))
    lost = [{key: value for key, value in record.items() if key != "cwd"} for record in turns(1)]
    session = locate.session_file(
        write_session(
            project.home.config / "projects" / "-else", SESSION, [*lost, snapshot(prompt_id(1), {})]
        )
    )
    with pytest.raises(CantRestore, match="which folder"):
        project.plan(session)


def test_a_session_without_an_id_is_refused(project: Project) -> None:
    """The name of its file would become a folder's name, such as the parent folder."""
    session = project.simple({"a": project.keep("a", "old\n")})
    path = Path(session.path).with_name("...jsonl")
    path.write_bytes(Path(session.path).read_bytes().replace(b'"sessionId"', b'"was"'))
    with pytest.raises(CantRestore, match="no session id"):
        project.plan(locate.session_file(str(path)))


def kept_elsewhere(project: Project, key: str) -> SessionFile:
    """A session of the project whose transcript is in another project folder."""
    project.put("a", "new\n")
    session = project.simple({"a": project.keep("a", "old\n")})
    folder = project.home.config / "projects" / key
    folder.mkdir(parents=True, exist_ok=True)
    return locate.session_file(shutil.move(session.path, str(folder)))


def test_another_project_where_its_own_was_is_left_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transcripts went with the project.

    From a folder below it, the recorded folder is not taken for it.
    """
    moved = project.folder.with_name("moved")
    (moved / "sub").mkdir(parents=True)
    (moved / "a").write_text("new\n")
    session = kept_elsewhere(project, project.home.project(str(moved)).name)
    monkeypatch.chdir(moved)
    monkeypatch.setenv("PWD", str(moved))
    assert project.plan(session).root.folder == str(moved)
    monkeypatch.chdir(moved / "sub")
    monkeypatch.setenv("PWD", str(moved / "sub"))
    with pytest.raises(CantRestore) as caught:
        project.plan(session)
    assert str(project.folder) in caught.value.message
    assert os.path.dirname(session.path) in caught.value.message
    assert f"fork {SESSION} --home" in caught.value.remedy


def test_a_project_folder_of_another_name_wants_the_user_there(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As CLAUDE_CODE_PROJECT_DIR_NAME has it; neither above nor below the recorded folder."""
    session = kept_elsewhere(project, "team")
    project.path("sub").mkdir()
    for folder in (project.folder.parent, project.path("sub")):
        monkeypatch.chdir(folder)
        with pytest.raises(CantRestore, match="belongs to another folder"):
            project.plan(session)
    monkeypatch.chdir(project.folder)
    assert project.plan(session).changes_to_write


def test_a_read_only_file_is_put_back(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is replaced, not written to: that is its folder's matter."""
    project.put("a", "new\n", 0o444)
    protected_path(monkeypatch, "a")
    assert only(project, {"a": project.keep("a", "old\n")}).action == "restore"


def test_a_folder_that_takes_no_files_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For files to replace, remove or create in it; unchanged files do not matter."""
    tracked = {"a": project.keep("a", "old\n"), "b": backup(None), "c/d": project.keep("c", "c\n")}
    tracked["same"] = project.keep("same", "same\n")
    for name in ("a", "b", "same"):
        project.put(name, f"{name}\n")
    protected_path(monkeypatch, os.curdir)
    changes = {
        change.project_path.path: change for change in project.plan(project.simple(tracked)).changes
    }
    assert {
        name for name, change in changes.items() if "nothing can be written" in change.reason
    } == {
        "a",
        "b",
        "c/d",
    }
    assert changes["same"].reason == ""


def test_a_project_behind_a_link_of_the_users_own(project: Project, tmp_path: Path) -> None:
    """The way to the project may go through links."""
    real = tmp_path / "real"
    shutil.move(project.folder, real)
    os.symlink(real, project.folder)
    project.put("a", "new\n")
    assert only(project, {"a": project.keep("a", "old\n")}).action == "restore"


@pytest.mark.parametrize(
    ("there", "changed"),
    [("second\n", False), ("by hand\n", True), (None, True), ("first\n", True)],
)
def test_changes_since_the_last_state_are_marked(
    project: Project, there: str | None, changed: bool
) -> None:
    """They were made by hand, or by a command."""
    if there is not None:
        project.put("a", there)
    session = project.session(
        [
            *turns(2),
            snapshot(prompt_id(1), {"a": project.keep("a", "first\n")}),
            snapshot(prompt_id(2), {"a": project.keep("a", "second\n", 2)}),
        ]
    )
    assert project.plan(session).changes[0].changed_since is changed


@pytest.mark.parametrize(
    ("there", "changed"), [("written\n", False), ("written\r\n", False), ("by hand\n", True)]
)
def test_changes_since_the_last_edit_are_marked(
    project: Project, there: str, changed: bool
) -> None:
    """The last turn's edits are in no state yet; the results of its calls contain them."""
    path = project.put("a", there)
    records = [*turns(1), snapshot(prompt_id(1), {"a": project.keep("a", "first\n")})]
    session = project.session(
        [*records, *write_call(str(path), "written\n", uuid="e", parent="a1")]
    )
    assert project.plan(session).changes[0].changed_since is changed


def test_bytes_and_long_texts_are_counted_not_shown(project: Project) -> None:
    """A difference costs no more than it is worth."""
    project.put("a", b"\0\1")
    project.put("b", "".join(f"{number}\n" for number in range(6_000)))
    data, long = project.plan(
        project.simple({"a": project.keep("a", b"\xff\xfe"), "b": project.keep("b", "1\nx\n")})
    ).changes
    assert (data.difference.added, data.difference.lines) == (
        None,
        ("@@ not text: 2 bytes -> 2 bytes @@",),
    )
    assert (long.difference.added, long.difference.removed) == (1, 5_999)


def test_another_session_has_nothing_to_do_with_it(project: Project) -> None:
    """Backups are looked up under the session's own id alone."""
    kept = project.keep("a", "old\n")
    session = project.simple({"a": kept})
    shutil.move(project.store, project.store.with_name("00000009-0000-4000-8000-000000000009"))
    write_session(os.path.dirname(session.path), "00000009-0000-4000-8000-000000000009", turns(1))
    assert project.plan(session).changes[0].is_missing


def test_a_parents_backup_is_not_taken_for_its_childs(project: Project) -> None:
    """Versions may count again in a child: the same name would be another content."""
    project.put("a", "new\n")
    session = project.simple({"a": project.keep("a", "old\n")})
    child = write_child(fork.plan_fork(session, project.home.where), project.home.where)
    shutil.rmtree(project.store.with_name(child.session_id))
    (change,) = project.plan(locate.session_file(child.file)).changes
    assert change.is_missing


REFUSED = {
    "": "not the path",
    ".": "not the path",
    "./a": "not the path",
    "a//b": "not the path",
    "a/": "not the path",
    "a\0b": "not the path",
    "/".join(["x"] * (MAX_PATH_DEPTH + 1)): "not the path",
    "\ud800": "not the path",
    "..": "outside",
    "../x": "outside",
    "a/../../x": "outside",
    "a/..": "outside",
    "/etc/passwd": "outside",
    "/": "outside",
    "//etc/passwd": "outside",
    "/p/../etc/passwd": "outside",
    "/p/a/../../etc/passwd": "outside",
    "/project-2/a": "outside",
    "C:\\x": "another system",
    "c:/x": "another system",
    "\\\\server\\x": "another system",
    ".git/hooks/pre-commit": "git",
    "sub/.GIT/config": "git",
    ".g\u200cit/config": "git",
    ".git": "git",
}


@pytest.mark.parametrize("path", REFUSED)
def test_hostile_paths(path: str) -> None:
    """Each is refused with its reason, before any access to the disk."""
    place = ProjectRoot("/p", "/p").resolve_path(path)
    assert place.parts == ()
    assert REFUSED[path] in place.refusal_reason


@pytest.mark.parametrize(
    ("path", "inner"),
    [
        ("a.txt", "a.txt"),
        ("a/b c/ü", "a/b c/ü"),
        ("..a/b..", "..a/b.."),
        ("~", "~"),
        ("-rf", "-rf"),
        ("/named/a", "a"),
        ("/real/a/b", "a/b"),
        (".gitignore", ".gitignore"),
        (".github/x", ".github/x"),
        ("a\nb", "a\nb"),
    ],
)
def test_paths_below_the_project(path: str, inner: str) -> None:
    """Relative ones, and absolute ones by either name of the project."""
    place = ProjectRoot("/named", "/real").resolve_path(path)
    assert (place.path, place.parts, place.refusal_reason) == (inner, tuple(inner.split("/")), "")


def test_the_root_is_its_links_end(tmp_path: Path) -> None:
    """Links to the project are the user's own."""
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "named")
    root = ProjectRoot.from_folder(f"{tmp_path}/named/", Where({"HOME": "/nowhere"}))
    assert root[:2] == (f"{tmp_path}/named", f"{tmp_path}/real")


@pytest.mark.parametrize("path", [".claude/settings.json", ".claude", "state/backups/x"])
def test_the_clients_own_folder_is_closed(tmp_path: Path, path: str) -> None:
    """A session in the home folder could name it."""
    root = ProjectRoot.from_folder(
        str(tmp_path), Where({"HOME": str(tmp_path), "RESUME_HOOKS_HOME": f"{tmp_path}/state"})
    )
    assert "client" in root.resolve_path(path).refusal_reason
    assert not root.resolve_path(".claude.md").refusal_reason


@pytest.mark.parametrize(
    ("folder", "moved"),
    [("", False), ("/p/a/b", False), ("/elsewhere/a/b", False), ("/p/x/b", True), ("/b", True)],
)
def test_a_file_that_lay_behind_a_link(folder: str, moved: bool) -> None:
    """Its real folder differs from its path; a project that moved as a whole is fine."""
    root = ProjectRoot("/p", "/p")
    assert root.was_behind_link(root.resolve_path("a/b/file"), folder) is moved
    assert not root.was_behind_link(root.resolve_path("file"), folder)
