"""Tests of redacted lines of transcripts.

Only strings with a secret change, and fields that link records never change.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_hooks.redaction.json_lines import find_secrets_in_line, redact_bytes, redact_line
from resume_hooks.redaction.passwords import NONE, meaning_of_name
from tests.needs import corpus_sessions
from tests.redaction.planted import FORMS, plant_secrets, private_key, random_chars

RANDOM_GENERATOR = random.Random(5)
GITHUB_TOKEN = "ghp_" + random_chars(RANDOM_GENERATOR, 36)
TOKEN_PLACEHOLDER = "[secret removed: github-pat]"


def encode_line(record: dict[str, Any]) -> bytes:
    """Return a record as a line of JSON with a line break."""
    return json.dumps(record).encode() + b"\n"


def make_user_record(content: object, **more_fields: object) -> dict[str, Any]:
    """Return a user's record with this content and these additional fields."""
    ids = {
        "uuid": "62e0bdc0-a1e4-4d5c-8509-3b9d0d57cc67",
        "sessionId": "11111111-1111-4111-8111-111111111111",
    }
    return {"type": "user", **ids, "message": {"role": "user", "content": content}, **more_fields}


def test_a_line_without_secrets_is_returned_as_the_same_object() -> None:
    """A line without secrets is returned as the same object, not as a copy."""
    clean = encode_line(make_user_record("nothing to see here"))
    assert redact_line(clean)[0] is clean


def test_only_the_string_with_a_secret_changes() -> None:
    """Only the string with a secret changes. Spaces, numbers, escapes and keys keep their bytes."""
    odd = b'{ "type":"user" ,"n":123456789012345678901234567890.10, "\\u0078":"\\ud83d",'
    raw = odd + b'"message":{"content":"a\\n%s\\u0020b"}}\r\n' % GITHUB_TOKEN.encode()
    clean, found = redact_line(raw)
    assert (
        clean == odd + b'"message":{"content":"a\\n%s\\u0020b"}}\r\n' % TOKEN_PLACEHOLDER.encode()
    )
    assert [raw[secret.start : secret.end] for secret in found] == [GITHUB_TOKEN.encode()]


@pytest.mark.parametrize(
    "record",
    [
        {"type": "user", "uuid": GITHUB_TOKEN},
        {
            "type": "user",
            "sessionId": GITHUB_TOKEN,
            "parentUuid": GITHUB_TOKEN,
            "requestId": GITHUB_TOKEN,
        },
        {"type": "assistant", "message": {"id": GITHUB_TOKEN}},
        {
            "type": "assistant",
            "message": {
                "content": [{"type": "tool_use", "id": GITHUB_TOKEN, "name": GITHUB_TOKEN}]
            },
        },
        {
            "type": "user",
            "message": {"content": [{"type": "tool_result", "tool_use_id": GITHUB_TOKEN}]},
        },
        {
            "type": "assistant",
            "message": {"content": [{"type": "thinking", "signature": GITHUB_TOKEN}]},
        },
        {
            "type": "assistant",
            "message": {"content": [{"type": "redacted_thinking", "data": GITHUB_TOKEN}]},
        },
        {
            "type": "user",
            "message": {"content": [{"type": "image", "source": {"data": "QUtJQ" * 40}}]},
        },
        {"type": "file-history-snapshot", "snapshot": {"messageId": GITHUB_TOKEN}},
        {"continue_metadata": {"parent_session_file": GITHUB_TOKEN}},
    ],
)
def test_ids_and_signatures_are_never_changed(record: dict[str, Any]) -> None:
    """Ids, links, signatures and images are not changed, even if they look like secrets."""
    raw = encode_line(record)
    assert redact_line(raw) == (raw, [])


