"""Tests of ``rehome`` in the shell, which copies each session of a moved folder once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.errors import UsageError
from resume_hooks.parts.moved import rehome
from resume_hooks.parts.moved.rehome import (
    find_former_folder,
    is_folder_unmoved,
    list_former_folders_from_notes,
)
from resume_hooks.paths import project_key
from resume_hooks.system.git_worktrees import (
    command_to_recreate_worktree,
    make_folder_note,
    project_of_folder,
)
from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    session_id,
    tool_result,
    tool_use,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.cli.test_delete import OLD_MTIME, old_parent
from tests.crashes import kill_before_each_change

__all__ = ["old_parent"]


REPOSITORY_FILES = ("src/parser.py", "src/errors.py")


@pytest.fixture
def moved_folder(config_home: ConfigHome) -> tuple[Path, Path]:
    """Write two sessions of a folder and rename the folder. Return the folder's old and new path."""
    old, new = config_home.root / "old-name", config_home.root / "new-name"
    for name in REPOSITORY_FILES:
        (new / name).parent.mkdir(parents=True, exist_ok=True)
        (new / name).write_text("")
    for number in (1, 2):
        rows = conversation(2, prefix=f"r{number}", session_id=session_id(number))
        for place, name in enumerate(REPOSITORY_FILES):
            call = f"c{place}"
            rows += [
                tool_use(
                    call,
                    uuid=f"{call}-u",
                    parent=rows[-1]["uuid"],
                    tool_input={"file_path": str(old / name)},
                ),
                tool_result(call, uuid=f"{call}-r", parent=f"{call}-u"),
            ]
        rows = [{**row, "cwd": str(old), "sessionId": session_id(number)} for row in rows]
        write_session(config_home.project(str(old)), session_id(number), rows)
    return old, new


def sessions_in_project_folder(folder: Path, home: ConfigHome) -> list[Path]:
    """Return the paths of the sessions in a project folder."""
    return sorted(home.project(str(folder)).glob("*.jsonl"))


def test_rehome_copies_all_sessions_of_a_folder_once(
    document: Document, config_home: ConfigHome, moved_folder: tuple[Path, Path]
) -> None:
    """``rehome`` finds the old folder and copies each of its sessions once.

    A dry run copies none, and the sessions are unchanged.
    """
    old, new = moved_folder
    before = [path.read_bytes() for path in sessions_in_project_folder(old, config_home)]
    dry = document("rehome", "--dry-run", cwd=new)["data"]
    assert (dry["was"], dry["home"], len(dry["made"])) == (str(old), str(new), 2)
    assert sessions_in_project_folder(new, config_home) == []
    made = document("rehome", cwd=new)["data"]
    assert [row["parent_session_id"] for row in made["made"]] == [session_id(1), session_id(2)]
    assert all(row["kind"] == "rehome" and row["written"] for row in made["made"])
    assert len(sessions_in_project_folder(new, config_home)) == 2
    again = document("rehome", str(old), "--home", str(new))["data"]
    assert again["made"] == []
    assert {row["why"] for row in again["left_out"]} == {"has a copy there already"}
    assert [path.read_bytes() for path in sessions_in_project_folder(old, config_home)] == before


def test_a_session_that_cannot_be_copied_is_reported(
    cli: Cli, config_home: ConfigHome, moved_folder: tuple[Path, Path]
) -> None:
    """``rehome`` reports a session that cannot be copied, copies the others, and fails."""
    old, new = moved_folder
    path = config_home.project(str(old)) / f"{session_id(3)}.jsonl"
    path.write_text('{"type":"summary","summary":"x","leafUuid":"y"}\n')
    done = cli("rehome", str(old), cwd=new)
    assert done.returncode == 1
    assert f"Copied 2 sessions of {old} to {new}" in done.stdout.decode()
    assert "not copied: There is nothing to fork" in done.stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gone", "--home", "nowhere"), "is not a folder"),
        ((".",), "is still there"),
        (("gone",), "No session was started in"),
        ((), "Give the folder's former path"),
    ],
)
def test_rehome_refuses_unusable_folders(
    arguments: tuple[str, ...], message: str, cli: Cli, moved_folder: tuple[Path, Path]
) -> None:
    """``rehome`` refuses an old folder that is not named, still exists, or has no sessions.

    The verb also refuses a new folder that is missing.
    """
    assert moved_folder
    done = cli("rehome", *arguments)
    assert done.returncode in {1, 2}
    assert message in done.stderr.decode()


