"""Tests of the note about a repository, and of starts in a folder without sessions."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from resume_hooks.paths import Where
from resume_hooks.system.git_worktrees import make_folder_note, read_folder_notes
from tests.hook_scripts.plugin_copy import PluginCopy
from tests.hook_scripts.test_guard_cost import trace_hook
from tests.hook_scripts.test_near_end import (
    PROJECT_NAME,
    START_SESSION_ID,
    make_start_event,
    stamps_folder,
    write_stamp,
)

GIT_COMMAND = ("git", "-c", "user.name=a", "-c", "user.email=a@b")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Create a repository with one commit and a remote whose address contains a password."""
    folder = tmp_path / "work it"
    folder.mkdir()
    for words in (
        ["init", "-q"],
        ["commit", "-q", "--allow-empty", "-m", "one"],
        ["remote", "add", "origin", "https://me:se@cret@host/it@2.git"],
    ):
        subprocess.run([*GIT_COMMAND, *words], cwd=folder, check=True)
    return folder


def engine_arguments_at_start(
    plugin: PluginCopy, folder: Path, source: str = "startup", **env: str
) -> list[str]:
    """Return the arguments with which a start in this folder calls the engine."""
    plugin.delete_engine_calls()
    log = plugin.root.parent / "told"
    log.unlink(missing_ok=True)
    python = plugin.root.parent / "bin" / "python"
    new = python.with_suffix(".new")  # A background hook may still be running the previous file.
    new.write_text(f'#!/bin/sh\ncat >/dev/null\nshift 2\necho "$*" >>"{log}"\n')
    new.chmod(0o755)
    new.replace(python)
    told = {"CLAUDE_PROJECT_DIR": str(folder), "RESUME_HOOKS_PYTHON": str(python)}
    done = plugin.run_hook("SessionStart", make_start_event(plugin, source), **told, **env)
    assert (done.returncode, done.stderr) == (0, b"")
    return log.read_text().split() if log.exists() else []


def test_a_repository_is_read_and_noted_once(
    plugin: PluginCopy, repository: Path, tmp_path: Path
) -> None:
    """A start writes one note about the folder's repository and reads the repository only once.

    The note does not contain the password in the remote's address. It has the same content as a note
    that Python makes for the folder.
    """
    write_stamp(plugin, f"due-{PROJECT_NAME}.json")
    assert engine_arguments_at_start(plugin, tmp_path) == []
    assert not list(stamps_folder(plugin).glob("folder-*"))
    assert engine_arguments_at_start(plugin, repository, CLAUDE_CODE_ENTRYPOINT="sdk-cli") == []
    (note,) = stamps_folder(plugin).glob("folder-*")
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    assert "cret" not in note.read_text()
    stamps_folder(plugin).chmod(0o700)
    stamps_folder(plugin).parent.chmod(0o700)
    (noted,) = read_folder_notes(Where(plugin.env))
    assert noted == make_folder_note(str(repository))
    assert (noted.remote_url, noted.common_git_folder, noted.has_repository) == (
        "https://host/it@2.git",
        "",
        True,
    )
    assert "(initial): one" in noted.git_identity
    before = note.stat().st_mtime_ns
    assert engine_arguments_at_start(plugin, repository, "resume") == []
    assert engine_arguments_at_start(plugin, repository) == ["new-folder"]
    assert engine_arguments_at_start(plugin, repository) == []
    assert note.stat().st_mtime_ns == before


@pytest.mark.parametrize("name", ["config", "logs/HEAD"])
def test_huge_git_files_do_not_delay_a_start(
    plugin: PluginCopy, repository: Path, name: str
) -> None:
    """A git configuration does not delay a start, even if it is 30 MB long or has a line of 100 MB.

    The hook reads no more of the file than Python would read.
    """
    write_stamp(plugin, f"due-{PROJECT_NAME}.json")
    file = repository / ".git" / name
    if name == "config":
        file.write_bytes(b"# comment\n" * 3_000_000)
    else:
        file.write_bytes(b"x" * 100_000_000)
    engine_arguments_at_start(plugin, repository)
    (note,) = stamps_folder(plugin).glob("folder-*")
    stamps_folder(plugin).chmod(0o700)
    stamps_folder(plugin).parent.chmod(0o700)
    assert list(read_folder_notes(Where(plugin.env))) == [make_folder_note(str(repository))]
    assert note.stat().st_size < 16_384


def test_a_folder_with_sessions_is_not_noted(plugin: PluginCopy, repository: Path) -> None:
    """If the folder has sessions, or if there is no state folder, a start writes no note."""
    assert "new-folder" not in engine_arguments_at_start(plugin, repository)
    assert not (Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "resume-hooks").exists()
    write_stamp(plugin, f"due-{PROJECT_NAME}.json")
    own = Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "projects" / PROJECT_NAME
    own.mkdir(parents=True)
    (own / "x.jsonl").touch()
    assert engine_arguments_at_start(plugin, repository) == []
    assert not list(stamps_folder(plugin).glob("new-*"))


def test_a_start_in_a_known_folder_costs_three_processes(
    plugin: PluginCopy, repository: Path
) -> None:
    """A start in a known folder runs three processes.

    They are the client's shell, one process for the event, and one for the time.
    """
    write_stamp(plugin, f"due-{PROJECT_NAME}.json")
    engine_arguments_at_start(plugin, repository)
    _, found, processes = trace_hook(
        plugin, "SessionStart", make_start_event(plugin), CLAUDE_PROJECT_DIR=str(repository)
    )
    assert (sorted(found), processes) == (["cat", "date", "sh"], 3)


