"""A damaged index, or one of another version: made anew by itself, and never in the way of a search."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from resume_hooks.search.index.connect import opened_index
from resume_hooks.search.index.database import FILE_NAME, VERSION, IndexDamaged, IndexUnusable, telling
from tests.builders import SESSION, ConfigHome
from tests.search.index.probe import cold, filled, finds, held, index_of, said, written

NAME = f"{SESSION}.jsonl"


def test_a_newer_index_is_left_alone_and_an_older_one_made_anew(config_home: ConfigHome) -> None:
    """A newer engine shares the folder: its index isn't touched."""
    written(config_home, said("alpha"))
    held(config_home)
    for version, ours in ((VERSION + 1, False), (VERSION - 1, True)):
        with contextlib.closing(sqlite3.connect(index_of(config_home))) as db:
            db.execute("UPDATE about SET version=?", (version,))
            db.commit()
        holding = held(config_home)
        assert holding.words() == {"alpha"}
        assert (holding.rebuilt, not holding.notes) == (ours, ours)


@pytest.mark.parametrize("damage", ["garbage", "zero", "half", "odd", "text", "empty tables", "no version", "lock"])
def test_a_damaged_index_is_made_anew(config_home: ConfigHome, damage: str) -> None:
    """By itself, within the same call."""
    filled(config_home, files=2)
    before = held(config_home).finds
    path = index_of(config_home)
    raw = path.read_bytes()
    if damage == "empty tables":
        path.unlink()
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE other(x)")
    elif damage == "no version":
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("DELETE FROM about")
            db.commit()
    elif damage == "lock":
        Path(f"{path}.lock").unlink()
        Path(f"{path}.lock").symlink_to("/nowhere")
    else:
        made = {"garbage": os.urandom(50_000), "zero": b"", "half": raw[: len(raw) // 2], "odd": raw[:5_001]}
        path.write_bytes(made.get(damage, b"no database at all\n" * 100))
    assert held(config_home).finds == before
    assert held(config_home).outcome.files == 0


def test_damage_anywhere_heals(config_home: ConfigHome) -> None:
    """Each page in turn is overwritten: a search works, or says that the index will be made anew, and then it is."""
    filled(config_home, files=3, records=20)
    before = held(config_home).finds
    path = index_of(config_home)
    raw = path.read_bytes()
    chance = random.Random(5)
    for page in range(0, len(raw), 4_096):
        for start, length in ((page, 4_096), (page + chance.randrange(4_000), 8), (page, 12)):
            noise = chance.randbytes(length)
            path.write_bytes(raw[:start] + noise + raw[start + length :])
            with contextlib.suppress(IndexDamaged):
                held(config_home)
            for left in path.parent.glob("index.db-*"):
                left.unlink()
    path.write_bytes(raw[:4_096] + bytes(len(raw) - 4_096))
    with contextlib.suppress(IndexDamaged):
        held(config_home)
    assert held(config_home).finds == before


def test_damage_that_only_a_search_meets(config_home: ConfigHome) -> None:
    """The word lists' pages are read by no update: the search says what to do, and the next one is whole."""
    filled(config_home, files=3)
    before = held(config_home).finds
    with contextlib.closing(sqlite3.connect(index_of(config_home))) as db:
        db.execute("UPDATE words_data SET block=zeroblob(length(block)) WHERE id>100")
        db.commit()
    with pytest.raises(IndexDamaged) as caught, opened_index(config_home.where) as index:
        finds(index.db)
    assert "again" in caught.value.remedy
    assert held(config_home).finds == before


@pytest.mark.parametrize("kept", ["wal", "shm"])
def test_files_that_were_left_beside_the_index(config_home: ConfigHome, kept: str) -> None:
    """Garbage in them is no harm, with an index or without one."""
    written(config_home, said("alpha"))
    held(config_home)
    for gone in (False, True):
        if gone:
            index_of(config_home).unlink()
        Path(f"{index_of(config_home)}-{kept}").write_bytes(os.urandom(40_000))
        assert held(config_home).words() == {"alpha"}


def test_a_log_of_another_index_is_not_played_into_this_one(config_home: ConfigHome, tmp_path: Path) -> None:
    """A whole log, left by a kill between the removal of the index and of what lies beside it."""
    filled(config_home, files=2)
    with opened_index(config_home.where):
        for file in index_of(config_home).parent.glob("index.db*"):
            shutil.copy(file, tmp_path)
    before = cold(config_home, tmp_path).finds
    for ending in ("", "-shm"):
        (tmp_path / f"{FILE_NAME}{ending}").unlink(missing_ok=True)
    index_of(config_home).unlink()
    (tmp_path / f"{FILE_NAME}-wal").replace(f"{index_of(config_home)}-wal")
    assert held(config_home).finds == before


def test_a_python_without_fts5_says_so_and_removes_nothing() -> None:
    """The index of a better one is not taken for damaged."""
    with pytest.raises(IndexUnusable, match="no FTS5") as told, telling():
        raise sqlite3.OperationalError("no such module: fts5")
    assert "RESUME_HOOKS_PYTHON" in told.value.remedy


def test_where_nothing_is_there_nothing_is_made(config_home: ConfigHome) -> None:
    """A search in a home without transcripts leaves no folder behind."""
    with opened_index(config_home.where) as index:
        assert index.db.execute("SELECT count(*) FROM files").fetchone() == (0,)
        assert index.notes == []
    assert not index_of(config_home).exists()
