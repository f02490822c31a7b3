"""Tests of changing fields in a line of JSON without changing other bytes."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.errors import RecordNestedTooDeeply
from resume_hooks.transcripts.raw_edit import (
    add_field,
    clear_usage,
    encode_record,
    set_field,
    set_fields,
)
from resume_hooks.transcripts.records import parse_record
from tests.builders import assistant, line, usage, user

OLD_FIELDS = {"parentUuid": "p0", "sessionId": "s0"}
NEW_FIELDS = {"parentUuid": "p1", "sessionId": "s1"}


def relinked_line(body: bytes) -> bytes:
    """Return the line with a new parent and a new session id."""
    return set_fields(body, OLD_FIELDS, NEW_FIELDS)


LINES_BEFORE_AND_AFTER_RELINKING = {
    "plain": (
        b'{"parentUuid":"p0","sessionId":"s0","x":1}',
        b'{"parentUuid":"p1","sessionId":"s1","x":1}',
    ),
    "numbers as written": (
        b'{"parentUuid":"p0","x":1.50e+3,"y":12345678901234567890123,"sessionId":"s0"}',
        b'{"parentUuid":"p1","x":1.50e+3,"y":12345678901234567890123,"sessionId":"s1"}',
    ),
    "quoted in a string": (
        rb'{"parentUuid":"p0","text":"\"sessionId\":\"s0\"","sessionId":"s0"}',
        rb'{"parentUuid":"p1","text":"\"sessionId\":\"s0\"","sessionId":"s1"}',
    ),
    "once more, deeper and before": (
        b'{"data":{"sessionId":"s0","parentUuid":"p0"},"parentUuid":"p0","sessionId":"s0"}',
        b'{"data":{"sessionId":"s0","parentUuid":"p0"},"parentUuid":"p1","sessionId":"s1"}',
    ),
    "once more, deeper and behind": (
        b'{"parentUuid":"p0","sessionId":"s0","data":[{"sessionId":"s0"}]}',
        b'{"parentUuid":"p1","sessionId":"s1","data":[{"sessionId":"s0"}]}',
    ),
    "twice at the top, where the last one counts": (
        b'{"parentUuid":"p0","sessionId":"s0","sessionId":"s0"}',
        b'{"parentUuid":"p1","sessionId":"s0","sessionId":"s1"}',
    ),
    "bytes that are no text": (
        b'{"parentUuid":"p0","x":"\xff\xfe","sessionId":"s0"}',
        b'{"parentUuid":"p1","x":"\xff\xfe","sessionId":"s1"}',
    ),
    "a lone surrogate": (
        rb'{"parentUuid":"p0","x":"\ud83d","sessionId":"s0"}',
        rb'{"parentUuid":"p1","x":"\ud83d","sessionId":"s1"}',
    ),
    "raw separators": (
        '{"parentUuid":"p0","x":"\u2028\u0085","sessionId":"s0"}'.encode(),
        '{"parentUuid":"p1","x":"\u2028\u0085","sessionId":"s1"}'.encode(),
    ),
}


@pytest.mark.parametrize("name", LINES_BEFORE_AND_AFTER_RELINKING)
def test_set_fields_keeps_all_other_bytes(name: str) -> None:
    """``set_fields`` changes only the values of the two fields, whatever else the line contains."""
    before, after = LINES_BEFORE_AND_AFTER_RELINKING[name]
    assert relinked_line(before) == after


@pytest.mark.parametrize(
    "body",
    [b'{"parentUuid": "p0", "sessionId": "s0", "x": [1, 2]}', b'{"x":[1,2],"sessionId":"s0"}'],
)
def test_a_record_in_another_format_is_encoded_again(body: bytes) -> None:
    """A record is encoded again if it contains spaces or lacks one of the fields to replace.

    The new encoding is compact.
    """
    record = orjson.loads(body)
    old = {key: record.get(key) for key in OLD_FIELDS}
    assert parse_record(set_fields(body, old, NEW_FIELDS)) == {**record, **NEW_FIELDS}


def test_unchanged_values_keep_the_line() -> None:
    """A line is unchanged if all fields already have the new values."""
    assert set_fields(b'{ "a": 1 }', {"a": 1, "b": None}, {"a": 1, "b": None}) == b'{ "a": 1 }'


def test_a_missing_field_is_not_confused_with_a_nested_one() -> None:
    """A missing field is added at the top level, even if a nested record has the field."""
    body = b'{"data":{"parentUuid":null},"sessionId":"s0"}'
    record = parse_record(set_fields(body, {"parentUuid": None, "sessionId": "s0"}, NEW_FIELDS))
    assert record == {"data": {"parentUuid": None}, **NEW_FIELDS}


def test_a_line_with_thousands_of_nested_fields_is_relinked() -> None:
    """In a line with thousands of nested fields of the same name, only the top-level field changes.

    After a few tries to find this field in the bytes, the whole record is encoded again.
    """
    inner = b",".join([b'{"sessionId":"s0"}'] * 5_000)
    body = b'{"parentUuid":"p0","data":[%s],"sessionId":"s0"}' % inner
    record = parse_record(relinked_line(body))
    assert record is not None
    assert (record["sessionId"], record["data"][0]) == ("s1", {"sessionId": "s0"})


VALUE_STRATEGY = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["sessionId", "parentUuid", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip


@given(
    record=st.dictionaries(st.sampled_from(["sessionId", "parentUuid", "x", "y"]), VALUE_STRATEGY),
    has_spaces=st.booleans(),
)
def test_only_the_named_fields_of_a_record_change(record: dict[str, Any], has_spaces: bool) -> None:
    """``set_fields`` changes only the named fields of any record."""
    body = json.dumps(record).encode() if has_spaces else orjson.dumps(record)
    old = {key: record.get(key) for key in NEW_FIELDS}
    assert parse_record(set_fields(body, old, NEW_FIELDS)) == {**record, **NEW_FIELDS}


def test_clear_usage_sets_counts_to_zero() -> None:
    """``clear_usage`` sets an answer's token counts to zero and changes nothing else."""
    body = line(assistant([{"type": "text", "text": '"input_tokens":5'}], uuid="a", tokens=9_000))
    record = parse_record(clear_usage(body))
    assert record is not None
    assert record["message"]["usage"] == dict.fromkeys(usage(20), 0)
    assert record["message"]["content"] == [{"type": "text", "text": '"input_tokens":5'}]
    assert clear_usage(body).startswith(body.partition(b'"usage"')[0])


