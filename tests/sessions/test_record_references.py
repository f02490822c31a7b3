"""Tests of references, which name a record of a session, for example ``1a2b3c4d:56``."""

from __future__ import annotations

from pathlib import Path

import pytest

from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.sessions.record_references import (
    SESSION_REFERENCE_HELP,
    RecordLines,
    RecordOffset,
    Reference,
    find_numbered_line,
    find_referenced_line,
    parse_reference,
)
from tests.builders import SESSION, Record, conversation, session_id, tool_use, user, write_session

RECORD_UUID = session_id(9)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("1a2b3c4d:56", Reference("1a2b3c4d", 56)),
        (f"{SESSION}:0", Reference(SESSION, 0)),
        (f"  1a2b :{RECORD_UUID} ", Reference("1a2b", RECORD_UUID)),
        (f"1a2b:{RECORD_UUID.upper()}", Reference("1a2b", RECORD_UUID.upper())),
        ("1a2b:@0", Reference("1a2b", RecordOffset(0))),
        (
            f"1a2b:{RECORD_UUID}@123456789012345",
            Reference("1a2b", RecordOffset(123456789012345, RECORD_UUID)),
        ),
        ("/tmp/a:b/x.jsonl:7", Reference("/tmp/a:b/x.jsonl", 7)),
        ("a title: with a colon:12", Reference("a title: with a colon", 12)),
    ],
)
def test_a_valid_reference_is_parsed(text: str, reference: Reference) -> None:
    """A reference names a session before its last colon and a record after it."""
    assert parse_reference(text) == reference


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("1a2b3c4d", "'1a2b3c4d' has no colon between a session and a record"),
        ("", "'' has no colon between a session and a record"),
        (":56", "':56' has no session before its colon"),
        ("1a2b:", "'' is not a line number, a uuid, or @ followed by a byte offset"),
        ("1a2b:-1", "'-1' is not a line number, a uuid, or @ followed by a byte offset"),
        ("1a2b:1.5", "'1.5' is not a line number, a uuid, or @ followed by a byte offset"),
        ("1a2b:٣", "'٣' is not a line number, a uuid, or @ followed by a byte offset"),
        (
            "1a2b:1000000000",
            "'1000000000' is not a line number, a uuid, or @ followed by a byte offset",
        ),
        ("1a2b:@", "'@' is not a line number, a uuid, or @ followed by a byte offset"),
        ("1a2b:@-1", "'@-1' is not a line number, a uuid, or @ followed by a byte offset"),
        (
            "1a2b:@1234567890123456",
            "'@1234567890123456' is not a line number, a uuid, or @ followed by a byte offset",
        ),
        ("1a2b:5@5", "'5@5' is not a line number, a uuid, or @ followed by a byte offset"),
        ("1a2b:r\x1b[31m1", "'r1' is not a line number, a uuid, or @ followed by a byte offset"),
    ],
)
def test_an_invalid_reference_is_refused(text: str, mistake: str) -> None:
    """An invalid reference raises ``UsageError`` with the mistake and a valid example."""
    with pytest.raises(UsageError) as caught:
        parse_reference(text)
    assert (caught.value.message, caught.value.remedy) == (mistake, SESSION_REFERENCE_HELP)


def test_the_option_session_replaces_the_session_in_a_reference() -> None:
    """If ``--session`` names the session, a reference names only the record.

    A reference that also contains a session is refused.
    """
    assert parse_reference("56", "a title") == Reference("a title", 56)
    assert parse_reference(RECORD_UUID, SESSION) == Reference(SESSION, RECORD_UUID)
    with pytest.raises(UsageError, match="contains a session, and --session is given as well"):
        parse_reference("1a2b:56", SESSION)


@pytest.fixture
def record_lines(tmp_path: Path) -> RecordLines:
    """Write a session with a blank line, an invalid line, a queued prompt and one uuid twice."""
    records: list[Record | bytes] = [
        user("first", uuid=RECORD_UUID),
        b"",
        b"no record",
        user("second", uuid=RECORD_UUID),
        user("queued", uuid="own", sentAsUuid=session_id(8)),
        tool_use("c1", uuid="r5", parent=None),
    ]
    return RecordLines(write_session(tmp_path, SESSION, records), SESSION)


