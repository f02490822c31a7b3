"""Tests of references: the words that name a record, and the errors for others."""

from __future__ import annotations

from pathlib import Path

import pytest

from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.sessions.record_references import (
    REFERENCE_HELP,
    RecordLines,
    RecordOffset,
    Reference,
    find_numbered_line,
    find_referenced_line,
    parse_reference,
)
from tests.builders import SESSION, Record, conversation, session_id, tool_use, user, write_session

UUID = session_id(9)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("1a2b3c4d:56", Reference("1a2b3c4d", 56)),
        (f"{SESSION}:0", Reference(SESSION, 0)),
        (f"  1a2b :{UUID} ", Reference("1a2b", UUID)),
        (f"1a2b:{UUID.upper()}", Reference("1a2b", UUID.upper())),
        ("1a2b:@0", Reference("1a2b", RecordOffset(0))),
        (f"1a2b:{UUID}@123456789012345", Reference("1a2b", RecordOffset(123456789012345, UUID))),
        ("/tmp/a:b/x.jsonl:7", Reference("/tmp/a:b/x.jsonl", 7)),
        ("a title: with a colon:12", Reference("a title: with a colon", 12)),
    ],
)
def test_the_forms_of_a_reference(text: str, reference: Reference) -> None:
    """The text before the last colon names the session."""
    assert parse_reference(text) == reference


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("1a2b3c4d", "'1a2b3c4d' has no colon between a session and a record"),
        ("", "'' has no colon between a session and a record"),
        (":56", "':56' has no session before its colon"),
        ("1a2b:", "'' is neither a line number, nor a uuid, nor @ and a byte"),
        ("1a2b:-1", "'-1' is neither a line number, nor a uuid, nor @ and a byte"),
        ("1a2b:1.5", "'1.5' is neither a line number, nor a uuid, nor @ and a byte"),
        ("1a2b:٣", "'٣' is neither a line number, nor a uuid, nor @ and a byte"),
        ("1a2b:1000000000", "'1000000000' is neither a line number, nor a uuid, nor @ and a byte"),
        ("1a2b:@", "'@' is neither a line number, nor a uuid, nor @ and a byte"),
        ("1a2b:@-1", "'@-1' is neither a line number, nor a uuid, nor @ and a byte"),
        (
            "1a2b:@1234567890123456",
            "'@1234567890123456' is neither a line number, nor a uuid, nor @ and a byte",
        ),
        ("1a2b:5@5", "'5@5' is neither a line number, nor a uuid, nor @ and a byte"),
        ("1a2b:r\x1b[31m1", "'r1' is neither a line number, nor a uuid, nor @ and a byte"),
    ],
)
def test_invalid_references(text: str, wrong: str) -> None:
    """A usage error explains the mistake and shows a valid reference."""
    with pytest.raises(UsageError) as caught:
        parse_reference(text)
    assert (caught.value.message, caught.value.remedy) == (wrong, REFERENCE_HELP)


def test_a_reference_with_the_option_session() -> None:
    """The reference then has only the record's part. Naming the session twice is refused."""
    assert parse_reference("56", "a title") == Reference("a title", 56)
    assert parse_reference(UUID, SESSION) == Reference(SESSION, UUID)
    with pytest.raises(UsageError, match="contains a session, and --session is given as well"):
        parse_reference("1a2b:56", SESSION)


@pytest.fixture
def record_lines(tmp_path: Path) -> RecordLines:
    """Return a session with a blank line, an invalid line, a queued prompt, and one uuid twice."""
    records: list[Record | bytes] = [
        user("first", uuid=UUID),
        b"",
        b"no record",
        user("second", uuid=UUID),
        user("queued", uuid="own", sentAsUuid=session_id(8)),
        tool_use("c1", uuid="r5", parent=None),
    ]
    return RecordLines(write_session(tmp_path, SESSION, records), SESSION)


