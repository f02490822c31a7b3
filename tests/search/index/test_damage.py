"""Tests of an index that is damaged or has another version.

Such an index is rebuilt automatically so that searches work.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from resume_hooks.errors import IndexDamaged
from resume_hooks.search.index.connect import open_index
from resume_hooks.search.index.database import INDEX_VERSION, TABLE_FILE_NAME
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from tests.builders import ConfigHome, session_id
from tests.needs import REPO, one_in
from tests.search.index.probe import (
    answer_with_id,
    append_records,
    build_new_index,
    fill_home,
    index_database_path,
    index_words_folder,
    prompt_with_id,
    read_found_words,
    read_index,
    write_session_file,
)


def test_a_newer_index_is_kept_and_an_older_index_is_rebuilt(config_home: ConfigHome) -> None:
    """An index of a newer version is not changed. An index of an older version is rebuilt.

    A newer engine may use the same folder.
    """
    write_session_file(config_home, prompt_with_id("alpha"))
    read_index(config_home)
    for version, ours in ((INDEX_VERSION + 1, False), (INDEX_VERSION - 1, True)):
        with contextlib.closing(sqlite3.connect(index_database_path(config_home))) as db, db:
            db.execute("UPDATE about SET version=?", (version,))
        holding = read_index(config_home)
        assert holding.words() == {"alpha"}
        assert (holding.was_rebuilt, not holding.notes) == (ours, ours)


def test_the_single_file_index_is_replaced(config_home: ConfigHome) -> None:
    """An index of version 2, which was a single file, is replaced completely."""
    write_session_file(config_home, prompt_with_id("alpha"))
    index_database_path(config_home).parent.mkdir()
    with contextlib.closing(sqlite3.connect(index_database_path(config_home))) as db, db:
        db.execute("CREATE TABLE about(version INTEGER NOT NULL, next INTEGER NOT NULL)")
        db.execute("INSERT INTO about VALUES(2, 7)")
        db.execute("CREATE TABLE files(id INTEGER PRIMARY KEY, path TEXT NOT NULL)")
        db.execute("INSERT INTO files VALUES(1, 'zymurgy')")
    holding = read_index(config_home)
    assert (holding.words(), holding.was_rebuilt, holding.notes) == ({"alpha"}, True, [])
    assert b"zymurgy" not in b"".join(
        path.read_bytes() for path in index_database_path(config_home).parent.glob("index.db*")
    )


def test_an_empty_folder_in_place_of_the_index_is_replaced(config_home: ConfigHome) -> None:
    """An empty folder with the name of the index file is replaced.

    A folder with content may belong to the user, so it is kept, and a note reports it.
    """
    write_session_file(config_home, prompt_with_id("alpha"))
    read_index(config_home)
    path = index_database_path(config_home)
    path.unlink()
    path.mkdir()
    holding = read_index(config_home)
    assert (holding.words(), holding.notes, path.is_file()) == ({"alpha"}, [], True)
    path.unlink()
    (path / "sub").mkdir(parents=True)
    (note,) = read_index(config_home).notes
    assert "Directory not empty" in note
    assert (path / "sub").is_dir()


@pytest.mark.parametrize(
    "damage",
    one_in(3, ["garbage", "zero", "half", "lock", "odd", "text", "empty tables", "no version"]),
)
def test_a_damaged_index_is_rebuilt(config_home: ConfigHome, damage: str) -> None:
    """A damaged index is rebuilt by the search that finds the damage."""
    fill_home(config_home, session_count=2)
    before = read_index(config_home).found_words
    path = index_database_path(config_home)
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
        made = {
            "garbage": os.urandom(50_000),
            "zero": b"",
            "half": raw[: len(raw) // 2],
            "odd": raw[:5_001],
        }
        path.write_bytes(made.get(damage, b"no database at all\n" * 100))
    assert read_index(config_home).found_words == before
    assert read_index(config_home).outcome.read_file_count == 0


def test_damage_at_any_page_is_repaired(config_home: ConfigHome) -> None:
    """If any page of the SQLite file is damaged, the index is correct again after the second search.

    The first search works or reports the damage.
    """
    write_session_file(config_home, prompt_with_id("alpha"), answer_with_id("beta"))
    before = read_index(config_home).found_words
    path = index_database_path(config_home)
    raw = path.read_bytes()
    rng = random.Random(5)
    for page in range(0, len(raw), 4_096):
        for start, length in ((page, 4_096), (page + rng.randrange(4_000), 8), (page, 12)):
            noise = rng.randbytes(length)
            path.write_bytes(raw[:start] + noise + raw[start + length :])
            with contextlib.suppress(IndexDamaged):
                read_index(config_home)
            for left in path.parent.glob("index.db-*"):
                left.unlink()
    path.write_bytes(raw[:4_096] + bytes(len(raw) - 4_096))
    with contextlib.suppress(IndexDamaged):
        read_index(config_home)
    assert read_index(config_home).found_words == before


def test_damage_found_by_a_search_is_repaired_by_the_next(
    config_home: ConfigHome, capfd: pytest.CaptureFixture[str]
) -> None:
    """Damage that only a search notices is reported with a remedy, and the next search is complete.

    An update of the index does not notice the damage, because it does not read the lists of words.
    """
    fill_home(config_home, session_count=3)
    before = read_index(config_home).found_words
    damage_files(index_words_folder(config_home) / "records", "idx")
    with pytest.raises(IndexDamaged) as caught, open_index(config_home.where) as index:
        read_found_words(index)
    assert "again" in caught.value.remedy
    assert read_index(config_home).found_words == before
    damage_files(index_words_folder(config_home) / "records", "idx")
    # This search rebuilt the index and was then repeated.
    assert search_index(["filling"], Scope(), config_home.where).notes == []
    assert capfd.readouterr().err == ""


def damage_files(folder: Path, name_ending: str) -> None:
    """Overwrite the middle of each file in ``folder`` whose name ends with ``name_ending``."""
    for path in folder.glob(f"*.{name_ending}"):
        raw = path.read_bytes()
        path.unlink()  # Programs that have the file open keep the old content.
        path.write_bytes(
            raw[: len(raw) // 4] + b"\xff" * (len(raw) // 2) + raw[len(raw) * 3 // 4 :]
        )


@pytest.mark.parametrize("folder_name", ["records", "windows"])
@pytest.mark.parametrize(
    "file_pattern",
    ["meta.json", ".managed.json", "*.fast", "*.fieldnorm", "*.idx", "*.store", "*.term"],
)
@pytest.mark.parametrize("damage", one_in(3, ["gone", "empty", "zero", "half", "garbage"]))
def test_damaged_word_files_are_rebuilt(
    config_home: ConfigHome,
    capfd: pytest.CaptureFixture[str],
    folder_name: str,
    file_pattern: str,
    damage: str,
) -> None:
    """If files with the index's words are damaged, the next search rebuilds them and reports nothing.

    The search also finds messages that were added after the damage.
    """
    path = write_session_file(config_home, prompt_with_id("alpha"), answer_with_id("beta"))
    read_index(config_home)
    for more in ((), (prompt_with_id("gamma"),)):
        append_records(path, *more)
        for file in (index_words_folder(config_home) / folder_name).glob(file_pattern):
            raw = file.read_bytes()
            made = {
                "empty": b"",
                "zero": bytes(len(raw)),
                "half": raw[: len(raw) // 2],
                "garbage": os.urandom(500),
            }
            file.unlink()  # A program that has the file open keeps the old content.
            if damage != "gone":
                file.write_bytes(made[damage])
        holding = read_index(config_home)
        assert holding.words() == {"alpha", "beta", *(["gamma"] if more else [])}
        assert holding.notes == []
        assert read_index(config_home).outcome.read_file_count == 0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("missing_name", ["index", "index/records", "index/windows", "index.db"])
def test_an_index_without_its_table_or_words_is_rebuilt(
    config_home: ConfigHome, missing_name: str
) -> None:
    """If the SQLite file or the words are missing, all files are read again.

    Without this, the index could find words in files that are not in its table.
    """
    write_session_file(config_home, prompt_with_id("alpha"))
    other = write_session_file(config_home, prompt_with_id("beta"), session_uuid=session_id(2))
    read_index(config_home)
    other.unlink()
    state = index_database_path(config_home).parent
    shutil.rmtree(state / missing_name) if missing_name != "index.db" else index_database_path(
        config_home
    ).unlink()
    holding = read_index(config_home)
    assert (holding.words(), len(holding.rows), holding.notes) == ({"alpha"}, 1, [])


BYTE_CHANGE_COUNT = 60 if os.environ.get("RUN_ALL") == "1" else 16
BYTE_CHANGE_SCRIPT = """
import random, sys
from pathlib import Path
from resume_hooks.paths import Where
from resume_hooks.search.index.connect import open_index
from resume_hooks.errors import IndexDamaged
from tests.search.index.probe import read_finds
seed, folder, path = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
rng = random.Random(seed)
file = rng.choice(sorted(file for file in folder.rglob("*.*") if file.stat().st_size))
raw = bytearray(file.read_bytes())
place = rng.randrange(len(raw))
length = rng.choice([1, 1, 16])
raw[place : place + length] = bytes(byte ^ rng.choice([1, 16, 255]) for byte in raw[place : place + length])
file.write_bytes(raw)
if seed % 2:
    with path.open("ab") as stream:
        stream.write(b'{"type":"user","message":{"content":"appended"}}\\n')
