"""Tests that reading typed values from records raises no error, whatever JSON the records contain."""

from __future__ import annotations

import sys
from typing import Any
from unittest.mock import ANY

import orjson
import pytest

from resume_hooks import clock
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import make_node
from tests.builders import assistant, attachment, boundary, call, result, user

COMPLETE_USAGE = {
    "input_tokens": 1,
    "cache_read_input_tokens": 20,
    "cache_creation_input_tokens": 300,
    "output_tokens": 4_000,
}


@pytest.mark.parametrize("standard_parser_bytes", [0, records.MAX_BYTES_FOR_STANDARD_PARSER])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"a":1}', {"a": 1}),
        (b'\x0b{"a":NaN}\x0b', {"a": ANY}),
        (b'{"a":[-9223372036854775808,18446744073709551615]}', {"a": [-(2**63), 2**64 - 1]}),
        (b'{"a":[-9223372036854775809,18446744073709551616]}', {"a": [-(2.0**63), 2.0**64]}),
        (b'  {"a":1}\r\n', {"a": 1}),
        (b"", None),
        (b"  ", None),
        (b"[1]", None),
        (b"null", None),
        (b'{"a":', None),
        (b"garbage", None),
        (b'{"a":"\xff"}', {"a": "\ufffd"}),
        (b'{"a":"\\ud800"}', {"a": "\ufffd"}),
        (b'{"a":"\\udc00x\\ud83d\\ude00"}', {"a": "\ufffdx\U0001f600"}),
        (b'{"a\\ud800":["\\uD800"]}', {"a\ufffd": ["\ufffd"]}),
        (b'{"a":"\\\\ud800\\ud800"}', {"a": "\\ud800\ufffd"}),
        (b'{"a":"' + "\u2028\u2029\x85".encode() + b'"}', {"a": "\u2028\u2029\x85"}),
        (b'{"a":' + b"[" * 100_000, None),
        (b'{"a":' + b"9" * 5_000 + b"}", None),
    ],
)
def test_both_parsers_accept_what_the_client_accepts(
    body: bytes, expected: object, standard_parser_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both parsers accept the lines that the client accepts, and return None for other lines.

    A parsed record can be written again.
    """
    monkeypatch.setattr(
        records, "_STANDARD_PARSER_CHOICE", lambda body: len(body) <= standard_parser_bytes
    )
    parsed = records.parse_record(body)
    assert parsed == expected
    if parsed is not None:
        orjson.dumps(parsed)


@pytest.mark.parametrize("is_loaded", [False, True])
def test_the_standard_parser_reads_the_first_lines(
    monkeypatch: pytest.MonkeyPatch, *, is_loaded: bool
) -> None:
    """The standard parser reads the first lines, unless the faster parser is already loaded.

    After ``MAX_BYTES_FOR_STANDARD_PARSER`` bytes, the faster parser is used.
    """
    if not is_loaded:
        monkeypatch.delitem(sys.modules, "orjson")
    choice = records._ParserChoice()
    assert choice(b"{}") is not is_loaded
    assert not choice(b"x" * records.MAX_BYTES_FOR_STANDARD_PARSER)


def test_characters_are_counted_at_the_maximum_nesting() -> None:
    """The characters of a tool input are counted even if the input is nested to the maximum depth."""
    deep = b'{"type":"assistant","uuid":"u","message":{"content":[{"type":"tool_use","id":"c","input":%s"ab"%s}]}}'
    record = records.parse_record(deep % (b"[" * 1_000, b"]" * 1_000))
    assert record is not None
    assert make_node(record, Line(0, 0, b"")).character_count == 2


@pytest.mark.parametrize(
    ("content", "extra", "expected"),
    [
        ("fix it", {}, True),
        ([{"type": "text", "text": "fix it"}], {}, True),
        ([{"type": "image", "source": {}}], {}, True),
        ("", {}, True),
        ([result("t1")], {}, False),
        ([result("t1"), {"type": "text", "text": "and this"}], {}, False),
        ([], {}, False),
        ("summary", {"isCompactSummary": True}, False),
        ("caveat", {"isMeta": True}, False),
        ("inside", {"isSidechain": True}, False),
        ("<local-command-stdout>x</local-command-stdout>", {}, False),
        ("<command-name>/clear</command-name>", {}, False),
        (
            "<command-name>/compact</command-name><command-args>keep the API notes</command-args>",
            {},
            False,
        ),
        (
            "<command-name>/plan</command-name><command-args>move the parser</command-args>",
            {},
            True,
        ),
        ("<command-name>/plan</command-name><command-args>open it</command-args>", {}, False),
        (
            "<command-name>/planner</command-name><command-args>move the parser</command-args>",
            {},
            False,
        ),
        ("<command-message>go</command-message>\n<command-name>/go</command-name>", {}, True),
        ("[Request interrupted by user]", {}, False),
        ("Unknown command: /trim. Did you mean /tui?", {}, False),
    ],
)
def test_is_prompt_accepts_only_prompts_of_people(
    content: Any, extra: dict[str, Any], expected: bool
) -> None:
    """``is_prompt`` is true only for prompts of a user.

    Results, summaries, tasks of sub-agents and remarks of the client are not prompts.
    """
    assert records.is_prompt(user(content, uuid="u", **extra)) is expected


def test_the_prompt_text_of_a_command_is_what_the_user_typed() -> None:
    """``prompt_text`` returns a slash command as the user typed it."""
    said = "<command-message>go</command-message>\n<command-name>/go</command-name>\n<command-args>a b</command-args>"
    assert records.prompt_text(user(said, uuid="u")) == "/go a b"
    assert records.prompt_text(user("plain", uuid="u")) == "plain"


def test_only_characters_that_reach_the_api_are_counted() -> None:
    """Only characters that reach the API are counted as a record's characters.

    Texts, thinking, tool inputs, results and attachments are counted. Images and tool metadata are
    not.
    """

    def characters_of_record(record: dict[str, Any]) -> int:
        return make_node(record, Line(0, 0, b"")).character_count

    image = {"type": "image", "source": {"type": "base64", "data": "x" * 1_000}}
    assert characters_of_record(user("12345", uuid="u")) == 5
    assert (
        characters_of_record(
            user([result("c", "123", is_error=True), {"type": "text", "text": "45"}], uuid="u")
        )
        == 5
    )
    assert (
        characters_of_record(
            user([result("c", [{"type": "text", "text": "123"}, image]), image], uuid="u")
        )
        == 3
    )
    thinking = {"type": "thinking", "thinking": "12", "signature": "x" * 500}
    assert (
        characters_of_record(assistant([thinking, call("c", path="345", lines=[1, "6"])], uuid="a"))
        == 6
    )
    assert characters_of_record(attachment("1234", uuid="t", parent=None)) == 4
    assert characters_of_record(boundary(uuid="b")) == 0


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (COMPLETE_USAGE, 4_321),
        ({"input_tokens": True, "output_tokens": "7", "cache_read_input_tokens": -5}, 0),
        ({"input_tokens": 1.5, "output_tokens": 2}, 2),
        (None, 0),
        ([], 0),
    ],
)
def test_read_token_counts_adds_four_counts(usage: Any, expected: int) -> None:
    """``read_token_counts`` adds an answer's four counts and ignores invalid values."""
    record = assistant("x", uuid="a")
    record["message"]["usage"] = usage
    assert records.read_token_counts(record)[1] == expected
    assert records.read_token_counts({**record, "type": "user"}) == (0, 0)


def test_tokens_are_counted_with_and_without_the_answer() -> None:
    """``read_token_counts`` returns the number of tokens without the answer and the number with it."""
    assert records.read_token_counts(assistant("x", uuid="a", tokens=1_000)) == (990, 1_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31T09:30:00.123Z", "2026-01-31T09:30:00.123Z"),
        ("2026-01-31T10:30:00+01:00", "2026-01-31T09:30:00.000Z"),
        ("2026-01-31", "2026-01-31T00:00:00.000Z"),
        ("0001-01-01T00:00:00+23:59", ""),
        ("9999-12-31T23:59:59-23:59", ""),
        ("yesterday", ""),
        ("", ""),
        (12, ""),
        (None, ""),
    ],
)
def test_times_are_converted_to_one_form(text: object, expected: str) -> None:
    """``normalize_timestamp`` converts any ISO time to one form, and any other value to an empty text."""
    assert clock.normalize_timestamp(text) == expected
    assert (clock.to_milliseconds(text) is None) == (not expected)


@pytest.mark.parametrize("seconds", [-1e20, -1.0, 0, 1.5, 1e12, 1e20])
def test_any_file_time_can_be_written(seconds: float) -> None:
    """Any file time can be written as a timestamp, if necessary as the nearest valid one."""
    assert clock.parse_timestamp(clock.timestamp_from_epoch(seconds)) is not None


def test_iterate_strings_keeps_the_order() -> None:
    """``iterate_strings`` yields the strings of a value in order, without keys, at any depth."""
    value = {"a": "one", "b": [2, {"c": "two"}, None, "three"], "d": True}
    assert list(records.iterate_strings(value)) == ["one", "two", "three"]
    deep: object = "end"
    for _ in range(100_000):
        deep = [deep]
    assert list(records.iterate_strings(deep)) == ["end"]
