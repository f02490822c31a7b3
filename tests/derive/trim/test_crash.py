"""Tests that an interrupted trim leaves a whole child or none, and never changes the parent."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.errors import WriteFailed
from tests.builders import SESSION, ConfigHome
from tests.crashes import (
    exit_code_of_fork,
    kill_before_each_change,
    limit_file_size,
    without_root_rights,
)
from tests.derive.trim.sessions import Chain, plan_trim_of_file, write_project_session

WRITE_REFUSED_EXIT_CODE = 7
"""Exit code of a process in which writing was refused."""


def plan_in_new_home(home: ConfigHome) -> TrimPlan:
    """Write a session with large outputs and backups to an empty home, and plan its trim."""
    shutil.rmtree(home.root, ignore_errors=True)
    chain = Chain()
    for number in range(60):
        chain.ask("question " * 90).call_with_result(
            f"t{number}", "Bash", f"{number} " * 900
        ).answer()
    tracked = {name: {"backupFileName": name} for name in ("one", "two")}
    snapshot = {"messageId": "c0", "trackedFileBackups": tracked}
    path = write_project_session(
        home,
        [*chain.rows, {"type": "file-history-snapshot", "messageId": "c0", "snapshot": snapshot}],
    )
    for folder in (path.with_suffix("") / "tool-results", home.config / "file-history" / SESSION):
        folder.mkdir(parents=True)
        (folder / "one").write_bytes(b"1")
        (folder / "two").write_bytes(b"2")
    return plan_trim_of_file(home, path)


def describe_files_after_attempt(home: ConfigHome, plan: TrimPlan) -> dict[str, Any]:
    """Return the sizes and names of the files that are left after an attempt to write a child."""
    child, history = (
        Path(plan.draft.path),
        home.config / "file-history" / plan.draft.session_id,
    )
    beside = [*child.with_suffix("").rglob("*"), *history.rglob("*")]
    return {
        "child": child.exists() and len(child.read_bytes().rpartition(b"customTitle")[0]),
        "parent": home.project().joinpath(f"{SESSION}.jsonl").stat().st_size,
        "companions": sorted(path.name for path in beside if path.is_file()),
        "linked": all(
            path.stat().st_nlink > 1 for path in beside if path.parent.name == "tool-results"
        ),
        "temporary": [
            path.name for path in home.project().iterdir() if path.name.startswith(".resume-hooks-")
        ],
    }


def test_a_trim_killed_at_any_step_leaves_a_whole_child_or_none(config_home: ConfigHome) -> None:
    """A trim that is killed at any step leaves a whole child or none, and the parent is unchanged.

    The next trim removes the leftovers.
    """
    plans: list[TrimPlan] = []

    def prepare_trim() -> Callable[[], object]:
        plans.append(plan_in_new_home(config_home))
        return lambda: write_child(plans[-1], config_home.where)

    killed = []
    for was_killed in kill_before_each_change(prepare_trim):
        found = describe_files_after_attempt(config_home, plans[-1])
        again = plan_trim_of_file(config_home, config_home.project() / f"{SESSION}.jsonl")
        write_child(again, config_home.where)
        whole = describe_files_after_attempt(config_home, again)
        assert (whole["companions"], whole["temporary"]) == (["one", "one", "two", "two"], [])
        # The large outputs of a child that was never written are hard links, so they take no space.
        assert found["linked"]
        if was_killed:
            assert found["parent"] == whole["parent"]
            assert found["child"] in {False, whole["child"]}
            assert not found["child"] or found["companions"] == whole["companions"]
            killed.append(found)
        else:
            assert found == whole
    assert [bool(found["child"]) for found in killed] == sorted(
        bool(found["child"]) for found in killed
    )
    assert killed[-1]["child"], "one step comes after the child's birth"


def run_command_line(home: ConfigHome, *arguments: str) -> None:
    """Run the command line in this process, and exit with its exit code if that is not 0."""
    os.environ.update(home.environ)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    from resume_hooks.cli.main import main as command_line

    sys.argv = ["resume-hooks", *arguments]
    try:
        command_line()
    except SystemExit as ended:
        os._exit(ended.code if isinstance(ended.code, int) else 0)


def test_a_killed_slim_copy_is_whole_or_missing(config_home: ConfigHome) -> None:
    """If ``archive --slim`` is killed at any step, the session is unchanged.

    The slim copy exists only if the vault has the originals.
    """
    before: dict[str, bytes] = {}

    def read_project_files() -> dict[str, bytes]:
        return {
            path.name: path.read_bytes()
            for path in config_home.project().iterdir()
            if path.is_file()
        }

    def prepare_slim_copy() -> Callable[[], object]:
        plan_in_new_home(config_home)
        before.update(read_project_files())
        return lambda: run_command_line(config_home, "archive", "--slim", SESSION)

    copies = []
    for _ in kill_before_each_change(prepare_slim_copy, every=7):
        now = read_project_files()
        assert now.items() >= before.items()
        copies.append(
            [
                now[name].count(b"\n")
                for name in now
                if name.endswith(".jsonl") and name not in before
            ]
        )
        assert not copies[-1] or not exit_code_of_fork(
            lambda: run_command_line(config_home, "archive", "--verify", SESSION)
        )
        assert not exit_code_of_fork(
            lambda: run_command_line(config_home, "archive", "--slim", SESSION)
        )
    assert len(copies[-1]) == 1
    assert all(found in ([], copies[-1]) for found in copies)
    assert len(copies) > 5


@pytest.mark.parametrize("max_file_bytes", [0, 1, 4_096, 60_000, None])
def test_a_trim_fails_on_a_full_disk_or_in_a_read_only_folder(max_file_bytes: int | None) -> None:
    """If the disk is full or the folder is read-only, a trim raises ``WriteFailed`` and leaves no files."""
    with tempfile.TemporaryDirectory() as folder:
        home = ConfigHome(
            Path(folder), Path(folder, "c"), {"HOME": folder, "CLAUDE_CONFIG_DIR": f"{folder}/c"}
        )
        decided = plan_in_new_home(home)

        def write_child_and_report_failure() -> None:
            try:
                if max_file_bytes is None:
                    home.project().chmod(0o555)
                    with without_root_rights(home.root):
                        write_child(decided, home.where)
                else:
                    limit_file_size(max_file_bytes)
                    write_child(decided, home.where)
            except WriteFailed:
                os._exit(WRITE_REFUSED_EXIT_CODE)

        assert exit_code_of_fork(write_child_and_report_failure) == WRITE_REFUSED_EXIT_CODE
        found = describe_files_after_attempt(home, decided)
        assert (found["child"], found["companions"], found["temporary"]) == (False, [], [])
        assert not Path(decided.draft.path).with_suffix("").exists()
        assert not (home.config / "file-history" / decided.draft.session_id).exists()
