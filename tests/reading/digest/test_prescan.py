"""Tests of the prescan, which reads a line's ids without parsing it, or leaves it to the parser."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_hooks.reading.digest.prescan import MIN_PRESCAN_BYTES, Prescan, prescan_line
from resume_hooks.transcripts import records
from tests.builders import assistant, chain_record, result, user

RECORD_UUID = "0a1b2c3d-0000-4000-8000-00000000000a"
PARENT_UUID = "0a1b2c3d-0000-4000-8000-00000000000b"
LONG_CONTENT = "x" * MIN_PRESCAN_BYTES


def tool_result_record(
    content: Any = LONG_CONTENT, *, blocks: list[Any] | None = None, **extra: Any
) -> dict[str, Any]:
    """Return a tool result with its keys in the order in which clients write them.

    The id of the record follows its message, and the content of the result follows the id of the
    call.
    """
    block = {"tool_use_id": "toolu_1", "type": "tool_result", "content": content}
    record = user(blocks or [block], uuid=RECORD_UUID, parent=PARENT_UUID)
    stamp = record.pop("timestamp"), record.pop("uuid")
    return {
        **record,
        "message": record.pop("message"),
        "uuid": stamp[1],
        "timestamp": stamp[0],
        **extra,
    }


def prescan_of_record(record: dict[str, Any]) -> Prescan | None:
    """Return the prescan of the line that contains a record."""
    return prescan_line(orjson.dumps(record) + b"\n")


def test_a_tool_result_is_prescanned() -> None:
    """The prescan of a long tool result has the record's id, its parent, and the call's id."""
    assert prescan_of_record(tool_result_record()) == Prescan(
        RECORD_UUID, PARENT_UUID, False, "toolu_1"
    )
    assert prescan_of_record(tool_result_record(toolUseResult={"file": LONG_CONTENT})) == Prescan(
        RECORD_UUID, PARENT_UUID, False, "toolu_1"
    )
    assert prescan_of_record(tool_result_record(isSidechain=True)) == Prescan(
        RECORD_UUID, PARENT_UUID, True, "toolu_1"
    )


@pytest.mark.parametrize(
    "record",
    [
        tool_result_record("short"),
        tool_result_record(blocks=[result("a", LONG_CONTENT, is_error=True)]),
        tool_result_record(blocks=[result("a", LONG_CONTENT), result("b", "x")]),
        tool_result_record(blocks=[{"type": "text", "text": "x"}, result("a", LONG_CONTENT)]),
        tool_result_record("The user doesn't want to proceed with this tool use." + LONG_CONTENT),
        tool_result_record(uuid=None),
        tool_result_record(uuid="no uuid"),
        {**tool_result_record(), "type": "assistant"},
        {**tool_result_record(), "type": "progress"},
        {
            "type": "progress",
            "data": {"message": tool_result_record()},
            **chain_record("progress", uuid=PARENT_UUID, parent=RECORD_UUID, ts=0, session_id="x"),
        },
        user(LONG_CONTENT, uuid=RECORD_UUID, parent=PARENT_UUID),
        assistant(LONG_CONTENT, uuid=RECORD_UUID, parent=PARENT_UUID),
        assistant(
            [{"type": "thinking", "thinking": LONG_CONTENT}, {"type": "text", "text": "x"}],
            uuid=RECORD_UUID,
            parent=PARENT_UUID,
        ),
        chain_record(
            "attachment",
            uuid=RECORD_UUID,
            parent=PARENT_UUID,
            ts=0,
            session_id="x",
            attachment={"type": "queued_command", "prompt": LONG_CONTENT},
        ),
        dict(reversed(tool_result_record().items())),
    ],
    ids=lambda record: str(record)[:20],
)
def test_unusual_lines_are_not_prescanned(record: dict[str, Any]) -> None:
    """A line that is short, an error, a refusal, or a different kind of record is not prescanned.

    A line whose keys have an unusual order is not prescanned either.
    """
    assert prescan_of_record(record) is None


def test_spaced_and_incomplete_json_is_not_prescanned() -> None:
    """A JSON line with spaces between its tokens, or an incomplete one, is not prescanned."""
    assert prescan_line(json.dumps(tool_result_record()).encode() + b"\n") is None
    assert prescan_line(orjson.dumps(tool_result_record())[:-3]) is None


PRESCAN_WORD_STRATEGY = st.sampled_from(
    [
        '"is_error":true',
        '"uuid":"',
        '"tool_use_id":"x"',
        "\\",
        '"',
        '{"type":"text"',
        "toolUseResult",
        "\u2028",
        "The user doesn't",
    ]
)
CONTENT_STRATEGY = st.lists(PRESCAN_WORD_STRATEGY | st.text(max_size=8), max_size=12).map("".join)
BLOCK_STRATEGY = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["tool_result", "text", "thinking", "tool_use"]),
        "tool_use_id": st.sampled_from(["toolu_1", "x.y"]),
    },
    optional={"is_error": st.booleans(), "content": CONTENT_STRATEGY, "text": CONTENT_STRATEGY},
)
EXTRA_FIELDS_STRATEGY = st.dictionaries(
    st.sampled_from(
        ["toolUseResult", "isMeta", "uuid", "slug", "isSidechain", "message", "data", "attachment"]
    ),
    st.booleans()
    | st.just(RECORD_UUID)
    | CONTENT_STRATEGY
    | st.fixed_dictionaries(
        {"uuid": st.just(PARENT_UUID), "type": st.just("x"), "content": CONTENT_STRATEGY}
    ),
)


@st.composite
def _generate_result_line(draw: st.DrawFn) -> bytes:
    """Generate a record's line that resembles a tool result. Some records have an unusual order of keys."""
    record = tool_result_record(
        blocks=draw(st.lists(BLOCK_STRATEGY, min_size=1, max_size=2)), pad=LONG_CONTENT
    )
    record |= draw(EXTRA_FIELDS_STRATEGY)
    keys = list(record)
    order = keys if draw(st.booleans()) else draw(st.permutations(keys))
    if draw(st.booleans()):
        order = [
            "parentUuid",
            "isSidechain",
            *(key for key in order if key not in {"parentUuid", "isSidechain"}),
        ]
    return orjson.dumps({key: record[key] for key in order})


@settings(max_examples=400)
@given(_generate_result_line())
def test_the_prescan_never_differs_from_the_parser(line: bytes) -> None:
    """A line that is prescanned is not an error, and its ids are those that the parser finds."""
    found = prescan_line(line)
    if found is None:
        return
    record = records.parse_record(line) or {}
    answered = [
        block for block in records.list_blocks(record) if block.get("type") == "tool_result"
    ]
    assert found.uuid == record["uuid"]
    assert found.parent_uuid == record["parentUuid"]
    assert found.is_sidechain is (record["isSidechain"] is True)
    assert not any(block.get("is_error") is True for block in answered)
    if found.call_id:
        assert [block["tool_use_id"] for block in answered] == [found.call_id]
    else:
        assert not answered or records.get_kind(record) != "user"
