"""Tests of updates: only changes are read, and the index always matches the files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.search.index import postings, read_transcript
from resume_hooks.search.index.changed_files import ReadJob, find_changed_and_deleted_files
from resume_hooks.search.index.connect import open_index
from resume_hooks.search.index.postings import WINDOW_INDEX
from resume_hooks.search.index.read_transcript import read_parts
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.transcript_files import list_transcripts
from tests.builders import (
    SESSION,
    ConfigHome,
    line,
    session_bytes,
    session_id,
    tool_result,
    tool_use,
)
from tests.search.index.probe import (
    OLD_FILE_TIME,
    add_bytes,
    answer_with_id,
    append_records,
    build_new_index,
    fill_home,
    index_database_path,
    index_words_folder,
    make_old,
    prompt_with_id,
    read_index,
    uuid_of_text,
    write_session_file,
)

OTHER_ID = session_id(2)
SESSION_FILE_NAME = f"{SESSION}.jsonl"


def test_only_the_last_part_of_an_extended_file_is_read_again(
    config_home: ConfigHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If records were appended to a file, an update reads only the last part and the new records.

    Unchanged files are not read.
    """
    monkeypatch.setattr(read_transcript, "FULL_PART_BYTES", 2_000)
    path = write_session_file(
        config_home,
        *(
            prompt_with_id(f"alpha{number} " + "beta " * 90, uuid_seed=number)
            for number in range(8)
        ),
    )
    whole = path.stat().st_size
    assert read_index(config_home).outcome.read_byte_count == whole
    for number in range(8, 20):
        size = append_records(
            path, prompt_with_id(f"gamma{number} " + "beta " * 90, uuid_seed=number)
        )
        holding = read_index(config_home)
        assert holding.outcome.read_file_count == 1
        assert size <= holding.outcome.read_byte_count < 2_000 + size < whole
        assert holding.lines_with_word(f"gamma{number}") == [(SESSION_FILE_NAME, number)]
        assert read_index(config_home).outcome == (0, 0, 0, 0)
    fresh = build_new_index(config_home, tmp_path)
    assert (holding.found_words, len(holding.rows)) == (fresh.found_words, len(fresh.rows))


def test_an_unfinished_line_is_indexed_when_complete(config_home: ConfigHome) -> None:
    """An unfinished line is indexed, with its own line number, when it is complete."""
    path = write_session_file(config_home, prompt_with_id("alpha"))
    raw = line(prompt_with_id("gamma")) + b"\n"
    add_bytes(path, raw[:40])
    holding = read_index(config_home)
    assert holding.words() == {"alpha"}
    assert holding.outcome.remaining_file_count == 0
    add_bytes(path, raw[40:])
    append_records(path, prompt_with_id("delta"))
    holding = read_index(config_home)
    assert holding.lines_with_word("gamma") == [(SESSION_FILE_NAME, 1)]
    assert holding.lines_with_word("delta") == [(SESSION_FILE_NAME, 2)]


def test_a_complete_line_without_a_line_feed_is_indexed(config_home: ConfigHome) -> None:
    """A last line that is valid JSON without a line feed is indexed, even in a recent file.

    The next update does not read it again.
    """
    path = write_session_file(config_home, prompt_with_id("alpha"), is_old=False)
    add_bytes(path, line(prompt_with_id("gamma")))
    assert read_index(config_home).lines_with_word("gamma") == [(SESSION_FILE_NAME, 1)]
    with open_index(config_home.where) as index:
        assert find_changed_and_deleted_files(index.db, list_transcripts(config_home.where)) == (
            [],
            [],
        )