def test_a_killed_rehome_can_be_repeated(config_home: ConfigHome) -> None:
    """After ``rehome`` is killed at any step, the next run copies only the missing sessions."""
    old, new = str(config_home.root / "old"), str(config_home.root / "new")

    def rehome_sessions() -> object:
        sessions = rehome.find_folder_sessions(old, config_home.where)
        return rehome.copy_sessions_to_folder(
            sessions, new, config_home.where, lambda *_: None, dry_run=False
        )

    def reset_home() -> Callable[[], object]:
        shutil.rmtree(config_home.root)
        (config_home.root / "new").mkdir(parents=True)
        for number in (1, 2):
            rows = conversation(2, prefix=f"r{number}", session_id=session_id(number))
            rows = [{**row, "cwd": old} for row in rows]
            write_session(config_home.project(old), session_id(number), rows)
            outputs = config_home.project(old) / session_id(number) / "tool-results"
            outputs.mkdir(parents=True)
            (outputs / "one").write_bytes(b"long output")
        return rehome_sessions

    for _ in kill_before_each_change(reset_home, every=5):
        rehome_sessions()
        copies = [*config_home.project(new).glob("*.jsonl")]
        assert len(copies) == 2
        assert all((path.with_suffix("") / "tool-results" / "one").exists() for path in copies)


def test_parallel_rehomes_copy_each_session_once(config_home: ConfigHome) -> None:
    """Four ``rehome`` commands that run in parallel copy each session once.

    One command copies the sessions, and the others find the copies.
    """
    old, new = str(config_home.root / "old"), str(config_home.root / "new")
    Path(new).mkdir()
    for number in (1, 2):
        rows = [
            {**row, "cwd": old}
            for row in conversation(2, prefix=f"r{number}", session_id=session_id(number))
        ]
        write_session(config_home.project(old), session_id(number), rows)
    sessions = rehome.find_folder_sessions(old, config_home.where)
    with ThreadPoolExecutor(4) as threads:
        runs = [
            threads.submit(
                rehome.copy_sessions_to_folder,
                sessions,
                new,
                config_home.where,
                lambda *_: None,
                dry_run=False,
            )
            for _ in range(4)
        ]
    assert sorted(len(run.result()[0]) for run in runs) == [0, 0, 0, 2]
    assert len([*config_home.project(new).glob("*.jsonl")]) == 2
    assert not (config_home.config / "resume-hooks" / "one-maker").exists()


def write_start_note(home: ConfigHome, folder: Path) -> None:
    """Write the note about a start in a folder, as hooks/new-folder does."""
    place = home.config / "resume-hooks" / "pending"
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o700)
    place.parent.chmod(0o700)
    (place / f"folder-{project_key(str(folder))}").write_text(
        "\n".join([*make_folder_note(str(folder)), ""])
    )


def write_session_in_folder(home: ConfigHome, folder: Path, own_id: str = SESSION) -> None:
    """Write a session that was started in a folder."""
    records = [record | {"cwd": str(folder)} for record in conversation(2, session_id=own_id)]
    write_session(home.project(str(folder)), own_id, records)


@pytest.fixture
def noted_repository(config_home: ConfigHome, git: Any) -> Path:
    """Create a repository with a session and the note about its first start."""
    folder = config_home.root / "old"
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    git(folder, "remote", "add", "origin", "ssh://host/it.git")
    write_start_note(config_home, folder)
    write_session_in_folder(config_home, folder)
    return folder


@pytest.fixture
def hook_environment(monkeypatch: pytest.MonkeyPatch, config_home: ConfigHome) -> None:
    """Make the hooks in a test use the config home."""
    for name, value in config_home.environ.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("hook_environment")
def test_a_start_reports_a_moved_repository(
    config_home: ConfigHome, noted_repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start in a moved repository shows the command that copies its sessions, and copies no session."""
    new = noted_repository.rename(noted_repository.parent / "new")
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(new))
    said = f"This repository was in {noted_repository}, which no longer exists but has 1 session"
    told = f"{said}; to copy them here, run in a shell in this folder: resume-hooks rehome"
    assert (
        rehome.format_moved_folder_notice({}),
        rehome.format_moved_folder_notice_after_search({}),
    ) == (told, told)
    assert not (config_home.config / "projects" / project_key(str(new))).exists()


@pytest.mark.usefixtures("hook_environment")
def test_other_changes_are_not_reported_as_a_move(
    config_home: ConfigHome, noted_repository: Path, git: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start reports no move if the old folder exists or if two old folders are possible.

    Damaged notes are ignored.
    """
    clone = noted_repository.parent / "clone"
    shutil.copytree(noted_repository, clone)
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(clone))
    assert rehome.format_moved_folder_notice({}) == ""
    (config_home.config / "resume-hooks" / "pending" / "folder-x").write_bytes(b"\xff\0")
    shutil.rmtree(noted_repository / ".git")
    assert not is_folder_unmoved(str(noted_repository), config_home.where)
    assert list_former_folders_from_notes(str(clone), config_home.where) == [str(noted_repository)]
    fresh = noted_repository.parent / "fresh"
    fresh.mkdir()
    assert list_former_folders_from_notes(str(fresh), config_home.where) == []
    git(fresh, "init", "-q")
    git(fresh, "remote", "add", "origin", "ssh://host/it.git")
    assert list_former_folders_from_notes(str(fresh), config_home.where) == [str(noted_repository)]
    write_start_note(config_home, fresh)
    write_session_in_folder(config_home, fresh, session_id(2))
    third = fresh.rename(noted_repository.parent / "third")
    assert sorted(list_former_folders_from_notes(str(third), config_home.where)) == [
        str(fresh),
        str(noted_repository),
    ]
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(third))
    assert (
        rehome.format_moved_folder_notice({}),
        rehome.format_moved_folder_notice_after_search({}),
    ) == ("", "")
    with pytest.raises(UsageError, match="Several folders"):
        find_former_folder(str(third), config_home.where)


