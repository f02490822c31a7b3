"""Tests of reading a transcript in pages from its end, and of reading around a record."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_hooks.errors import UsageError
from resume_hooks.reading.passages import has_content, read_page, read_passages_around
from resume_hooks.sessions.record_references import (
    RecordLines,
    Reference,
    TranscriptNames,
    find_referenced_line,
    parse_reference,
)
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line, read_lines
from tests.builders import (
    SESSION,
    Record,
    assistant,
    attachment,
    conversation,
    custom_title,
    last_prompt,
    session_bytes,
    session_id,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.corpus import RealSession

TRANSCRIPT_NAMES = TranscriptNames(SESSION, SESSION[:8])


def read_line_numbers_of_all_pages(entries: RecordLines, limit: int) -> list[int]:
    """Read all pages of a session from its end, and return the line numbers of the records they show."""
    lines: list[int] = []
    before = None
    while True:
        found = read_page(entries, TRANSCRIPT_NAMES, before, limit)
        numbers = [entries.add_line_number(one.entry).number for one in found.passages]
        assert {one.entry.number for one in found.passages} <= {-1}
        assert len(numbers) <= limit
        assert numbers == sorted(numbers)
        lines = [*numbers, *lines]
        if not found.has_earlier_records:
            return lines
        before = find_referenced_line(
            parse_reference(f"{SESSION}:{found.passages[0].record_name}"), entries
        )


def mixed_records(folder: Path) -> RecordLines:
    """Return a session with metadata, garbage, a repeated uuid, and an attachment among its messages."""
    talk: list[Record | bytes] = list(conversation(6))
    talk[3:3] = [
        custom_title("x"),
        b"garbage",
        b"",
        conversation(1)[0],
        attachment("told", uuid="t", parent=None),
    ]
    return RecordLines(write_session(folder, SESSION, [*talk, last_prompt("r1")]), SESSION)


MIXED_SESSIONS: list[RecordLines] = []


@pytest.fixture(autouse=True, scope="module")
def _write_mixed_session(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Write the session for the tests that read pages of all sizes."""
    MIXED_SESSIONS.append(mixed_records(tmp_path_factory.mktemp("one")))


@settings(max_examples=20)
@given(st.integers(1, 20))
def test_pages_show_every_record_once(limit: int) -> None:
    """Pages of any size together contain each record with content once and in order."""
    assert read_line_numbers_of_all_pages(MIXED_SESSIONS[0], limit) == [
        0,
        1,
        2,
        6,
        7,
        8,
        9,
        10,
        11,
        12,
        13,
        14,
        15,
        16,
    ]


def test_pages_of_real_sessions_show_every_record_once(real_session: RealSession) -> None:
    """Pages of a real session together contain each record with content once and in order."""
    rows = map(records.parse_record, real_session.lines)
    there = [number for number, record in enumerate(rows) if record and has_content(record)]
    assert (
        read_line_numbers_of_all_pages(RecordLines(str(real_session.path), SESSION), 250) == there
    )


def test_a_page_before_the_first_record_is_empty(tmp_path: Path) -> None:
    """A page before the first record, or of a file without content, is empty."""
    entries = RecordLines(write_session(tmp_path, SESSION, [custom_title("x")]), SESSION)
    assert read_page(entries, TRANSCRIPT_NAMES, None, 5) == ([], False)
    assert read_page(
        MIXED_SESSIONS[0], TRANSCRIPT_NAMES, MIXED_SESSIONS[0].find_line_with_number(0), 5
    ) == (
        [],
        False,
    )
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"")
    assert read_page(RecordLines(str(empty), SESSION), TRANSCRIPT_NAMES, None, 5) == ([], False)


def test_a_page_can_begin_before_a_record_and_end_after_it(tmp_path: Path) -> None:
    """A page around a record has the given number of messages before the record and after it.

    Additions of the client between these messages are included but not counted.
    """
    eighth, first = (
        find_referenced_line(Reference(SESSION, number), MIXED_SESSIONS[0]) for number in (8, 0)
    )
    earlier, later = read_passages_around(MIXED_SESSIONS[0], TRANSCRIPT_NAMES, eighth, 3, 2)
    assert [one.entry.number for one in earlier] == [1, 2, 6, 7]
    assert [one.entry.number for one in later] == [9, 10]
    assert [one.is_client_addition for one in earlier] == [False, False, False, True]
    assert read_passages_around(MIXED_SESSIONS[0], TRANSCRIPT_NAMES, first, 3, 0) == ([], [])


def test_a_result_names_a_call_on_an_earlier_page(tmp_path: Path) -> None:
    """A tool result names its call, even if the call is on an earlier page."""
    lines: list[Record | bytes] = [
        tool_use("c", uuid="a", parent=None, name="Bash", tool_input={"command": "ls"}),
        tool_result("c", "x", uuid="u", parent="a"),
    ]
    entries = RecordLines(write_session(tmp_path, SESSION, lines), SESSION)
    (only,) = read_page(entries, TRANSCRIPT_NAMES, None, 1).passages
    assert only.speaker == "result of Bash ls"


