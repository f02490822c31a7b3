"""Tests that ``rewind-files`` restores the same files as the client's own ``--rewind-files``."""

from __future__ import annotations

import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.parts.rewind_files import history
from resume_hooks.sessions import locate
from tests.e2e.harness.client import ClientHome, ClientVersion
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.test_trim_files import make_fully_trimmed_child, rewind_files, send_prompt
from tests.needs import REPO

FilesByPath = dict[str, tuple[int, bytes]]


def write_call(path: Path, content: str) -> dict[str, Any]:
    """Return a call that writes a file."""
    return {"name": "Write", "input": {"file_path": str(path), "content": content}}


def edit_call(path: Path, old: str, new: str) -> dict[str, Any]:
    """Return a call that edits a file."""
    return {"name": "Edit", "input": {"file_path": str(path), "old_string": old, "new_string": new}}


def read_call(path: Path) -> dict[str, Any]:
    """Return a call that reads a file, which old clients require before an edit."""
    return {"name": "Read", "input": {"file_path": str(path)}}


def shell_call(command: str) -> dict[str, Any]:
    """Return a call of the shell, whose changes of files the client does not record."""
    return {"name": "Bash", "input": {"command": command}}


def session_that_edits_files(client: ClientVersion, home: ClientHome, api: MockApi) -> Path:
    """Run a session of six prompts that edits, creates and deletes files, and return its path."""
    old, new, gone = home.cwd / "old.txt", home.cwd / "sub" / "new.py", home.cwd / "gone.md"
    old.write_text("before\n", encoding="utf-8")
    old.chmod(0o750)
    gone.write_text("stays as long as nobody removes it\n", encoding="utf-8")
    session_id = send_prompt(
        client,
        home,
        api,
        "one",
        [read_call(old), write_call(old, "first\nzweite Zeile: ü\n"), "done"],
    )
    for prompt, script in (
        (
            "two",
            [read_call(old), edit_call(old, "first", "second"), write_call(new, "x = 1\n"), "done"],
        ),
        ("three", ["only said something"]),
        (
            "four",
            [
                read_call(new),
                edit_call(new, "1", "2"),
                read_call(gone),
                edit_call(gone, "nobody", "no one"),
                "done",
            ],
        ),
        (
            "five",
            [
                shell_call(f"rm {gone} && echo by hand >> {old} && echo untracked > other.txt"),
                "done",
            ],
        ),
        ("six", [read_call(old), edit_call(old, "second", "third"), "done"]),
    ):
        session_id = send_prompt(client, home, api, prompt, script, session_id)
    assert not gone.exists()
    return home.project_folder / f"{session_id}.jsonl"


def files_in_folder(folder: Path) -> FilesByPath:
    """Return the mode and the bytes of each file in a folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        str(path.relative_to(folder)): (stat.S_IMODE(path.stat().st_mode), path.read_bytes())
        for path in files
    }


def project_after_client_rewind(
    client: ClientVersion, home: ClientHome, api: MockApi, session_id: str, prompt: str
) -> FilesByPath | None:
    """Return the project's files after the client's own rewind.

    The result is None if the client ended too early and therefore recorded no files at this prompt.
    """
    return (
        files_in_folder(home.cwd) if rewind_files(client, home, api, session_id, prompt) else None
    )


def project_after_our_rewind(home: ClientHome, *arguments: str, code: int = 0) -> FilesByPath:
    """Run ``rewind-files`` in the project and return the project's files after it."""
    done = subprocess.run(
        [sys.executable, "-m", "resume_hooks", "rewind-files", *arguments, "--yes"],
        cwd=home.cwd,
        env={**home.env(), "PYTHONPATH": str(REPO / "src")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return files_in_folder(home.cwd)


def compare_rewinds(
    client: ClientVersion, home: ClientHome, api: MockApi, file: Path, session_id: str
) -> None:
    """Check that ``rewind-files`` and the client's own rewind leave the same files at each prompt.

    An undo must restore the earlier files.
    """
    aside = home.root.parent / "aside"
    shutil.copytree(home.root, aside, symlinks=True)
    before = files_in_folder(home.cwd)
    seen, compared = [], 0
    for prompt in history.read_file_history(locate.session_file(str(file))).prompts:
        wanted = project_after_client_rewind(client, home, api, session_id, prompt.uuid)
        shutil.rmtree(home.root)
        shutil.copytree(aside, home.root, symlinks=True)
        found = project_after_our_rewind(home, session_id, "--to", prompt.uuid)
        assert found == (found if wanted is None else wanted), prompt.first_words
        if found != before:
            assert project_after_our_rewind(home, session_id, "--undo") == before
        shutil.rmtree(home.root)
        shutil.copytree(aside, home.root, symlinks=True)
        seen.append(found)
        compared += wanted is not None
    assert compared >= 4
    assert len({repr(one) for one in seen}) >= 5, "the prompts are told apart"
    assert seen[0]["old.txt"] == (0o750, b"before\n")


def test_rewind_files_restores_the_same_files_as_the_client(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """``rewind-files`` restores the same contents and modes as the client, at each prompt.

    Old clients record only complete snapshots. New clients also record single files.
    """
    file = session_that_edits_files(every_client, home, api)
    compare_rewinds(every_client, home, api, file, file.stem)


@pytest.mark.wide
def test_a_child_without_its_parent_restores_the_same_files(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """A trimmed child whose parent is deleted restores the same files as the client.

    Only backups under the child's own id are used, as in the client.
    """
    file = session_that_edits_files(client, home, api)
    child = make_fully_trimmed_child(file, home)
    own, aside, before = (
        home.config / "file-history" / child,
        home.root / "own",
        files_in_folder(home.cwd),
    )
    own.rename(aside)
    assert project_after_our_rewind(home, child, "--to", "1", code=1) == before
    assert (home.config / "file-history" / file.stem).is_dir()
    aside.rename(own)
    file.unlink()
    shutil.rmtree(home.config / "file-history" / file.stem)
    compare_rewinds(client, home, api, home.project_folder / f"{child}.jsonl", child)
