"""A digest as a record of the child that it was made for: whole, one ``read`` away, and gone with the child.

Clients pass over a kind that they don't know and keep it.
"""

from __future__ import annotations

import orjson

from resume_hooks.digest.entries import SECTIONS, Digest, Entry
from resume_hooks.records import Record, kind, string

KIND = "resume-hooks-digest"
VERSION = 1


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


def digest_in(record: Record) -> Digest | None:
    """The digest that a record holds; None where it is of another kind. What is malformed in it is passed over."""
    if kind(record) != KIND:
        return None
    found = record.get("sections")
    rows = found if isinstance(found, dict) else {}
    sections = {name: _entries(rows.get(name)) for name in SECTIONS if rows.get(name)}
    omitted = record.get("omitted")
    return Digest(
        sections,
        {name: _count(omitted.get(name)) for name in SECTIONS} if isinstance(omitted, dict) else {},
        string(record, "git"),
        _count(record.get("unread")),
        _count(record.get("passed_over")),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _entries(rows: object) -> tuple[Entry, ...]:
    sound = (
        (row for row in rows if isinstance(row, list) and len(row) == len(Entry._fields))
        if isinstance(rows, list)
        else ()
    )
    return tuple(Entry(*row) for row in sound if all(isinstance(cell, str) for cell in row))
