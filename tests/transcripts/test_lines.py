"""Tests of reading lines.

The joined lines equal the file's bytes. Reading needs only enough memory for the longest line.
"""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resume_hooks.errors import SessionNotFound
from resume_hooks.transcripts import lines
from resume_hooks.transcripts.lines import (
    BOM,
    Line,
    LineNumbers,
    find_line_start,
    find_offset_of_last_line_containing,
    measure_longest_line,
    open_transcript,
    read_lines,
    read_lines_backwards,
    read_tail,
)
from tests.needs import corpus, corpus_folder

MEGABYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("raw", "offset", "body", "is_torn"),
    [
        (b"{}\n", 0, b"{}", False),
        (b"{}\r\n", 0, b"{}", False),
        (b"{}", 0, b"{}", True),
        (BOM + b"{}\n", 0, b"{}", False),
        (BOM + b"{}\n", 9, BOM + b"{}", False),
        (b"\n", 0, b"", False),
        (b"{}\r", 3, b"{}", True),
        ('{"a":"\u2028\u2029\x85"}\n'.encode(), 0, '{"a":"\u2028\u2029\x85"}'.encode(), False),
    ],
)
def test_the_body_of_a_line_lacks_its_ending(
    raw: bytes, offset: int, body: bytes, is_torn: bool
) -> None:
    """A line's body has no LF or CRLF and, on the file's first line, no byte order mark."""
    line = Line(0, offset, raw)
    assert (line.body, line.is_torn) == (body, is_torn)


def test_the_joined_lines_of_every_corpus_file_equal_its_bytes() -> None:
    """The joined lines of each corpus file equal its bytes.

    ``read_tail`` returns the last lines of the file.
    """
    files = sorted(corpus().rglob("*.jsonl"))
    assert len(files) > 100
    for file in files:
        content = file.read_bytes()
        with file.open("rb") as stream:
            lines = list(read_lines(stream))
            tail = list(read_tail(stream, 65_536))
        assert b"".join(line.raw for line in lines) == content, file.relative_to(corpus_folder())
        assert [line.raw for line in tail] == [line.raw for line in lines][len(lines) - len(tail) :]


def test_memory_is_limited_by_the_longest_line(tmp_path: Path) -> None:
    """Reading a file with lines of 60 MB needs less memory than four such lines."""
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as stream:
        for _ in range(8):
            stream.write(b'{"a":"' + b"x" * 60 * MEGABYTE + b'"}\n')
    tracemalloc.start()
    try:
        with path.open("rb") as stream:
            total = sum(len(line.raw) for line in read_lines(stream))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == path.stat().st_size
    assert peak < 4 * 60 * MEGABYTE


FILE_CONTENT_STRATEGY = st.lists(
    st.sampled_from([b"\n", b"a", b"ab", b"\r\n", b"\xe2\x80\xa8", b"needle", b"x" * 11]),
    max_size=60,
).map(b"".join)


@pytest.fixture(autouse=True, scope="module")
def _use_small_read_steps() -> object:
    """Read a few bytes at a time, so that a line spans several reads."""
    patch = pytest.MonkeyPatch()
    patch.setattr(lines, "BYTES_BETWEEN_LINE_COUNTS", 4)
    patch.setattr(lines, "SEARCH_CHUNK_BYTES", 16)
    yield
    patch.undo()


def read_all_lines(content: bytes) -> list[Line]:
    """Return all lines of ``content``."""
    return list(read_lines(io.BytesIO(content)))


@given(FILE_CONTENT_STRATEGY, st.data())
def test_reading_backwards_gives_the_same_lines(content: bytes, data: st.DataObject) -> None:
    """Reading backwards from any byte returns all lines before this byte, in reverse order.

    If the byte is inside a line, only the part of the line before the byte is returned.
    """
    end = data.draw(st.integers(0, len(content)))
    found = list(read_lines_backwards(io.BytesIO(content), end))[::-1]
    assert [line[1:] for line in found] == [line[1:] for line in read_all_lines(content[:end])]
    assert {line.number for line in found} <= {-1}


@given(FILE_CONTENT_STRATEGY)
def test_line_numbers_can_be_requested_in_any_order(content: bytes) -> None:
    """``LineNumbers`` finds the offset of any line and the line at any offset, in any order."""
    stream, lines = io.BytesIO(content), read_all_lines(content)
    asked = LineNumbers(len(content))
    for line in lines[::-1]:
        assert asked.find_line_offset(stream, line.number) == line.offset
        assert asked.find_line_number(stream, line.offset) == line.number
    assert LineNumbers(len(content)).count_lines(stream) == len(lines)
    for number in (-1, len(lines), len(lines) + 5):
        assert LineNumbers(len(content)).find_line_offset(stream, number) == -1


@given(FILE_CONTENT_STRATEGY, st.data())
def test_the_last_line_with_a_word_is_found(content: bytes, data: st.DataObject) -> None:
    """``find_offset_of_last_line_containing`` finds the last line with a word between two offsets.

    ``find_line_start`` returns the start of the line that contains an offset.
    """
    floor = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(floor, len(content)))
    place = content.rfind(b"needle", floor, end)
    starts = [line.offset for line in read_all_lines(content)]
    expected = max((start for start in starts if start <= place), default=-1)
    assert (
        find_offset_of_last_line_containing(io.BytesIO(content), b"needle", end, floor) == expected
    )
    if end < len(content):
        assert find_line_start(io.BytesIO(content), end) == max(
            start for start in starts if start <= end
        )


def test_lines_appended_after_opening_a_file_are_not_read(tmp_path: Path) -> None:
    """Lines that were appended after the file was opened are not read."""
    path = tmp_path / "x"
    path.write_bytes(b"one\ntwo\nthr")
    with open_transcript(str(path)) as stream:
        numbers = LineNumbers(11)
        path.write_bytes(b"one\ntwo\nthree\nfour\n")
        assert (
            numbers.count_lines(stream),
            numbers.find_line_offset(stream, 2),
            numbers.find_line_offset(stream, 3),
        ) == (
            3,
            8,
            -1,
        )
        assert next(read_lines_backwards(stream, 11)).raw == b"thr"


def test_a_truncated_or_missing_file_is_reported(tmp_path: Path) -> None:
    """Reading a file that was truncated or deleted raises ``SessionNotFound``."""
    path = tmp_path / "x"
    path.write_bytes(b"one\n")
    with (
        open_transcript(str(path)) as stream,
        pytest.raises(SessionNotFound, match="changed while it was read"),
    ):
        list(read_lines_backwards(stream, 8))
    path.unlink()
    with (
        pytest.raises(SessionNotFound, match="can't be read: No such file"),
        open_transcript(str(path)),
    ):
        pass


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60) | st.text("\na", max_size=60).map(str.encode))
def test_measure_longest_line_equals_reading_all_lines(tmp_path: Path, content: bytes) -> None:
    """``measure_longest_line`` returns the length of the longest line, or 0 for an empty file."""
    path = tmp_path / "file"
    path.write_bytes(content)
    assert measure_longest_line(str(path)) == max(map(len, content.split(b"\n")))


def test_measure_longest_line_raises_file_not_found(tmp_path: Path) -> None:
    """``measure_longest_line`` raises ``FileNotFoundError`` for a missing file."""
    with pytest.raises(FileNotFoundError):
        measure_longest_line(str(tmp_path / "gone"))
