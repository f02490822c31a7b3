"""The digest as a value: the talk of a session, and the entries of each section.

A child stores its digest in a record of its transcript.

Invariant: an entry is a single line, and a message contains no blank lines, so a digest never
contains a blank line.
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
from resume_hooks.reading.digest.prose import MAX_SENTENCE_CHARACTERS, cut_line
from resume_hooks.reading.digest.sections import SECTION_NAMES, SECTIONS
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import plain_line, plain_text
from resume_hooks.transcripts.lines import SharedFile, open_transcript
from resume_hooks.transcripts.metadata_records import DIGEST_KIND
from resume_hooks.transcripts.records import (
    Record,
    get_kind,
    get_mapping,
    get_string,
    parse_positive_count,
    parse_record,
)

MAX_ENTRY_NOTE_CHARACTERS = 200  # The maximum number of characters in the note of an entry.
DIGEST_VERSION = 2
WORK_CONTINUED_ENTRY_TEXT = "work on the last request went on after these last words"
"""This text becomes an entry of the section ``now`` if the assistant worked on the last request but
has not answered it yet."""

REQUEST_DURING_TURN_ENTRY_TEXT = (
    "the last request came before the turn with these last words was finished"
)
"""The text of the entry in section ``now`` if the user sent the last request before the previous
turn ended."""

# The format in which version 0.2.0 wrote a digest. It contains the prompts and the last answer as
# entries, and no talk.
FORMER_DIGEST_VERSION = 1
# At most this many lines at a child's start are searched for its digest.
MAX_SEARCHED_LINES = 8
MAX_DIGEST_LINE_BYTES = 1_000_000  # The maximum number of bytes in the line with the digest.
# The maximum number of characters in an entry's text. This plugin writes shorter texts.
MAX_ENTRY_TEXT_CHARACTERS = 2_000
# The maximum number of characters in a message of a stored talk. This plugin stores shorter
# messages, so only the start of a longer message is read.
MAX_MESSAGE_CHARACTERS = 20_000
MAX_COUNT_IN_STORED_DIGEST = 10**12  # A larger count in a stored digest is invalid.
_RECORD_REFERENCE_PATTERN = compile_lazily(r"[^\s:]{1,300}:\d{1,9}")
_FRESH_CHILD_KINDS = frozenset({"handoff", "rollover"})


class MessageKind(StrEnum):
    """The kinds of messages in the talk."""

    REQUEST = "request"
    """The user's words or the user's choice."""
    CLOSING = "closing"
    """The assistant's last words in a turn."""
    NARRATION = "narration"
    """The assistant's words between two tool calls."""
    REPORT = "report"
    """The report of a sub-agent."""
    SUMMARY = "summary"
    """A summary that the client wrote at a compaction."""
    CALL = "call"
    """A tool call with its result. It is only shown in large openings and never stored."""
    PENDING = "pending"
    """The arguments of the last tool call, if the call has no result."""
    REFUSED = "refused"
    """The arguments of the last tool call, if the user refused the call."""
    RETURNED = "returned"
    """The last plan, if the user replied to it with words instead of approving it."""


_MESSAGE_KINDS = frozenset(MessageKind)


class TalkMessage(NamedTuple):
    """A message of the talk, without blank lines, and its reference (``<session id>:<record>``).

    ``superseded_sentences`` contains the sentences in the message that the user later revoked, each
    with the reference of the message that revokes it.
    """

    kind: MessageKind
    ref: str
    text: str
    superseded_sentences: tuple[tuple[str, str], ...] = ()


class DigestEntry(NamedTuple):
    """One line of the digest: a text, its reference (``<session id>:<record>`` or ``""``), and a note."""

    text: str
    ref: str = ""
    note: str = ""


class ReadExtent(NamedTuple):
    """How much of a session was read. Both numbers are 0 if nothing was read."""

    byte_count: int = 0
    line_count: int = 0


