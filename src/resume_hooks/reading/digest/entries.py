"""The digest as a value: the talk of a session, and entries by section.

A child stores the digest in a record.

Invariant: an entry is one line, and a message has no blank lines, so a digest never contains a
blank line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import orjson

from resume_hooks.errors import SessionNotFound
from resume_hooks.reading.digest.prose import LONGEST, cut_line
from resume_hooks.reading.digest.sections import NAMES, SECTIONS
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import plain_line, plain_text
from resume_hooks.transcripts.bookkeeping import DIGEST_KIND
from resume_hooks.transcripts.lines import SharedFile, open_transcript
from resume_hooks.transcripts.records import Record, kind, mapping, parse, positive_count, string

NOTE = 200  # the maximum characters of a note on an entry
VERSION = 2
WENT_ON = "work on the last request went on after these last words"
"""The line in the section ``now`` that marks that the last words do not answer the last request
yet."""

CUT_INTO = "the turn before the last request was under way after these last words"
"""The line in ``now`` if the last request came in the middle of a turn."""

# the format of a digest without talk, from 0.2.0: its entries include the prompts and the last
# answer
FORMER = 1
FIRST_LINES = 8  # the maximum number of a child's lines that are searched for its digest
LONGEST_LINE = 1_000_000  # the maximum bytes of the line with the digest
LONGEST_TEXT = 2_000  # the maximum characters of an entry's text, larger than any that we write
# the maximum characters of a message in the talk, larger than any that we write
LONGEST_MESSAGE = 20_000
MOST = 10**12  # the largest valid count
_REFERENCE = compile_lazily(r"[^\s:]{1,300}:\d{1,9}")
_FRESH = frozenset({"handoff", "rollover"})


class Kind(StrEnum):
    """The kinds of messages in the talk."""

    REQUEST = "request"
    """The user's words or the user's choice."""
    CLOSING = "closing"
    """The assistant's last words in a turn."""
    NARRATION = "narration"
    """The assistant's words between two calls."""
    REPORT = "report"
    """The report of a sub-agent."""
    SUMMARY = "summary"
    """A summary by the client."""
    CALL = "call"
    """A call with its result. It appears only in large openings and is never stored."""
    PENDING = "pending"
    """The arguments of the last call, if it has no result."""
    REFUSED = "refused"
    """The arguments of the last call, if the user refused it."""
    RETURNED = "returned"
    """The last plan, if the user answered it with words instead of an approval."""


_KINDS = frozenset(Kind)


class TalkMessage(NamedTuple):
    """A message without blank lines, and its reference (``<session id>:<record>``).

    ``superseded`` are the sentences in it that the user later revoked, each with the reference of
    the revocation.
    """

    kind: Kind
    ref: str
    text: str
    superseded: tuple[tuple[str, str], ...] = ()


class DigestEntry(NamedTuple):
    """One line: words or an action, the reference (``<session id>:<record>`` or ``""``), and a note."""

    text: str
    ref: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Digest:
    """The entries by section, and the messages of the ``talk``, oldest first.

    ``omitted`` is the number of a section's entries that did not fit. ``git`` is one line on the
    folder's repository. ``unread`` is the number of ancestors and sub-agents that were too large to
    read, ``passed_over`` the number of skipped bytes in the middle of the session, ``remarks`` the
    number of messages that are not in the talk. ``secrets`` are texts with secrets, which are never
    stored or shown; text that is added later must not contain them. ``read_to`` has the numbers of
    bytes and lines of the session that were read, or zeros.
    """

    sections: Mapping[str, tuple[DigestEntry, ...]] = field(default_factory=dict)
    talk: tuple[TalkMessage, ...] = ()
    omitted: Mapping[str, int] = field(default_factory=dict)
    git: str = ""
    unread: int = 0
    passed_over: int = 0
    remarks: int = 0
    secrets: tuple[str, ...] = field(default=(), compare=False)
    read_to: tuple[int, int] = field(default=(0, 0), compare=False)

    def entries_of(self, section: str) -> tuple[DigestEntry, ...]:
        """Return the entries of a section, the most useful first."""
        return self.sections.get(section, ())


