"""Every access to the real ~/.claude or ~/.codex in a test raises an error."""

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

REAL = os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".claude")
INSIDE = os.path.join(REAL, "projects", "-never", "x.jsonl")
CODEX = os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".codex")

ACCESSES: list[Callable[[], object]] = [
    lambda: open(INSIDE, "rb"),  # noqa: SIM115
    lambda: os.open(INSIDE.encode(), os.O_RDONLY),
    lambda: os.listdir(REAL),
    lambda: os.scandir(os.path.join(REAL, "projects", "..")),
    lambda: os.mkdir(os.path.join(REAL, "resume-hooks")),
    lambda: os.rename("/tmp/nothing-here", INSIDE),
    lambda: os.remove(INSIDE),
    lambda: os.symlink(INSIDE, "/tmp/nothing-here/link"),
    lambda: shutil.rmtree(REAL),
    lambda: create_session(INSIDE, [b"{}\n"], lambda path: None),
    lambda: os.scandir(os.path.join(CODEX, "sessions")),
    lambda: open(os.path.join(CODEX, "session_index.jsonl"), "ab"),  # noqa: SIM115
    lambda: sqlite3.connect(os.path.join(CODEX, "state_5.sqlite")),
]


@pytest.mark.parametrize("touch", ACCESSES)
def test_access_to_the_real_home_raises_an_error(touch: Callable[[], object]) -> None:
    """Opening, listing, creating, moving or deleting a file of the real home raises an error first.

    It does not matter how the path is written.
    """
    with pytest.raises(AssertionError, match=r"never touch the real ~/\.claude"):
        touch()


def test_the_home_does_not_exist_by_default() -> None:
    """Without a fixture, the home of a test does not exist and cannot be created."""
    home = paths.Where().config
    assert not os.path.exists(home)
    with pytest.raises(NotADirectoryError):
        os.makedirs(home)


def test_our_code_finds_the_home_of_a_test(config_home: ConfigHome) -> None:
    """With the fixture ``config_home``, our code uses its home, with or without an argument."""
    assert paths.Where().config == config_home.where.config == str(config_home.config)