@pytest.mark.parametrize(
    "record",
    [
        {
            "type": "assistant",
            "message": {"content": [{"type": "tool_use", "input": {"id": GITHUB_TOKEN}}]},
        },
        {
            "type": "assistant",
            "message": {
                "content": [{"type": "tool_use", "input": {"message": {"id": GITHUB_TOKEN}}}]
            },
        },
        {"type": "user", "toolUseResult": {"message": {"id": GITHUB_TOKEN}}},
        {
            "type": "user",
            "message": {
                "content": [{"type": "document", "source": {"data": f"text {GITHUB_TOKEN}"}}]
            },
        },
        {
            "type": "progress",
            "data": {"message": {"message": {"content": [{"type": "text", "text": GITHUB_TOKEN}]}}},
        },
        {"type": "custom-title", "customTitle": GITHUB_TOKEN},
        {"type": "last-prompt", "lastPrompt": f"use {GITHUB_TOKEN}"},
    ],
)
def test_nested_fields_named_like_ids_are_redacted_as_text(record: dict[str, Any]) -> None:
    """In a tool's input or result, a field that is named like an id is redacted as text."""
    raw = encode_line(record)
    clean, found = redact_line(raw)
    assert [secret.kind for secret in found] == ["github-pat"]
    assert clean == raw.replace(GITHUB_TOKEN.encode(), TOKEN_PLACEHOLDER.encode())


@pytest.mark.parametrize(
    "field_name", ["password", "db_password", "apiKey", "client_secret", "ACCESS_TOKEN"]
)
def test_a_secret_in_an_input_is_found_by_its_field_name(field_name: str) -> None:
    """A value in a tool's input is removed if the field's name says that it is secret."""
    value = random_chars(RANDOM_GENERATOR, 24)
    record = {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "input": {field_name: value, "path": "/x"}}]},
    }
    clean, found = redact_line(encode_line(record))
    assert len(found) == 1
    assert value.encode() not in clean


def test_a_line_that_is_not_json_is_text() -> None:
    """A line that is not JSON is redacted as text."""
    raw = b"SOUGHT_TOKEN=%s\r\n" % GITHUB_TOKEN.encode()
    assert redact_line(raw)[0] == b"SOUGHT_TOKEN=%s\r\n" % TOKEN_PLACEHOLDER.encode()


def test_a_private_key_that_spans_several_lines_is_removed() -> None:
    """A private key that spans several lines of a text file is removed."""
    key = private_key(RANDOM_GENERATOR)
    assert redact_bytes(f"a\n{key}\nb\n".encode())[0] == b"a\n[secret removed: private-key]\nb\n"


@pytest.mark.parametrize("seed", [11, 12])
def test_planted_secrets_are_removed_from_lines(seed: int) -> None:
    """Secrets of all forms are removed from records, and the records keep their uuids.

    No secret is found in the result.
    """
    lines = [encode_line(make_user_record("hello"))]
    for one in plant_secrets(lines, seed=seed, secret_count=2 * len(FORMS)):
        if one.place_name == "tool-results file":
            continue
        clean, found = redact_line(one.raw)
        assert found, one.form.name
        assert json.loads(clean)["uuid"] == json.loads(one.raw)["uuid"]
        assert find_secrets_in_line(clean) == []


FIELD_NAME_STRATEGY = st.text(max_size=12).filter(
    lambda name: meaning_of_name(name.encode("utf-8", "surrogatepass")) == NONE
)
"""Names of fields that do not announce a secret. Hypothesis also tries the words of the rules."""

JSON_VALUE_STRATEGY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(FIELD_NAME_STRATEGY, inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(FIELD_NAME_STRATEGY, JSON_VALUE_STRATEGY, max_size=5),
    st.booleans(),
    st.sampled_from(FORMS),
)
@settings(max_examples=80)
def test_values_outside_the_message_are_unchanged(
    record: dict[str, Any], is_ascii: bool, form: Any
) -> None:
    """If a secret is removed from a record's message, all other values of the record are unchanged."""
    given_text = form.template.format(form.make_secret(random.Random(1)))
    raw = json.dumps({**record, "message": {"content": f" {given_text}\n"}}, ensure_ascii=is_ascii)
    body = raw.encode("utf-8", "surrogatepass")
    clean, found = redact_line(body)
    parsed = json.loads(clean.decode("utf-8", "surrogatepass"))
    before = json.loads(raw)
    assert found
    assert {key: value for key, value in parsed.items() if key != "message"} == {
        key: value for key, value in before.items() if key != "message"
    }
    assert redact_line(clean) == (clean, [])


@pytest.mark.parametrize("path", corpus_sessions()[:8], ids=lambda path: path.name[:8])
def test_nothing_in_real_sessions_is_mistaken_for_a_secret(path: Any) -> None:
    """Nothing in published real sessions is mistaken for a secret."""
    with path.open("rb") as stream:
        assert [secret for raw in stream for secret in find_secrets_in_line(raw)] == []