def select_knowledge(digest: Digest) -> Digest:
    """Return the part of a digest that is useful for a new task on the same code: without talk, goal and open ends."""
    names = set()
    for section in SECTIONS:
        if section.is_knowledge:
            names.add(section.name)
    sections = {}
    for name, rows in digest.sections.items():
        if name in names:
            sections[name] = rows
    omitted = {}
    for name, count in digest.omitted.items():
        if name in names:
            omitted[name] = count
    return replace(digest, sections=sections, talk=(), omitted=omitted, remarks=0)


def make_entry(text: str, place: object, note: str = "", most: int = LONGEST) -> DigestEntry:
    """Make an entry from foreign text: one line of at most ``most`` characters, without secrets and terminal controls.

    Secrets are removed before the text is shortened, because the rules do not recognize half a
    token.
    """
    words = cut_line(plain_line(redact_and_learn(text[: most * 8])), most)
    return DigestEntry(words, str(place), cut_line(plain_line(redact_and_learn(note)), NOTE))


def without_secrets(digest: Digest, texts: Sequence[str]) -> Digest:
    """Return a digest without secrets: without those in ``texts``, wherever they occur, and those that a rule finds.

    Parts of the digest may come from another version.
    """
    if not texts:  # the talk was already redacted when it was collected
        return replace(digest, sections=_rewrite_sections(digest, redact_and_learn))
    from resume_hooks.redaction.known_secrets import Redactor  # few sessions contain a secret

    return replace(rewrite_digest(digest, Redactor(texts).redact), secrets=tuple(texts))


def select_parts(digest: Digest, is_wanted: Callable[[DigestEntry | TalkMessage], bool]) -> Digest:
    """Return a digest with only the requested entries and messages."""
    rows = {}
    for name, entries in digest.sections.items():
        rows[name] = tuple(filter(is_wanted, entries))
    sections = {}
    for name, entries in rows.items():
        if entries:
            sections[name] = entries
    return replace(digest, sections=sections, talk=tuple(filter(is_wanted, digest.talk)))


def rewrite_digest(digest: Digest, rewrite: Callable[[str], str]) -> Digest:
    """Return a digest in which ``rewrite`` has rewritten every text."""
    talk = []
    for message in digest.talk:
        marks = tuple((rewrite(sentence), ref) for sentence, ref in message.superseded)
        talk.append(message._replace(text=rewrite(message.text), superseded=marks))
    return replace(digest, sections=_rewrite_sections(digest, rewrite), talk=tuple(talk))


def _rewrite_sections(
    digest: Digest, rewrite: Callable[[str], str]
) -> dict[str, tuple[DigestEntry, ...]]:
    sections = {}
    for name, rows in digest.sections.items():
        sections[name] = tuple(
            row._replace(text=rewrite(row.text), note=rewrite(row.note)) for row in rows
        )
    return sections


def redact_and_learn(text: str) -> str:
    """Redact a text by the rules. Inside ``secrets_found`` the original text is collected."""
    clean = _without_secrets(text) if text else ""
    found = _FOUND.get()
    if found is not None and clean != text:
        found.append(text)
    return clean


@lru_cache(maxsize=4_096)
def _without_secrets(text: str) -> str:
    """Redact a text. The result is cached, because several sections contain the same text."""
    from resume_hooks.redaction.texts import redact  # search and read only show digests that exist

    return redact(text)[0]


_FOUND: ContextVar[list[str] | None] = ContextVar("_FOUND", default=None)


@contextmanager
def secrets_found() -> Iterator[list[str]]:
    """Collect the texts in which ``redact_and_learn`` finds secrets, because the secrets may also occur elsewhere."""
    found: list[str] = []
    token = _FOUND.set(found)
    try:
        yield found
    finally:
        _FOUND.reset(token)


def digest_texts(digest: Digest) -> Iterator[str]:
    """Yield every text of a digest, in no particular order."""
    for rows in digest.sections.values():
        for row in rows:
            yield row.text
            yield row.note
    for message in digest.talk:
        yield message.text


def digest_references(digest: Digest) -> Iterator[str]:
    """Yield the reference of each entry and message, or ``""`` if it has no reference."""
    for rows in digest.sections.values():
        for row in rows:
            yield row.ref
    for message in digest.talk:
        yield message.ref


