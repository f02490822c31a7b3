"""Full and read-only disks, links: where the index can't be kept, one in memory serves.

All files are private.
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

from resume_hooks.search.index.connect import opened_index
from tests.builders import SESSION, ConfigHome, session_id
from tests.search.index.probe import (
    append,
    filled,
    index_of,
    prompt_with_id,
    put_session,
    read_index,
)

NAME = f"{SESSION}.jsonl"


def test_files_are_private(config_home: ConfigHome) -> None:
    """Whatever the umask: 0700 for the folder, 0600 for the index and all next to it."""
    put_session(config_home, prompt_with_id("alpha"))
    before = os.umask(0)
    try:
        with opened_index(config_home.where) as index:
            index.db.execute("SELECT 1 FROM files")
            folder = index_of(config_home).parent
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
    """There is no state folder yet, so there is nothing to remove."""
    put_session(config_home, prompt_with_id("alpha"))
    assert not index_of(config_home).parent.exists()
    holding = read_index(config_home, rebuild=True)
    assert (holding.notes, holding.words()) == ([], {"alpha"})
    assert read_index(config_home).outcome.read_files == 0


@contextlib.contextmanager
def small_files(limit: int) -> Iterator[None]:
    """No file may grow beyond ``limit`` bytes: a full disk, as far as SQLite and tantivy can tell."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("limit", [0, 5_000, 20_000, 40_000])
def test_a_full_disk_means_a_temporary_index(config_home: ConfigHome, limit: int) -> None:
    """All is found and it says so; with room again the index is kept again."""
    filled(config_home, files=4)
    with small_files(limit):
        holding = read_index(config_home)
    assert "temporary index was used" in holding.notes[0]
    assert len(holding.words()) > 3_000
    assert sum(file.stat().st_size for file in index_of(config_home).parent.rglob("*")) < 400_000, (
        "what was begun stays small"
    )
    again = read_index(config_home)
    assert (again.notes, again.finds) == ([], holding.finds)


def test_a_disk_that_fills_up_later(config_home: ConfigHome) -> None:
    """The stored index stays valid; new messages are found in a temporary index."""
    filled(config_home, files=4)
    read_index(config_home)
    append(config_home.project() / f"{session_id(1)}.jsonl", prompt_with_id("zymurgy"))
    with small_files(1_000):
        holding = read_index(config_home)
    assert holding.lines("zymurgi")
    assert "temporary index" in holding.notes[0]
    assert read_index(config_home).finds == holding.finds


def test_a_temporary_index_contains_only_the_needed_folders(config_home: ConfigHome) -> None:
    """A file has the state folder's path. The requested folders are searched anyway."""
    put_session(config_home, prompt_with_id("alpha"))
    other = config_home.project("/home/user/other") / f"{session_id(2)}.jsonl"
    append(other, prompt_with_id("beta"))
    (config_home.config / "resume-hooks").write_text("in the way")
    assert read_index(config_home).words() == {"alpha", "beta"}
    assert read_index(config_home, folder_names=[other.parent.name]).words() == {"beta"}


def test_a_folder_that_may_not_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another user: a temporary index, whether there is one to be read or not."""
    with tempfile.TemporaryDirectory() as root:
        home = ConfigHome.at(Path(root))
        config = home.config
        (config / "resume-hooks").mkdir()
        put_session(home, prompt_with_id("alpha"))
        for folder in (root, config, config / "resume-hooks"):
            os.chmod(folder, 0o555)
        assert _as_nobody(home) == "['alpha'] True"
        os.chmod(config / "resume-hooks", 0o755)
        read_index(home)
        os.chmod(config / "resume-hooks", 0o555)
        assert _as_nobody(home) == "['alpha'] True"
        for folder in (config / "resume-hooks", config, root):
            os.chmod(folder, 0o755)


def _as_nobody(home: ConfigHome) -> str:
    """What a process without root's rights finds, and whether it used a temporary index."""
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


def test_a_link_in_the_index_s_place_is_not_followed(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """Its target is unchanged; a temporary index is used."""
    put_session(config_home, prompt_with_id("alpha"))
    target = tmp_path / "precious"
    target.write_text("precious")
    index_of(config_home).parent.mkdir()
    index_of(config_home).symlink_to(target)
    holding = read_index(config_home)
    assert holding.words() == {"alpha"}
    assert "temporary" in holding.notes[0]
    assert target.read_text() == "precious"
