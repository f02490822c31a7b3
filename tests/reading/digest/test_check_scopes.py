"""Tests of finding a later check that covers an earlier check, and of the time that this takes."""

from __future__ import annotations

import pytest

from resume_hooks.reading.digest import check_scopes, shell
from resume_hooks.reading.digest.check_scopes import CheckRun, PassedChecks
from resume_hooks.reading.digest.facts import RecordPosition, ShellRun
from tests.builders import CWD, SESSION

RUN_COUNT = 200


def _make_passed_run(number: int) -> CheckRun:
    command = f"go test ./p{number} -run Test{number}x"
    position = RecordPosition(SESSION, number, number)
    run = ShellRun(command, position, position, CWD, 0, False, "ok", False)
    parts = shell.parse_simple_commands(command)
    return CheckRun(run, parts, shell.make_command_key(command), CWD, has_passed=True)


def test_many_checks_are_compared_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """For 200 checks, there are at most 200 times ``MAX_COMPARED_SCOPES`` comparisons."""
    comparisons: list[str] = []
    covers = check_scopes._covers_scope

    def count_and_compare(*scopes: check_scopes._CheckScope) -> bool:
        comparisons.append("")
        return covers(*scopes)

    monkeypatch.setattr(check_scopes, "_covers_scope", count_and_compare)
    runs = [_make_passed_run(number) for number in range(RUN_COUNT)]
    passes = PassedChecks(runs)
    assert [passes.find_covering_run(run) for run in runs] == [None] * RUN_COUNT
    assert len(comparisons) <= RUN_COUNT * check_scopes.MAX_COMPARED_SCOPES


def _make_check_run(
    command: str, order: int, folder: str, output: str = "ok", status: int = 0
) -> CheckRun:
    position = RecordPosition(SESSION, order, order)
    run = ShellRun(command, position, position, folder, status, bool(status), output, False)
    parts = shell.parse_simple_commands(command)
    return CheckRun(run, parts, shell.make_command_key(command), folder, has_passed=not status)


def test_a_task_in_another_folder_does_not_cover_a_check() -> None:
    """A task that ran in a different folder does not count as a later run of a check.

    This holds even if the task printed the check's command. A run of the same task in the check's
    folder counts if it passed.
    """
    check = _make_check_run("go test ./a", 1, "/repo")
    printed = "[test] $ go test ./..."
    other = _make_check_run("mise run test", 2, "/other", printed)
    failed = _make_check_run("mise run test", 3, "/repo", printed, status=1)
    assert PassedChecks([check, other, failed]).find_covering_run(check) is None
    passed = _make_check_run("mise run test", 4, "/repo", printed)
    assert PassedChecks([check, other, failed, passed]).find_covering_run(check) is not None


def test_a_task_with_a_very_long_command_does_not_cover_a_check() -> None:
    """A task does not count as a later run of a check if it printed a very long command.

    The end of such a command is not read, although it may select tests. A task that printed a short
    command counts as a later run, unless the command selects tests.
    """
    check = _make_check_run("go test ./a", 1, "/repo")
    for folder_count, is_proof in ((10, True), (200, False)):
        folders = " ".join(f"./b{number}" for number in range(folder_count))
        runner = _make_check_run(
            "mise run test", 2, "/repo", f"[t] $ go test ./... {folders} -run One"
        )
        short_runner = _make_check_run(
            "mise run test", 2, "/repo", f"[t] $ go test ./... {folders}"
        )
        assert PassedChecks([check, runner]).find_covering_run(check) is None
        proof = PassedChecks([check, short_runner]).find_covering_run(check)
        assert (proof is not None) is is_proof
