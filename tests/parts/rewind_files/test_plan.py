"""Tests of the planned changes of ``rewind-files``. A plan writes no file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.derive import fork
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.errors import RestoreFailed
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
    backup_entry,
    delta_record,
    deny_writing,
    prompt_id,
    snapshot_record,
    turns_on_one_chain,
    write_call,
)


def only_change(project: Project, backups: dict[str, object]) -> FileChange:
    """Return the only change of a plan, after checking that planning changed no file."""
    before = project.list_files()
    (change,) = project.plan_restore(project.session_with_backups(backups)).changes
    assert project.list_files() == before, "a plan writes nothing"
    return change


def test_a_changed_file_is_restored(project: Project) -> None:
    """A changed file is restored, and the change counts added and removed lines."""
    project.write_file("a", "new\nsame\n")
    change = only_change(project, {"a": project.write_backup("a", "old\nsame\nmore\n")})
    assert (
        change.action,
        change.difference.added_line_count,
        change.difference.removed_line_count,
    ) == ("restore", 2, 1)
    assert "-new" in change.difference.lines


def test_new_files_are_deleted_and_deleted_files_created(project: Project) -> None:
    """A new file is deleted, and a deleted one is created with its mode and folder."""
    project.write_file("sub/a", "new\n")
    assert only_change(project, {"sub/a": backup_entry(None)}).action == "delete"
    change = only_change(project, {"sub/deep/a": project.write_backup("a", "old\n", mode=0o755)})
    assert (change.action, change.new_version and change.new_version.mode) == ("create", 0o755)


@pytest.mark.parametrize("exists", [True, False])
def test_an_unchanged_file_needs_no_action(project: Project, exists: bool) -> None:
    """A file that is unchanged, or still missing, needs no change."""
    if exists:
        project.write_file("a", "old\n")
    assert (
        only_change(project, {"a": project.write_backup("a", "old\n" if exists else None)}).action
        == "none"
    )


def test_a_file_with_a_changed_mode_is_restored(project: Project) -> None:
    """A file whose mode changed is restored, without the set-user-id bit."""
    project.write_file("a", "old\n", 0o600)
    change = only_change(project, {"a": project.write_backup("a", "old\n", mode=0o4755)})
    assert (change.action, change.difference.lines) == ("restore", ())
    assert change.new_version is not None
    assert change.new_version.mode == 0o755


def test_a_file_tracked_later_is_restored_to_its_first_backup(project: Project) -> None:
    """If a file's first backup is later than the chosen prompt, the file is restored to this backup.

    The client does the same.
    """
    project.write_file("b", "third\n")
    session = project.write_session(
        [
            *turns_on_one_chain(3),
            snapshot_record(prompt_id(1), {}),
            snapshot_record(prompt_id(2), {}),
            delta_record(prompt_id(2), "b", project.write_backup("b", "first\n")),
            snapshot_record(prompt_id(3), {"b": project.write_backup("b", "second\n", 2)}),
        ]
    )
    (change,) = project.plan_restore(session, "1").changes
    assert change.source is not None
    assert plan.read_content_and_mode(change.source)[0] == b"first\n"


def test_a_file_without_a_first_backup_is_reported_as_missing(project: Project) -> None:
    """A file without a backup of version 1 is reported as missing and left alone."""
    session = project.write_session(
        [
            *turns_on_one_chain(2),
            snapshot_record(prompt_id(1), {}),
            snapshot_record(prompt_id(2), {"b": project.write_backup("b", "second\n", 2)}),
        ]
    )
    (change,) = project.plan_restore(session, "1").changes
    assert (change.is_missing, "no copy of it" in change.refusal_reason) == (True, True)


def test_absolute_and_relative_paths_name_the_same_file(project: Project) -> None:
    """An absolute and a relative path of a file name the same file."""
    path = str(project.write_file("a", "new\n"))
    session = project.write_session(
        [
            *turns_on_one_chain(2),
            snapshot_record(prompt_id(1), {path: project.write_backup("a", "old\n")}),
            snapshot_record(prompt_id(2), {"a": project.write_backup("a", "new\n", 2)}),
        ]
    )
    (change,) = project.plan_restore(session, "1").changes
    assert (change.path_in_project.path, change.action) == ("a", "restore")


@pytest.mark.parametrize(
    ("path", "make_special_file", "reason"),
    [
        ("a", lambda at, inside: at.symlink_to(inside / "b"), "symbolic link"),
        ("a", lambda at, _: at.symlink_to("nowhere"), "symbolic link"),
        ("sub/b", lambda at, _: at.symlink_to(at.parent.parent), "symbolic link"),
        ("sub/b", lambda at, inside: at.symlink_to(inside), "symbolic link"),
        ("sub/b", lambda at, _: at.write_text("a file"), "not a folder"),
        ("a", lambda at, _: at.mkdir(), "not a regular file"),
        ("a", lambda at, _: os.mkfifo(at), "not a regular file"),  # Reading a pipe would block.
        ("a", lambda at, inside: at.hardlink_to(inside / "b"), "hard links"),
    ],
)
@pytest.mark.parametrize("was_missing", [False, True])
def test_a_special_file_is_refused(
    project: Project,
    path: str,
    make_special_file: Callable[[Path, Path], object],
    reason: str,
    was_missing: bool,
) -> None:
    """A link, a folder, a pipe and a hard-linked file are neither replaced nor deleted."""
    (project.folder.parent / "b").write_text("x\n")
    make_special_file(
        project.path_of(path.partition("/")[0]), project.write_file("real/b", "x\n").parent
    )
    change = only_change(
        project, {path: project.write_backup(path, None if was_missing else "old\n")}
    )
    assert (change.action, change.is_missing) == ("none", False)
    assert reason in change.refusal_reason


def test_a_large_file_is_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is refused if it or its backup is too large."""
    monkeypatch.setattr(plan, "MAX_FILE_BYTES", 4)
    project.write_file("a", "12345")
    project.write_file("b", "1234")
    session = project.session_with_backups(
        {"a": project.write_backup("a", "x"), "b": project.write_backup("b", "12345")}
    )
    large, kept = project.plan_restore(session).changes
    assert "larger than 4 bytes" in large.refusal_reason
    assert (kept.is_missing, "too large" in kept.refusal_reason) == (True, True)


