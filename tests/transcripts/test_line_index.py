"""Seeking: lines from anywhere in a file, the same as reading all of it would give, from less of it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.errors import SessionNotFound
from resume_hooks.transcripts import lines
from resume_hooks.transcripts.lines import (
    Line,
    Numbers,
    line_start,
    line_with,
    lines_before,
    open_transcript,
    read_lines,
)

BYTES = st.lists(
    st.sampled_from([b"\n", b"a", b"ab", b"\r\n", b"\xe2\x80\xa8", b"needle", b"x" * 11]), max_size=60
).map(b"".join)


@pytest.fixture(autouse=True, scope="module")
def _small_steps() -> object:
    """Pieces of a few bytes, so that lines lie across many of them."""
    patch = pytest.MonkeyPatch()
    patch.setattr(lines, "STEP", 4)
    patch.setattr(lines, "SEARCHED_BYTES", 16)
    yield
    patch.undo()


def lines_of(content: bytes) -> list[Line]:
    """Every line as the whole file tells it."""
    return list(read_lines(io.BytesIO(content)))


@given(BYTES, st.data())
def test_backwards(content: bytes, data: st.DataObject) -> None:
    """What stands before any byte is the same lines as forwards, a line that is cut there as far as that."""
    end = data.draw(st.integers(0, len(content)))
    found = list(lines_before(io.BytesIO(content), end))[::-1]
    assert [line[1:] for line in found] == [line[1:] for line in lines_of(content[:end])]
    assert {line.number for line in found} <= {-1}


@given(BYTES)
def test_numbers(content: bytes) -> None:
    """In whatever order they are asked for, numbers and places are those of the whole file."""
    stream, lines = io.BytesIO(content), lines_of(content)
    asked = Numbers(len(content))
    for line in lines[::-1]:
        assert asked.start(stream, line.number) == line.offset
        assert asked.of(stream, line.offset) == line.number
    assert Numbers(len(content)).total(stream) == len(lines)
    for number in (-1, len(lines), len(lines) + 5):
        assert Numbers(len(content)).start(stream, number) == -1


@given(BYTES, st.data())
def test_by_content(content: bytes, data: st.DataObject) -> None:
    """The last line that holds the words between two places; where any byte's line begins."""
    floor = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(floor, len(content)))
    place = content.rfind(b"needle", floor, end)
    starts = [line.offset for line in lines_of(content)]
    expected = max((start for start in starts if start <= place), default=-1)
    assert line_with(io.BytesIO(content), b"needle", end, floor) == expected
    if end < len(content):
        assert line_start(io.BytesIO(content), end) == max(start for start in starts if start <= end)


def test_a_file_that_grows(tmp_path: Path) -> None:
    """What is written behind the size that was seen is not there."""
    path = tmp_path / "x"
    path.write_bytes(b"one\ntwo\nthr")
    with open_transcript(str(path)) as stream:
        numbers = Numbers(11)
        path.write_bytes(b"one\ntwo\nthree\nfour\n")
        assert (numbers.total(stream), numbers.start(stream, 2), numbers.start(stream, 3)) == (3, 8, -1)
        assert next(lines_before(stream, 11)).raw == b"thr"


def test_a_file_that_shrinks_or_is_gone(tmp_path: Path) -> None:
    """Told in a sentence."""
    path = tmp_path / "x"
    path.write_bytes(b"one\n")
    with open_transcript(str(path)) as stream, pytest.raises(SessionNotFound, match="changed while it was read"):
        list(lines_before(stream, 8))
    path.unlink()
    with pytest.raises(SessionNotFound, match="can't be read: No such file"), open_transcript(str(path)):
        pass
