"""Turn counts of an index that is not updated."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resume_hooks.search.index.connect import opened_index
from resume_hooks.search.index.database import index_file, turns_by_file
from tests.builders import SESSION, ConfigHome, conversation, write_session


@pytest.fixture
def session(config_home: ConfigHome) -> str:
    """A session of three turns that the index knows."""
    path = write_session(config_home.project(), SESSION, conversation(3))
    with opened_index(config_home.where):
        pass
    return path


def test_turns_of_a_file_as_it_was_read(config_home: ConfigHome, session: str) -> None:
    """Known as long as size and time are the same."""
    status = os.stat(session)
    assert turns_by_file(config_home.where) == {(session, status.st_size, status.st_mtime_ns): 3}


def test_no_index_is_made(config_home: ConfigHome) -> None:
    """Where there is none, nothing is known, and there is none after."""
    write_session(config_home.project(), SESSION, conversation(3))
    assert turns_by_file(config_home.where) == {}
    assert not os.path.exists(index_file(config_home.where))


@pytest.mark.parametrize("damage", ["version", "bytes", "folder"])
def test_an_index_that_cannot_be_used(config_home: ConfigHome, session: str, damage: str) -> None:
    """Of another version, damaged, no file: nothing is known, nothing fails, nothing is mended."""
    file = Path(index_file(config_home.where))
    if damage == "version":
        with opened_index(config_home.where) as opened:
            opened.db.execute("UPDATE about SET version=1")
    else:
        file.unlink()
        file.mkdir() if damage == "folder" else file.write_bytes(b"x" * 9_000)
    assert turns_by_file(config_home.where) == {}
