"""Tests of the material for a summary: all of a small session, but only parts of a long one."""

from __future__ import annotations

import re

import pytest

from resume_hooks.derive.summary import (
    MAX_MESSAGE_CHARACTERS,
    MAX_SUMMARY_PART_BYTES,
    MAX_SUMMARY_PARTS,
    SUMMARY_MATERIAL_HEADING,
    SummaryMaterial,
    read_summary_material,
)
from resume_hooks.sessions import locate
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    attachment,
    conversation,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.needs import corpus_sessions, require_for_test


def read_material_of_records(home: ConfigHome, records: list[Record]) -> SummaryMaterial:
    """Return the material of a session with these records."""
    return read_summary_material(
        locate.session_file(write_session(home.project(), SESSION, records)), home.where
    )


def make_long_session(turn_count: int, words_per_output: int = 900) -> list[Record]:
    """Return turns with a prompt, a call, an output of ``words_per_output`` words, and an answer."""
    records: list[Record] = []
    for turn in range(turn_count):
        at, parent = 4 * turn, f"a{turn - 1}" if turn else None
        records += [
            user(f"please do step {turn}", uuid=f"u{turn}", parent=parent, ts=at),
            tool_use(
                f"t{turn}",
                uuid=f"c{turn}",
                parent=f"u{turn}",
                ts=at + 1,
                tool_input={"file_path": "/x"},
            ),
            tool_result(
                f"t{turn}",
                f"out{turn} " * words_per_output,
                uuid=f"r{turn}",
                parent=f"c{turn}",
                ts=at + 2,
            ),
            assistant(
                f"step {turn} is done " + "and more " * 100,
                uuid=f"a{turn}",
                parent=f"r{turn}",
                ts=at + 3,
            ),
        ]
    return records


def test_a_small_session_is_one_part(config_home: ConfigHome) -> None:
    """The material of a small session is one part, in which each message follows its reference."""
    found = read_material_of_records(config_home, conversation(3))
    (part,) = found.parts
    assert part.record_numbers == {0, 1, 2, 3, 4, 5}
    assert part.text.startswith(f"{SUMMARY_MATERIAL_HEADING}\n11111111:0 ")
    assert re.findall("prompt [0-9]|answer [0-9]", part.text) == [
        f"{'answer' if n % 2 else 'prompt'} {n}" for n in range(6)
    ]
    assert (found.record_count, found.call_count) == (6, 1)


def test_client_additions_are_left_out(config_home: ConfigHome) -> None:
    """Lists of skills and other additions of the client are not in the material."""
    records = [*conversation(1), attachment("LISTING OF SKILLS", uuid="x", parent="r1", ts=5)]
    found = read_material_of_records(config_home, records)
    assert "LISTING" not in found.parts[0].text
    assert found.record_numbers == {0, 1}


def test_a_long_message_is_cut(config_home: ConfigHome) -> None:
    """A very long message is cut, and the number of omitted characters is stated."""
    found = read_material_of_records(
        config_home,
        [user("word " * 200_000, uuid="a"), assistant("ok", uuid="b", parent="a", ts=1)],
    )
    assert found.character_count < MAX_MESSAGE_CHARACTERS + 500
    assert "more characters" in found.parts[0].text


def test_a_session_just_below_the_limit_is_one_part(config_home: ConfigHome) -> None:
    """A session just below the limit of a part is not split."""
    records = make_long_session(96)
    whole = read_material_of_records(config_home, records)
    assert len(whole.parts) == 1
    assert MAX_SUMMARY_PART_BYTES * 0.9 < whole.character_count <= MAX_SUMMARY_PART_BYTES
    assert whole.record_numbers == set(range(len(records)))


@pytest.mark.parametrize(
    ("turn_count", "expected_part_count"), [(160, 2), (250, 3), (900, MAX_SUMMARY_PARTS)]
)
def test_a_long_session_is_split_into_parts(
    config_home: ConfigHome, turn_count: int, expected_part_count: int
) -> None:
    """A long session is split into a limited number of parts. The latest part omits no record."""
    records = make_long_session(turn_count)
    found = read_material_of_records(config_home, records)
    assert len(found.parts) == expected_part_count
    assert all(len(part.text) <= MAX_SUMMARY_PART_BYTES for part in found.parts)
    firsts = [min(part.record_numbers) for part in found.parts]
    assert firsts == sorted(firsts)
    latest = found.parts[-1].record_numbers
    assert latest == set(range(min(latest), len(records)))
    assert len(latest) > 200
    assert found.call_count == expected_part_count + 1


def test_omitted_records_are_not_counted_as_shown(config_home: ConfigHome) -> None:
    """The record numbers of a part do not include omitted records, and the part mentions the gap."""
    found = read_material_of_records(config_home, make_long_session(2_000, words_per_output=60))
    first = found.parts[0]
    heads = {int(number) for number in re.findall(r"^11111111:([0-9]+) ", first.text, re.MULTILINE)}
    assert first.record_numbers == heads
    assert "left out" in first.text
    assert len(found.record_numbers) < found.record_count


def test_the_limit_of_a_part_is_in_bytes(config_home: ConfigHome) -> None:
    """A part's limit is in bytes, so a text with multi-byte characters is split into more parts."""
    records = [
        user("\ubc18\ub4dc\uc2dc " * 1_400, uuid=f"u{n}", parent=f"u{n - 1}" if n else None, ts=n)
        for n in range(60)
    ]
    found = read_material_of_records(config_home, records)
    assert len(found.parts) == MAX_SUMMARY_PARTS
    assert all(len(part.text.encode()) <= MAX_SUMMARY_PART_BYTES * 1.05 for part in found.parts)


def test_only_an_empty_session_has_no_parts(config_home: ConfigHome) -> None:
    """An empty session has no parts. A session that has a record but no text has one part."""
    assert read_material_of_records(config_home, []).parts == ()
    assert (
        len(
            read_material_of_records(
                config_home, [tool_result("t", "", uuid="a", parent=None)]
            ).parts
        )
        == 1
    )


@pytest.mark.parametrize("path", corpus_sessions()[::9], ids=lambda path: path.stem[:8])
def test_parts_of_real_sessions_keep_to_their_limit(config_home: ConfigHome, path: object) -> None:
    """The parts of a real session stay within their limit and name only records of the session's file."""
    found = read_summary_material(locate.session_file(str(path)), config_home.where)
    with open(str(path), "rb") as stream:
        lines = sum(1 for _ in stream)
    assert all(len(part.text) <= MAX_SUMMARY_PART_BYTES for part in found.parts)
    assert all(0 <= number < lines for number in found.record_numbers)
    assert len(found.parts) <= MAX_SUMMARY_PARTS


def test_the_corpus_exists() -> None:
    """The corpus of real transcripts exists, so the tests with real sessions have something to test."""
    require_for_test("the transcript corpus", corpus_sessions(), "set RESUME_HOOKS_CORPUS")
