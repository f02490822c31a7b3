"""Tests of turn numbers that are read from an index without updating the index."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resume_hooks.search.index.connect import open_index
from resume_hooks.search.index.database import count_turns_by_file, index_file_path
from tests.builders import SESSION, ConfigHome, conversation, write_session


@pytest.fixture
def indexed_session(config_home: ConfigHome) -> str:
    """Write and index a session of three turns, and return its path."""
    path = write_session(config_home.project(), SESSION, conversation(3))
    with open_index(config_home.where):
        pass
    return path


def test_the_number_of_turns_is_known_for_an_unchanged_file(
    config_home: ConfigHome, indexed_session: str
) -> None:
    """For a file whose size and time have not changed, the number of turns is read from the index."""
    status = os.stat(indexed_session)
    assert count_turns_by_file(config_home.where) == {
        (indexed_session, status.st_size, status.st_mtime_ns): 3
    }


def test_reading_turns_creates_no_index(config_home: ConfigHome) -> None:
    """Without an index, the number of turns is unknown, and no index is created."""
    write_session(config_home.project(), SESSION, conversation(3))
    assert count_turns_by_file(config_home.where) == {}
    assert not os.path.exists(index_file_path(config_home.where))


@pytest.mark.parametrize("damage", ["version", "bytes", "folder"])
def test_an_unusable_index_gives_no_turns(
    config_home: ConfigHome, indexed_session: str, damage: str
) -> None:
    """An index that is damaged or has another version gives no numbers of turns and raises no error."""
    file = Path(index_file_path(config_home.where))
    if damage == "version":
        with open_index(config_home.where) as opened:
            opened.db.execute("UPDATE about SET version=1")
    else:
        file.unlink()
        file.mkdir() if damage == "folder" else file.write_bytes(b"x" * 9_000)
    assert count_turns_by_file(config_home.where) == {}