def test_the_tool_of_a_distant_call_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a tool result's call is more than ``MAX_CALL_SEARCH_BYTES`` away, no tool name is shown."""
    monkeypatch.setattr("resume_hooks.reading.render.MAX_CALL_SEARCH_BYTES", 1_000)
    between: list[Record | bytes] = [user("x" * 600, uuid=f"u{n}") for n in range(3)]
    asking = tool_use("c", uuid="a", parent=None, name="Bash", tool_input={"command": "ls"})
    for count, speaker in ((1, "result of Bash ls"), (3, "result")):
        lines = [asking, *between[:count], tool_result("c", "x", uuid="u", parent="a")]
        entries = RecordLines(write_session(tmp_path, session_id(count), lines), SESSION)
        (only,) = read_page(entries, TRANSCRIPT_NAMES, None, 1).passages
        assert only.speaker == speaker


GENERATED_RECORDS: list[Record | bytes] = [
    user("asked", uuid=session_id(5)),
    assistant("said \u2028 so", uuid=session_id(6)),
    attachment("told", uuid="t", parent=None),
    custom_title("x"),
    b"garbage \xff\xfe",
    b"",
    b"\xef\xbb\xbf" + session_bytes([user("marked", uuid="m")]).strip(),
    session_bytes([user("from elsewhere", uuid="w")]).strip() + b"\r",
    b'{"type":"user","uuid":"bad","message":{"role":"user","content":"\xff"}}',
    user("asked again", uuid=session_id(5)),
]


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(GENERATED_RECORDS), max_size=14),
    st.integers(0, 14),
    st.integers(1, 5),
    st.data(),
)
def test_a_growing_file_does_not_change_its_pages(
    rows: list[Record | bytes], known_count: int, limit: int, data: st.DataObject
) -> None:
    """While another process appends to a file, the file's pages show each initial record exactly once."""
    content = session_bytes(rows)
    start = len(session_bytes(rows[:known_count]))
    with TemporaryDirectory() as folder:
        path = Path(folder, f"{SESSION}.jsonl")
        path.write_bytes(content[: data.draw(st.integers(start, len(content)))])
        first = RecordLines(str(path), SESSION)
        there = [
            line.offset
            for line in file_lines(path)
            if (record := records.parse_record(line.body)) and has_content(record)
        ]  # fmt: skip
        found = read_page(first, TRANSCRIPT_NAMES, None, limit)
        seen = [one.entry.offset for one in found.passages]
        while found.has_earlier_records:
            path.write_bytes(content[: data.draw(st.integers(first.size, len(content)))])
            now = RecordLines(str(path), SESSION)
            found = read_page(
                now,
                TRANSCRIPT_NAMES,
                find_referenced_line(parse_reference(found.passages[0].record_name, SESSION), now),
                limit,
            )
            seen = [one.entry.offset for one in found.passages] + seen
        assert seen == there


def test_a_record_is_found_after_a_rewrite(tmp_path: Path) -> None:
    """A record is found by its uuid after the session's file was rewritten.

    The search for a removed record raises an error.
    """
    path = Path(write_session(tmp_path, SESSION, GENERATED_RECORDS[:4]))
    entries = RecordLines(str(path), SESSION)
    second = read_page(entries, TRANSCRIPT_NAMES, None, 2).passages[0]
    path.write_bytes(b"a longer line\n" + path.read_bytes())
    now = RecordLines(str(path), SESSION)
    (only,) = read_page(
        now,
        TRANSCRIPT_NAMES,
        find_referenced_line(parse_reference(second.record_name, SESSION), now),
        2,
    ).passages
    assert only.uuid == session_id(5)
    write_session(tmp_path, SESSION, GENERATED_RECORDS[:1])
    with pytest.raises(UsageError, match=f"No record {session_id(6)} in "):
        find_referenced_line(
            parse_reference(second.record_name, SESSION), RecordLines(str(path), SESSION)
        )
    with pytest.raises(UsageError, match="begins at byte"):
        find_referenced_line(parse_reference("@7", SESSION), RecordLines(str(path), SESSION))


def test_a_long_line_is_read_in_full(tmp_path: Path) -> None:
    """A line of 5 MB is read in full in a page."""
    rows: list[Record | bytes] = [
        user("first", uuid="a"),
        user("x" * 5_000_000, uuid="b"),
        b"\xff" * 3_000_000,
    ]
    entries = RecordLines(write_session(tmp_path, SESSION, rows), SESSION)
    found = read_page(entries, TRANSCRIPT_NAMES, None, 2)
    assert [one.character_count for one in found.passages] == [5, 5_000_000]


def file_lines(path: Path) -> list[Line]:
    """Read a file from its start and return its lines."""
    with path.open("rb") as stream:
        return list(read_lines(stream))
