"""Tests that removals stay below their root folder and follow no link, for every verb."""

from __future__ import annotations

import ast
import os
import shutil
import time
from pathlib import Path

import pytest

from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.paths import make_private_folder
from resume_hooks.sessions.archived.manifest import list_archived
from resume_hooks.sessions.archived.unpack import unpacked_transcript
from resume_hooks.sessions.locate import session_file
from resume_hooks.storage import removal
from tests.archive.vault.full_sessions import session_with_every_file
from tests.builders import ConfigHome, conversation, session_id, write_session
from tests.cli.fork_server import ForkServer
from tests.needs import REPO

KEPT, DELETED, TRASHED = session_id(1), session_id(2), session_id(3)

REMOVING_COMMANDS = (
    ("archive", "--forget", KEPT, "--yes"),
    ("delete", DELETED, "--yes", "--force"),
    ("delete", "--empty-trash", "--yes"),
    ("scrub", "--in-place", "--everywhere", "--yes"),
    ("doctor", "--index", "rebuild"),
    ("team", "leave"),
    ("install", "--remove", "--purge", "--yes"),
)
"""Calls of all verbs that remove files from the state folder."""

REMOVING_FUNCTIONS = {"unlink", "rmdir", "rmtree", "removedirs", "unlinkat"}

MODULES_THAT_MAY_REMOVE_FILES = {
    "storage/removal.py": "it owns the act",
    "hooks/fallback.py": "a lock of the installer's, before there is an engine",
    "cli/handoff.py": "a folder that it made itself a moment before, by mkdtemp",
    "system/git_view.py": "links in a private folder that it made itself a moment before; it imports no storage",
    "system/bytecode.py": "a damaged compiled module, which Python writes again; it imports no storage",
    "system/plugin_files.py": "two folders with its own process number in their names, which it made itself",
}
"""Modules besides the removal module that may remove files, each with the reason."""


def test_only_the_removal_module_removes_files() -> None:
    """No other module calls a function that removes files, such as ``os.remove`` or ``shutil.move``."""
    found: dict[str, set[str]] = {}
    source = REPO / "src" / "resume_hooks"
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Attribute):
                continue
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr in REMOVING_FUNCTIONS or (owner, node.attr) in {
                ("os", "remove"),
                ("shutil", "move"),
            }:
                found.setdefault(path.relative_to(source).as_posix(), set()).add(node.attr)
    assert set(found) <= set(MODULES_THAT_MAY_REMOVE_FILES), found


def test_removal_never_leaves_the_root(tmp_path: Path) -> None:
    """Removing is refused if the path has a link or ``..`` in it, or if the root is a link.

    A path that is itself a link is removed without its target.
    """
    root, other = tmp_path / "root", tmp_path / "other"
    (other / "sub").mkdir(parents=True)
    (other / "sub" / "work").write_text("precious")
    (root / "real").mkdir(parents=True)
    (root / "way").symlink_to(other)
    (tmp_path / "again").symlink_to(root)
    for path, top in (
        (root / "way" / "sub", root),
        (root / "way" / "sub" / "work", root),
        (root / "real" / ".." / "way", root),
        (other / "sub", root),
        (root, root),
        (tmp_path / "again" / "real", tmp_path / "again"),
    ):
        for act in (removal.remove_permanently, removal.remove_file, removal.remove_empty_folder):
            with pytest.raises(OSError) as caught:  # noqa: PT011 - of any kind
                act(str(path), str(top))
            assert caught.value.filename == str(path)
        removal.remove_if_possible(str(path), str(top))
    assert (other / "sub" / "work").read_text() == "precious"
    (root / "real" / "deep" / "er").mkdir(parents=True)
    (root / "real" / "deep" / "out").symlink_to(other)
    (root / "real" / "deep" / "file").write_text("x")
    removal.remove_permanently(
        str(tmp_path / "again" / "real"), str(tmp_path / "again"), follow_root=True
    )
    assert os.listdir(root) == ["way"]
    removal.remove_permanently(str(root / "way"), str(root))
    assert (other / "sub" / "work").exists()


def test_a_failed_removal_is_reported_after_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one file can't be removed, all others are removed before the error is raised.

    The error names the requested path.
    """
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / name).touch()
    unlink = os.unlink

    def refuse_to_remove_one_file(name: str, *, dir_fd: int | None = None) -> None:
        if name == "b":
            raise PermissionError(13, "Permission denied", name)
        unlink(name, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse_to_remove_one_file)
        with pytest.raises(PermissionError) as told:
            removal.remove_permanently(str(folder), str(tmp_path))
    assert told.value.filename == str(folder)
    assert os.listdir(folder) == ["b"]


@pytest.mark.parametrize("added_file_count", [1, 2, 3])
def test_removal_of_a_growing_folder_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, added_file_count: int
) -> None:
    """If files appear while a folder is removed, the folder is read again at most twice."""
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / "a").touch()
    made, remove_one = list(range(added_file_count)), removal._remove_entry

    def remove_and_add_file(name: str, folder_descriptor: int) -> None:
        remove_one(name, folder_descriptor)
        if made:
            (folder / f"late{made.pop()}").touch()

    monkeypatch.setattr(removal, "_remove_entry", remove_and_add_file)
    if added_file_count < 3:
        removal.remove_permanently(str(folder), str(tmp_path))
    else:
        with pytest.raises(OSError, match="not empty"):
            removal.remove_permanently(str(folder), str(tmp_path))
    assert folder.exists() == (added_file_count == 3)


def test_removal_without_folder_descriptors_never_leaves_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without calls for folder descriptors, as on Windows, a removal does not leave the root."""
    monkeypatch.setattr(removal, "_HAS_DESCRIPTOR_CALLS", False)
    test_removal_never_leaves_the_root(tmp_path)