def test_an_overlong_name_is_refused(project: Project) -> None:
    """A file with a name that is too long is refused."""
    change = only_change(project, {"x" * 300: project.write_backup("a", "old\n")})
    assert "too long" in change.refusal_reason


def test_a_missing_backup_is_reported(project: Project) -> None:
    """A file whose backup is missing is reported and not changed."""
    project.write_file("a", "new\n")
    change = only_change(project, {"a": backup_entry("aaaaaaaaaaaaaaaa@v1")})
    assert (change.action, change.is_missing) == ("none", True)


@pytest.mark.parametrize("linked_path", ["file", "folder"])
def test_a_backup_behind_a_link_counts_as_missing(project: Project, linked_path: str) -> None:
    """A backup that is a link or lies in a linked folder is treated as missing.

    The link could lead to any file of the machine.
    """
    project.write_file("a", "new\n")
    kept = project.write_backup("a", "old\n")
    if linked_path == "file":
        name = project.store / kept["backupFileName"]
        name.unlink()
        os.symlink("/etc/hostname", name)
    else:
        elsewhere = project.store.with_name("elsewhere")
        shutil.move(project.store, elsewhere)
        os.symlink(elsewhere, project.store)
    assert only_change(project, {"a": kept}).is_missing


def test_a_file_recorded_behind_a_link_is_refused(project: Project) -> None:
    """A file that was behind a link when the client recorded it is refused."""
    project.write_file("sub/a", "new\n")
    assert (
        "behind a link"
        in only_change(
            project, {"sub/a": project.write_backup("a", "old\n") | {"realParentDir": "/else"}}
        ).refusal_reason
    )


def test_a_missing_project_is_refused(project: Project) -> None:
    """A missing project folder raises ``RestoreFailed``."""
    session = project.session_with_backups({"a": backup_entry(None)})
    project.folder.rmdir()
    with pytest.raises(RestoreFailed, match="can't be opened"):
        project.plan_restore(session)