def test_sessions_of_a_removed_worktree_belong_to_the_main_checkout(
    config_home: ConfigHome, noted_repository: Path, git: Any
) -> None:
    """Sessions of a removed worktree belong to the main checkout.

    ``command_to_recreate_worktree`` returns the git command that creates the worktree again.
    """
    tree = config_home.root / "a tree"
    git(noted_repository, "worktree", "add", "-q", "-b", "feat/it", str(tree))
    write_start_note(config_home, tree)
    git(noted_repository, "worktree", "remove", str(tree))
    assert str(tree) in project_of_folder(str(noted_repository), config_home.where).folders
    assert project_of_folder(str(config_home.root), config_home.where).folders == (
        str(config_home.root),
    )
    made = f"git -C {noted_repository} worktree add"
    assert (
        command_to_recreate_worktree(str(tree), "feat/it", config_home.where)
        == f"{made} '{tree}' feat/it"
    )
    git(noted_repository, "pack-refs", "--all")
    assert (
        command_to_recreate_worktree(str(tree), "feat/it", config_home.where)
        == f"{made} '{tree}' feat/it"
    )
    git(noted_repository, "branch", "-D", "feat/it")
    assert (
        command_to_recreate_worktree(str(tree), "feat/it", config_home.where)
        == f"{made} -b feat/it '{tree}'"
    )
    assert (
        command_to_recreate_worktree(str(tree), "--force", config_home.where) == f"{made} '{tree}'"
    )
    assert command_to_recreate_worktree(str(noted_repository), "main", config_home.where) == ""
    shutil.rmtree(noted_repository)
    assert command_to_recreate_worktree(str(tree), "feat/it", config_home.where) == ""
    os.unlink(config_home.config / "resume-hooks" / "pending" / f"folder-{project_key(str(tree))}")
    assert command_to_recreate_worktree(str(tree), "feat/it", config_home.where) == ""


def test_copies_of_a_session_in_two_folders_are_reported(
    old_parent: Path, config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """Every verb that reads a session warns if two folders have copies of it.

    The warning names the command that deletes the incomplete copy, which can be restored.
    """
    copy = Path(
        write_session(
            config_home.project("/home/user/copy"), SESSION, conversation(1), mtime=OLD_MTIME + 9
        )
    )
    whole, part = old_parent.read_bytes(), copy.read_bytes()
    remedy = f"resume-hooks delete {SESSION} --other-copies"
    assert remedy in cli("doctor").stdout.decode()
    assert remedy in document("info", SESSION)["warnings"][0]
    assert remedy in cli("resume", str(old_parent)).stderr.decode()
    planned = document("delete", SESSION, "--other-copies", "--dry-run")["data"]
    assert (planned["kept"], planned["session"]["file"], planned["written"]) == (
        str(old_parent),
        str(copy),
        False,
    )
    assert (
        f"{old_parent} stays, and has all records of the other copies"
        in cli(*remedy.split()[1:], "--yes").stdout.decode()
    )
    assert (old_parent.read_bytes(), copy.exists()) == (whole, False)
    assert document("delete", SESSION, "--other-copies", "--yes", code=2)["error"][
        "message"
    ].startswith(str(old_parent))
    assert "one project folder" in cli("doctor").stdout.decode()
    cli("restore", SESSION)
    assert copy.read_bytes() == part
    write_session(copy.parent, SESSION, conversation(3)[2:], mtime=OLD_MTIME)
    failed = document("delete", SESSION, "--other-copies", "--yes", code=1)["error"]
    assert f"{old_parent} lacks 2 records of the other copies" in failed["message"]
    assert "resume-hooks fork" in failed["remedy"]
    done = document("delete", str(old_parent), "--other-copies", "--yes")["data"]
    assert (done["kept"], old_parent.read_bytes(), copy.exists()) == (str(old_parent), whole, False)
    assert cli("delete", "--other-copies", "--empty-trash", "--yes").returncode == 2
