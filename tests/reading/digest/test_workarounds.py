"""Tests that an error is no longer open after another command has replaced the failed command."""

from __future__ import annotations

import pytest

from tests.builders import ConfigHome
from tests.reading.digest.talk import Talk, entry_texts

FAILED_TEST_OUTPUT = "FAIL a.test.js\n2 failed, 3 passed\nENOENT: no such file or directory"


@pytest.mark.parametrize(
    ("failed_command", "status", "output", "later_command", "is_open"),
    [
        ("pytest -q", 127, "sh: 1: pytest: not found", "python -m pytest -q", False),
        ("make test", 2, "make: *** No rule to make target 'test'. Stop.", "go test ./...", False),
        ("npm run lint", 1, 'npm ERR! Missing script: "lint"', "npx eslint .", False),
        ("npm run build", 1, "npm ERR! Missing script", "npx tsc --noEmit", True),
        ("docker-compose up -d", 127, "command not found", "docker compose up -d", False),
        (
            "psql -c 'select 1'",
            127,
            "command not found",
            "docker exec db psql -c 'select 1'",
            False,
        ),
        ("npm test", 1, FAILED_TEST_OUTPUT, "npx vitest run one.test.js", True),
        ("npm test", 1, f"no such option{'.' * 1_500}", "npx vitest run", True),
        ("git push origin main", 1, "remote: error: GH006", "gh pr create --fill", False),
        ("git push origin main", 1, "remote: error: GH006", "gh pr view", True),
        ("git pull", 128, "fatal: Not possible to fast-forward", "git -C . rebase main", False),
        ("git pull", 128, "fatal: Not possible to fast-forward", "git merge --abort", True),
    ],
)
def test_an_error_that_was_worked_around_is_not_open(
    config_home: ConfigHome,
    failed_command: str,
    status: int,
    output: str,
    later_command: str,
    is_open: bool,
) -> None:
    """An error of a command that could not run is closed by a different command with the same purpose.

    An error of a check that did run stays open, because the other command may check less.
    """
    talk = Talk().prompt("go").runs(later_command).runs_and_fails(failed_command, output, status)
    assert len(entry_texts(talk.digest(config_home), "errors")) == 1
    assert bool(entry_texts(talk.runs(later_command).digest(config_home), "errors")) is is_open