def filled_state_folder(home: ConfigHome) -> Path:
    """Fill a state folder with everything that verbs remove, and return its path."""
    where = home.where
    for number in (KEPT, DELETED, TRASHED):
        session_with_every_file(home, number)
    for number in (KEPT, DELETED):
        archive_session(
            session_file(str(next((home.config / "projects").glob(f"*/{number}.jsonl")))), where
        )
    state = Path(make_private_folder(where.state, where))
    for archived in list_archived(where):
        unpacked_transcript(archived, where)
    (state / "team" / "sessions" / KEPT).mkdir(parents=True)
    (state / "team" / "team.json").write_text(
        '{"version": 1, "service": "s", "login": "l", "machine": "m", "projects": []}'
    )
    (state / "pending").mkdir(exist_ok=True)
    (state / "pending" / f"mark-{KEPT}.json").write_text("{}")
    (state / "backups" / KEPT).mkdir(parents=True)
    (state / "backups" / KEPT / "copy").write_text("x")
    return state


def bytes_of_files(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder, by its path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def list_paths_in_state_folder(state_folder: Path) -> list[str]:
    """Return the paths in the state folder that are at most three levels deep."""
    return [
        str(path.relative_to(state_folder))
        for path in sorted(state_folder.rglob("*"))
        if len(path.relative_to(state_folder).parts) <= 3 and path.name != ".lock"
    ]


@pytest.mark.part("team")
def test_removal_follows_no_link_in_the_state_folder(
    config_home: ConfigHome, fork_server: ForkServer
) -> None:
    """No verb removes a file or folder that was moved out of the state folder and replaced with a link."""
    environ = {**config_home.environ, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPO / "src")}

    project = config_home.root / "project"
    project.mkdir()

    def run_verb(*arguments: str) -> None:
        fork_server.run(arguments, environ, b"", str(project), 60)

    state = filled_state_folder(config_home)
    run_verb("search", "prompt", "--all")
    run_verb("delete", TRASHED, "--yes", "--force")
    names = list_paths_in_state_folder(state)
    assert {"unpacked", f"unpacked/{KEPT}", f"vault/{KEPT}", "trash", "team", "pending"} <= set(
        names
    )
    pristine = config_home.root / "pristine"
    shutil.copytree(config_home.config, pristine, symlinks=True)
    for words in REMOVING_COMMANDS:
        run_verb(*words)
    gone = set(names) - set(list_paths_in_state_folder(state))
    assert {"unpacked", f"vault/{KEPT}", f"trash/{TRASHED}", "team", "pending"} <= gone, (
        "where there is no link it goes"
    )
    for number, name in enumerate(names):
        shutil.rmtree(config_home.config)
        shutil.copytree(pristine, config_home.config, symlinks=True)
        elsewhere = config_home.root / f"elsewhere-{number}"
        os.rename(state / name, elsewhere)
        os.symlink(elsewhere, state / name)
        whole = {"": elsewhere.read_bytes()} if elsewhere.is_file() else bytes_of_files(elsewhere)
        for words in REMOVING_COMMANDS:
            run_verb(*words)
        left = {"": elsewhere.read_bytes()} if elsewhere.is_file() else bytes_of_files(elsewhere)
        assert whole.items() <= left.items(), (name, sorted(set(whole) - set(left)))
        shutil.rmtree(elsewhere) if elsewhere.is_dir() else elsewhere.unlink()


def test_forgetting_an_archived_session_follows_no_link(
    config_home: ConfigHome, fork_server: ForkServer
) -> None:
    """Forgetting an archived session does not follow a link in place of the folder ``unpacked``."""
    path = write_session(config_home.project(), KEPT, conversation(3), mtime=time.time() - 100_000)
    beside = Path(str(path).removesuffix(".jsonl")) / "subagents"
    beside.mkdir(parents=True)
    (beside / "agent-a1.jsonl").write_text("{}\n")
    archive_session(session_file(str(path)), config_home.where)
    (Path(config_home.where.state) / "unpacked").symlink_to(config_home.project())
    environ = {**config_home.environ, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPO / "src")}
    done = fork_server.run(
        ("archive", "--forget", KEPT, "--yes"), environ, b"", str(config_home.root), 60
    )
    assert done.returncode == 0, done.stderr
    assert list_archived(config_home.where) == []
    assert (beside / "agent-a1.jsonl").exists()
