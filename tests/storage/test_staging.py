"""Tests that staged input is complete, private, unpacked and limited, and removed afterwards."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resume_hooks.errors import ImportFailed, WriteFailed
from resume_hooks.storage.staging import CHUNK_BYTES, file_chunks, stage_chunks
from tests.builders import ConfigHome

MAX_STAGED_BYTES = 4 * 1024 * 1024
RANDOM_BYTES = random.Random(6).randbytes(100_000)


def list_file_names_in_state_folder(home: ConfigHome) -> list[str]:
    """Return the names of the files in the state folder."""
    folder = home.config / "resume-hooks"
    return os.listdir(folder) if folder.exists() else []


def read_staged_content(
    home: ConfigHome, chunks: list[bytes], max_bytes: int = MAX_STAGED_BYTES
) -> bytes:
    """Stage these chunks and return the staged content."""
    with stage_chunks(chunks, max_bytes, home.where) as taken:
        content = Path(taken.path).read_bytes()
        assert (taken.size, taken.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        assert stat.S_IMODE(os.stat(taken.path).st_mode) == 0o600
    assert list_file_names_in_state_folder(home) == []
    return content


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.binary(min_size=1, max_size=8), max_size=8), is_gzipped=st.booleans())
def test_staged_bytes_equal_the_input(
    config_home: ConfigHome, pieces: list[bytes], is_gzipped: bool
) -> None:
    """The staged content equals the input, whatever its chunks are and whether or not it is gzipped."""
    whole = b"x" + b"".join(pieces)
    sent = gzip.compress(whole) if is_gzipped else whole
    assert (
        read_staged_content(
            config_home,
            [sent[i : i + 1 + len(pieces)] for i in range(0, len(sent), 1 + len(pieces))],
        )
        == whole
    )


def test_gzip_members_are_joined(config_home: ConfigHome) -> None:
    """Consecutive gzip members are joined, and zero bytes at the end are ignored."""
    packed = gzip.compress(RANDOM_BYTES) + gzip.compress(b"tail")
    assert read_staged_content(config_home, [packed]) == RANDOM_BYTES + b"tail"
    assert read_staged_content(config_home, [packed + bytes(512)]) == RANDOM_BYTES + b"tail"


def test_a_gzip_bomb_is_refused(config_home: ConfigHome) -> None:
    """If a small gzip file has a very large content, unpacking stops at the size limit."""
    bomb = gzip.compress(bytes(64 * MAX_STAGED_BYTES))
    assert len(bomb) < MAX_STAGED_BYTES
    with pytest.raises(ImportFailed, match="larger than") as failed:
        read_staged_content(config_home, [bomb])
    assert failed.value.remedy == "--max-bytes allows more."
    assert list_file_names_in_state_folder(config_home) == []


def test_endless_empty_gzip_members_are_refused(config_home: ConfigHome) -> None:
    """An endless series of empty gzip members is refused, because packed bytes are limited too."""
    empty = gzip.compress(b"")
    endless = iter(lambda: empty * 100, b"")
    with (
        pytest.raises(ImportFailed, match="larger than"),
        stage_chunks(endless, MAX_STAGED_BYTES, config_home.where),
    ):
        pytest.fail("it has no end")


@pytest.mark.parametrize(
    ("damaged_content", "expected_message"),
    [
        (gzip.compress(RANDOM_BYTES)[:-9], "too early"),
        (gzip.compress(RANDOM_BYTES)[:3], "too early"),
        (
            gzip.compress(RANDOM_BYTES)[:5000] + b"broken" + gzip.compress(RANDOM_BYTES)[5006:],
            "damaged",
        ),
        (gzip.compress(RANDOM_BYTES) + b"trailer", "damaged"),
    ],
)
def test_damaged_gzip_is_refused(
    config_home: ConfigHome, damaged_content: bytes, expected_message: str
) -> None:
    """Damaged gzip input is refused with the cause, and no file is left."""
    with pytest.raises(ImportFailed, match=expected_message):
        read_staged_content(config_home, [damaged_content])
    assert list_file_names_in_state_folder(config_home) == []


def test_the_size_limit_is_exact(config_home: ConfigHome) -> None:
    """Content of exactly the size limit is accepted, and one byte more is refused."""
    assert len(read_staged_content(config_home, [bytes(10)], 10)) == 10
    with pytest.raises(ImportFailed, match="larger than 10 bytes"):
        read_staged_content(config_home, [bytes(5), bytes(6)], 10)


def test_an_overlong_line_is_refused(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line longer than the limit is refused, and a line of exactly the limit is accepted."""
    monkeypatch.setattr("resume_hooks.storage.staging.MAX_LINE_BYTES", 10)
    for chunks in (
        [b"a\n" + b"b" * 10 + b"\n" + b"c" * 10],
        [b"a" * 6, b"b" * 4, b"\nccc", b"c" * 7],
    ):
        assert read_staged_content(config_home, chunks) == b"".join(chunks)
    for chunks in ([b"a" * 11], [b"a\nb", b"b" * 10], [b"a" * 10, b"a\n"]):
        with pytest.raises(ImportFailed, match="It has a line that is longer than 10 bytes"):
            read_staged_content(config_home, chunks)


def test_too_many_lines_are_refused(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than ``MAX_LINES`` lines are refused, even empty ones, because they take long to parse.

    150 MB of line feeds took 46 seconds.
    """
    monkeypatch.setattr("resume_hooks.storage.staging.MAX_LINES", 10)
    assert read_staged_content(config_home, [b"\n" * 6, b"\n" * 4]) == b"\n" * 10
    with pytest.raises(ImportFailed, match="more than 10 lines"):
        read_staged_content(config_home, [b"\n" * 6, b"\n" * 5])


def test_a_failure_leaves_no_staged_file(config_home: ConfigHome) -> None:
    """After an error in the input or in the ``with`` block, no staged file is left."""

    def failing_chunks() -> Iterator[bytes]:
        yield b"some"
        raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        stage_chunks(failing_chunks(), MAX_STAGED_BYTES, config_home.where),
    ):
        pytest.fail("it broke")
    with (
        pytest.raises(ZeroDivisionError),
        stage_chunks([b"x"], MAX_STAGED_BYTES, config_home.where),
    ):
        raise ZeroDivisionError
    assert list_file_names_in_state_folder(config_home) == []


def test_the_file_of_a_killed_process_is_removed(config_home: ConfigHome) -> None:
    """The next process removes the staged file of a killed process."""
    folder = config_home.config / "resume-hooks"
    folder.mkdir()
    (folder / ".resume-hooks-999999999-00000000.tmp").write_bytes(b"a stranger's words")
    read_staged_content(config_home, [b"x"])


def test_an_unusable_state_folder_raises_a_clear_error(config_home: ConfigHome) -> None:
    """If the state folder can't be used, the error says what could not be stored."""
    (config_home.config / "resume-hooks").write_text("no folder")
    with (
        pytest.raises(WriteFailed, match="could not be stored"),
        stage_chunks([b"x"], MAX_STAGED_BYTES, config_home.where),
    ):
        pytest.fail("there is no folder")


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """A regular file is read in chunks. A pipe, a missing file and an invalid name raise an error."""
    path = tmp_path / "x"
    path.write_bytes(bytes(CHUNK_BYTES + 1))
    assert [len(piece) for piece in file_chunks(str(path))] == [CHUNK_BYTES, 1]
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "nothing", "", "nul\0"):
        with pytest.raises(ImportFailed, match="can't be read"):
            list(file_chunks(str(tmp_path / name)))
