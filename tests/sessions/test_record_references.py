"""References: which words name which record, and what is said of words that name none."""

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


def test_a_record_of_a_named_session() -> None:
    """With the session said elsewhere the record's part stands alone, and nothing may be said twice."""
    assert parse_reference("56", "a title") == Reference("a title", 56)
    assert parse_reference(UUID, SESSION) == Reference(SESSION, UUID)
    with pytest.raises(UsageError, match="contains a session, and --session is given as well"):
        parse_reference("1a2b:56", SESSION)


@pytest.fixture
def entries(tmp_path: Path) -> RecordLines:
    """A session with a blank line, a line that is none, a queued prompt, and one uuid twice."""
    records: list[Record | bytes] = [
        user("first", uuid=UUID),
        b"",
        b"no record",
        user("second", uuid=UUID),
        user("queued", uuid="own", sentAsUuid=session_id(8)),
        tool_use("c1", uuid="r5", parent=None),
    ]
    return RecordLines(write_session(tmp_path, SESSION, records), SESSION)


def test_by_line(entries: RecordLines) -> None:
    """Lines count from 0, whatever stands in them; each gives its own bytes again."""
    assert len(entries) == 6
    assert find_numbered_line(Reference(SESSION, 2), entries).read_raw() == b"no record\n"
    assert find_numbered_line(Reference(SESSION, 2), entries).parse_record() is None
    assert find_numbered_line(Reference(SESSION, 3), entries).reference == f"{SESSION}:3"
    with pytest.raises(UsageError) as caught:
        find_numbered_line(Reference(SESSION, 6), entries)
    assert caught.value.remedy == "It has lines 0 to 5."


def test_by_uuid(entries: RecordLines) -> None:
    """Of two records with one uuid the last counts, as in clients, unless the first is where it was searched."""
    assert find_numbered_line(Reference(SESSION, UUID), entries).number == 3
    assert find_numbered_line(Reference(SESSION, UUID.upper()), entries).number == 3
    assert [
        found.number for near in (-1, 0, 3, 99) if (found := entries.find_uuid(UUID, near))
    ] == [
        3,
        0,
        3,
        3,
    ]
    assert find_numbered_line(Reference(SESSION, session_id(8)), entries).number == 4
    with pytest.raises(UsageError, match=f"No record {SESSION} in "):
        find_numbered_line(Reference(SESSION, SESSION), entries)


def test_by_place(entries: RecordLines) -> None:
    """The line that begins at a byte, whatever it holds; numbered once somebody wants that."""
    garbage, last = (find_numbered_line(Reference(SESSION, number), entries) for number in (2, 5))
    assert find_numbered_line(Reference(SESSION, RecordOffset(garbage.offset)), entries) == garbage
    found = find_referenced_line(Reference(SESSION, RecordOffset(last.offset)), entries)
    assert (found.number, found.reference) == (-1, f"{SESSION}:@{last.offset}")
    assert (found.read_raw(), entries.add_number(found)) == (last.read_raw(), last)
    for nowhere in (garbage.offset + 1, entries.size, 10**14):
        with pytest.raises(UsageError, match=f"begins at byte {nowhere}$"):
            find_referenced_line(Reference(SESSION, RecordOffset(nowhere)), entries)


def test_by_uuid_and_place(entries: RecordLines) -> None:
    """The place tells records of one uuid apart.

    Where another record is there by now the uuid alone counts.
    """
    first, other = (find_numbered_line(Reference(SESSION, number), entries) for number in (0, 4))
    assert (
        find_referenced_line(
            Reference(SESSION, RecordOffset(first.offset, UUID.upper())), entries
        ).offset
        == first.offset
    )
    for moved in (other.offset, first.offset + 1, entries.size):
        assert (
            find_numbered_line(Reference(SESSION, RecordOffset(moved, UUID)), entries).number == 3
        )
    with pytest.raises(UsageError, match=f"No record {session_id(7)} in "):
        find_referenced_line(Reference(SESSION, RecordOffset(first.offset, session_id(7))), entries)


def test_a_file_that_grows(tmp_path: Path) -> None:
    """Lines after the opening are not included, nor the rest of an unfinished line."""
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


def test_a_file_that_goes(tmp_path: Path) -> None:
    """A record that was found and then deleted or truncated is reported."""
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
