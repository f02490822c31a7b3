"""Tests of the fields that the filter of imported records keeps or drops for each type of record."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.derive.imports.record_filter import (
    IMPORTABLE_FIELD_NAMES,
    MESSAGE_FLAG_NAMES,
    ConversationFilter,
    has_valid_content,
    is_conversation_record,
    is_hidden_from_screen,
)
from resume_hooks.sessions.opening_layout import ChildAttributes
from tests.builders import assistant, attachment, boundary, progress, result, system, user
from tests.derive.imports.test_block_filter import JSON_VALUE_STRATEGY

CHILD_ATTRIBUTES = ChildAttributes(
    "00000009-0000-4000-8000-000000000009", "/here", "", "2.1.329", "2026-11-22T00:00:00.000Z"
)
CONVERSATION_FILTER = ConversationFilter(CHILD_ATTRIBUTES)


def filter_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record as the filter changes it."""
    found = CONVERSATION_FILTER(record)
    assert found is not None
    return found


def test_message_blocks_are_kept() -> None:
    """The blocks of a message are kept with its id and role, and its token counts are zero."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    answer = filter_record(
        assistant(
            [thought, {"type": "text", "text": "yes"}], uuid="a", message_id="m1", tokens=50_000
        )
    )
    assert answer["message"]["content"] == [thought, {"type": "text", "text": "yes"}]
    assert (answer["message"]["id"], answer["message"]["role"]) == ("m1", "assistant")
    assert set(answer["message"]["usage"].values()) == {0}
    prompt = filter_record(user("hello", uuid="u", isMeta=True, isCompactSummary="yes"))
    assert prompt["message"] == {"role": "user", "content": "hello"}
    assert (prompt["isMeta"], "isCompactSummary" in prompt) == (True, False)


def test_the_output_for_the_screen_is_dropped() -> None:
    """The field ``toolUseResult`` is dropped, because a malformed value crashes client 2.1.42.

    The field may also contain ids of tasks and agents on another machine.
    """
    for shown in ({"stdout": "ok"}, {"structuredPatch": [{"lines": "x"}]}, "Error: no", [1]):
        kept = filter_record(user([result("c")], uuid="u", toolUseResult=shown))
        assert kept["message"]["content"] == [result("c")]
        assert "toolUseResult" not in kept


def test_a_task_notification_keeps_its_origin() -> None:
    """If a record's origin has the kind ``task-notification``, the kind is kept.

    All other kinds and fields of the origin are dropped.
    """
    origin = {"kind": "task-notification", "runId": "x", "producer": "y"}
    assert filter_record(user("x", uuid="u", origin=origin))["origin"] == {
        "kind": "task-notification"
    }
    for other in ({"kind": "human"}, "task-notification", {"kind": ["task-notification"]}, None):
        assert "origin" not in filter_record(user("x", uuid="u", origin=other))


@pytest.mark.parametrize(
    "attachment_type",
    ["file", "hook_additional_context", "prompt_snapshot", "nested_memory", "of tomorrow"],
)
def test_attachments_are_dropped(attachment_type: str) -> None:
    """Attachments are dropped, because the newest client sends their text as system messages."""
    assert (
        CONVERSATION_FILTER(
            {**attachment("x", uuid="h", parent="u"), "attachment": {"type": attachment_type}}
        )
        is None
    )


def test_queued_prompts_are_kept() -> None:
    """A queued prompt is kept without its origin and its rendered text. A task notification is dropped."""
    row = attachment("rendered", uuid="q", parent="u", renderedRole="system")
    typed = {
        "type": "queued_command",
        "prompt": "wait",
        "commandMode": "prompt",
        "origin": {"kind": "channel"},
    }
    assert filter_record({**row, "attachment": typed})["attachment"] == {
        "type": "queued_command",
        "prompt": "wait",
        "commandMode": "prompt",
    }
    assert "rendered" not in filter_record({**row, "attachment": typed})
    assert (
        CONVERSATION_FILTER({**row, "attachment": {**typed, "commandMode": "task-notification"}})
        is None
    )


def test_a_queued_prompt_keeps_valid_blocks() -> None:
    """A queued prompt keeps its valid blocks, and its invalid content is replaced with a note."""
    row = attachment("x", uuid="q", parent="u")
    words = {"type": "text", "text": "wait", "cache_control": {}}
    for prompt, kept in (
        ([words], [{"type": "text", "text": "wait"}]),
        ([], ""),
        (None, [{"type": "text", "text": "[Content in an unknown format was left out]"}]),
    ):
        queued = {**row, "attachment": {"type": "queued_command", "prompt": prompt}}
        found = filter_record(queued)
        assert found["attachment"]["prompt"] == kept
        assert (has_valid_content(queued), has_valid_content(found)) == (False, True)


def test_boundaries_and_local_commands_are_kept() -> None:
    """The boundary of a compaction is kept without its list of kept messages.

    Local commands are kept, and other system records are dropped.
    """
    kept = filter_record(boundary(uuid="b", segment={"headUuid": "x"}, preserved={"uuids": ["x"]}))
    assert kept["compactMetadata"] == {"trigger": "auto", "preTokens": 150_000}
    assert filter_record(system("local_command", uuid="s", content="<local-command-stdout>"))[
        "content"
    ]
    for subtype in ("informational", "api_error", "stop_hook_summary", "of tomorrow"):
        assert CONVERSATION_FILTER(system(subtype, uuid="s", content="x")) is None
    assert CONVERSATION_FILTER(progress(uuid="p", parent=None)) is None


def test_hidden_records_are_counted() -> None:
    """Only records with a flag that hides them from the screen are counted as hidden."""
    assert [
        is_hidden_from_screen({**user("x", uuid="u"), flag: True}) for flag in MESSAGE_FLAG_NAMES
    ] == [
        True,
        False,
        True,
        False,
    ]
    assert not is_hidden_from_screen(user("x", uuid="u"))


FIELD_NAME_STRATEGY = st.sampled_from(
    [*sorted(IMPORTABLE_FIELD_NAMES), "rendered", "permissionMode", "x"]
)
RECORD_TYPE_STRATEGY = st.sampled_from(
    ["user", "assistant", "system", "attachment", "progress", "mode"]
)


@given(
    st.dictionaries(FIELD_NAME_STRATEGY, JSON_VALUE_STRATEGY),
    RECORD_TYPE_STRATEGY,
    st.sampled_from(["compact_boundary", "local_command", "x"]),
)
def test_any_record_is_filtered_or_dropped(
    record: dict[str, Any], record_type: str, subtype: str
) -> None:
    """Any record is dropped, or it keeps only known fields with valid content and gets the new folder."""
    whole = {**record, "type": record_type, "uuid": "u", "subtype": subtype}
    found = CONVERSATION_FILTER(whole)
    assert (found is not None) == is_conversation_record(whole)
    if found is not None:
        assert found.keys() <= IMPORTABLE_FIELD_NAMES
        assert has_valid_content(found)
        assert (found["type"], found["uuid"], found["cwd"]) == (record_type, "u", "/here")