def test_records_after_an_unfinished_line_get_the_right_line_numbers(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """If the last line of an indexed file had no line feed, later records get the right line numbers.

    The client may append the line feed first or append a record directly.
    """
    for number, joint in ((1, b"\n"), (2, b"")):
        path = write_session_file(
            config_home, prompt_with_id("alpha", uuid_seed=number), session_uuid=session_id(number)
        )
        add_bytes(path, line(prompt_with_id("gamma", uuid_seed=10 + number)))
        make_old(path)
        assert read_index(config_home).lines_with_word("gamma")
        add_bytes(
            path,
            joint
            + session_bytes(
                [
                    prompt_with_id("delta", uuid_seed=20 + number),
                    prompt_with_id("zeta", uuid_seed=30 + number),
                ]
            ),
        )
        assert (
            read_index(config_home).found_words
            == build_new_index(config_home, tmp_path).found_words
        )


def test_invalid_bytes_without_a_line_feed_are_read_once(config_home: ConfigHome) -> None:
    """A last line of invalid bytes is not indexed, and the next update does not read the file again."""
    path = write_session_file(config_home, prompt_with_id("alpha"))
    add_bytes(path, b'{"type":"user","mess')
    make_old(path)
    assert read_index(config_home).words() == {"alpha"}
    with open_index(config_home.where) as index:
        assert find_changed_and_deleted_files(index.db, list_transcripts(config_home.where)) == (
            [],
            [],
        )


@pytest.mark.parametrize("is_renamed", [False, True])
@pytest.mark.parametrize(
    ("change", "expected_words"),
    [
        (lambda raw: raw[: raw.index(b"\n") + 1], {"alpha"}),
        (lambda raw: raw.replace(b"secret", b"xxxxxx"), {"alpha", "xxxxxx", "omega"}),
        (lambda _: os.urandom(50_000), set()),
    ],
    ids=["cut", "same size", "garbage"],
)
def test_a_file_with_changed_content_is_read_again(
    config_home: ConfigHome,
    change: Callable[[bytes], bytes],
    expected_words: set[str],
    *,
    is_renamed: bool,
) -> None:
    """A file whose content was changed or replaced is read again.

    The update notices the change by the file's size, time or inode.
    """
    path = write_session_file(
        config_home,
        prompt_with_id("alpha"),
        prompt_with_id("secret"),
        prompt_with_id("omega " * 300),
    )
    read_index(config_home)
    raw = change(path.read_bytes())
    if is_renamed:
        other = path.with_suffix(".tmp")
        other.write_bytes(raw)
        make_old(other).rename(path)
    else:
        path.write_bytes(raw)
    assert read_index(config_home).words() == expected_words


def test_a_moved_file_is_found_at_its_new_path(config_home: ConfigHome) -> None:
    """A file that was moved to another project is found in that project, and not at its old path."""
    path = write_session_file(config_home, prompt_with_id("alpha"))
    read_index(config_home)
    path.rename(config_home.project("/home/user/elsewhere") / SESSION_FILE_NAME)
    assert read_index(config_home).lines_with_word("alpha") == [(SESSION_FILE_NAME, 0)]
    with open_index(config_home.where) as index:
        assert index.db.execute("SELECT folder FROM files").fetchall() == [
            ("-home-user-elsewhere",)
        ]


def test_a_file_deleted_during_an_update_is_skipped(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is deleted during an update is removed from the index. Other files stay in the index."""
    path = write_session_file(config_home, prompt_with_id("alpha"))
    write_session_file(config_home, prompt_with_id("beta"), session_uuid=OTHER_ID)
    read_index(config_home)
    append_records(path, prompt_with_id("gamma"))
    listed = list_transcripts(config_home.where)
    path.unlink()
    monkeypatch.setattr(
        "resume_hooks.search.index.connect.list_all_transcripts", lambda _environ: listed
    )
    assert read_index(config_home).words() == {"beta"}


def test_records_appended_during_an_update_are_indexed_once(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that are appended during an update are indexed once."""
    path = write_session_file(config_home, prompt_with_id("alpha"))
    listed = list_transcripts(config_home.where)
    append_records(path, prompt_with_id("gamma"))
    with monkeypatch.context() as patch:
        patch.setattr(
            "resume_hooks.search.index.connect.list_all_transcripts", lambda _environ: listed
        )
        first = read_index(config_home)
    assert first.lines_with_word("gamma") == [(SESSION_FILE_NAME, 1)]
    append_records(path, prompt_with_id("delta"))
    holding = read_index(config_home)
    assert holding.lines_with_word("delta") == [(SESSION_FILE_NAME, 2)]
    assert len(holding.lines_with_word("gamma")) == 1


def test_a_link_or_pipe_instead_of_a_file_is_skipped(tmp_path: Path) -> None:
    """A link or a pipe in place of a file is not read, even if it appears after the listing."""
    target = tmp_path / "real.jsonl"
    target.write_bytes(session_bytes([prompt_with_id("alpha")]))
    link, pipe = tmp_path / "link.jsonl", tmp_path / "pipe.jsonl"
    link.symlink_to(target)
    os.mkfifo(pipe)
    assert list(read_parts(ReadJob(str(link), is_subagent=False))) == [None]
    assert list(read_parts(ReadJob(str(pipe), is_subagent=False))) == [None]


def test_a_large_file_is_read_in_parts(
    config_home: ConfigHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a large file is read in parts, the index is the same as if the file were read at once.

    After an interruption, the next update reads only the remaining parts.
    """
    write_session_file(
        config_home, *(prompt_with_id(f"word{number}", uuid_seed=number) for number in range(200))
    )
    whole = read_index(config_home, state_folder=tmp_path / "whole")
    monkeypatch.setattr(read_transcript, "FULL_PART_BYTES", 3_000)
    assert read_index(config_home, state_folder=tmp_path / "cut").found_words == whole.found_words
    behind = read_index(config_home, max_seconds=0)
    assert behind.outcome.remaining_file_count == 1
    assert "Not indexed yet" in behind.notes[0]
    assert 0 < len(behind.found_words) < len(whole.found_words)
    rest = read_index(config_home)
    assert (rest.found_words, len(rest.rows)) == (whole.found_words, 200)
    assert rest.outcome.read_byte_count < (config_home.project() / SESSION_FILE_NAME).stat().st_size


def test_a_turn_in_several_parts_has_one_number(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn that is read in several parts has one number and is found by the words of each part."""
    monkeypatch.setattr(read_transcript, "MAX_PART_WORDS_BYTES", 20)
    write_session_file(
        config_home,
        prompt_with_id("alpha"),
        *(answer_with_id(f"beta{number} filling", uuid_seed=number) for number in range(6)),
    )
    turns = {
        (line, word)
        for _, line, field, word in read_index(config_home).found_words
        if field == WINDOW_INDEX
    }
    assert {(1, "alpha"), (1, "beta0"), (1, "beta5")} <= turns
    assert {line for line, _ in turns} == {1}


def test_the_newest_file_is_read_first(config_home: ConfigHome) -> None:
    """If there is not enough time to read all files, an update reads the newest file first.

    A note of the update states the number and the total size of the remaining files.
    """
    for number in range(1, 5):
        path = write_session_file(
            config_home,
            prompt_with_id(f"word{number} " + "beta " * 200),
            session_uuid=session_id(number),
            is_old=False,
        )
        os.utime(path, (OLD_FILE_TIME + number, OLD_FILE_TIME + number))
    for left in (3, 2, 1):
        holding = read_index(config_home, max_seconds=0)
        assert {f"word{number}" for number in range(left + 1, 5)} <= holding.words()
        assert f"word{left}" not in holding.words()
        assert holding.outcome[2:] == (left, left * path.stat().st_size)
        counted = "1 file" if left == 1 else f"{left} files"
        assert (
            f" {counted} ({format_bytes(holding.outcome.remaining_byte_count)}). "
            in holding.notes[0]
        )
    assert read_index(config_home, max_seconds=0).notes == []


def test_a_later_result_has_the_tool_of_its_call(config_home: ConfigHome) -> None:
    """A tool result has its tool's name even if an earlier update indexed the call."""
    path = write_session_file(
        config_home,
        tool_use(
            "c1", uuid=uuid_of_text("c"), parent=None, name="Grep", tool_input={"pattern": "x1"}
        ),
    )
    read_index(config_home)
    append_records(
        path,
        tool_result("c1", "alpha", uuid=uuid_of_text("r"), parent=None),
        {"type": "tag", "tag": "beta"},
    )
    rows = read_index(config_home).rows
    assert [(row.tool, row.posting.record_time > 0) for row in rows] == [
        ("Grep", True),
        ("Grep", True),
        ("", True),
    ]


def test_a_repeated_title_is_indexed_once(config_home: ConfigHome) -> None:
    """A title that the client repeats in a session is indexed once for this session.

    Another session may have the same title.
    """
    title = {"type": "custom-title", "customTitle": "Parser", "sessionId": SESSION}
    path = write_session_file(config_home, title, prompt_with_id("alpha"), title)
    write_session_file(config_home, title, session_uuid=OTHER_ID)
    read_index(config_home)
    append_records(path, title)
    assert read_index(config_home).lines_with_word("parser") == [
        (f"{OTHER_ID}.jsonl", 0),
        (SESSION_FILE_NAME, 0),
    ]


def test_many_small_updates_keep_the_index_small(config_home: ConfigHome) -> None:
    """Sixty small updates keep the index below 300 kB, and every appended record is found."""
    path = write_session_file(config_home, prompt_with_id("alpha"))
    for number in range(60):
        append_records(path, prompt_with_id(f"word{number} common", uuid_seed=number))
        with open_index(config_home.where) as index:
            assert index.update_outcome.read_file_count == 1
    assert len(list(index_words_folder(config_home).rglob("*"))) < 200
    assert (
        folder_size_bytes(index_words_folder(config_home))
        + index_database_path(config_home).stat().st_size
        < 300_000
    )
    assert len(read_index(config_home).lines_with_word("common")) == 60


def test_an_index_of_mostly_deleted_records_is_rebuilt(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is rebuilt when most of its records belong to deleted files.

    The rebuilt index is small again.
    """
    fill_home(config_home, session_count=20, records_per_session=10)
    read_index(config_home)
    before = folder_size_bytes(index_words_folder(config_home))
    monkeypatch.setattr(postings, "MAX_DELETED_RECORDS", 50)
    for number in range(13):
        (config_home.project() / f"{session_id(number)}.jsonl").unlink()
    assert not read_index(config_home).was_rebuilt
    (config_home.project() / f"{session_id(13)}.jsonl").unlink()
    holding = read_index(config_home)
    assert (holding.was_rebuilt, len(holding.rows)) == (True, 60)
    assert folder_size_bytes(index_words_folder(config_home)) < before * 0.6


def folder_size_bytes(folder: Path) -> int:
    """Return the number of bytes of all files below the folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_a_file_with_an_impossible_time_is_indexed(config_home: ConfigHome) -> None:
    """A file with a time in the year 1675 or 2264 is indexed, and so are other files."""
    paths = [
        write_session_file(
            config_home, prompt_with_id(f"the zymurgy {number}"), session_uuid=session_id(number)
        )
        for number in range(1, 4)
    ]
    for path, at in zip(paths, (9_300_000_000, -9_300_000_000, 0), strict=True):
        os.utime(path, (at, at))
    hits = search_index(["zymurgy"], Scope(), config_home.where).hits
    assert {hit.session_id for hit in hits} == {session_id(number) for number in range(1, 4)}