def test_a_record_is_found_by_its_line(record_lines: RecordLines) -> None:
    """A record is found by its line number, which counts from 0 and includes invalid lines."""
    assert len(record_lines) == 6
    assert find_numbered_line(Reference(SESSION, 2), record_lines).read_raw_line() == b"no record\n"
    assert find_numbered_line(Reference(SESSION, 2), record_lines).parse_record() is None
    assert find_numbered_line(Reference(SESSION, 3), record_lines).reference == f"{SESSION}:3"
    with pytest.raises(UsageError) as caught:
        find_numbered_line(Reference(SESSION, 6), record_lines)
    assert caught.value.remedy == "It has lines 0 to 5."


def test_a_record_is_found_by_its_uuid(record_lines: RecordLines) -> None:
    """A record is found by its uuid, in upper or lower case.

    If two records have the uuid, the last one is found, as in clients. The first one is found only
    if ``find_record_with_uuid`` is given its line.
    """
    assert find_numbered_line(Reference(SESSION, RECORD_UUID), record_lines).number == 3
    assert find_numbered_line(Reference(SESSION, RECORD_UUID.upper()), record_lines).number == 3
    assert [
        found.number
        for near in (-1, 0, 3, 99)
        if (found := record_lines.find_record_with_uuid(RECORD_UUID, near))
    ] == [
        3,
        0,
        3,
        3,
    ]
    assert find_numbered_line(Reference(SESSION, session_id(8)), record_lines).number == 4
    with pytest.raises(UsageError, match=f"No record {SESSION} in "):
        find_numbered_line(Reference(SESSION, SESSION), record_lines)


def test_a_record_is_found_by_its_offset(record_lines: RecordLines) -> None:
    """A record is found by its byte offset. The record's line number is computed only on request."""
    garbage, last = (
        find_numbered_line(Reference(SESSION, number), record_lines) for number in (2, 5)
    )
    assert (
        find_numbered_line(Reference(SESSION, RecordOffset(garbage.offset)), record_lines)
        == garbage
    )
    found = find_referenced_line(Reference(SESSION, RecordOffset(last.offset)), record_lines)
    assert (found.number, found.reference) == (-1, f"{SESSION}:@{last.offset}")
    assert (found.read_raw_line(), record_lines.add_line_number(found)) == (
        last.read_raw_line(),
        last,
    )
    for nowhere in (garbage.offset + 1, record_lines.size, 10**14):
        with pytest.raises(UsageError, match=f"begins at byte {nowhere}$"):
            find_referenced_line(Reference(SESSION, RecordOffset(nowhere)), record_lines)


def test_an_offset_distinguishes_records_with_the_same_uuid(record_lines: RecordLines) -> None:
    """An offset distinguishes two records with the same uuid.

    If a record with a different uuid is at the offset, only the uuid is used.
    """
    first, other = (
        find_numbered_line(Reference(SESSION, number), record_lines) for number in (0, 4)
    )
    assert (
        find_referenced_line(
            Reference(SESSION, RecordOffset(first.offset, RECORD_UUID.upper())), record_lines
        ).offset
        == first.offset
    )
    for moved in (other.offset, first.offset + 1, record_lines.size):
        assert (
            find_numbered_line(
                Reference(SESSION, RecordOffset(moved, RECORD_UUID)), record_lines
            ).number
            == 3
        )
    with pytest.raises(UsageError, match=f"No record {session_id(7)} in "):
        find_referenced_line(
            Reference(SESSION, RecordOffset(first.offset, session_id(7))), record_lines
        )


def test_lines_appended_after_opening_are_not_included(tmp_path: Path) -> None:
    """Lines that are appended after the file was opened are not read.

    If the last line was incomplete when the file was opened, the rest of that line is not read
    either.
    """
    path = Path(write_session(tmp_path, SESSION, conversation(2)))
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    entries = RecordLines(str(path), SESSION)
    path.write_bytes(whole + whole)
    torn = entries.find_line_with_number(len(entries) - 1)
    assert torn is not None
    assert (torn.parse_record(), torn.offset + torn.length, entries.size) == (
        None,
        entries.size,
        len(whole) - 9,
    )
    assert entries.find_line_with_number(len(entries)) is None


def test_a_deleted_or_truncated_record_is_reported(tmp_path: Path) -> None:
    """Reading a record whose file was shortened or deleted raises ``SessionNotFound``."""
    path = Path(write_session(tmp_path, SESSION, conversation(1)))
    entry = RecordLines(str(path), SESSION).find_line_with_number(1)
    assert entry is not None
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(SessionNotFound, match="changed while it was read"):
        entry.read_raw_line()
    path.unlink()
    for reading in (entry.read_raw_line, lambda: RecordLines(str(path), SESSION)):
        with pytest.raises(SessionNotFound, match="can't be read"):
            reading()
