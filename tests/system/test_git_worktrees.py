"""Tests of finding a project's worktrees in git's own files, and of finding the project's sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resume_hooks.paths import PROJECT_FOLDER_VARIABLE, Where, project_key
from resume_hooks.system.git_worktrees import (
    MAX_WORKTREES,
    Project,
    list_worktrees,
    project_of_folder,
    worktree_git_folders,
)
from tests.builders import ConfigHome


def test_a_folder_without_a_repository_is_its_only_worktree(tmp_path: Path) -> None:
    """The worktrees of a folder that is missing or has no repository are just the folder itself."""
    assert list_worktrees(str(tmp_path)) == (str(tmp_path),)
    assert list_worktrees(str(tmp_path / "gone")) == (str(tmp_path / "gone"),)


def test_all_worktrees_of_a_repository_are_listed(git: Any, tmp_path: Path) -> None:
    """All worktrees are listed from the main one, from a linked one, and from a folder inside a worktree."""
    main, linked = tmp_path / "main", tmp_path / "linked"
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(linked))
    (main / "src").mkdir()
    both = {str(main), str(linked)}
    assert set(list_worktrees(str(main))) == both
    assert set(list_worktrees(str(linked))) == both
    assert set(list_worktrees(str(main / "src"))) == both | {str(main / "src")}


def test_worktrees_of_a_bare_repository_belong_together(git: Any, tmp_path: Path) -> None:
    """The list of worktrees of a bare repository has all worktrees but not the repository's folder."""
    seed, bare, one, two = (tmp_path / name for name in ("seed", "repos/bare.git", "one", "two"))
    git(seed, "init", "-q")
    git(seed, "commit", "-q", "--allow-empty", "-m", "x")
    git(tmp_path, "clone", "-q", "--bare", str(seed), str(bare))
    git(bare, "worktree", "add", "-q", str(one), "-b", "one")
    git(bare, "worktree", "add", "-q", str(two), "-b", "two")
    assert set(list_worktrees(str(one))) == {str(one), str(two)}


def test_a_submodule_is_a_separate_project(git: Any, tmp_path: Path) -> None:
    """The list of worktrees of a submodule has only the submodule."""
    seed, outer = tmp_path / "seed", tmp_path / "outer"
    for folder in (seed, outer):
        git(folder, "init", "-q")
        git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    git(outer, "submodule", "add", "-q", str(seed), "inner")
    assert list_worktrees(str(outer / "inner")) == (str(outer / "inner"),)


@pytest.mark.parametrize(
    "content", [b"", b"gitdir:", b"gitdir: /nowhere/x", b"\xff\x00", b"gitdir: \x00", b"x" * 9_000]
)
def test_an_invalid_git_file_is_ignored(tmp_path: Path, content: bytes) -> None:
    """If the file ``.git`` is invalid, the folder itself is still listed."""
    (tmp_path / ".git").write_bytes(content)
    assert str(tmp_path) in list_worktrees(str(tmp_path))


@pytest.mark.parametrize(
    ("file", "content"), [(".git", b"gitdir: git\0\n"), ("git/commondir", b"..\0\n")]
)
def test_no_path_contains_a_nul(tmp_path: Path, file: str, content: bytes) -> None:
    """No listed path contains a NUL character, because git can't be started with such a path."""
    (tmp_path / "git").mkdir()
    (tmp_path / ".git").write_bytes(b"gitdir: git\n")
    (tmp_path / file).write_bytes(content)
    assert "\0" not in "".join(worktree_git_folders(str(tmp_path)))


def test_the_number_of_worktrees_is_limited(tmp_path: Path) -> None:
    """Besides the folder itself, at most ``MAX_WORKTREES`` worktrees are listed."""
    for number in range(MAX_WORKTREES + 20):
        worktree = tmp_path / ".git" / "worktrees" / f"w{number:04}"
        worktree.mkdir(parents=True)
        (worktree / "gitdir").write_text(f"/gone/w{number:04}/.git\n")
    assert len(list_worktrees(str(tmp_path))) == MAX_WORKTREES + 1


@pytest.mark.parametrize(
    ("start_folders", "folder_name", "is_in_project"),
    [
        (["/w/a_b"], "-w-a-b", True),
        (["/w/a-b"], "-w-a-b", False),
        (["/w/a-b", "/w/a_b"], "-w-a-b", True),
        (["/elsewhere"], "-w-a-b", True),
        ([], "-w-a-b", True),
        (["/w/repo/deep"], "-w-repo-deep", True),
        (["/w/repo-two"], "-w-repo-two", False),
        (["/elsewhere"], "named", True),
        (["/w/a_b"], "-other", False),
    ],
)
def test_a_session_belongs_to_the_project_of_its_start_folders(
    start_folders: list[str], folder_name: str, *, is_in_project: bool
) -> None:
    """Whether a session belongs to a project depends on the folders in which the session was started.

    The name of its project folder is not enough, because different folders may have the same name.
    """
    project = Project(("/w/a_b", "/w/repo"), root_folders=("/w/repo",), names=("named",))
    assert project.contains_session(start_folders, folder_name) is is_in_project


def test_the_folder_names_of_a_project_are_listed(config_home: ConfigHome) -> None:
    """A project's folder names are those of its worktrees and of existing folders below them."""
    for folder in ("/w/repo", "/w/repo/sub", "/w/repo-two", "/w/other"):
        config_home.project(folder)
    names = Project(("/w/repo", "/w/new"), root_folders=("/w/repo",)).folder_names(
        config_home.where
    )
    assert names == [
        project_key(folder) for folder in ("/w/repo", "/w/new", "/w/repo/sub", "/w/repo-two")
    ]
    assert Project(("/w/repo",)).folder_names(config_home.where) == [project_key("/w/repo")]


def test_the_project_folder_in_the_environment_belongs_to_every_project(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """The project folder that CLAUDE_CODE_PROJECT_DIR_NAME names belongs to every project."""
    environ = {**config_home.environ, PROJECT_FOLDER_VARIABLE: "mine"}
    project = project_of_folder(str(tmp_path), Where(environ))
    assert project.names == ("mine",)
    assert project.folder_names(Where(environ))[0] == "mine"
