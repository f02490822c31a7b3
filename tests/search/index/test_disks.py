"""Tests of the index on full and read-only disks, and of the modes of its files.

If the index cannot be written, the search uses a temporary index.
"""

from __future__ import annotations

import contextlib
import os
import resource
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from resume_hooks.search.index.connect import open_index
from tests.builders import SESSION, ConfigHome, session_id
from tests.search.index.probe import (
    append_records,
    fill_home,
    index_database_path,
    prompt_with_id,
    read_index,
    write_session_file,
)

SESSION_FILE_NAME = f"{SESSION}.jsonl"


def test_index_files_are_private(config_home: ConfigHome) -> None:
    """The files of the index have mode 0600 and the folders 0700, under any umask."""
    write_session_file(config_home, prompt_with_id("alpha"))
    before = os.umask(0)
    try:
        with open_index(config_home.where) as index:
            index.db.execute("SELECT 1 FROM files")
            folder = index_database_path(config_home).parent
            found = [(file, stat.S_IMODE(file.stat().st_mode)) for file in folder.rglob("*")]
    finally:
        os.umask(before)
    assert {"index.db", "index.db-wal", "index.db-shm", "index.db.lock"} <= {
        file.name for file, _ in found
    }
    assert {mode for file, mode in found if file.is_file()} == {0o600}
    assert {mode for file, mode in found if file.is_dir()} == {0o700}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_rebuild_as_the_first_command_keeps_its_index(config_home: ConfigHome) -> None:
    """If ``doctor --index rebuild`` is the first command, the index that it builds is kept.

    Neither an index nor a state folder exists before the command.
    """
    write_session_file(config_home, prompt_with_id("alpha"))
    assert not index_database_path(config_home).parent.exists()
    holding = read_index(config_home, rebuild=True)
    assert (holding.notes, holding.words()) == ([], {"alpha"})
    assert read_index(config_home).outcome.read_file_count == 0


@contextlib.contextmanager
def limit_file_size(max_file_bytes: int) -> Iterator[None]:
    """Limit the size of every file to ``max_file_bytes`` bytes. SQLite and tantivy treat this like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("max_file_bytes", [0, 5_000, 20_000, 40_000])
def test_a_full_disk_gives_a_temporary_index(config_home: ConfigHome, max_file_bytes: int) -> None:
    """On a full disk, the search uses a temporary index and says so.

    When the disk has space again, the index is stored.
    """
    fill_home(config_home, session_count=4)
    with limit_file_size(max_file_bytes):
        holding = read_index(config_home)
    assert "temporary index was used" in holding.notes[0]
    assert len(holding.words()) > 3_000
    assert (
        sum(file.stat().st_size for file in index_database_path(config_home).parent.rglob("*"))
        < 400_000
    ), "what was begun stays small"
    again = read_index(config_home)
    assert (again.notes, again.found_words) == ([], holding.found_words)


def test_a_disk_that_fills_up_during_an_update_leaves_the_stored_index(
    config_home: ConfigHome,
) -> None:
    """If the disk fills up after the index was stored, a temporary index finds new messages.

    The stored index stays valid.
    """
    fill_home(config_home, session_count=4)
    read_index(config_home)
    append_records(config_home.project() / f"{session_id(1)}.jsonl", prompt_with_id("zymurgy"))
    with limit_file_size(1_000):
        holding = read_index(config_home)
    assert holding.lines_with_word("zymurgi")
    assert "temporary index" in holding.notes[0]
    assert read_index(config_home).found_words == holding.found_words


def test_a_temporary_index_contains_only_the_needed_folders(config_home: ConfigHome) -> None:
    """A temporary index contains only the project folders that the search needs."""
    write_session_file(config_home, prompt_with_id("alpha"))
    other = config_home.project("/home/user/other") / f"{session_id(2)}.jsonl"
    append_records(other, prompt_with_id("beta"))
    (config_home.config / "resume-hooks").write_text("in the way")
    assert read_index(config_home).words() == {"alpha", "beta"}
    assert read_index(config_home, folder_names=[other.parent.name]).words() == {"beta"}


def test_a_read_only_folder_gives_a_temporary_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the state folder is read-only, the search uses a temporary index.

    This holds with and without a stored index.
    """
    with tempfile.TemporaryDirectory() as root:
        home = ConfigHome.at(Path(root))
        config = home.config
        (config / "resume-hooks").mkdir()
        write_session_file(home, prompt_with_id("alpha"))
        for folder in (root, config, config / "resume-hooks"):
            os.chmod(folder, 0o555)
        assert _search_without_root_rights(home) == "['alpha'] True"
        os.chmod(config / "resume-hooks", 0o755)
        read_index(home)
        os.chmod(config / "resume-hooks", 0o555)
        assert _search_without_root_rights(home) == "['alpha'] True"
        for folder in (config / "resume-hooks", config, root):
            os.chmod(folder, 0o755)


def _search_without_root_rights(home: ConfigHome) -> str:
    """Search without root's rights. Return the found words and whether the index was temporary."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            holding = read_index(home)
            said_so = f"{sorted(holding.words())} {'temporary' in str(holding.notes)}"
        except BaseException as error:  # noqa: BLE001, told to the parent
            said_so = repr(error)
        os.write(writer, said_so.encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as stream:
        told = stream.read().decode()
    os.waitpid(child, 0)
    return told


def test_a_link_with_the_name_of_the_index_is_not_followed(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """A link with the name of the index file is not followed, and its target stays unchanged.

    The search uses a temporary index.
    """
    write_session_file(config_home, prompt_with_id("alpha"))
    target = tmp_path / "precious"
    target.write_text("precious")
    index_database_path(config_home).parent.mkdir()
    index_database_path(config_home).symlink_to(target)
    holding = read_index(config_home)
    assert holding.words() == {"alpha"}
    assert "temporary" in holding.notes[0]
    assert target.read_text() == "precious"