def test_the_module_asks_the_engine_about_a_new_folder_once(
    plugin: PluginCopy, repository: Path, tmp_path: Path
) -> None:
    """The module asks the engine about a new folder once, so that the hook does not have to ask.

    If the event contains hostile names, they are not used in a path.
    """
    write_stamp(plugin, f"due-{PROJECT_NAME}.json")

    def run_script_that_offers_the_folder(
        transcript: str, entrypoint: str = "cli", **env: str
    ) -> str:
        done = subprocess.run(
            ["sh", str(plugin.root / "hooks" / "offered"), "--module", transcript],
            input="{}", capture_output=True, encoding="utf-8", check=False, timeout=60,
            env=plugin.env | {"CLAUDE_PROJECT_DIR": str(repository), "CLAUDE_CODE_ENTRYPOINT": entrypoint} | env,
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout

    for hostile in ("", "x.jsonl", "/a/b c/x.jsonl", "/a/../x.jsonl", "/a/$(touch x)/x.jsonl"):
        assert run_script_that_offers_the_folder(hostile) == "{}\n"
    assert (
        run_script_that_offers_the_folder(f"/projects/{PROJECT_NAME}/x.jsonl", "sdk-cli") == "{}\n"
    )
    assert (
        run_script_that_offers_the_folder(f"/projects/{PROJECT_NAME}/x.jsonl")
        == '{"look":true,"offer":false}\n'
    )
    assert run_script_that_offers_the_folder(f"/projects/{PROJECT_NAME}/x.jsonl") == "{}\n"
    assert engine_arguments_at_start(plugin, repository) == []
    assert not os.path.lexists(tmp_path / "x")
    can_ask = stamps_folder(plugin) / "can-ask"
    os.utime(can_ask, (1, 1))
    assert (
        run_script_that_offers_the_folder(f"/projects/{PROJECT_NAME}/x.jsonl", "sdk-cli") == "{}\n"
    )
    assert (
        run_script_that_offers_the_folder(f"/projects/{PROJECT_NAME}/x.jsonl")
        == '{"look":true,"offer":false}\n'
    ), "a start looked since"
    assert run_script_that_offers_the_folder(f"/projects/{PROJECT_NAME}/x.jsonl") == "{}\n"
    os.utime(can_ask, (1, 1))
    tool = {"RESUME_HOOKS_HANDOFF_TOOL": "on"}
    assert (
        run_script_that_offers_the_folder(f"/projects/{PROJECT_NAME}/x.jsonl", **tool)
        == '{"look":true,"offer":true}\n'
    ), "then the engine itself"
    os.utime(can_ask, (1, 1))
    (stamps_folder(plugin).parent / "vault-told").touch()
    assert run_script_that_offers_the_folder(f"/projects/{PROJECT_NAME}/x.jsonl") == "{}\n"


def test_the_note_of_a_linked_worktree_names_its_repository(
    plugin: PluginCopy, repository: Path, tmp_path: Path
) -> None:
    """The note of a linked worktree contains the path of the main repository's git folder."""
    write_stamp(plugin, f"due-{PROJECT_NAME}.json")
    tree = tmp_path / "tree"
    subprocess.run([*GIT_COMMAND, "worktree", "add", "-q", str(tree)], cwd=repository, check=True)
    engine_arguments_at_start(plugin, tree)
    stamps_folder(plugin).chmod(0o700)
    stamps_folder(plugin).parent.chmod(0o700)
    (noted,) = read_folder_notes(Where(plugin.env))
    assert (noted.path, noted.common_git_folder) == (str(tree), str(repository / ".git"))


def test_the_end_of_a_session_in_a_worktree_leaves_a_note(
    plugin: PluginCopy, repository: Path, tmp_path: Path
) -> None:
    """When a session in a linked worktree ends, it leaves a note that the next start uses.

    This works even if the worktree's folder no longer exists. Sessions in the main repository and
    headless runs leave no note.
    """
    tree = tmp_path / "tree"
    subprocess.run([*GIT_COMMAND, "worktree", "add", "-q", str(tree)], cwd=repository, check=True)
    note = stamps_folder(plugin) / f"keep-{START_SESSION_ID}"
    event = json.dumps(
        {"session_id": START_SESSION_ID, "hook_event_name": "SessionEnd", "reason": "other"}
    ).encode()
    for folder, headless, kept in (
        (repository, "cli", False),
        (tree, "sdk-cli", False),
        (tree, "cli", True),
        (tmp_path / "gone", "cli", True),
    ):
        done = plugin.run_hook(
            "SessionEnd", event, CLAUDE_PROJECT_DIR=str(folder), CLAUDE_CODE_ENTRYPOINT=headless
        )
        assert (done.returncode, done.stderr, note.exists()) == (0, b"", kept)
        note.unlink(missing_ok=True)
    hostile = event.replace(START_SESSION_ID.encode(), b"../../x")
    plugin.run_hook("SessionEnd", hostile, CLAUDE_PROJECT_DIR=str(tree))
    assert not [
        path for path in stamps_folder(plugin).parent.parent.rglob("*x*") if "keep" in path.name
    ]
