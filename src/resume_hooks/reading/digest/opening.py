"""Format a digest in a limited number of characters, as the opening of a new session of any kind.

The order: the state of the work with the last request and the last answer; binding statements; the
talk, oldest first; the lists of files, commands, failures and commits. References to the main
session are ``:<record>``, and the first line names that session.

Invariant: no text exceeds its space, and no line is blank. Every line of the talk is indented so
that it does not look like a line of this program, and omitted parts are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from resume_hooks.reading.digest import talk
from resume_hooks.reading.digest.entries import (
    CUT_INTO,
    WENT_ON,
    Digest,
    DigestEntry,
    Kind,
    TalkMessage,
    digest_references,
    secrets_found,
    without_secrets,
)
from resume_hooks.reading.digest.prose import cut_line
from resume_hooks.reading.digest.sections import (
    ANSWERS,
    CHANGED,
    COMMANDS,
    CONSTRAINTS,
    SECTIONS,
    Group,
    Section,
)
from resume_hooks.reading.digest.talk_choice import chosen_talk
from resume_hooks.sessions.lineage_block import format_bytes, remove_block_markers
from resume_hooks.sessions.record_references import ShortIds, shorten_reference
from resume_hooks.system.text import format_count
from resume_hooks.transcripts.bookkeeping import DIGEST_BEGINNING

CHARACTERS = 4  # the characters of a token, for measuring space
DEFAULT_TOKENS = 12_000
BULLET = "  - "
OPEN_HEADING = "open:"
INDENT = "  "
UNLIMITED = 1 << 40  # the minimum characters of the whole text
LISTS = 0.4  # the fraction of the space for the sections if the talk needs the rest
LAST_REQUEST, LAST_ANSWER, LAST_REPORT, LAST_CALL = (
    0.2,
    0.35,
    0.25,
    0.2,
)  # the maximum fractions of the available space for each of these parts
CALLS = 0.45  # the maximum fraction of the space for the latest calls
RESERVED = 0.1  # the fraction of the space that is always reserved for the latest calls
TALK_HEADING = 90  # the characters of the longest heading of the talk
LEAST_CALLS = 400  # if fewer characters are available, no call is shown or shortened
Calls = Callable[[int], Sequence[TalkMessage]]
"""A function that returns the latest calls, oldest first, in about this many characters."""

_SPEAKERS = {
    Kind.REQUEST: "USER",
    Kind.CLOSING: "ASSISTANT",
    Kind.NARRATION: "ASSISTANT",
    Kind.REPORT: "SUB-AGENT'S REPORT",
    Kind.SUMMARY: "CLIENT'S SUMMARY, as of then,",
    Kind.CALL: "CALL",
    Kind.PENDING: "CALL",
    Kind.REFUSED: "CALL",
    Kind.RETURNED: "CALL",
}


_OPEN_CALLS = {
    Kind.PENDING: "proposed, and not answered yet",
    Kind.REFUSED: "proposed, and refused by the user",
    Kind.RETURNED: "proposed, and answered by the user with words",
}
"""The headings of the calls that the new session must act on."""


class Opening(NamedTuple):
    """The ``text`` of an opening.

    ``messages`` is the number of messages of the talk in it, and ``left_out`` the number of omitted
    messages.
    """

    text: str
    messages: int = 0
    left_out: int = 0


class _Names(NamedTuple):
    """The names of sessions in references: empty for the ``main`` session, ``words`` for the others."""

    main: str
    words: Mapping[str, str]

    def short_reference(self, ref: str) -> str:
        """Return a reference as it is shown, or ``""``."""
        session, colon, record = ref.rpartition(":")
        if session == self.main:
            named = ""
        else:
            named = self.words.get(session, session)
        if colon:
            return f"{named}:{record}"
        return ""


def characters_for_tokens(tokens: int) -> int:
    """Convert a number of tokens to characters."""
    return tokens * CHARACTERS


def format_whole_digest(digest: Digest) -> str:
    """Format a whole digest."""
    return format_opening(digest, None).text


def format_opening(
    digest: Digest,
    room: int | None,
    *,
    calls: Calls | None = None,
    whole: str = "",
    read: str = "resume-hooks read",
) -> Opening:
    """Format a digest in ``room`` characters, or completely if ``room`` is None.

    ``calls`` returns the latest calls if there is space left. ``whole`` is the reference of the
    record with the digest, ``read`` the command that shows a record.
    """
    digest = _without_repeats(digest)
    names = _find_names(digest)
    head = [_format_head(names, whole, read), *_format_notes(digest)]
    if room is None:
        left = UNLIMITED
    else:
        left = room - _rows_size(head) + 1
    last = _last_messages(digest.talk, is_at_work=_is_at_work(digest))
    talk_size = sum(
        len(message.text) + len(INDENT) * message.text.count("\n") + 40 for message in digest.talk
    )
    named = [section for section in SECTIONS if section.group is not Group.SPARE]
    sections = _format_sections(
        named, digest, names, max(round(left * LISTS), left - talk_size) if digest.talk else left
    )
    left -= sum(_rows_size(rows) for rows in sections.values())
    quoted: dict[TalkMessage, list[str]] = {}
    for message, heading, share in last:
        rows = _quote_message(
            message, names, heading, min(left, round((room or UNLIMITED) * share))
        )
        if _rows_size(rows) <= left:
            quoted[message] = rows
            left -= _rows_size(rows)
    rest = _messages_to_show(digest, sections, quoted)
    if calls is not None and room is not None:
        reserved = round(room * RESERVED)
    else:
        reserved = 0
    said = _talk_rows(
        rest,
        names,
        left - reserved,
        is_whole=room is None,
        current=_first_current(digest.talk, rest),
        remarks=digest.remarks,
    )
    left -= _rows_size(said.rows)
    sections |= _format_sections(
        [one for one in SECTIONS if one.group is Group.SPARE], digest, names, left
    )
    groups = _group_rows(sections)
    rows = [*head, *groups[Group.NOW], *groups[Group.OPEN]]
    for message in digest.talk:
        rows += quoted.get(message, ())
    rows += [*groups[Group.BINDING], *said.rows, *groups[Group.LIST], *groups[Group.SPARE]]
    if calls is not None and room is not None:
        latest, texts = _latest_calls(
            calls, digest, min(room - _rows_size(rows), round(room * CALLS))
        )
        if texts:  # secrets that were found in the calls must not appear elsewhere
            cleaned = without_secrets(digest, (*digest.secrets, *texts))
            return format_opening(cleaned, room, calls=lambda _: latest, whole=whole, read=read)
        rows += _calls_section(latest, names, min(room - _rows_size(rows), round(room * CALLS)))
    left_out = len(rest) - said.count
    return Opening("\n".join(rows), len(digest.talk) - left_out, left_out)


def _group_rows(sections: Mapping[str, Sequence[str]]) -> dict[Group, list[str]]:
    """Return the rows of the sections by group, with a heading before the open questions."""
    groups: dict[Group, list[str]] = {group: [] for group in Group}
    for section in SECTIONS:
        rows = sections.get(section.name, ())
        if rows and section.group is Group.OPEN and not groups[Group.OPEN]:
            groups[Group.OPEN].append(OPEN_HEADING)
        groups[section.group] += rows
    return groups


def _messages_to_show(
    digest: Digest, shown: Mapping[str, Sequence[str]], quoted: Collection[TalkMessage]
) -> list[TalkMessage]:
    """Return the talk without ``quoted`` messages, and without messages that the shown lists contain completely."""
    known = _listed_words(digest, shown)
    rest: list[TalkMessage] = []
    for message in digest.talk:
        if message not in quoted and not _is_listed_whole(message, known):
            rest.append(message)
    return rest


def _listed_words(digest: Digest, shown: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
    """Return the user's words in the shown rows of binding statements, by record."""
    found: dict[str, set[str]] = {}
    for section in (ANSWERS, CONSTRAINTS):
        count = max(0, len(shown.get(section.name, ())) - 1)  # the first row is the heading
        for entry in digest.entries_of(section.name)[:count]:
            if len(entry.text) <= section.row:
                found.setdefault(entry.ref, set()).add(entry.text)
    return found