@dataclass(frozen=True, slots=True)
class Digest:
    """The entries of each section, and the messages of the ``talk``, oldest first.

    ``omitted_counts`` is the number of entries that did not fit, by section. ``git_line`` is one
    line about the repository of the session's folder. ``unread_transcript_count`` is the number of
    ancestors and sub-agents that were too large to read. ``skipped_bytes`` is the number of bytes
    that were skipped in the middle of the session. ``remark_count`` is the number of messages that
    are not in the talk. ``secrets`` are the session's texts in which secrets were found. They are
    never stored or shown, and no text that is added later may contain the same secrets.
    ``read_extent`` tells how much of the session was read.
    """

    sections: Mapping[str, tuple[DigestEntry, ...]] = field(default_factory=dict)
    talk: tuple[TalkMessage, ...] = ()
    omitted_counts: Mapping[str, int] = field(default_factory=dict)
    git_line: str = ""
    unread_transcript_count: int = 0
    skipped_bytes: int = 0
    remark_count: int = 0
    secrets: tuple[str, ...] = field(default=(), compare=False)
    read_extent: ReadExtent = field(default=ReadExtent(), compare=False)

    def section_entries(self, section: str) -> tuple[DigestEntry, ...]:
        """Return the entries of a section, the most useful first."""
        return self.sections.get(section, ())


def select_entries_about_code(digest: Digest) -> Digest:
    """Return the part of a digest that is useful for a new task on the same code.

    The talk, the goal and the unfinished work are left out.
    """
    names = set()
    for section in SECTIONS:
        if section.is_knowledge:
            names.add(section.name)
    sections = {}
    for name, rows in digest.sections.items():
        if name in names:
            sections[name] = rows
    omitted_counts = {}
    for name, count in digest.omitted_counts.items():
        if name in names:
            omitted_counts[name] = count
    return replace(
        digest, sections=sections, talk=(), omitted_counts=omitted_counts, remark_count=0
    )


def make_entry(
    text: str, position: object, note: str = "", max_characters: int = MAX_SENTENCE_CHARACTERS
) -> DigestEntry:
    """Make an entry from a text of the session.

    The entry is a single line of at most ``max_characters``, without secrets and without control
    characters. Secrets are removed before the text is shortened, because a part of a secret would
    not be recognized.
    """
    words = cut_line(
        plain_line(redact_and_remember_secrets(text[: max_characters * 8])), max_characters
    )
    return DigestEntry(
        words,
        str(position),
        cut_line(plain_line(redact_and_remember_secrets(note)), MAX_ENTRY_NOTE_CHARACTERS),
    )


def redact_digest(digest: Digest, secret_texts: Sequence[str]) -> Digest:
    """Return a digest without the secrets in ``secret_texts`` and without the secrets that a rule finds.

    The rules are applied again because parts of the digest may come from another version of this
    plugin.
    """
    if not secret_texts:  # The talk is already redacted.
        return replace(digest, sections=_rewrite_sections(digest, redact_and_remember_secrets))
    # Imported here because few sessions contain a secret.
    from resume_hooks.redaction.known_secrets import Redactor

    return replace(
        rewrite_digest(digest, Redactor(secret_texts).redact), secrets=tuple(secret_texts)
    )


def filter_digest(
    digest: Digest, is_selected: Callable[[DigestEntry | TalkMessage], bool]
) -> Digest:
    """Return a digest with only those entries and messages for which ``is_selected`` returns True."""
    selected_entries = {}
    for name, entries in digest.sections.items():
        selected_entries[name] = tuple(filter(is_selected, entries))
    sections = {}
    for name, entries in selected_entries.items():
        if entries:
            sections[name] = entries
    return replace(digest, sections=sections, talk=tuple(filter(is_selected, digest.talk)))