try:
    with open_index(Where()) as index:
        read_finds(index)
except IndexDamaged as error:
    assert error.remedy
except KeyError:
    pass  # of a word that is damaged the file may be, too
"""
"""Changes some bytes of a random file that stores words, and then reads all words.

If the seed is odd, a record is appended first, so that the index is updated.
"""


@pytest.mark.slow
@pytest.mark.wide
def test_any_changed_byte_of_the_words_is_repaired(config_home: ConfigHome) -> None:
    """If any byte of the index's words is changed, the index is correct again after two searches.

    Reading the damaged words works, reports the damage, or ends the process, because tantivy ends
    the process if one of its threads fails.
    """
    fill_home(config_home, session_count=3, records_per_session=10)
    path = config_home.project() / f"{session_id(0)}.jsonl"
    for number in range(3):
        append_records(path, prompt_with_id(f"alpha{number}"))
        read_index(config_home)
    state, ended = index_database_path(config_home).parent, 0
    kept = shutil.copytree(state, config_home.root / "kept")
    for seed in range(BYTE_CHANGE_COUNT):
        shutil.rmtree(state)
        shutil.copytree(kept, state)
        done = run_python(
            config_home,
            BYTE_CHANGE_SCRIPT,
            str(seed),
            str(index_words_folder(config_home)),
            str(path),
        )
        assert done.returncode in (0, -signal.SIGABRT), done.stderr
        ended += done.returncode != 0
        append_records(path, prompt_with_id(f"beta{seed}"))
        with contextlib.suppress(IndexDamaged):
            read_index(config_home)
        holding = read_index(config_home)
        assert holding.notes == []
        assert holding.lines_with_word(f"beta{seed}")
    assert ended <= BYTE_CHANGE_COUNT / 8


def run_python(home: ConfigHome, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a separate process."""
    environ = {**os.environ, **home.environ, "PYTHONPATH": f"{REPO / 'src'}:{REPO}"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name_ending", ["wal", "shm"])
def test_leftover_files_next_to_the_index_are_harmless(
    config_home: ConfigHome, name_ending: str
) -> None:
    """Invalid SQLite files beside the index do not disturb a search, whether or not an index exists."""
    write_session_file(config_home, prompt_with_id("alpha"))
    read_index(config_home)
    for gone in (False, True):
        if gone:
            index_database_path(config_home).unlink()
        Path(f"{index_database_path(config_home)}-{name_ending}").write_bytes(os.urandom(40_000))
        assert read_index(config_home).words() == {"alpha"}


def test_a_log_of_another_index_is_ignored(config_home: ConfigHome, tmp_path: Path) -> None:
    """An SQLite log that belongs to a deleted index is ignored.

    A process that is killed while it deletes an index leaves such a log.
    """
    fill_home(config_home, session_count=2)
    with open_index(config_home.where):
        for file in index_database_path(config_home).parent.glob("index.db*"):
            shutil.copy(file, tmp_path)
    before = build_new_index(config_home, tmp_path).found_words
    for ending in ("", "-shm"):
        (tmp_path / f"{TABLE_FILE_NAME}{ending}").unlink(missing_ok=True)
    index_database_path(config_home).unlink()
    (tmp_path / f"{TABLE_FILE_NAME}-wal").replace(f"{index_database_path(config_home)}-wal")
    assert read_index(config_home).found_words == before


def test_a_home_without_transcripts_gets_no_index(config_home: ConfigHome) -> None:
    """A search in a home without transcripts creates no index."""
    with open_index(config_home.where) as index:
        assert index.db.execute("SELECT count(*) FROM files").fetchone() == (0,)
        assert index.notes == []
    assert not index_database_path(config_home).exists()
