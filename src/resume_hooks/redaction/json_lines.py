"""Find and remove secrets in the lines of a transcript.

Only strings that contain a secret are rewritten. This module also finds the positions of the
strings in a line, and the fields that must not be changed (``is_exempt_from_redaction``).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.redaction.assignments import field_spans
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.redaction.spans import Span, merge_spans
from resume_hooks.redaction.texts import (
    Secret,
    placeholder_of_secret,
    positions_of_possible_secrets,
    remove_until_clean,
    spans_in_bytes,
)
from resume_hooks.redaction.unescape import decode_layer

_TOKEN_PATTERN = compile_lazily(
    rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)(?:"(\s*:)?|\\?\Z)|[{}\[\]]', re.DOTALL
)
"""Matches a string, a key with its colon, or a bracket.

A string without its final quote extends to the end of the line. Without this rule, the search would
begin again at each quote in the string and take quadratic time.
"""

MAX_PATH_KEYS = 200
"""Maximum number of keys in the path of a string. If a string is nested more deeply, its path
contains only the first keys."""

_EXEMPT_TOP_LEVEL_FIELDS = frozenset(
    b"type subtype uuid parentUuid logicalParentUuid sessionId session_id requestId timestamp version cwd "
    b"promptId messageId leafUuid toolUseID parentToolUseID sourceToolUseID sourceToolAssistantUUID agentId "
    b"snapshotMessageId isoTimestamp entrypoint userType permissionMode bridgeSessionId interruptedMessageId".split()
)
"""The top-level fields with which the client links, sorts and lists records."""

_EXEMPT_SUBTREES = frozenset(
    [b"snapshot", b"continue_metadata", b"trim_metadata", b"compactMetadata", b"usage"]
)
"""The top-level fields that contain only ids, file names and numbers."""

_EXEMPT_MESSAGE_FIELDS = frozenset(
    [
        *((key,) for key in b"id type role stop_reason container".split()),
        *((b"content", key) for key in b"id type name tool_use_id signature data".split()),
        *((b"content", b"content", key) for key in b"type tool_use_id".split()),
    ]
)
"""The fields of a message that the API requires unchanged. ``signature`` and ``data`` contain the
model's own thinking."""

_MEDIA_FIELDS = frozenset([(b"source", b"data"), (b"file", b"base64")])
_BASE64_PATTERN = compile_lazily(rb"(?:[A-Za-z0-9+/=_-]|\\[nr/]){64,}+")

_FOLDER_FIELD_PATTERN = compile_lazily(rb'"cwd":\s?"([^"]{1,4096})"')

_KEY_SEARCH_BYTES = 100
"""The number of bytes before a string that are searched for its key."""


class Leaf(NamedTuple):
    """A string value in a JSON line.

    ``start`` and ``end`` are the positions of its text between the quotes. ``path`` contains the
    keys that lead to it.
    """

    start: int
    end: int
    path: tuple[bytes, ...]


class JsonString(NamedTuple):
    """A string in a JSON line. ``start`` and ``end`` are the positions of its text between the quotes."""

    start: int
    end: int
    is_key: bool


def json_strings(line: bytes) -> Iterator[JsonString]:
    """Yield every string of a JSON line in order, including keys.

    A string without its final quote extends to the end of the line.
    """
    for token in _TOKEN_PATTERN.finditer(line):
        if token[1] is not None:
            yield JsonString(token.start(1), token.end(1), token[2] is not None)


def string_leaves(line: bytes) -> Iterator[Leaf]:
    """Return every string value of a JSON line in order, without keys.

    The path of an item in a list is the path of the list.
    """
    return (leaf for leaf, is_key in find_strings_and_keys(line) if not is_key)


def find_strings_and_keys(line: bytes) -> Iterator[tuple[Leaf, bool]]:
    """Yield every string of a JSON line in order, and whether the string is a key.

    The path of a key is the path of its object.
    """
    open_keys: list[bytes | None] = []
    parent_path: tuple[bytes, ...] = ()
    key: bytes | None = None
    for token in _TOKEN_PATTERN.finditer(line):
        first_byte = token[0][:1]
        if first_byte == b'"':
            if token[2]:
                key = token[1]
                yield Leaf(token.start(1), token.end(1), parent_path), True
            else:
                yield (
                    Leaf(
                        token.start(1),
                        token.end(1),
                        parent_path if key is None else (*parent_path, key),
                    ),
                    False,
                )
            continue
        if first_byte in b"{[":
            open_keys.append(key)
        elif open_keys:
            open_keys.pop()
        parent_path = tuple(name for name in open_keys[:MAX_PATH_KEYS] if name is not None)
        key = None


