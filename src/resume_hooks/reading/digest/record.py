"""A digest as a record of the child that it was made for: whole, one ``read`` away, and gone with the child.

Clients pass over a kind that they don't know and keep it. What is read back is foreign: anybody may have written it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import orjson

from resume_hooks.reading.digest.entries import SECTIONS, Digest, Entry
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts.records import Record, kind, mapping, parse, positive, string

KIND = "resume-hooks-digest"
VERSION = 1
FIRST_LINES = 8
"""Lines of a child among which its digest is looked for."""

LONGEST_LINE = 1_000_000
"""Bytes of such a line."""

LONGEST = 2_000
"""Characters of a text in an entry; no entry of ours has as many."""

MOST = 10**12
"""What is counted at most."""

_REFERENCE = re.compile(r"[^\s:]{1,300}:\d{1,9}")
_FRESH = frozenset({"handoff", "rollover"})


def line(digest: Digest) -> bytes:
    """The record, as a line without its ending."""
    sections = {name: [list(entry) for entry in entries] for name, entries in digest.sections.items()}
    rest = {
        "omitted": dict(digest.omitted),
        "git": digest.git,
        "unread": digest.unread,
        "passed_over": digest.passed_over,
    }
    return orjson.dumps({"type": KIND, "version": VERSION, **rest, "sections": sections})


def digest_at(path: str) -> Digest | None:
    """The digest that a fresh child of ours was given; None for any other session, and where it can't be read."""
    try:
        with open(path, "rb") as stream:
            rows = list(islice(iter(lambda: stream.readline(LONGEST_LINE), b""), FIRST_LINES))
    except OSError:
        return None
    if not rows or not _is_fresh(parse(rows[0]) or {}):
        return None
    found = (digest_in(record) for raw in rows[1:] if KIND.encode() in raw and (record := parse(raw)))
    return next(filter(None, found), None)


def _is_fresh(first: Record) -> bool:
    """Whether a session's first record says that it begins anew: in a copy of another the digest is that one's."""
    return string(mapping(first, "continue_metadata"), "continuation_type") in _FRESH


def digest_in(record: Record) -> Digest | None:
    """The digest that a record holds; None where it is of another kind, or of a version that nobody knows yet.

    What is malformed in it is passed over, and every text is on one line.
    """
    if kind(record) != KIND or record.get("version") != VERSION:
        return None
    rows, omitted = mapping(record, "sections"), mapping(record, "omitted")
    sections = {name: entries for name in SECTIONS if (entries := tuple(_entries(rows.get(name))))}
    return Digest(
        sections,
        {name: count for name in SECTIONS if (count := positive(omitted.get(name), MOST))},
        plain_line(string(record, "git")[:LONGEST]),
        positive(record.get("unread"), MOST),
        positive(record.get("passed_over"), MOST),
    )


def _entries(rows: object) -> Iterator[Entry]:
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == len(Entry._fields) and all(isinstance(cell, str) for cell in row):
            text, ref, note = (plain_line(cell[:LONGEST]) for cell in row)
            if text:
                yield Entry(text, ref if _REFERENCE.fullmatch(ref) else "", note)
