"""Secrets in the lines of transcripts, and lines without them: only the strings that hold one are written anew."""

from __future__ import annotations

import json
from bisect import bisect_left

from resume_hooks.redaction.assignments import field
from resume_hooks.redaction.json_strings import Leaf, is_kept, leaves
from resume_hooks.redaction.scanner import seen, suspects
from resume_hooks.redaction.spans import Span, merged
from resume_hooks.redaction.texts import Secret, placeholder, until_clean

_REACH = 100
"""Bytes before a string in which its key stands."""


def redact_line(line: bytes) -> tuple[bytes, list[Secret]]:
    """A transcript's line without its secrets, and the secrets, placed in bytes of ``line``.

    A line without any is returned as the same object. Keys, ids, links, signatures and images are never touched, and
    a line that is no JSON object is taken as text. Nothing is found in what is returned.
    """
    return until_clean(line, find_in_line, without)


def find_in_line(line: bytes) -> list[Secret]:
    """Every secret in a transcript's line, in order, placed in its bytes."""
    places = sorted(suspects(line))
    if not places:
        return []
    spans = _in_leaves(line, places) if _is_record(line) else seen(line)
    return [Secret(*span[:3]) for span in spans]


def without(raw: bytes, secrets: list[Secret]) -> bytes:
    """``raw`` with placeholders where the secrets stand."""
    parts, place = [], 0
    for secret in secrets:
        parts += [raw[place : secret.start], placeholder(secret.kind).encode()]
        place = secret.end
    return b"".join([*parts, raw[place:]])


def _is_record(line: bytes) -> bool:
    """Whether a line is an object of JSON; a torn one is text, of which the last string has no end."""
    try:
        return isinstance(json.loads(line.decode("utf-8-sig", "replace")), dict)
    except (ValueError, RecursionError):
        return False


def _in_leaves(line: bytes, places: list[int]) -> list[Span]:
    found: list[Span] = []
    for leaf in leaves(line):
        reach = bisect_left(places, leaf.start - _REACH)
        if reach < len(places) and places[reach] < leaf.end and not is_kept(line, leaf):
            found += _in_leaf(line, leaf)
    return merged(found)


def _in_leaf(line: bytes, leaf: Leaf) -> list[Span]:
    raw = line[leaf.start : leaf.end]
    spans = seen(raw, in_json=True)
    if leaf.path and not spans:
        spans = field(leaf.path[-1], raw)
    return [Span(span.kind, span.start + leaf.start, span.end + leaf.start, span.rank) for span in spans]


def redact_bytes(raw: bytes) -> tuple[bytes, list[Secret]]:
    """A whole text, such as a tool's result in a file of its own, without its secrets; otherwise as ``redact_line``."""
    return until_clean(raw, find_in_bytes, without)


def find_in_bytes(raw: bytes) -> list[Secret]:
    """Every secret in a whole text, in order."""
    return [Secret(*span[:3]) for span in seen(raw)]
