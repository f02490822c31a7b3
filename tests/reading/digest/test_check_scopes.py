"""The scopes of checks, and the number of comparisons between them."""

from __future__ import annotations

import pytest

from resume_hooks.reading.digest import check_scopes, shell
from resume_hooks.reading.digest.check_scopes import CheckPasses, CheckRun
from resume_hooks.reading.digest.facts import RecordPlace, ShellRun
from tests.builders import CWD, SESSION

RUN_COUNT = 200


def _passed_run(number: int) -> CheckRun:
    command = f"go test ./p{number} -run Test{number}x"
    place = RecordPlace(SESSION, number, number)
    run = ShellRun(command, place, place, CWD, 0, False, "ok", False)
    parts = shell.parse_simple_commands(command)
    return CheckRun(run, parts, shell.make_command_key(command), has_passed=True)


def test_a_long_session_is_compared_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many checks is compared only with the latest others."""
    comparisons: list[str] = []
    covers = check_scopes._covers

    def count_comparison(*scopes: check_scopes._CheckScope) -> bool:
        comparisons.append("")
        return covers(*scopes)

    monkeypatch.setattr(check_scopes, "_covers", count_comparison)
    runs = [_passed_run(number) for number in range(RUN_COUNT)]
    passes = CheckPasses(runs)
    assert [passes.find_covering_pass(run) for run in runs] == [None] * RUN_COUNT
    assert len(comparisons) <= RUN_COUNT * check_scopes.MAX_COMPARED_SCOPES