def digest_record_line(digest: Digest) -> bytes:
    """Return the digest's record as a line without its line ending."""
    sections = {}
    for name, entries in digest.sections.items():
        sections[name] = [list(entry) for entry in entries]
    rest = {"omitted": dict(digest.omitted), "git": digest.git, "unread": digest.unread}
    rest["passed_over"] = digest.passed_over
    rest["remarks"] = digest.remarks
    talk = [list(message) for message in digest.talk]
    return orjson.dumps(
        {"type": DIGEST_KIND, "version": VERSION, **rest, "sections": sections, "talk": talk}
    )


def read_digest(file: str | SharedFile) -> Digest | None:
    """Return the digest that one of our fresh children stores.

    Return None for any other session or an unreadable file.
    """
    try:
        with open_transcript(file) as stream:
            rows = list(islice(iter(lambda: stream.readline(LONGEST_LINE), b""), FIRST_LINES))
    except SessionNotFound:
        return None
    first = parse(rows[0]) if rows else None
    # In a copy of another session, the digest belongs to the other session.
    if (
        first is None
        or string(mapping(first, "continue_metadata"), "continuation_type") not in _FRESH
    ):
        return None
    found = (
        parse_digest(record)
        for raw in rows[1:]
        if DIGEST_KIND.encode() in raw and (record := parse(raw))
    )
    return next(filter(None, found), None)


def parse_digest(record: Record) -> Digest | None:
    """Return the digest in a record, or None if the record is of another kind or of a newer version.

    Malformed parts are skipped, and every entry is on one line.
    """
    version = record.get("version")
    if kind(record) != DIGEST_KIND or version not in (VERSION, FORMER):
        return None
    rows, omitted = mapping(record, "sections"), mapping(record, "omitted")
    sections = {
        name: entries for name in NAMES if (entries := tuple(_parse_entries(rows.get(name))))
    }
    return Digest(
        sections,
        tuple(
            _parse_messages(record.get("talk")) if version == VERSION else _parse_former_talk(rows)
        ),
        {name: count for name in NAMES if (count := positive_count(omitted.get(name), MOST))},
        plain_line(string(record, "git")[:LONGEST_TEXT]),
        positive_count(record.get("unread"), MOST),
        positive_count(record.get("passed_over"), MOST),
        positive_count(record.get("remarks"), MOST),
    )


def _parse_entries(rows: object) -> Iterator[DigestEntry]:
    for row in rows if isinstance(rows, list) else ():
        sound = isinstance(row, list) and len(row) == len(DigestEntry._fields)
        if sound and all(isinstance(cell, str) for cell in row):
            text, ref, note = (plain_line(cell[:LONGEST_TEXT]) for cell in row)
            if text:
                yield DigestEntry(text, _reference_or_empty(ref), note)


def _parse_messages(rows: object) -> Iterator[TalkMessage]:
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, list) or len(row) != len(TalkMessage._fields):
            continue
        name, ref, text, marks = row
        if not all(isinstance(cell, str) for cell in (name, ref, text)):
            continue
        if name in _KINDS and (said := _clean_message(text)):
            yield TalkMessage(
                Kind(name), _reference_or_empty(ref), said, tuple(_parse_marks(marks))
            )


def _parse_marks(rows: object) -> Iterator[tuple[str, str]]:
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == 2 and all(isinstance(cell, str) for cell in row):
            yield plain_line(row[0][:LONGEST_TEXT]), _reference_or_empty(row[1])


def _parse_former_talk(rows: Record) -> list[TalkMessage]:
    """Return the talk of a digest in the former format, which has only prompts.

    The first prompt comes first, and the others are in reverse order.
    """
    goals = list(_parse_entries(rows.get("goal")))
    asked = []
    for row in (*goals[:1], *goals[:0:-1]):
        asked.append(TalkMessage(Kind.REQUEST, row.ref, row.text))
    last = []
    for row in _parse_entries(rows.get("last")):
        last.append(TalkMessage(Kind.CLOSING, row.ref, row.text))
    return [*asked, *last]


def _reference_or_empty(text: str) -> str:
    if _REFERENCE.fullmatch(text):
        return text
    return ""


def _clean_message(text: str) -> str:
    """Return a text in the form of a message. It may come from another version, or may have been edited."""
    return "\n".join(row for row in plain_text(text[:LONGEST_MESSAGE]).split("\n") if row.strip())