@pytest.mark.parametrize("place", ["input", "before", "spaced"])
def test_clear_usage_keeps_a_tool_input_named_usage(place: str) -> None:
    """``clear_usage`` does not change a tool input named "usage", wherever it is in the line."""
    given = {"usage": {"input_tokens": 5}}
    row = assistant(
        [{"type": "tool_use", "id": "t", "name": "x", "input": given}], uuid="a", tokens=9_000
    )
    if place == "before":
        content = row["message"].pop("content")
        row["message"]["content"] = content
    body = json.dumps(row).encode() if place == "spaced" else line(row)
    record = parse_record(clear_usage(body))
    assert record is not None
    assert record["message"]["content"][0]["input"] == given
    assert record["message"]["usage"]["cache_read_input_tokens"] == 0


def test_clear_usage_keeps_lines_without_counts() -> None:
    """``clear_usage`` does not change a prompt's line, an answer's line without usage, or invalid JSON."""
    for body in (line(user("hi", uuid="u")), line(assistant("x", uuid="a")), b"{torn"):
        assert clear_usage(body) == body


def test_encoding_is_compact_and_never_fails() -> None:
    """Records are encoded compactly, even with lone surrogates or integers beyond 64 bits."""
    assert encode_record({"a": [1, "\u2028"]}) == '{"a":[1,"\u2028"]}'.encode()
    assert encode_record({"a": "\ud83d", "b": 2**70}) == b'{"a":"?","b":1180591620717411303424}'


def test_too_deep_nesting_is_refused() -> None:
    """A record that is nested too deeply raises ``RecordNestedTooDeeply``."""
    deep: Any = "end"
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(RecordNestedTooDeeply, match="nested too deep"):
        encode_record({"uuid": "u1", "input": deep})


@pytest.mark.parametrize("depth", [900, 1_015])
def test_set_field_in_a_deeply_nested_line(depth: int) -> None:
    """``set_field`` works in a line that is nested to the maximum depth, and keeps all other bytes."""
    body = b'{"input":%s1%s,"cwd":"/a b"}' % (b"[" * depth, b"]" * depth)
    record = parse_record(body)
    assert record is not None
    assert set_field(body, record, "cwd", "/c d") == body.replace(b"/a b", b"/c d")


def test_clear_usage_keeps_counts_outside_the_usage_object() -> None:
    """``clear_usage`` keeps counts outside the usage object."""
    row = {
        **assistant("x", uuid="a", tokens=9_000),
        "budget_tokens": 4_242,
        "stats": {"thinking_tokens": 17},
    }
    record = parse_record(clear_usage(line(row)))
    assert record is not None
    assert (record["budget_tokens"], record["stats"]) == (4_242, {"thinking_tokens": 17})
    assert set(record["message"]["usage"].values()) == {0}


def test_the_outer_field_is_changed_in_any_format() -> None:
    """``set_fields`` changes the top-level field, even if a nested field looks like the client's."""
    body = b'{"sessionId": "old", "data":{"sessionId":"old"}, "n": 1}'
    changed = parse_record(set_fields(body, {"sessionId": "old"}, {"sessionId": "new"}))
    assert changed == {"sessionId": "new", "data": {"sessionId": "old"}, "n": 1}


ADDED_FIELD_CASES = {
    "added at the end": (b'{"x":1.50e+3}', b'{"x":1.50e+3,"own":{"a":"b"}}'),
    "behind white space": (b'{"x":1} \t', b'{"x":1,"own":{"a":"b"}}'),
    "set where it stands": (b'{"own":null,"x":1.50e+3}', b'{"own":{"a":"b"},"x":1.50e+3}'),
    "not the one that is deeper inside": (b'{"y":{"own":1}}', b'{"y":{"own":1},"own":{"a":"b"}}'),
    "not the one in a text": (rb'{"y":"\"own\""}', rb'{"y":"\"own\"","own":{"a":"b"}}'),
    "spaced by another program": (b'{"own" : 1, "x": 2}', b'{"own":{"a":"b"},"x":2}'),
}


@pytest.mark.parametrize("name", ADDED_FIELD_CASES)
def test_add_field_adds_or_replaces_a_field(name: str) -> None:
    """``add_field`` adds or replaces a field at the top level of the record."""
    before, after = ADDED_FIELD_CASES[name]
    assert add_field(before, "own", {"a": "b"}) == after
