"""Tests of finding the new folder of a session whose folder was moved."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.parts.moved.find_moved_repo import (
    FolderMentions,
    find_candidates_for_moved_folder,
    list_folders_of_sessions,
    list_sibling_folders,
    read_folder_mentions,
)
from resume_hooks.paths import Where
from resume_hooks.sessions.project_folder import MovedFolder
from tests.builders import ConfigHome, assistant, session_id, tool_use, user, write_session

GIT_ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath)}


@pytest.fixture
def repository(tmp_path: Path, git: Any) -> Path:
    """Create a repository with one commit and return its folder."""
    folder = tmp_path / "work" / "proj"
    git(folder, "init", "-q")
    (folder / "pkg").mkdir()
    for name in ("a.py", "pkg/b.py"):
        (folder / name).touch()
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def folder_mentions(
    folder: object, *, commits: tuple[str, ...] = (), files: tuple[str, ...] = ()
) -> FolderMentions:
    """Return the mentions of a session's deleted folder: its path, commits and files."""
    return FolderMentions(str(folder), commits, files)


def test_folder_mentions_are_read_from_a_transcript(
    tmp_path: Path, config_home: ConfigHome
) -> None:
    """The mentions of a folder are commits in git's output, newest first, and files in the folder."""
    old = "/old/place"
    rows = [
        user("hello", uuid="u"),
        tool_use("t", uuid="a", parent="u", tool_input={"file_path": f"{old}/src/a b.py"}),
        tool_use("s", uuid="b", parent="a", tool_input={"file_path": f"{old}/../secret"}),
        tool_use("q", uuid="c", parent="b", tool_input={"file_path": "/elsewhere/x"}),
        assistant(
            "[main (root-commit) 1a2b3c4] First\n[fix/x 5d6e7f8] Second", uuid="d", parent="c"
        ),
        assistant("commit " + "ab" * 20, uuid="e", parent="d"),
    ]
    path = write_session(config_home.project(old), session_id(1), rows)
    found = read_folder_mentions(path, old)
    assert found == FolderMentions(old, ("ab" * 20, "5d6e7f8", "1a2b3c4"), ("src/a b.py",))


def test_a_renamed_repository_is_found(repository: Path, git: Any) -> None:
    """If a repository was renamed within its parent folder, it is found by one of its commits."""
    commit = git(repository, "rev-parse", "HEAD")
    new = repository.with_name("project")
    repository.rename(new)
    assert find_candidates_for_moved_folder(
        folder_mentions(repository, commits=(commit[:7],)),
        list_sibling_folders(str(repository)),
        Where(GIT_ENVIRONMENT),
    ) == [MovedFolder(str(new), (commit[:7],), 0, 0, is_own_worktree=False)]


def test_a_session_in_a_subfolder_is_mapped_to_the_same_subfolder(
    repository: Path, tmp_path: Path, git: Any
) -> None:
    """A session of a subfolder is mapped to the same subfolder of the moved repository."""
    commit = git(repository, "rev-parse", "HEAD")
    new = tmp_path / "far" / "renamed"
    new.parent.mkdir()
    repository.rename(new)
    (found,) = find_candidates_for_moved_folder(
        folder_mentions(repository / "pkg", commits=(commit,)),
        [str(new)],
        Where(GIT_ENVIRONMENT),
    )
    assert found.folder == str(new / "pkg")
    (found,) = find_candidates_for_moved_folder(
        folder_mentions(repository / "pkg", files=("b.py",)),
        [str(new)],
        Where(GIT_ENVIRONMENT),
    )
    assert (found.folder, found.evidence) == (
        str(new / "pkg"),
        "has 1 of the 1 file that the session worked on",
    )


def test_the_repository_of_a_removed_worktree_is_found(repository: Path, git: Any) -> None:
    """The repository of a removed worktree is found by the worktree's path and commits."""
    tree = repository.parent / "tree"
    git(repository, "worktree", "add", "-q", str(tree))
    commit = git(tree, "rev-parse", "HEAD")
    shutil.rmtree(tree)
    (found,) = find_candidates_for_moved_folder(
        folder_mentions(tree, commits=(commit, "0" * 40)),
        [str(repository)],
        Where(GIT_ENVIRONMENT),
    )
    assert found.folder == str(repository)
    assert found.evidence == (
        f"contains the commit {commit[:7]} that the session mentions, "
        "belongs to the repository of which the old folder was a worktree"
    )


def test_the_likeliest_folder_is_first(repository: Path, tmp_path: Path, git: Any) -> None:
    """A folder with a commit of the session comes before one with only the same file names."""
    commit = git(repository, "rev-parse", "HEAD")
    like = tmp_path / "like"
    like.mkdir()
    (like / "a.py").touch()
    found = find_candidates_for_moved_folder(
        folder_mentions(tmp_path / "gone", commits=(commit,), files=("a.py",)),
        [str(like), str(repository)],
        Where(GIT_ENVIRONMENT),
    )
    assert [place.folder for place in found] == [str(repository), str(like)]


def test_a_folder_without_evidence_is_not_offered(repository: Path, tmp_path: Path) -> None:
    """A folder that has no commit of the session and fewer than half of its files is not offered."""
    traces_of_others = folder_mentions(
        tmp_path / "gone", commits=("0" * 40,), files=("a.py", "x", "y")
    )
    assert (
        find_candidates_for_moved_folder(
            traces_of_others, [str(repository)], Where(GIT_ENVIRONMENT)
        )
        == []
    )
    assert (
        find_candidates_for_moved_folder(
            folder_mentions(tmp_path / "gone"), [str(repository)], Where(GIT_ENVIRONMENT)
        )
        == []
    )
    half = folder_mentions(tmp_path / "gone", commits=("1" * 40,), files=("a.py", "x"))
    assert [
        place.existing_used_file_count
        for place in find_candidates_for_moved_folder(
            half, [str(repository)], Where({"PATH": "/nowhere"})
        )
    ] == [1]


def test_no_program_of_a_repository_runs(repository: Path, tmp_path: Path, git: Any) -> None:
    """Git runs no program that the settings of a repository name."""
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "core.sshCommand",
        "filter.x.smudge",
        "diff.external",
        "core.pager",
    ):
        git(repository, "config", key, str(program))
    git(repository, "config", "remote.origin.url", f"ext::{program}")
    git(repository, "config", "remote.origin.promisor", "true")
    git(repository, "config", "extensions.partialClone", "origin")
    assert (
        find_candidates_for_moved_folder(
            folder_mentions(tmp_path / "gone", commits=("1" * 40,)),
            [str(repository)],
            Where(GIT_ENVIRONMENT),
        )
        == []
    )
    assert not ran.exists()


def test_existing_session_folders_are_listed_once(config_home: ConfigHome, tmp_path: Path) -> None:
    """``list_folders_of_sessions`` returns each existing folder once, and omits missing and invalid folders."""
    there = tmp_path / "there"
    there.mkdir()
    paths = [
        write_session(
            config_home.project(str(there)),
            session_id(n),
            [{**user("x", uuid="u"), "cwd": str(there)}],
        )
        for n in (1, 2)
    ]
    paths.append(
        write_session(
            config_home.project("/gone"), session_id(3), [{**user("x", uuid="u"), "cwd": "/gone"}]
        )
    )
    paths.append(
        write_session(
            config_home.project("/nul"), session_id(4), [{**user("x", uuid="u"), "cwd": "/n\0l"}]
        )
    )
    assert list(list_folders_of_sessions([*paths, "/not/there.jsonl"])) == [str(there)]