def rewrite_digest(digest: Digest, rewrite: Callable[[str], str]) -> Digest:
    """Return a copy of the digest in which ``rewrite`` was applied to each text."""
    talk = []
    for message in digest.talk:
        revocations = tuple(
            (rewrite(sentence), ref) for sentence, ref in message.superseded_sentences
        )
        talk.append(message._replace(text=rewrite(message.text), superseded_sentences=revocations))
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


def redact_and_remember_secrets(text: str) -> str:
    """Redact a text according to the rules.

    If the function is called inside ``with collect_secret_texts()`` and the text contains a secret,
    the text is also added to the collected texts.
    """
    redacted = _redact_with_cache(text) if text else ""
    collected_texts = _COLLECTED_TEXTS_CONTEXT.get()
    if collected_texts is not None and redacted != text:
        collected_texts.append(text)
    return redacted


@lru_cache(maxsize=4_096)
def _redact_with_cache(text: str) -> str:
    """Redact a text. The result is cached, because several sections contain the same text."""
    # Imported here because ``search`` and ``read`` only show stored digests and redact nothing.
    from resume_hooks.redaction.texts import redact

    return redact(text)[0]


_COLLECTED_TEXTS_CONTEXT: ContextVar[list[str] | None] = ContextVar(
    "_COLLECTED_TEXTS_CONTEXT", default=None
)


@contextmanager
def collect_secret_texts() -> Iterator[list[str]]:
    """Collect the texts in which secrets are found while the ``with`` block runs.

    ``redact_and_remember_secrets`` finds the secrets. The caller removes the same secrets from the
    rest of the digest, where the rules may not recognize them.
    """
    texts: list[str] = []
    token = _COLLECTED_TEXTS_CONTEXT.set(texts)
    try:
        yield texts
    finally:
        _COLLECTED_TEXTS_CONTEXT.reset(token)


def iterate_digest_texts(digest: Digest) -> Iterator[str]:
    """Yield every text of a digest, in no particular order."""
    for rows in digest.sections.values():
        for row in rows:
            yield row.text
            yield row.note
    for message in digest.talk:
        yield message.text


def iterate_digest_references(digest: Digest) -> Iterator[str]:
    """Yield the reference of each entry and each message, or ``""`` for one without a reference."""
    for rows in digest.sections.values():
        for row in rows:
            yield row.ref
    for message in digest.talk:
        yield message.ref


def format_digest_record(digest: Digest) -> bytes:
    """Return the record that stores a digest in a child, as a line without its line ending."""
    sections = {}
    for name, entries in digest.sections.items():
        sections[name] = [list(entry) for entry in entries]
    fields = {
        "omitted": dict(digest.omitted_counts),
        "git": digest.git_line,
        "unread": digest.unread_transcript_count,
    }
    fields["passed_over"] = digest.skipped_bytes
    fields["remarks"] = digest.remark_count
    talk = [list(message) for message in digest.talk]
    return orjson.dumps(
        {
            "type": DIGEST_KIND,
            "version": DIGEST_VERSION,
            **fields,
            "sections": sections,
            "talk": talk,
        }
    )


def read_digest(file: str | SharedFile) -> Digest | None:
    """Return the digest that is stored in a fresh child of this plugin.

    Return None if the file is unreadable or the session is not such a child.
    """
    try:
        with open_transcript(file) as stream:
            rows = list(
                islice(
                    iter(lambda: stream.readline(MAX_DIGEST_LINE_BYTES), b""), MAX_SEARCHED_LINES
                )
            )
    except SessionNotFound:
        return None
    first_record = parse_record(rows[0]) if rows else None
    # A copy of a fresh child also contains the child's digest, but is not a fresh child itself.
    if (
        first_record is None
        or get_string(get_mapping(first_record, "continue_metadata"), "continuation_type")
        not in _FRESH_CHILD_KINDS
    ):
        return None
    digests = (
        parse_digest(record)
        for raw in rows[1:]
        if DIGEST_KIND.encode() in raw and (record := parse_record(raw))
    )
    return next(filter(None, digests), None)


