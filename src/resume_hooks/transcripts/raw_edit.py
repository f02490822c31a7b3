"""Edit top-level fields of a record in its raw line, and keep all other bytes.

A key inside a string is always escaped, so the raw text ``"key":value`` is a field. If it occurs
more than once, parsing the line shows which one is the record's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from resume_hooks.errors import TooDeep
from resume_hooks.system.text import replace_all_surrogates
from resume_hooks.transcripts.records import Record, get_string, parse_record, token_usage

_USAGE_START = b'"usage":{'
_CONTENT_START = b'"content":'
# the maximum number of occurrences of a field's text to try; each try parses the line, which may be
# long
_MAX_OCCURRENCES = 32

_TOKEN_COUNT, _ZERO_COUNT = re.compile(rb'_tokens":[1-9]\d*'), b'_tokens":0'


def encode_record(record: Record) -> bytes:
    """Encode a record as a line without its ending, in the client's compact form.

    Raise TooDeep if it is nested too deeply.
    """
    return _encode_value(record, get_string(record, "uuid"))


def _encode_value(value: object, uuid: str = "") -> bytes:
    """Encode a value as compact JSON. Raise TooDeep, which names the record, if it is nested too deeply."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # a lone surrogate, an integer beyond 64 bits, or deep nesting
        try:
            return json.dumps(
                replace_all_surrogates(value), ensure_ascii=False, separators=(",", ":")
            ).encode()
        except RecursionError as error:
            raise TooDeep(
                f"The record {uuid} is nested too deeply to be written again",
                "Nothing was changed.",
            ) from error


def set_fields(body: bytes, old: Mapping[str, Any], new: Mapping[str, Any]) -> bytes:
    """Set top-level fields in ``body`` from their ``old`` to their ``new`` values; ``old`` must be current.

    Re-encode the record only if the raw text may belong to a nested field, or has another program's
    spacing.
    """
    changed_body = body
    for key, value in new.items():
        if value == old[key]:
            continue
        old_bytes, new_bytes = _encode_field(key, old[key]), _encode_field(key, value)
        # A key that occurs once is the record's own, unless the record lacks it and a nested field
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
    """Set one field of ``record`` in its bytes ``body`` and keep all other bytes. Return None if that fails."""
    old_bytes, new_bytes = _encode_field(key, record[key]), _encode_field(key, value)
    start = body.find(old_bytes)
    for _ in range(_MAX_OCCURRENCES):
        if start < 0:
            break
        changed_body = body[:start] + new_bytes + body[start + len(old_bytes) :]
        # Only one occurrence changed, so comparing the field suffices; whole records may be nested
        # too deeply to compare.
        if (parsed := parse_record(changed_body)) and key in parsed and parsed[key] == value:
            return changed_body
        start = body.find(old_bytes, start + 1)
    return None


def set_session_id(body: bytes, session_id: str) -> bytes:
    """Set a line's session id if it has one; current snapshots do not."""
    record = parse_record(body)
    if record is None or not isinstance(record.get("sessionId"), str):
        return body
    return set_fields(body, record, {"sessionId": session_id})


def add_field(body: bytes, key: str, value: object) -> bytes:
    """Add a field at the end of ``body``, or set it if it exists.

    All other bytes stay the same.
    """
    record = parse_record(body) if b'"%s"' % key.encode() in body else None
    if record is not None and key in record:
        return set_field(body, record, key, value) or encode_record({**record, key: value})
    return b"%s,%s}" % (body.rstrip()[:-1], _encode_field(key, value))


def clear_usage(body: bytes) -> bytes:
    """Set an assistant line's token counts to zero, because stale counts would trigger a compaction."""
    start = body.rfind(_USAGE_START)
    if (
        start >= 0
        and body.find(_USAGE_START, 0, start) < 0
        and body.find(_CONTENT_START, start) < 0
    ):
        end = _find_object_end(
            body, start + len(_USAGE_START)
        )  # clients write the content before the usage
        return body[:start] + _TOKEN_COUNT.sub(_ZERO_COUNT, body[start:end]) + body[end:]
    record = parse_record(body)
    if record is None or not (counts := token_usage(record)):
        return body
    record["message"]["usage"] = orjson.loads(_TOKEN_COUNT.sub(_ZERO_COUNT, encode_record(counts)))
    return encode_record(record)


def _find_object_end(body: bytes, start: int) -> int:
    """Return the end of an object that begins before ``start``; a usage has no strings with braces."""
    depth, end = 1, start
    while depth and (brace := body.find(b"}", end)) >= 0:
        depth += body.count(b"{", end, brace) - 1
        end = brace + 1
    if depth:
        return start
    return end


def _encode_field(key: str, value: object) -> bytes:
    if isinstance(value, str) and value.isascii() and value.replace("-", "").isalnum():
        return f'"{key}":"{value}"'.encode()  # an id, the usual case
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