def _is_listed_whole(message: TalkMessage, known: Mapping[str, set[str]]) -> bool:
    """Check whether every line of a user's message is in the rows of binding statements."""
    if message.kind is not Kind.REQUEST or message.superseded or message.ref not in known:
        return False
    return all(" ".join(row.split()) in known[message.ref] for row in message.text.split("\n"))


def _without_repeats(digest: Digest) -> Digest:
    """Return a digest without repeated messages, failures, questions, and demands that are in the last request."""
    standing = {entry.ref for entry in digest.entries_of("errors")}
    failures = tuple(entry for entry in digest.entries_of("failures") if entry.ref not in standing)
    last = set()
    for message, _, _ in _last_messages(digest.talk, is_at_work=_is_at_work(digest)):
        last.add(message.ref)
    constraints = tuple(
        entry for entry in digest.entries_of("constraints") if entry.ref not in last
    )
    questions = []
    for entry in digest.entries_of("questions"):
        if not any(entry.text in step.text for step in digest.entries_of("next")):
            questions.append(entry)
    sections = {
        **digest.sections,
        "failures": failures,
        "constraints": constraints,
        "questions": tuple(questions),
    }
    return replace(digest, sections=sections, talk=tuple(dict.fromkeys(digest.talk)))


def shown_entries(text: str, section: Section) -> int:
    """Return the number of a section's entries in an opening."""
    rows = text.split("\n")
    start = next(
        (at + 1 for at, row in enumerate(rows) if row.startswith(section.heading)), len(rows)
    )
    end = next((at for at in range(start, len(rows)) if not rows[at].startswith(BULLET)), len(rows))
    return end - start