def test_a_session_without_a_folder_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that names no folder raises ``RestoreFailed``, even if the user is in the project."""
    monkeypatch.setenv("PWD", str(project.folder))
    lost = [
        {key: value for key, value in record.items() if key != "cwd"}
        for record in turns_on_one_chain(1)
    ]
    session = locate.session_file(
        write_session(
            project.home.config / "projects" / "-else",
            SESSION,
            [*lost, snapshot_record(prompt_id(1), {})],
        )
    )
    with pytest.raises(RestoreFailed, match="which folder"):
        project.plan_restore(session)


def test_a_session_without_an_id_is_refused(project: Project) -> None:
    """A session without an id raises ``RestoreFailed``.

    The id cannot be taken from the transcript's file name, because that name could be ``..``.
    """
    session = project.session_with_backups({"a": project.write_backup("a", "old\n")})
    path = Path(session.path).with_name("...jsonl")
    path.write_bytes(Path(session.path).read_bytes().replace(b'"sessionId"', b'"was"'))
    with pytest.raises(RestoreFailed, match="no session id"):
        project.plan_restore(locate.session_file(str(path)))


def session_in_another_project_folder(project: Project, key: str) -> SessionFile:
    """Return a session of the project whose transcript is in another project folder."""
    project.write_file("a", "new\n")
    session = project.session_with_backups({"a": project.write_backup("a", "old\n")})
    folder = project.home.config / "projects" / key
    folder.mkdir(parents=True, exist_ok=True)
    return locate.session_file(shutil.move(session.path, str(folder)))


def test_another_project_in_the_old_folder_is_left_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a project moved with its transcripts, another project in its old folder is left alone.

    If the user is in the new folder, the project is restored there. If the user is in a subfolder,
    the plan is refused, because the recorded path may belong to another project now.
    """
    moved = project.folder.with_name("moved")
    (moved / "sub").mkdir(parents=True)
    (moved / "a").write_text("new\n")
    session = session_in_another_project_folder(project, project.home.project(str(moved)).name)
    monkeypatch.chdir(moved)
    monkeypatch.setenv("PWD", str(moved))
    assert project.plan_restore(session).root.folder == str(moved)
    monkeypatch.chdir(moved / "sub")
    monkeypatch.setenv("PWD", str(moved / "sub"))
    with pytest.raises(RestoreFailed) as caught:
        project.plan_restore(session)
    assert str(project.folder) in caught.value.message
    assert os.path.dirname(session.path) in caught.value.message
    assert f"fork {SESSION} --home" in caught.value.remedy


