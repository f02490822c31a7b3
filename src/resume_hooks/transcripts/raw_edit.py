"""Change top-level fields of a record in the bytes of its line. All other bytes stay the same.

The module searches the line for the text ``"key":value``. This text cannot be part of a string,
because a string's quotes would be escaped. If it occurs more than once, some occurrences are in
nested objects, so the line is parsed to find the one at the top level.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from resume_hooks.errors import RecordNestedTooDeeply
from resume_hooks.system.text import replace_all_surrogates
from resume_hooks.transcripts.records import Record, get_string, parse_record, token_usage

_USAGE_FIELD_START = b'"usage":{'
_CONTENT_FIELD_START = b'"content":'
# At most this many places with the text of a field (``"key":value``) are tried, because each try
# parses the line, which may be long.
_MAX_PARSED_OCCURRENCES = 32

_TOKEN_COUNT_PATTERN, _ZERO_COUNT = re.compile(rb'_tokens":[1-9]\d*'), b'_tokens":0'


def encode_record(record: Record) -> bytes:
    """Return a record as a line in the client's compact form, without the line ending.

    Raises RecordNestedTooDeeply if the record is nested too deeply.
    """
    return _encode_value(record, get_string(record, "uuid"))


def _encode_value(value: object, uuid: str = "") -> bytes:
    """Return a value as compact JSON.

    Raises RecordNestedTooDeeply, with the record's ``uuid`` in its message, if the value is nested too deeply.
    """
    try:
        return orjson.dumps(value)
    # The value contains a lone surrogate or an integer of more than 64 bits, or is nested deeply.
    except orjson.JSONEncodeError:
        try:
            return json.dumps(
                replace_all_surrogates(value), ensure_ascii=False, separators=(",", ":")
            ).encode()
        except RecursionError as error:
            raise RecordNestedTooDeeply(
                f"The record {uuid} is nested too deeply to be written again",
                "Nothing was changed.",
            ) from error


def set_fields(body: bytes, old: Mapping[str, Any], new: Mapping[str, Any]) -> bytes:
    """Return ``body`` with the values of top-level fields changed from ``old`` to ``new``.

    ``old`` must contain the current values. Usually only the bytes of these fields are replaced.
    The whole record is encoded again if a nested object contains the same bytes, or if another
    program wrote the line with different spaces.
    """
    changed_body = body
    for key, value in new.items():
        if value == old[key]:
            continue
        old_bytes, new_bytes = _encode_field(key, old[key]), _encode_field(key, value)
        # A key that occurs only once is at the top level. The exception is a key whose old value is
        # None: the record may lack this key, and its single occurrence may be a nested field that
        # is null.
        if (
            old[key] is None
            or changed_body.count(f'"{key}"'.encode()) != 1
            or old_bytes not in changed_body
        ):
            return _set_fields_one_by_one(body, old, new)
        changed_body = changed_body.replace(old_bytes, new_bytes)
    return changed_body


def set_field(body: bytes, record: Mapping[str, Any], key: str, value: object) -> bytes | None:
    """Return ``body`` with one top-level field of ``record`` changed, and all other bytes unchanged.

    Return None if the field cannot be found.
    """
    old_bytes, new_bytes = _encode_field(key, record[key]), _encode_field(key, value)
    start = body.find(old_bytes)
    for _ in range(_MAX_PARSED_OCCURRENCES):
        if start < 0:
            break
        changed_body = body[:start] + new_bytes + body[start + len(old_bytes) :]
        # Only one occurrence was changed, so comparing this field is enough. A comparison of the
        # whole records could fail, because they may be nested too deeply.
        if (parsed := parse_record(changed_body)) and key in parsed and parsed[key] == value:
            return changed_body
        start = body.find(old_bytes, start + 1)
    return None


def set_session_id(body: bytes, session_id: str) -> bytes:
    """Return ``body`` with a new session id.

    A line without a session id, such as a snapshot, is unchanged.
    """
    record = parse_record(body)
    if record is None or not isinstance(record.get("sessionId"), str):
        return body
    return set_fields(body, record, {"sessionId": session_id})


def add_field(body: bytes, key: str, value: object) -> bytes:
    """Return ``body`` with a field added at its end. If the field exists already, its value is changed.

    All other bytes stay the same.
    """
    record = parse_record(body) if b'"%s"' % key.encode() in body else None
    if record is not None and key in record:
        return set_field(body, record, key, value) or encode_record({**record, key: value})
    return b"%s,%s}" % (body.rstrip()[:-1], _encode_field(key, value))


def clear_usage(body: bytes) -> bytes:
    """Return the line of an answer with all its token counts set to 0.

    The counts describe a context that is larger than the child's. With these counts, the client
    would compact the child.
    """
    start = body.rfind(_USAGE_FIELD_START)
    if (
        start >= 0
        and body.find(_USAGE_FIELD_START, 0, start) < 0
        and body.find(_CONTENT_FIELD_START, start) < 0
    ):
        # Clients write the content before the token counts. No content follows this field, so the
        # field is not part of the content.
        end = _find_object_end(body, start + len(_USAGE_FIELD_START))
        return body[:start] + _TOKEN_COUNT_PATTERN.sub(_ZERO_COUNT, body[start:end]) + body[end:]
    record = parse_record(body)
    if record is None or not (counts := token_usage(record)):
        return body
    record["message"]["usage"] = orjson.loads(
        _TOKEN_COUNT_PATTERN.sub(_ZERO_COUNT, encode_record(counts))
    )
    return encode_record(record)


def _find_object_end(body: bytes, start: int) -> int:
    """Return the offset after the closing brace of the object that contains the offset ``start``.

    The object's strings must not contain braces.
    """
    depth, end = 1, start
    while depth and (brace := body.find(b"}", end)) >= 0:
        depth += body.count(b"{", end, brace) - 1
        end = brace + 1
    if depth:
        return start
    return end


def _encode_field(key: str, value: object) -> bytes:
    if isinstance(value, str) and value.isascii() and value.replace("-", "").isalnum():
        return f'"{key}":"{value}"'.encode()  # This is the usual case: the value is an id.
    return b'"%s":%s' % (key.encode(), _encode_value(value))


def _set_fields_one_by_one(body: bytes, old: Mapping[str, Any], new: Mapping[str, Any]) -> bytes:
    record = parse_record(body) or {}
    for key, value in new.items():
        if value == old[key]:
            continue
        new_record = {**record, key: value}
        body = set_field(body, old, key, value) or encode_record(new_record)
        record = new_record
    return body
