"""Staged input is complete, private, unpacked, within its size limit, and removed afterwards."""

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

MOST = 4 * 1024 * 1024
NOISE = random.Random(6).randbytes(100_000)


def left_in(home: ConfigHome) -> list[str]:
    """Return the contents of the state folder."""
    folder = home.config / "resume-hooks"
    return os.listdir(folder) if folder.exists() else []


def read(home: ConfigHome, chunks: list[bytes], most: int = MOST) -> bytes:
    """Return the staged content of these chunks."""
    with stage_chunks(chunks, most, home.where) as taken:
        content = Path(taken.path).read_bytes()
        assert (taken.size, taken.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        assert stat.S_IMODE(os.stat(taken.path).st_mode) == 0o600
    assert left_in(home) == []
    return content


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.binary(min_size=1, max_size=8), max_size=8), packed=st.booleans())
def test_bytes_come_out_as_they_were(
    config_home: ConfigHome, pieces: list[bytes], packed: bool
) -> None:
    """However they were cut into pieces, packed or not."""
    whole = b"x" + b"".join(pieces)
    sent = gzip.compress(whole) if packed else whole
    assert (
        read(
            config_home,
            [sent[i : i + 1 + len(pieces)] for i in range(0, len(sent), 1 + len(pieces))],
        )
        == whole
    )


def test_gzip_in_several_parts(config_home: ConfigHome) -> None:
    """Files of gzip one after the other are one file, and zeros at the end are none."""
    packed = gzip.compress(NOISE) + gzip.compress(b"tail")
    assert read(config_home, [packed]) == NOISE + b"tail"
    assert read(config_home, [packed + bytes(512)]) == NOISE + b"tail"


def test_a_gzip_bomb(config_home: ConfigHome) -> None:
    """Content that unpacks to more than the limit is abandoned in pieces, before it is in memory."""
    bomb = gzip.compress(bytes(64 * MOST))
    assert len(bomb) < MOST
    with pytest.raises(ImportFailed, match="larger than") as failed:
        read(config_home, [bomb])
    assert failed.value.remedy == "--max-bytes allows more."
    assert left_in(config_home) == []


def test_gzip_of_nothing_without_end(config_home: ConfigHome) -> None:
    """Packed bytes are counted, too."""
    empty = gzip.compress(b"")
    endless = iter(lambda: empty * 100, b"")
    with (
        pytest.raises(ImportFailed, match="larger than"),
        stage_chunks(endless, MOST, config_home.where),
    ):
        pytest.fail("it has no end")


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (gzip.compress(NOISE)[:-9], "too early"),
        (gzip.compress(NOISE)[:3], "too early"),
        (gzip.compress(NOISE)[:5000] + b"broken" + gzip.compress(NOISE)[5006:], "damaged"),
        (gzip.compress(NOISE) + b"trailer", "damaged"),
    ],
)
def test_damaged_gzip(config_home: ConfigHome, damaged: bytes, why: str) -> None:
    """A sentence, and nothing is kept."""
    with pytest.raises(ImportFailed, match=why):
        read(config_home, [damaged])
    assert left_in(config_home) == []


def test_the_limit_is_exact(config_home: ConfigHome) -> None:
    """That many bytes and no more."""
    assert len(read(config_home, [bytes(10)], 10)) == 10
    with pytest.raises(ImportFailed, match="larger than 10 bytes"):
        read(config_home, [bytes(5), bytes(6)], 10)


def test_a_line_without_end(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given up before a parser gets it; as long as it may be, wherever it is cut, it is taken."""
    monkeypatch.setattr("resume_hooks.storage.staging.MAX_LINE_BYTES", 10)
    for chunks in (
        [b"a\n" + b"b" * 10 + b"\n" + b"c" * 10],
        [b"a" * 6, b"b" * 4, b"\nccc", b"c" * 7],
    ):
        assert read(config_home, chunks) == b"".join(chunks)
    for chunks in ([b"a" * 11], [b"a\nb", b"b" * 10], [b"a" * 10, b"a\n"]):
        with pytest.raises(ImportFailed, match="A line of it is longer than 10 bytes"):
            read(config_home, chunks)


def test_lines_without_end(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would cost a parser time, were it empty: 150 MB of line feeds took 46 seconds."""
    monkeypatch.setattr("resume_hooks.storage.staging.MAX_LINES", 10)
    assert read(config_home, [b"\n" * 6, b"\n" * 4]) == b"\n" * 10
    with pytest.raises(ImportFailed, match="more than 10 lines"):
        read(config_home, [b"\n" * 6, b"\n" * 5])


def test_failures_leave_nothing(config_home: ConfigHome) -> None:
    """Whatever stops it: a source that breaks, the block, Ctrl+C."""

    def breaking() -> Iterator[bytes]:
        yield b"some"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), stage_chunks(breaking(), MOST, config_home.where):
        pytest.fail("it broke")
    with pytest.raises(ZeroDivisionError), stage_chunks([b"x"], MOST, config_home.where):
        raise ZeroDivisionError
    assert left_in(config_home) == []


def test_a_killed_processs_file_is_removed(config_home: ConfigHome) -> None:
    """The next process removes it."""
    folder = config_home.config / "resume-hooks"
    folder.mkdir()
    (folder / ".resume-hooks-999999999-00000000.tmp").write_bytes(b"a stranger's words")
    read(config_home, [b"x"])


def test_a_state_folder_that_cannot_be(config_home: ConfigHome) -> None:
    """A sentence that says what could not be kept."""
    (config_home.config / "resume-hooks").write_text("no folder")
    with (
        pytest.raises(WriteFailed, match="could not be stored"),
        stage_chunks([b"x"], MOST, config_home.where),
    ):
        pytest.fail("there is no folder")


def test_files(tmp_path: Path) -> None:
    """A regular file comes in pieces.

    A folder, a pipe, nothing, and a name that can be none have a sentence.
    """
    path = tmp_path / "x"
    path.write_bytes(bytes(CHUNK_BYTES + 1))
    assert [len(piece) for piece in file_chunks(str(path))] == [CHUNK_BYTES, 1]
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "nothing", "", "nul\0"):
        with pytest.raises(ImportFailed, match="can't be read"):
            list(file_chunks(str(tmp_path / name)))
