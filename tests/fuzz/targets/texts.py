"""Fuzz targets for bytes and words: lines, records, and typed locators, times, turns and queries."""

from __future__ import annotations

import io
import json
import math
from typing import Any

from resume_hooks import clock
from resume_hooks.derive import cut_point
from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks.triggers import recognise_trigger
from resume_hooks.search import query
from resume_hooks.sessions import record_references
from resume_hooks.system.text import plain_line, plain_text
from resume_hooks.transcripts import raw_edit, records, turns
from resume_hooks.transcripts.lines import (
    BOM,
    LineNumbers,
    read_lines,
    read_lines_backwards,
    read_tail,
)
from tests.builders import ConfigHome
from tests.fuzz.draws import Draws
from tests.fuzz.material import draw_line
from tests.fuzz.targets.target import Target, TryCase, assert_expected_error

TROUBLESOME_LINE_BYTES = (
    b"\n",
    b"\r\n",
    b"\r",
    b"\x00",
    BOM,
    b"{}",
    b"\xff\xfe",
    b'{"a":"\xe2\x80\xa8"}',
    b"\x0b\x0c",
    b"x" * 70_000,
)
FORBIDDEN_CHARACTERS = frozenset(
    "".join(map(chr, [*range(9), *range(11, 32), 127, *range(128, 160), 0x202E, 0x2066]))
)
"""Characters that a terminal obeys or that reorder text, except tabs and line breaks."""


def make_line_check(_: ConfigHome) -> TryCase:
    """Return a check that the lines that are read from a file contain exactly its bytes.

    Reading forwards, backwards or from any offset gives the same lines, numbers and offsets.
    """

    def try_case(draws: Draws) -> None:
        whole = b"".join(
            draws.pick(TROUBLESOME_LINE_BYTES) if draws.flip_coin() else draws.take_bytes(30)
            for _ in range(draws.number_below(24))
        )
        found = list(read_lines(io.BytesIO(whole)))
        assert b"".join(each.raw for each in found) == whole
        assert all(not each.body.endswith(b"\n") for each in found)
        reach = draws.number_below(len(whole) + 2)
        tail = [(each.offset, each.raw) for each in read_tail(io.BytesIO(whole), reach)]
        assert tail == [
            (each.offset, each.raw) for each in found if each.offset >= len(whole) - reach
        ]
        end = draws.number_below(len(whole) + 1)
        back = [each.offset for each in read_lines_backwards(io.BytesIO(whole), end)]
        assert back == [each.offset for each in reversed(found) if each.offset < end]
        numbers = LineNumbers(len(whole))
        if found:
            wanted = draws.pick(found)
            assert numbers.find_line_number(io.BytesIO(whole), wanted.offset) == wanted.number
            assert numbers.find_line_offset(io.BytesIO(whole), wanted.number) == wanted.offset

    return try_case


def make_accessor_check(_: ConfigHome) -> TryCase:
    """Return a check that every accessor of a record returns its own type for any line.

    A record can be written and read again.
    """

    def try_case(draws: Draws) -> None:
        body = draw_line(draws) if draws.flip_coin() else json.dumps(draws.json()).encode()
        record = records.parse_record(body)
        if record is None:
            return
        assert isinstance(records.join_text_blocks(record), str)
        assert all(
            isinstance(each, str)
            for each in (records.get_kind(record), records.answering_model(record))
        )
        assert all(count >= 0 for count in records.read_token_counts(record))
        assert isinstance(records.is_prompt(record), bool)
        assert isinstance(records.prompt_text(record), str)
        assert all(isinstance(each, dict) for each in records.list_blocks(record))
        assert all(
            isinstance(each, str)
            for each in [*records.list_answered_call_ids(record), *records.iterate_strings(record)]
        )
        again = records.parse_record(raw_edit.encode_record(record))
        assert again is not None
        if record and _is_exact_in_json(record):
            assert again == record
            key = draws.pick(sorted(record))
            if isinstance(record[key], str):
                changed = raw_edit.set_fields(
                    body.strip().removeprefix(BOM), record, {key: "other"}
                )
                assert records.parse_record(changed) == {**record, key: "other"}
            assert records.parse_record(
                raw_edit.add_field(raw_edit.encode_record(record), "own", "1")
            ) == {
                **record,
                "own": "1",
            }

    return try_case


def _is_exact_in_json(value: Any) -> bool:
    """Check whether JSON can represent a value exactly, without NaN and very large numbers."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) < 2**63
    if isinstance(value, dict):
        return all(map(_is_exact_in_json, (*value, *value.values())))
    return all(map(_is_exact_in_json, value)) if isinstance(value, list) else True


def make_typed_text_check(_: ConfigHome) -> TryCase:
    """Return a check that typed text is parsed, or refused with a sentence.

    The text is typed as a reference, turns, a cut, a query, a time or a trigger.
    """
    readers = (
        record_references.parse_reference,
        turns.parse_turns,
        cut_point.parse_cut,
        cut_point.parse_record_cut,
        lambda text: query.parse_query([text, "x"]),
    )
    signs = (
        "~",
        ":",
        "@",
        "..",
        "-",
        "#",
        '"',
        "*",
        "latest",
        "turn:",
        "12",
        ">",
        "/resume-hooks:",
        "trim",
        "handoff",
    )

    def try_case(draws: Draws) -> None:
        text = "".join(
            draws.pick(signs) if draws.flip_coin() else draws.text()
            for _ in range(1 + draws.number_below(4))
        )
        for read in readers:
            try:
                read(text)
            except ResumeHooksError as error:
                assert_expected_error(error)
        for found in (clock.parse_timestamp(text), clock.parse_user_time(text)):
            assert found is None or clock.parse_timestamp(clock.format_timestamp(found)) is not None
        assert clock.normalize_timestamp(
            clock.normalize_timestamp(text)
        ) == clock.normalize_timestamp(text)
        trigger = recognise_trigger(text)
        assert trigger is None or text[:1] in {">", "/"}

    return try_case


def make_shown_text_check(_: ConfigHome) -> TryCase:
    """Return a check that shown text has no control characters and can be encoded as UTF-8."""

    def try_case(draws: Draws) -> None:
        text = "".join(draws.text() for _ in range(1 + draws.number_below(5)))
        for clean in (plain_text(text), plain_line(text)):
            assert not FORBIDDEN_CHARACTERS & set(clean)
            clean.encode()
            assert plain_text(clean) == clean
        assert "\n" not in plain_line(text)

    return try_case


TARGETS = (
    Target("lines", 900, make_line_check),
    Target("records", 1_200, make_accessor_check),
    Target("typed words", 1_000, make_typed_text_check),
    Target("plain text", 700, make_shown_text_check),
)