def test_a_record_is_found_by_its_line(record_lines: RecordLines) -> None:
    """Lines count from 0, whatever their content. Each gives its own bytes."""
    assert len(record_lines) == 6
    assert find_numbered_line(Reference(SESSION, 2), record_lines).read_raw() == b"no record\n"
    assert find_numbered_line(Reference(SESSION, 2), record_lines).parse_record() is None
    assert find_numbered_line(Reference(SESSION, 3), record_lines).reference == f"{SESSION}:3"
    with pytest.raises(UsageError) as caught:
        find_numbered_line(Reference(SESSION, 6), record_lines)
    assert caught.value.remedy == "It has lines 0 to 5."


def test_a_record_is_found_by_its_uuid(record_lines: RecordLines) -> None:
    """Of two records with one uuid the last counts, as in clients, unless the search found the first."""
    assert find_numbered_line(Reference(SESSION, UUID), record_lines).number == 3
    assert find_numbered_line(Reference(SESSION, UUID.upper()), record_lines).number == 3
    assert [
        found.number for near in (-1, 0, 3, 99) if (found := record_lines.find_uuid(UUID, near))
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
    """It is the line that begins at a byte. Its number is computed on request."""
    garbage, last = (
        find_numbered_line(Reference(SESSION, number), record_lines) for number in (2, 5)
    )
    assert (
        find_numbered_line(Reference(SESSION, RecordOffset(garbage.offset)), record_lines)
        == garbage
    )
    found = find_referenced_line(Reference(SESSION, RecordOffset(last.offset)), record_lines)
    assert (found.number, found.reference) == (-1, f"{SESSION}:@{last.offset}")
    assert (found.read_raw(), record_lines.add_number(found)) == (last.read_raw(), last)
    for nowhere in (garbage.offset + 1, record_lines.size, 10**14):
        with pytest.raises(UsageError, match=f"begins at byte {nowhere}$"):
            find_referenced_line(Reference(SESSION, RecordOffset(nowhere)), record_lines)


def test_an_offset_distinguishes_records_of_one_uuid(record_lines: RecordLines) -> None:
    """If another record is there by now, only the uuid counts."""
    first, other = (
        find_numbered_line(Reference(SESSION, number), record_lines) for number in (0, 4)
    )
    assert (
        find_referenced_line(
            Reference(SESSION, RecordOffset(first.offset, UUID.upper())), record_lines
        ).offset
        == first.offset
    )
    for moved in (other.offset, first.offset + 1, record_lines.size):
        assert (
            find_numbered_line(Reference(SESSION, RecordOffset(moved, UUID)), record_lines).number
            == 3
        )
    with pytest.raises(UsageError, match=f"No record {session_id(7)} in "):
        find_referenced_line(
            Reference(SESSION, RecordOffset(first.offset, session_id(7))), record_lines
        )


def test_later_lines_are_not_included(tmp_path: Path) -> None:
    """The rest of an unfinished line is not included either."""
    path = Path(write_session(tmp_path, SESSION, conversation(2)))
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    entries = RecordLines(str(path), SESSION)
    path.write_bytes(whole + whole)
    torn = entries.line_at(len(entries) - 1)
    assert torn is not None
    assert (torn.parse_record(), torn.offset + torn.length, entries.size) == (
        None,
        entries.size,
        len(whole) - 9,
    )
    assert entries.line_at(len(entries)) is None


def test_a_deleted_or_truncated_record_is_reported(tmp_path: Path) -> None:
    """It was found before."""
    path = Path(write_session(tmp_path, SESSION, conversation(1)))
    entry = RecordLines(str(path), SESSION).line_at(1)
    assert entry is not None
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(SessionNotFound, match="changed while it was read"):
        entry.read_raw()
    path.unlink()
    for reading in (entry.read_raw, lambda: RecordLines(str(path), SESSION)):
        with pytest.raises(SessionNotFound, match="can't be read"):
            reading()