def test_a_custom_project_folder_needs_the_user_in_the_project(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the client's project folder has a custom name, the user must be in the project itself.

    The variable CLAUDE_CODE_PROJECT_DIR_NAME sets such a name.
    """
    session = session_in_another_project_folder(project, "team")
    project.path_of("sub").mkdir()
    for folder in (project.folder.parent, project.path_of("sub")):
        monkeypatch.chdir(folder)
        with pytest.raises(RestoreFailed, match="belongs to another folder"):
            project.plan_restore(session)
    monkeypatch.chdir(project.folder)
    assert project.plan_restore(session).changes_to_write


def test_a_read_only_file_is_restored(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only file is restored, because only its folder must be writable."""
    project.write_file("a", "new\n", 0o444)
    deny_writing(monkeypatch, "a")
    assert only_change(project, {"a": project.write_backup("a", "old\n")}).action == "restore"


def test_changes_in_a_read_only_folder_are_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes in a read-only folder are refused; unchanged files are not."""
    tracked = {
        "a": project.write_backup("a", "old\n"),
        "b": backup_entry(None),
        "c/d": project.write_backup("c", "c\n"),
    }
    tracked["same"] = project.write_backup("same", "same\n")
    for name in ("a", "b", "same"):
        project.write_file(name, f"{name}\n")
    deny_writing(monkeypatch, os.curdir)
    changes = {
        change.path_in_project.path: change
        for change in project.plan_restore(project.session_with_backups(tracked)).changes
    }
    assert {
        name
        for name, change in changes.items()
        if "nothing can be written" in change.refusal_reason
    } == {
        "a",
        "b",
        "c/d",
    }
    assert changes["same"].refusal_reason == ""


def test_a_project_behind_a_link_is_restored(project: Project, tmp_path: Path) -> None:
    """A project whose path contains links is restored."""
    real = tmp_path / "real"
    shutil.move(project.folder, real)
    os.symlink(real, project.folder)
    project.write_file("a", "new\n")
    assert only_change(project, {"a": project.write_backup("a", "old\n")}).action == "restore"


@pytest.mark.parametrize(
    ("current_text", "is_changed"),
    [("second\n", False), ("by hand\n", True), (None, True), ("first\n", True)],
)
def test_changes_since_the_last_state_are_marked(
    project: Project, current_text: str | None, is_changed: bool
) -> None:
    """A plan marks a file that was changed after the last recorded state."""
    if current_text is not None:
        project.write_file("a", current_text)
    session = project.write_session(
        [
            *turns_on_one_chain(2),
            snapshot_record(prompt_id(1), {"a": project.write_backup("a", "first\n")}),
            snapshot_record(prompt_id(2), {"a": project.write_backup("a", "second\n", 2)}),
        ]
    )
    assert project.plan_restore(session).changes[0].differs_from_known_state is is_changed


@pytest.mark.parametrize(
    ("current_text", "is_changed"),
    [("written\n", False), ("written\r\n", False), ("by hand\n", True)],
)
def test_changes_since_the_last_edit_are_marked(
    project: Project, current_text: str, is_changed: bool
) -> None:
    """A plan marks a file that was changed after the last edit of the current turn.

    No state has the file's content after this edit yet, so the content is taken from the edit's
    result.
    """
    path = project.write_file("a", current_text)
    records = [
        *turns_on_one_chain(1),
        snapshot_record(prompt_id(1), {"a": project.write_backup("a", "first\n")}),
    ]
    session = project.write_session(
        [*records, *write_call(str(path), "written\n", uuid="e", parent="a1")]
    )
    assert project.plan_restore(session).changes[0].differs_from_known_state is is_changed


def test_binary_and_long_differences_are_only_counted(project: Project) -> None:
    """The difference of a binary or very long file has no lines, only counts."""
    project.write_file("a", b"\0\1")
    project.write_file("b", "".join(f"{number}\n" for number in range(6_000)))
    data, long = project.plan_restore(
        project.session_with_backups(
            {"a": project.write_backup("a", b"\xff\xfe"), "b": project.write_backup("b", "1\nx\n")}
        )
    ).changes
    assert (data.difference.added_line_count, data.difference.lines) == (
        None,
        ("@@ not text: 2 bytes -> 2 bytes @@",),
    )
    assert (long.difference.added_line_count, long.difference.removed_line_count) == (1, 5_999)


def test_only_backups_of_the_session_are_used(project: Project) -> None:
    """Backups under another session's id are not used."""
    kept = project.write_backup("a", "old\n")
    session = project.session_with_backups({"a": kept})
    shutil.move(project.store, project.store.with_name("00000009-0000-4000-8000-000000000009"))
    write_session(
        os.path.dirname(session.path), "00000009-0000-4000-8000-000000000009", turns_on_one_chain(1)
    )
    assert project.plan_restore(session).changes[0].is_missing


def test_a_child_does_not_use_its_parents_backups(project: Project) -> None:
    """A child does not use its parent's backups.

    A backup of the parent may have the same name but different content.
    """
    project.write_file("a", "new\n")
    session = project.session_with_backups({"a": project.write_backup("a", "old\n")})
    child = write_child(fork.plan_fork(session, project.home.where), project.home.where)
    shutil.rmtree(project.store.with_name(child.session_id))
    (change,) = project.plan_restore(locate.session_file(child.file)).changes
    assert change.is_missing


REFUSED_PATHS = {
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
    "C:\\x": "another operating system",
    "c:/x": "another operating system",
    "\\\\server\\x": "another operating system",
    ".git/hooks/pre-commit": "git",
    "sub/.GIT/config": "git",
    ".g\u200cit/config": "git",
    ".git": "git",
}


@pytest.mark.parametrize("path", REFUSED_PATHS)
def test_hostile_paths_are_refused(path: str) -> None:
    """A hostile path is refused, and the reason is stated."""
    place = ProjectRoot("/p", "/p").resolve_path(path)
    assert place.parts == ()
    assert REFUSED_PATHS[path] in place.refusal_reason


@pytest.mark.parametrize(
    ("path", "path_in_project"),
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
def test_paths_below_the_project_are_accepted(path: str, path_in_project: str) -> None:
    """A path inside the project is accepted if it is relative or starts with the project's path.

    The project's path may be given with its links or with the links resolved.
    """
    place = ProjectRoot("/named", "/real").resolve_path(path)
    assert (place.path, place.parts, place.refusal_reason) == (
        path_in_project,
        tuple(path_in_project.split("/")),
        "",
    )


def test_the_root_is_the_target_of_the_link(tmp_path: Path) -> None:
    """If the project's folder is a link, the root is the link's target. The given path is stored, too."""
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "named")
    root = ProjectRoot.from_folder(f"{tmp_path}/named/", Where({"HOME": "/nowhere"}))
    assert root[:2] == (f"{tmp_path}/named", f"{tmp_path}/real")


@pytest.mark.parametrize("path", [".claude/settings.json", ".claude", "state/backups/x"])
def test_paths_in_the_clients_folder_are_refused(tmp_path: Path, path: str) -> None:
    """A path in the folder of the client or of this plugin is refused."""
    root = ProjectRoot.from_folder(
        str(tmp_path), Where({"HOME": str(tmp_path), "RESUME_HOOKS_HOME": f"{tmp_path}/state"})
    )
    assert "client" in root.resolve_path(path).refusal_reason
    assert not root.resolve_path(".claude.md").refusal_reason


@pytest.mark.parametrize(
    ("recorded_folder", "was_reached_through_link"),
    [("", False), ("/p/a/b", False), ("/elsewhere/a/b", False), ("/p/x/b", True), ("/b", True)],
)
def test_a_file_behind_a_link_is_recognized(
    recorded_folder: str, was_reached_through_link: bool
) -> None:
    """``was_reached_through_link`` is true if the recorded folder does not end with the file's relative folder.

    If the project moved as a whole, the recorded folder still ends with the relative folder.
    """
    root = ProjectRoot("/p", "/p")
    assert (
        root.was_reached_through_link(root.resolve_path("a/b/file"), recorded_folder)
        is was_reached_through_link
    )
    assert not root.was_reached_through_link(root.resolve_path("file"), recorded_folder)