def parse_digest(record: Record) -> Digest | None:
    """Return the digest in a record, or None if the record has a different type or an unknown format.

    Malformed parts are skipped, and the text of each entry is converted to a single line.
    """
    version = record.get("version")
    if get_kind(record) != DIGEST_KIND or version not in (DIGEST_VERSION, FORMER_DIGEST_VERSION):
        return None
    rows, omitted = get_mapping(record, "sections"), get_mapping(record, "omitted")
    sections = {
        name: entries
        for name in SECTION_NAMES
        if (entries := tuple(_parse_digest_entries(rows.get(name))))
    }
    return Digest(
        sections,
        tuple(
            _parse_messages(record.get("talk"))
            if version == DIGEST_VERSION
            else _parse_former_talk(rows)
        ),
        {
            name: count
            for name in SECTION_NAMES
            if (count := parse_positive_count(omitted.get(name), MAX_COUNT_IN_STORED_DIGEST))
        },
        plain_line(get_string(record, "git")[:MAX_ENTRY_TEXT_CHARACTERS]),
        parse_positive_count(record.get("unread"), MAX_COUNT_IN_STORED_DIGEST),
        parse_positive_count(record.get("passed_over"), MAX_COUNT_IN_STORED_DIGEST),
        parse_positive_count(record.get("remarks"), MAX_COUNT_IN_STORED_DIGEST),
    )


def _parse_digest_entries(rows: object) -> Iterator[DigestEntry]:
    for row in rows if isinstance(rows, list) else ():
        is_well_formed = isinstance(row, list) and len(row) == len(DigestEntry._fields)
        if is_well_formed and all(isinstance(cell, str) for cell in row):
            text, ref, note = (plain_line(cell[:MAX_ENTRY_TEXT_CHARACTERS]) for cell in row)
            if text:
                yield DigestEntry(text, _get_reference_if_valid(ref), note)


def _parse_messages(rows: object) -> Iterator[TalkMessage]:
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, list) or len(row) != len(TalkMessage._fields):
            continue
        kind_name, ref, text, revocation_rows = row
        if not all(isinstance(cell, str) for cell in (kind_name, ref, text)):
            continue
        if kind_name in _MESSAGE_KINDS and (message_text := _clean_message(text)):
            yield TalkMessage(
                MessageKind(kind_name),
                _get_reference_if_valid(ref),
                message_text,
                tuple(_parse_revocations(revocation_rows)),
            )


def _parse_revocations(rows: object) -> Iterator[tuple[str, str]]:
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == 2 and all(isinstance(cell, str) for cell in row):
            yield plain_line(row[0][:MAX_ENTRY_TEXT_CHARACTERS]), _get_reference_if_valid(row[1])


def _parse_former_talk(rows: Record) -> list[TalkMessage]:
    """Return the talk of a digest that version 0.2.0 wrote. That version stored the talk as entries.

    The first prompt is stored first. The other prompts follow, latest first.
    """
    goal_entries = list(_parse_digest_entries(rows.get("goal")))
    requests = []
    for row in (*goal_entries[:1], *goal_entries[:0:-1]):
        requests.append(TalkMessage(MessageKind.REQUEST, row.ref, row.text))
    closing_messages = []
    for row in _parse_digest_entries(rows.get("last")):
        closing_messages.append(TalkMessage(MessageKind.CLOSING, row.ref, row.text))
    return [*requests, *closing_messages]


def _get_reference_if_valid(text: str) -> str:
    if _RECORD_REFERENCE_PATTERN.fullmatch(text):
        return text
    return ""


def _clean_message(text: str) -> str:
    """Return a text without blank lines and without control characters.

    A stored text may come from another version of this plugin, or may have been edited.
    """
    return "\n".join(
        row for row in plain_text(text[:MAX_MESSAGE_CHARACTERS]).split("\n") if row.strip()
    )
