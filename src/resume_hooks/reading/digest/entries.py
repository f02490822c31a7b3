"""What a digest is: entries by section, in the order in which they matter.

Invariant: an entry is one line, so that a digest never holds a blank one and no text out of a transcript can begin
a section of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import orjson

from resume_hooks.reading.digest.prose import LONGEST, cut
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts.bookkeeping import DIGEST
from resume_hooks.transcripts.records import Record, kind, mapping, parse, positive, string

SECTIONS = (
    "goal", "constraints", "todos", "changed", "commands", "errors", "failures", "decisions", "plan", "last",
    "questions", "artefacts", "read",
)  # fmt: skip
"""Every section by name, the most useful first."""

KNOWLEDGE = frozenset({"constraints", "changed", "commands", "failures", "decisions", "artefacts", "read"})
"""What serves another task on the same code, too: no goal, no todos, no loose ends."""

NOTE = 200  # characters of a note on an entry
VERSION = 1
FIRST_LINES = 8  # lines of a child among which its digest is looked for
LONGEST_LINE = 1_000_000  # bytes of such a line
LONGEST_TEXT = 2_000  # characters of a text in an entry; no entry of ours has as many
MOST = 10**12  # what is counted at most
_REFERENCE = late(r"[^\s:]{1,300}:\d{1,9}")
_FRESH = frozenset({"handoff", "rollover"})


class DigestEntry(NamedTuple):
    """One line: what was said or done, where (``<session id>:<record>``, ``""`` unknown), and a note on it."""

    text: str
    ref: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Digest:
    """Entries by section.

    ``omitted`` counts those of a section that found no room, ``git`` is one line on the folder's repository. What was
    not read for its size: ``unread`` ancestors and sub-agents, and ``passed_over`` bytes in the middle of the session.
    """

    sections: Mapping[str, tuple[DigestEntry, ...]] = field(default_factory=dict)
    omitted: Mapping[str, int] = field(default_factory=dict)
    git: str = ""
    unread: int = 0
    passed_over: int = 0

    def of(self, section: str) -> tuple[DigestEntry, ...]:
        """The entries of a section, the most useful first."""
        return self.sections.get(section, ())


def knowledge(digest: Digest) -> Digest:
    """The sections of a digest that are of use to a new task."""
    sections = {name: rows for name, rows in digest.sections.items() if name in KNOWLEDGE}
    omitted = {name: count for name, count in digest.omitted.items() if name in KNOWLEDGE}
    return replace(digest, sections=sections, omitted=omitted)


def entry(text: str, place: object, note: str = "", most: int = LONGEST) -> DigestEntry:
    """An entry of foreign text: one line without secrets and what could drive a terminal, at most so many characters.

    The secrets go before the rest is cut: half a token is still one, but looks like none.
    """
    words = cut(plain_line(redacted(text[: most * 8])), most)
    return DigestEntry(words, str(place), cut(plain_line(redacted(note)), NOTE))


def without_secrets(sections: Mapping[str, tuple[DigestEntry, ...]]) -> dict[str, tuple[DigestEntry, ...]]:
    """Sections of which no entry holds a secret, also where another version wrote some of them."""
    return {
        name: tuple(row._replace(text=redacted(row.text), note=redacted(row.note)) for row in rows)
        for name, rows in sections.items()
    }


@lru_cache(maxsize=4_096)
def redacted(text: str) -> str:
    """A text without its secrets; several sections ask for the same."""
    from resume_hooks.redaction.texts import redact  # search and read show digests, and make none

    return redact(text)[0] if text else ""


def line(digest: Digest) -> bytes:
    """The record, as a line without its ending."""
    sections = {name: [list(entry) for entry in entries] for name, entries in digest.sections.items()}
    rest = {"omitted": dict(digest.omitted), "git": digest.git, "unread": digest.unread}
    rest["passed_over"] = digest.passed_over
    return orjson.dumps({"type": DIGEST, "version": VERSION, **rest, "sections": sections})


def digest_at(path: str) -> Digest | None:
    """The digest that a fresh child of ours was given; None for any other session, and where it can't be read."""
    try:
        with open(path, "rb") as stream:
            rows = list(islice(iter(lambda: stream.readline(LONGEST_LINE), b""), FIRST_LINES))
    except OSError:
        return None
    first = parse(rows[0]) if rows else None
    # In a copy of another session, which does not begin anew, the digest is that one's.
    if first is None or string(mapping(first, "continue_metadata"), "continuation_type") not in _FRESH:
        return None
    found = (digest_in(record) for raw in rows[1:] if DIGEST.encode() in raw and (record := parse(raw)))
    return next(filter(None, found), None)


def digest_in(record: Record) -> Digest | None:
    """The digest that a record holds; None if it is of another kind, or of a version that nobody knows yet.

    What is malformed in it is passed over, and every text is on one line.
    """
    if kind(record) != DIGEST or record.get("version") != VERSION:
        return None
    rows, omitted = mapping(record, "sections"), mapping(record, "omitted")
    sections = {name: entries for name in SECTIONS if (entries := tuple(_entries(rows.get(name))))}
    return Digest(
        sections,
        {name: count for name in SECTIONS if (count := positive(omitted.get(name), MOST))},
        plain_line(string(record, "git")[:LONGEST_TEXT]),
        positive(record.get("unread"), MOST),
        positive(record.get("passed_over"), MOST),
    )


def _entries(rows: object) -> Iterator[DigestEntry]:
    for row in rows if isinstance(rows, list) else ():
        sound = isinstance(row, list) and len(row) == len(DigestEntry._fields)
        if sound and all(isinstance(cell, str) for cell in row):
            text, ref, note = (plain_line(cell[:LONGEST_TEXT]) for cell in row)
            if text:
                yield DigestEntry(text, ref if _REFERENCE.fullmatch(ref) else "", note)
