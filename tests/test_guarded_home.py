"""Tests that every access to the real ~/.claude or ~/.codex in a test raises an error."""

from __future__ import annotations

import os
import pwd
import shutil
import sqlite3
from collections.abc import Callable

import pytest

from resume_hooks import paths
from resume_hooks.storage.atomic import create_session
from tests.builders import ConfigHome

REAL_CLAUDE_HOME = os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".claude")
FILE_IN_REAL_HOME = os.path.join(REAL_CLAUDE_HOME, "projects", "-never", "x.jsonl")
REAL_CODEX_HOME = os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".codex")

REAL_HOME_ACCESSES: list[Callable[[], object]] = [
    lambda: open(FILE_IN_REAL_HOME, "rb"),  # noqa: SIM115
    lambda: os.open(FILE_IN_REAL_HOME.encode(), os.O_RDONLY),
    lambda: os.listdir(REAL_CLAUDE_HOME),
    lambda: os.scandir(os.path.join(REAL_CLAUDE_HOME, "projects", "..")),
    lambda: os.mkdir(os.path.join(REAL_CLAUDE_HOME, "resume-hooks")),
    lambda: os.rename("/tmp/nothing-here", FILE_IN_REAL_HOME),
    lambda: os.remove(FILE_IN_REAL_HOME),
    lambda: os.symlink(FILE_IN_REAL_HOME, "/tmp/nothing-here/link"),
    lambda: shutil.rmtree(REAL_CLAUDE_HOME),
    lambda: create_session(FILE_IN_REAL_HOME, [b"{}\n"], lambda path: None),
    lambda: os.scandir(os.path.join(REAL_CODEX_HOME, "sessions")),
    lambda: open(os.path.join(REAL_CODEX_HOME, "session_index.jsonl"), "ab"),  # noqa: SIM115
    lambda: sqlite3.connect(os.path.join(REAL_CODEX_HOME, "state_5.sqlite")),
]


@pytest.mark.parametrize("access_home", REAL_HOME_ACCESSES)
def test_access_to_the_real_home_raises_an_error(access_home: Callable[[], object]) -> None:
    """An attempt to open, list, create, move or delete a file of the real home raises an error.

    The file is not touched. It makes no difference how the path is written.
    """
    with pytest.raises(AssertionError, match=r"never touch the real ~/\.claude"):
        access_home()


def test_the_home_does_not_exist_by_default() -> None:
    """Without a fixture, the test's home does not exist and cannot be created."""
    home = paths.Where().config
    assert not os.path.exists(home)
    with pytest.raises(NotADirectoryError):
        os.makedirs(home)


def test_the_engine_uses_the_home_of_the_test(config_home: ConfigHome) -> None:
    """The engine uses the home of the fixture ``config_home`` even if the caller passes no paths."""
    assert paths.Where().config == config_home.where.config == str(config_home.config)