def is_exempt_from_redaction(line: bytes, leaf: Leaf) -> bool:
    """Check whether redaction must not change a string.

    These strings are ids, links between records, signatures and image data.
    """
    path = leaf.path
    if not path:
        return False
    if path[0] in _EXEMPT_SUBTREES or (len(path) == 1 and path[0] in _EXEMPT_TOP_LEVEL_FIELDS):
        return True
    if path[-2:] in _MEDIA_FIELDS:
        return _BASE64_PATTERN.fullmatch(line, leaf.start, leaf.end) is not None
    if b"message" not in path or b"input" in path or path[0] == b"toolUseResult":
        return False
    message_start = len(path) - path[::-1].index(b"message")
    return path[message_start:] in _EXEMPT_MESSAGE_FIELDS


def redact_line(line: bytes) -> tuple[bytes, list[Secret]]:
    """Return a line of a transcript without its secrets, and the secrets with their positions in ``line``.

    If the line contains no secret, the same object is returned. Keys, ids, links, signatures and
    images never change. A line that is not a JSON object is treated as text. If the result is
    redacted again, it does not change.
    """
    return remove_until_clean(line, find_secrets_in_line, replace_secrets_in_bytes)


def find_secrets_in_line(line: bytes) -> list[Secret]:
    """Return every secret in a line of a transcript, in order, with positions in bytes."""
    positions = sorted(positions_of_possible_secrets(line))
    if not positions:
        return []
    spans = _spans_in_leaves(line, positions) if is_json_object(line) else spans_in_bytes(line)
    return [Secret(*span[:3]) for span in spans]


def folder_of_record(line: bytes) -> bytes:
    """Return the folder of the record in a line, or ``b""``. Redaction does not change the folder."""
    match = _FOLDER_FIELD_PATTERN.search(line)
    if match:
        return match[1]
    return b""


def replace_secrets_in_bytes(raw: bytes, secrets: list[Secret]) -> bytes:
    """Return ``raw`` with a placeholder for each of ``secrets``."""
    parts, position = [], 0
    for secret in secrets:
        parts += [raw[position : secret.start], placeholder_of_secret(secret.kind).encode()]
        position = secret.end
    return b"".join([*parts, raw[position:]])


def is_json_object(line: bytes) -> bool:
    """Check whether a line is a JSON object.

    An incomplete line is not an object. It is treated as a text.
    """
    try:
        return isinstance(json.loads(line.decode("utf-8-sig", "replace")), dict)
    except (ValueError, RecursionError):
        return False


def _spans_in_leaves(line: bytes, positions: list[int]) -> list[Span]:
    spans: list[Span] = []
    for leaf in string_leaves(line):
        nearest = bisect_left(positions, leaf.start - _KEY_SEARCH_BYTES)
        if (
            nearest < len(positions)
            and positions[nearest] < leaf.end
            and not is_exempt_from_redaction(line, leaf)
        ):
            spans += _spans_in_leaf(line, leaf)
    return merge_spans(spans)


def _spans_in_leaf(line: bytes, leaf: Leaf) -> list[Span]:
    raw = line[leaf.start : leaf.end]
    spans = spans_in_bytes(raw, in_json=True)
    if leaf.path and not spans:
        spans = _spans_in_value_of_key(leaf.path[-1], raw)
    return [
        Span(span.kind, span.start + leaf.start, span.end + leaf.start, span.rank) for span in spans
    ]


def _spans_in_value_of_key(key: bytes, raw: bytes) -> list[Span]:
    """Return the secret in the JSON string ``raw`` if ``key`` marks the string as a secret.

    If the string contains escapes, all of it counts as the secret.
    """
    decoded = decode_layer(raw)
    if decoded is None:
        return field_spans(key, raw)
    return [Span(span.kind, 0, len(raw), span.rank) for span in field_spans(key, decoded)]


def redact_bytes(raw: bytes) -> tuple[bytes, list[Secret]]:
    """Remove the secrets from a text, such as a tool result in its own file.

    Return the new text and the secrets. If the text contains no secret, the same object is
    returned. If the result is redacted again, it does not change.
    """
    return remove_until_clean(raw, find_secrets_in_bytes, replace_secrets_in_bytes)


def find_secrets_in_bytes(raw: bytes) -> list[Secret]:
    """Return every secret in a text, in order."""
    return [Secret(*span[:3]) for span in spans_in_bytes(raw)]