def _format_head(names: _Names, whole: str, read: str) -> str:
    parts = ["not instructions"]
    if names.main:
        shown = names.words[names.main]
        parts.append(f":N is record {shown}:N, which `{read} {shown}:N` shows")
    if whole:
        parts.append(f"all of it: {read} {shorten_reference(whole)}")
    return f"{DIGEST_BEGINNING}, quoted from its records ({'; '.join(parts)})"


def _format_notes(digest: Digest) -> Iterator[str]:
    if digest.unread:
        yield f"skipped for their size: {digest.unread} sessions or sub-agents of the lineage"
    if digest.passed_over:
        yield f"skipped for its size: {format_bytes(digest.passed_over)} in the middle of the session"


def _is_at_work(digest: Digest) -> bool:
    """Check whether the last words were written in the middle of the work."""
    return any(entry.text in {WENT_ON, CUT_INTO} for entry in digest.entries_of("now"))


def _last_messages(
    messages: Sequence[TalkMessage], *, is_at_work: bool
) -> list[tuple[TalkMessage, str, float]]:
    """Return the last answer, the last request, open calls and later reports, each in its part of the space.

    If the session ``is_at_work``, the last words are not an answer. The answer gets its space
    first, because it contains the state and the open ends. The messages keep their original order.
    """
    found: list[tuple[TalkMessage, str, float]] = []
    last = -1
    for kind, heading, share in (
        (Kind.CLOSING, "last words, said at work" if is_at_work else "last answer", LAST_ANSWER),
        (Kind.REQUEST, "last request", LAST_REQUEST),
    ):
        places = []
        for at, message in enumerate(messages):
            if message.kind is kind:
                places.append(at)
        if places:
            found.append((messages[places[-1]], heading, share))
            last = max(last, places[-1])
    for message in messages:
        if message.kind in _OPEN_CALLS:
            found.append((message, _OPEN_CALLS[message.kind], LAST_CALL))
    reports = []
    for message in messages[last + 1 :]:
        if message.kind is Kind.REPORT:
            reports.append(message)
    return [
        *found,
        *((report, "reported after that", LAST_REPORT / len(reports)) for report in reports),
    ]


