"""Tests of the index of the real corpus, whose records were written by many client versions."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from resume_hooks.paths import Where
from resume_hooks.search.index.connect import OpenIndex, open_index
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import read_lines
from tests.builders import ConfigHome
from tests.needs import corpus, corpus_sessions
from tests.search.index.probe import read_found_words, read_rows

MIN_INDEXED_LINE_SHARE = (
    0.5  # Minimum share of the corpus's lines that must have a row in the index.
)


def copy_corpus(home: ConfigHome) -> None:
    """Copy the corpus to a separate home, with one project for each folder."""
    corpus()
    for number, folder in enumerate(sorted({session.parent for session in corpus_sessions()})):
        project = home.project(f"/corpus/{number}")
        shutil.copytree(
            folder, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("tool-results")
        )


def test_every_row_has_the_position_of_its_record(config_home: ConfigHome) -> None:
    """Each row of the index has the line, offset and length of a valid record.

    Every file has a row, and so do at least half of all lines.
    """
    copy_corpus(config_home)
    with open_index(config_home.where) as index:
        assert index.notes == []
        paths = dict(index.db.execute("SELECT id, path FROM files WHERE session<>''").fetchall())
        by_file: dict[str, dict[int, tuple[int, int]]] = {path: {} for path in paths.values()}
        for row in read_rows(index):
            by_file[paths[row.posting.file_id]][row.line_number] = (
                row.posting.offset,
                row.posting.byte_length,
            )
    assert all(by_file.values()), "files of which nothing can be found"
    count = sum(map(len, by_file.values()))
    lines = 0
    for path, places in by_file.items():
        with open(path, "rb") as stream:
            for line in read_lines(stream):
                lines += 1
                if line.number in places:
                    assert places.pop(line.number) == (line.offset, len(line.raw))
                    assert records.parse_record(line.body) is not None
        assert not places, path
    assert count > MIN_INDEXED_LINE_SHARE * lines


def test_reading_in_pieces_gives_the_same_index(config_home: ConfigHome, tmp_path: Path) -> None:
    """Files that grow between updates, even by part of a line, give the same index as complete files."""
    largest = sorted(
        (session for session in corpus_sessions() if session.stat().st_size < 3_000_000),
        key=_file_size,
    )[-4:]
    corpus()
    project = config_home.project("/corpus")
    targets = []
    for place, source in enumerate(largest):
        raw = source.read_bytes()
        target = project / source.name
        targets.append((target, raw))
        target.write_bytes(raw[: len(raw) * (place + 1) // 7])
    with open_index(config_home.where):
        pass
    for part in (3, 5, 6, 7):
        for target, raw in targets:
            with target.open("r+b") as stream:
                stream.seek(0, os.SEEK_END)
                stream.write(raw[stream.tell() : max(stream.tell(), len(raw) * part // 7)])
        with open_index(config_home.where) as index:
            warm = _read_rows(index)
    fresh = {**config_home.environ, "RESUME_HOOKS_HOME": str(tmp_path / "fresh")}
    with open_index(Where(fresh)) as index:
        assert warm == _read_rows(index)


def _file_size(path: Path) -> int:
    return path.stat().st_size


def _read_rows(index: OpenIndex) -> set[tuple[object, ...]]:
    """Return all words of the index, and the position and time of each record."""
    told = {
        (*row[:5], row.posting.offset, row.posting.byte_length, row.posting.record_time)
        for row in read_rows(index)
    }
    return {*told, *read_found_words(index)}
