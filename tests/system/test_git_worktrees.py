"""A project's worktrees by git's own files, and its sessions."""

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


def test_no_repository(tmp_path: Path) -> None:
    """The folder alone; one that is not there as well."""
    assert list_worktrees(str(tmp_path)) == (str(tmp_path),)
    assert list_worktrees(str(tmp_path / "gone")) == (str(tmp_path / "gone"),)


def test_worktrees_of_a_repository(git: Any, tmp_path: Path) -> None:
    """From the main one, from a linked one (whose .git is a file), and from a folder within: all of them."""
    main, linked = tmp_path / "main", tmp_path / "linked"
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(linked))
    (main / "src").mkdir()
    both = {str(main), str(linked)}
    assert set(list_worktrees(str(main))) == both
    assert set(list_worktrees(str(linked))) == both
    assert set(list_worktrees(str(main / "src"))) == both | {str(main / "src")}


def test_a_bare_repository(git: Any, tmp_path: Path) -> None:
    """Its worktrees belong together; the folder that it happens to be in does not."""
    seed, bare, one, two = (tmp_path / name for name in ("seed", "repos/bare.git", "one", "two"))
    git(seed, "init", "-q")
    git(seed, "commit", "-q", "--allow-empty", "-m", "x")
    git(tmp_path, "clone", "-q", "--bare", str(seed), str(bare))
    git(bare, "worktree", "add", "-q", str(one), "-b", "one")
    git(bare, "worktree", "add", "-q", str(two), "-b", "two")
    assert set(list_worktrees(str(one))) == {str(one), str(two)}


def test_a_submodule(git: Any, tmp_path: Path) -> None:
    """It is a project of its own."""
    seed, outer = tmp_path / "seed", tmp_path / "outer"
    for folder in (seed, outer):
        git(folder, "init", "-q")
        git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    git(outer, "submodule", "add", "-q", str(seed), "inner")
    assert list_worktrees(str(outer / "inner")) == (str(outer / "inner"),)


@pytest.mark.parametrize(
    "content", [b"", b"gitdir:", b"gitdir: /nowhere/x", b"\xff\x00", b"gitdir: \x00", b"x" * 9_000]
)
def test_a_strange_git_file(tmp_path: Path, content: bytes) -> None:
    """Whatever it holds, the folder itself is searched."""
    (tmp_path / ".git").write_bytes(content)
    assert str(tmp_path) in list_worktrees(str(tmp_path))


@pytest.mark.parametrize(
    ("file", "content"), [(".git", b"gitdir: git\0\n"), ("git/commondir", b"..\0\n")]
)
def test_no_path_contains_a_nul(tmp_path: Path, file: str, content: bytes) -> None:
    """Else starting git with such a folder raises ValueError."""
    (tmp_path / "git").mkdir()
    (tmp_path / ".git").write_bytes(b"gitdir: git\n")
    (tmp_path / file).write_bytes(content)
    assert "\0" not in "".join(worktree_git_folders(str(tmp_path)))


def test_a_repository_with_very_many_worktrees(tmp_path: Path) -> None:
    """Every list of sessions looks at each, so their number has a limit."""
    for number in range(MAX_WORKTREES + 20):
        worktree = tmp_path / ".git" / "worktrees" / f"w{number:04}"
        worktree.mkdir(parents=True)
        (worktree / "gitdir").write_text(f"/gone/w{number:04}/.git\n")
    assert len(list_worktrees(str(tmp_path))) == MAX_WORKTREES + 1


@pytest.mark.parametrize(
    ("started", "key", "held"),
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
def test_which_sessions_are_of_it(started: list[str], key: str, *, held: bool) -> None:
    """Keys collide: the folders named inside decide, as far as they fit.

    What is below a repository is of it.
    """
    project = Project(("/w/a_b", "/w/repo"), within=("/w/repo",), names=("named",))
    assert project.contains_session(started, key) is held


def test_the_names_of_its_folders(config_home: ConfigHome) -> None:
    """Those of its working directories, there or not, and those below it that are there."""
    for folder in ("/w/repo", "/w/repo/sub", "/w/repo-two", "/w/other"):
        config_home.project(folder)
    names = Project(("/w/repo", "/w/new"), within=("/w/repo",)).folder_names(config_home.where)
    assert names == [
        project_key(folder) for folder in ("/w/repo", "/w/new", "/w/repo/sub", "/w/repo-two")
    ]
    assert Project(("/w/repo",)).folder_names(config_home.where) == [project_key("/w/repo")]


def test_the_folder_that_a_variable_names_is_of_every_project(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """It holds whatever the client wrote while the variable was set."""
    environ = {**config_home.environ, PROJECT_FOLDER_VARIABLE: "mine"}
    project = project_of_folder(str(tmp_path), Where(environ))
    assert project.names == ("mine",)
    assert project.folder_names(Where(environ))[0] == "mine"
