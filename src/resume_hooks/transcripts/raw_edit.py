"""Top-level fields of a record changed in its raw line, and nothing else of it: what is not named stays byte for byte.

A key inside a string is always escaped, so the raw text ``"key":value`` is a field; where it stands
more than once, the parsed line decides which one is the record's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from resume_hooks.errors import TooDeep
from resume_hooks.system.text import replace_all_surrogates
from resume_hooks.transcripts.records import Record, parse, string, usage

_USAGE = b'"usage":{'
_CONTENT = b'"content":'
_TRIES = 32  # occurrences of a field's text in one line that are tried; each try parses the line, which may be long

_COUNT, _NONE = re.compile(rb'_tokens":[1-9]\d*'), b'_tokens":0'


def encode(record: Record) -> bytes:
    """A record as a line without its ending: compact, as the client writes it.

    TooDeep if it nests without end.
    """
    return _json(record, string(record, "uuid"))


def _json(value: object, uuid: str = "") -> bytes:
    """A value as compact JSON; TooDeep, which names the record, where it nests without end."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # a lone surrogate, an integer beyond 64 bits, deep nesting
        try:
            return json.dumps(
                replace_all_surrogates(value), ensure_ascii=False, separators=(",", ":")
            ).encode()
        except RecursionError as error:
            raise TooDeep(
                f"The record {uuid} is nested too deep to be written again", "Nothing was changed."
            ) from error


def with_fields(body: bytes, old: Mapping[str, Any], new: Mapping[str, Any]) -> bytes:
    """``body`` with its top-level fields ``old`` set to their ``new`` values; ``old`` must be what stands there.

    Re-encoded only where the raw text can't be told from a field deeper inside, or was spaced by
    another program.
    """
    changed = body
    for key, value in new.items():
        if value == old[key]:
            continue
        there, wanted = _field_bytes(key, old[key]), _field_bytes(key, value)
        # A key that stands once is the record's own, unless it isn't there at all and the null is
        # one deeper inside.
        if old[key] is None or changed.count(f'"{key}"'.encode()) != 1 or there not in changed:
            return _one_by_one(body, old, new)
        changed = changed.replace(there, wanted)
    return changed


def with_field(body: bytes, record: Mapping[str, Any], key: str, value: object) -> bytes | None:
    """``body``, which parses to ``record``, with one of its own fields set, byte for byte otherwise; else None."""
    there, wanted = _field_bytes(key, record[key]), _field_bytes(key, value)
    start = body.find(there)
    for _ in range(_TRIES):
        if start < 0:
            break
        changed = body[:start] + wanted + body[start + len(there) :]
        # One occurrence is replaced, so the field alone tells; comparing whole records may nest
        # without end.
        if (parsed := parse(changed)) and key in parsed and parsed[key] == value:
            return changed
        start = body.find(there, start + 1)
    return None


def with_session_id(body: bytes, session_id: str) -> bytes:
    """A line under another id, where it names a session at all; today's snapshots don't."""
    record = parse(body)
    if record is None or not isinstance(record.get("sessionId"), str):
        return body
    return with_fields(body, record, {"sessionId": session_id})


def with_own(body: bytes, key: str, value: object) -> bytes:
    """``body`` with a field of its own added at its end, or set where it has it.

    Byte for byte otherwise.
    """
    record = parse(body) if b'"%s"' % key.encode() in body else None
    if record is not None and key in record:
        return with_field(body, record, key, value) or encode({**record, key: value})
    return b"%s,%s}" % (body.rstrip()[:-1], _field_bytes(key, value))


def without_usage(body: bytes) -> bytes:
    """An assistant's line with its token counts at zero: a client that reads stale ones would compact at once."""
    start = body.rfind(_USAGE)
    if start >= 0 and body.find(_USAGE, 0, start) < 0 and body.find(_CONTENT, start) < 0:
        end = _closing(
            body, start + len(_USAGE)
        )  # what was said stands before it, as clients write it
        return body[:start] + _COUNT.sub(_NONE, body[start:end]) + body[end:]
    record = parse(body)
    if record is None or not (counts := usage(record)):
        return body
    record["message"]["usage"] = orjson.loads(_COUNT.sub(_NONE, encode(counts)))
    return encode(record)


def _closing(body: bytes, start: int) -> int:
    """The end of an object that begins before ``start``; a usage holds no text with braces."""
    depth, end = 1, start
    while depth and (closing := body.find(b"}", end)) >= 0:
        depth += body.count(b"{", end, closing) - 1
        end = closing + 1
    if depth:
        return start
    return end


def _field_bytes(key: str, value: object) -> bytes:
    if isinstance(value, str) and value.isascii() and value.replace("-", "").isalnum():
        return f'"{key}":"{value}"'.encode()  # an id, the usual case
    return b'"%s":%s' % (key.encode(), _json(value))


def _one_by_one(body: bytes, old: Mapping[str, Any], new: Mapping[str, Any]) -> bytes:
    record = parse(body) or {}
    for key, value in new.items():
        if value == old[key]:
            continue
        wanted = {**record, key: value}
        body = with_field(body, old, key, value) or encode(wanted)
        record = wanted
    return body
