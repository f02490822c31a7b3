"""A repository that was moved: known by git's own files, asked about once, its sessions copied on a yes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.errors import UsageError
from resume_hooks.parts.moved import rehome
from resume_hooks.parts.moved.rehome import former_folder, is_left, noted_before
from resume_hooks.paths import project_key
from resume_hooks.system.git_worktrees import as_started, project_at, rebuilding
from tests.builders import SESSION, ConfigHome, conversation, session_id, write_session


def note(home: ConfigHome, folder: Path) -> None:
    """What a start in a folder leaves; hooks/new-folder writes it."""
    place = home.config / "resume-hooks" / "pending"
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o700)
    place.parent.chmod(0o700)
    (place / f"folder-{project_key(str(folder))}").write_text("\n".join([*as_started(str(folder)), ""]))


def talk(home: ConfigHome, folder: Path, own: str = SESSION) -> None:
    """A session that was started in a folder."""
    records = [record | {"cwd": str(folder)} for record in conversation(2, session_id=own)]
    write_session(home.project(str(folder)), own, records)


@pytest.fixture
def old(config_home: ConfigHome, git: Any) -> Path:
    """A repository with a session, as its first start noted it."""
    folder = config_home.root / "old"
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    git(folder, "remote", "add", "origin", "ssh://host/it.git")
    note(config_home, folder)
    talk(config_home, folder)
    return folder


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, config_home: ConfigHome) -> None:
    """The hook's environment is the config home's."""
    for name, value in config_home.environ.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("here")
def test_asked_and_answered(config_home: ConfigHome, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One question; words that are no yes do nothing, a yes copies, a second one copies nothing more."""
    new = old.rename(old.parent / "new")
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(new))
    said = f"This repository was in {old}, which has 1 session and is gone"
    assert rehome.start_line({}) == f"{said}; to copy them here, in a shell in this folder: resume-hooks rehome"
    asked = rehome.folder_answer({})
    assert asked["ask"].startswith(said)
    assert [word for _, word in asked["choices"]] == ["yes", "no"]
    assert rehome.folder_answer({"args": "no"}) == rehome.folder_answer({"args": "what?"}) == {}
    assert not (config_home.config / "projects" / project_key(str(new))).exists()
    monkeypatch.setattr(rehome, "COPYING", -1.0)
    rest = "; for the other 1, in a shell in this folder: resume-hooks rehome"
    assert rehome.folder_answer({"args": "yes"}) == {"text": f"0 sessions copied here; /sessions lists them{rest}"}
    monkeypatch.setattr(rehome, "COPYING", 60.0)
    assert rehome.folder_answer({"args": "yes"}) == {"text": "1 session copied here; /sessions lists them"}
    assert rehome.folder_answer({"args": "yes"}) == {"text": "0 sessions copied here; /sessions lists them"}
    assert len(list(config_home.project(str(new)).glob("*.jsonl"))) == 1
    assert not is_left(str(old), config_home.where)


@pytest.mark.usefixtures("here")
def test_what_is_no_move(config_home: ConfigHome, old: Path, git: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old folder is there; another repository; two alike; damaged notes; no repository at all."""
    clone = old.parent / "clone"
    shutil.copytree(old, clone)
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(clone))
    assert rehome.start_line({}) == ""
    (config_home.config / "resume-hooks" / "pending" / "folder-x").write_bytes(b"\xff\0")
    shutil.rmtree(old / ".git")
    assert not is_left(str(old), config_home.where)
    assert noted_before(str(clone), config_home.where) == [str(old)]
    fresh = old.parent / "fresh"
    fresh.mkdir()
    assert noted_before(str(fresh), config_home.where) == []
    git(fresh, "init", "-q")
    git(fresh, "remote", "add", "origin", "ssh://host/it.git")
    assert noted_before(str(fresh), config_home.where) == [str(old)]
    note(config_home, fresh)
    talk(config_home, fresh, session_id(2))
    third = fresh.rename(old.parent / "third")
    assert sorted(noted_before(str(third), config_home.where)) == [str(fresh), str(old)]
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(third))
    assert (rehome.start_line({}), rehome.folder_answer({})) == ("", {})
    with pytest.raises(UsageError, match="Several folders"):
        former_folder(str(third), config_home.where)


def test_a_worktree_that_was_removed(config_home: ConfigHome, old: Path, git: Any) -> None:
    """Its sessions are the main checkout's still; the command makes it anew, with its branch where that is left."""
    tree = config_home.root / "a tree"
    git(old, "worktree", "add", "-q", "-b", "feat/it", str(tree))
    note(config_home, tree)
    git(old, "worktree", "remove", str(tree))
    assert str(tree) in project_at(str(old), config_home.where).folders
    assert project_at(str(config_home.root), config_home.where).folders == (str(config_home.root),)
    made = f"git -C {old} worktree add"
    assert rebuilding(str(tree), "feat/it", config_home.where) == f"{made} '{tree}' feat/it"
    git(old, "pack-refs", "--all")
    assert rebuilding(str(tree), "feat/it", config_home.where) == f"{made} '{tree}' feat/it"
    git(old, "branch", "-D", "feat/it")
    assert rebuilding(str(tree), "feat/it", config_home.where) == f"{made} -b feat/it '{tree}'"
    assert rebuilding(str(tree), "--force", config_home.where) == f"{made} '{tree}'"
    assert rebuilding(str(old), "main", config_home.where) == ""
    shutil.rmtree(old)
    assert rebuilding(str(tree), "feat/it", config_home.where) == ""
    os.unlink(config_home.config / "resume-hooks" / "pending" / f"folder-{project_key(str(tree))}")
    assert rebuilding(str(tree), "feat/it", config_home.where) == ""