def _quote_message(message: TalkMessage, names: _Names, heading: str, room: int) -> list[str]:
    """Return a message with its heading, shortened if necessary."""
    head = f"{heading}, {_SPEAKERS[message.kind]} {names.short_reference(message.ref)}".rstrip()
    rows = [head, *_format_body(message, message.text, names)]
    if _rows_size(rows) > room:  # a message's code blocks are shortened before its sentences
        text = talk.with_short_blocks(message.text)
        rows = [head, *_format_body(message, text, names)]
    if _rows_size(rows) > room:
        text = talk.shorten_text(text, max(80, (room - len(head)) * 9 // 10 - 60))
        rows = [head, *_format_body(message, text, names)]
    return rows


def _format_body(message: TalkMessage, text: str, names: _Names) -> Iterator[str]:
    for row in text.split("\n"):
        yield f"{INDENT}{remove_block_markers(row)}"
    for sentence, ref in message.superseded:
        if sentence[:40] in text.replace("\n", " "):
            yield (
                f"{INDENT}[superseded at {names.short_reference(ref)}: "
                f'"{remove_block_markers(cut_line(sentence, 120))}"]'
            )


def _latest_calls(calls: Calls, digest: Digest, room: int) -> tuple[list[TalkMessage], list[str]]:
    """Return the latest calls in about this many characters, without secrets, and texts with new secrets."""
    if room < LEAST_CALLS:
        return [], []
    with secrets_found() as texts:
        latest = calls(room)
    if digest.secrets or texts:
        known = without_secrets(Digest(talk=tuple(latest)), (*digest.secrets, *texts))
        latest = known.talk
    return list(latest), [text for text in texts if text not in digest.secrets]


def _calls_section(messages: Sequence[TalkMessage], names: _Names, room: int) -> list[str]:
    """Return the section of the latest calls, oldest first, or an empty list if not even one call fits."""
    heading = "latest calls, with what they wrote or got:"
    left = room - len(heading) - 1
    shown: list[list[str]] = []
    for message in reversed(messages):
        rows = [
            f"{_SPEAKERS[message.kind]} {names.short_reference(message.ref)}",
            *_format_body(message, message.text, names),
        ]
        if _rows_size(rows) > left > LEAST_CALLS:
            text = talk.shorten_text(message.text, left * 8 // 10 - len(rows[0]))
            rows = [f"{rows[0]} (in part)", *_format_body(message, text, names)]
        if _rows_size(rows) <= left:
            left -= _rows_size(rows)
            shown.append(rows)
    if shown:
        return [heading, *(row for rows in reversed(shown) for row in rows)]
    return []


@dataclass
class _TalkRows:
    rows: list[str]
    count: int


def _first_current(messages: Sequence[TalkMessage], rest: Sequence[TalkMessage]) -> int:
    """Return the index among ``rest`` of the first message after the last request."""
    last = max(
        (at for at, message in enumerate(messages) if message.kind is Kind.REQUEST), default=-1
    )
    later = {message.ref for message in messages[last + 1 :]}
    return next((at for at, message in enumerate(rest) if message.ref in later), len(rest))


def _talk_rows(
    messages: Sequence[TalkMessage],
    names: _Names,
    room: int,
    *,
    is_whole: bool,
    current: int,
    remarks: int,
) -> _TalkRows:
    """Return the talk with its heading, oldest message first, or an empty list if not even one message fits.

    ``remarks`` is the number of messages that are not in the digest.
    """
    left = room - TALK_HEADING

    def rows_of(message: TalkMessage, text: str) -> list[str]:
        head = f"{_SPEAKERS[message.kind]} {names.short_reference(message.ref)}".rstrip()
        part = " (in part)" if text != message.text else ""
        return [f"{head}{part}", *_format_body(message, text, names)]

    texts = chosen_talk(
        messages,
        left,
        lambda message, text: _rows_size(rows_of(message, text)),
        current,
        is_whole=is_whole,
    )
    if not texts:
        return _TalkRows([], 0)
    heading = _heading_of_talk(len(messages) - len(texts), len(messages), remarks)
    rows = []
    for at in sorted(texts):
        rows.extend(rows_of(messages[at], texts[at]))
    return _TalkRows([heading, *rows], len(texts))


def _heading_of_talk(left_out: int, messages: int, remarks: int) -> str:
    """Return the heading of the talk, with the number of messages and remarks that are left out."""
    counts: list[str] = []
    if left_out:
        counts.append(f"{format_count(left_out, 'message')} of {messages:,}")
    if remarks:
        counts.append(format_count(remarks, "other remark"))
    if not counts:
        return "talk, oldest first:"
    return f"talk, oldest first ({' and '.join(counts)} left out):"


def _format_sections(
    wanted: Sequence[Section], digest: Digest, names: _Names, room: int
) -> dict[str, list[str]]:
    """Return the rows of some sections, each in its fraction of the space.

    If the sections exceed the space, all fractions are reduced except that of the changed files,
    which the talk rarely names.
    """
    scale = 1.0
    found: dict[str, list[str]] = {}
    for _ in range(4):
        found = {}
        for section in wanted:
            if digest.entries_of(section.name):
                own_room = _section_room(section, room)
                if section is not CHANGED:
                    own_room = round(own_room * scale)
                found[section.name] = _format_section(section, digest, names, min(room, own_room))
        files = _rows_size(found.get(CHANGED.name, []))
        size = sum(_rows_size(rows) for rows in found.values())
        if size <= room:
            break
        scale *= 0.95 * (room - files) / (size - files)
    else:
        found = {}
    return {name: rows for name, rows in found.items() if rows}


def _section_room(section: Section, room: int) -> int:
    if room >= UNLIMITED // 2:
        return room
    return min(section.most, round(room * section.share / LISTS))


def _format_section(section: Section, digest: Digest, names: _Names, room: int) -> list[str]:
    """Return a section with as many of its entries as fit."""
    entries = digest.entries_of(section.name)
    whole = len(entries) + digest.omitted.get(section.name, 0)
    is_open = section.group is Group.OPEN
    left = room - len(section.heading) - 12
    if is_open:  # the last row may be the number of omitted entries
        left -= len(OPEN_HEADING) + len(BULLET) + 12
    prefix = f"{BULLET}{section.heading}: " if is_open else BULLET
    rows: list[str] = []
    for entry in entries:
        row = f"{prefix}{_format_entry(section, entry, names)}"
        if section is COMMANDS and len(entry.text) > section.row:
            continue  # a part of a command is useless
        if len(row) + 1 > left:
            if section is not COMMANDS:
                break
            continue
        rows.append(row)
        left -= len(row) + 1
    if not rows:
        return []
    if is_open:
        if whole > len(rows):
            rows.append(f"{prefix}({whole - len(rows):,} more)")
        return rows
    more = f" ({len(rows)} of {whole:,})" if whole > len(rows) else ""
    return [f"{section.heading}{more}:", *rows]


def _format_entry(section: Section, entry: DigestEntry, names: _Names) -> str:
    text = entry.text
    if len(text) > section.row:
        if section is CHANGED:
            text = f"…{text[1 - section.row :]}"
        else:
            text = cut_line(text, section.row)
    note = ", ".join(filter(None, (entry.note, names.short_reference(entry.ref))))
    return remove_block_markers(f"{text} ({note})" if note else text)


def _rows_size(rows: Sequence[str]) -> int:
    return sum(len(row) + 1 for row in rows)


def _find_names(digest: Digest) -> _Names:
    """Return the names for the sessions in a digest.

    The ids of the other sessions are shortened, unless two of them have the same prefix.
    """
    refs = list(digest_references(digest))
    for message in digest.talk:
        for _, ref in message.superseded:
            refs.append(ref)
    counts = Counter(
        session for session, colon, _ in (ref.rpartition(":") for ref in refs) if colon
    )
    ids = ShortIds(session.partition("/")[0] for session in counts)
    words = {}
    for session in counts:
        owner, slash, agent = session.partition("/")
        words[session] = f"{ids.shorten(owner)}{slash}{agent}"
    return _Names(counts.most_common(1)[0][0] if counts else "", words)
