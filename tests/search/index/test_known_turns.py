"""Tests of the turn counts of an index that is not updated."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resume_hooks.search.index.connect import opened_index
from resume_hooks.search.index.database import index_file, turns_by_file
from tests.builders import SESSION, ConfigHome, conversation, write_session


@pytest.fixture
def indexed_session(config_home: ConfigHome) -> str:
    """Return a session of three turns in the index."""
    path = write_session(config_home.project(), SESSION, conversation(3))
    with opened_index(config_home.where):
        pass
    return path


def test_turns_are_known_for_an_unchanged_file(
    config_home: ConfigHome, indexed_session: str
) -> None:
    """Its size and time must be the same."""
    status = os.stat(indexed_session)
    assert turns_by_file(config_home.where) == {
        (indexed_session, status.st_size, status.st_mtime_ns): 3
    }


def test_reading_turns_creates_no_index(config_home: ConfigHome) -> None:
    """Without one no turns are known."""
    write_session(config_home.project(), SESSION, conversation(3))
    assert turns_by_file(config_home.where) == {}
    assert not os.path.exists(index_file(config_home.where))


@pytest.mark.parametrize("damage", ["version", "bytes", "folder"])
def test_an_unusable_index_gives_no_turns(
    config_home: ConfigHome, indexed_session: str, damage: str
) -> None:
    """It has another version, is damaged, or is not a file. No error is raised, and it is not repaired."""
    file = Path(index_file(config_home.where))
    if damage == "version":
        with opened_index(config_home.where) as opened:
            opened.db.execute("UPDATE about SET version=1")
    else:
        file.unlink()
        file.mkdir() if damage == "folder" else file.write_bytes(b"x" * 9_000)
    assert turns_by_file(config_home.where) == {}
