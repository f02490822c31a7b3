"""Format a digest in a limited number of characters, as the opening of a new session.

The parts have this order: the state of the work with the last request and the last answer; binding
statements; the talk, oldest first; the lists of files, commands, failures and commits. The first
line names the main session. References to it are shortened to ``:<record>``.

Invariant: no part exceeds its space, and no line is blank. Each line of the talk is indented, so
that it does not look like a line of this plugin. The opening says how many messages and entries are
omitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from resume_hooks.reading.digest import talk
from resume_hooks.reading.digest.entries import (
    REQUEST_DURING_TURN_ENTRY_TEXT,
    WORK_CONTINUED_ENTRY_TEXT,
    Digest,
    DigestEntry,
    MessageKind,
    TalkMessage,
    collect_secret_texts,
    iterate_digest_references,
    redact_digest,
)
from resume_hooks.reading.digest.prose import cut_line
from resume_hooks.reading.digest.sections import (
    ANSWERS_SECTION,
    CHANGED_FILES_SECTION,
    COMMANDS_SECTION,
    CONSTRAINTS_SECTION,
    SECTIONS,
    UNKNOWN_STATUS_NOTE,
    Section,
    SectionGroup,
)
from resume_hooks.reading.digest.talk_choice import choose_talk
from resume_hooks.sessions.lineage_block import format_bytes, replace_block_markers
from resume_hooks.sessions.record_references import ShortIds, shorten_reference
from resume_hooks.system.text import format_count
from resume_hooks.transcripts.metadata_records import DIGEST_BEGINNING

CHARACTERS_PER_TOKEN = 4  # This many characters are counted as one token.
DEFAULT_OPENING_TOKENS = 12_000
BULLET = "  - "
OPEN_WORK_HEADING = "open:"
INDENT = "  "
UNLIMITED_CHARACTERS = 1 << 40  # A number of characters that means no limit.
# The fraction of the space that the lists get if the talk needs all of the remaining space.
LISTS_SPACE_FRACTION = 0.4
# The maximum fractions of the available space for the last request, the last answer, the last
# report and the last call.
LAST_REQUEST_SPACE_FRACTION, LAST_ANSWER_SPACE_FRACTION = 0.2, 0.35
LAST_REPORT_SPACE_FRACTION, LAST_CALL_SPACE_FRACTION = 0.25, 0.2
MAX_CALLS_SPACE_FRACTION = 0.65  # The latest calls may use at most this fraction of the space.
RESERVED_CALLS_SPACE_FRACTION = 0.1
UNKNOWN_STATUS_MARK = "*"
"""The mark that is shown instead of ``UNKNOWN_STATUS_NOTE`` if the note applies to several commands
in a section. The section's heading explains the mark."""

MAX_FIT_ATTEMPTS = 12  # The maximum number of attempts to fit the sections into their space.
MAX_TALK_HEADING_CHARACTERS = 90  # The number of characters in the longest heading of the talk.
MIN_CALLS_CHARACTERS = 400  # If fewer characters are available, calls are not shown.
CollectCalls = Callable[[int], Sequence[TalkMessage]]
"""A function that returns the latest calls, oldest first. Its argument is the approximate number of
characters that the calls may have."""

_SPEAKERS_BY_KIND = {
    MessageKind.REQUEST: "USER",
    MessageKind.CLOSING: "ASSISTANT",
    MessageKind.NARRATION: "ASSISTANT",
    MessageKind.REPORT: "SUB-AGENT'S REPORT",
    MessageKind.SUMMARY: "CLIENT'S SUMMARY, as of then,",
    MessageKind.CALL: "CALL",
    MessageKind.PENDING: "CALL",
    MessageKind.REFUSED: "CALL",
    MessageKind.RETURNED: "CALL",
}


_OPEN_CALL_HEADINGS = {
    MessageKind.PENDING: "proposed, and not answered yet",
    MessageKind.REFUSED: "proposed, and refused by the user",
    MessageKind.RETURNED: "proposed, and answered by the user with words",
}
"""The headings above the calls on which the new session must act."""


class Opening(NamedTuple):
    """The ``text`` of an opening.

    ``message_count`` is the number of messages from the talk in the text, and
    ``omitted_message_count`` is the number of messages that did not fit.
    """

    text: str
    message_count: int = 0
    omitted_message_count: int = 0


class _SessionNames(NamedTuple):
    """The names by which references in an opening refer to sessions. The main session has no name.

    ``other_names`` maps the ids of the other sessions to short names.
    """

    main_session_id: str
    other_names: Mapping[str, str]

    def make_short_reference(self, ref: str) -> str:
        """Return the short form of a reference that openings show, or ``""`` if ``ref`` is not one."""
        session, colon, record = ref.rpartition(":")
        if session == self.main_session_id:
            session_name = ""
        else:
            session_name = self.other_names.get(session, session)
        if colon:
            return f"{session_name}:{record}"
        return ""


def convert_tokens_to_characters(tokens: int) -> int:
    """Convert a number of tokens to characters. One token counts as ``CHARACTERS_PER_TOKEN`` characters."""
    return tokens * CHARACTERS_PER_TOKEN


def format_whole_digest(digest: Digest) -> str:
    """Return a whole digest as text."""
    return format_opening(digest, None).text


def format_opening(
    digest: Digest,
    max_characters: int | None,
    *,
    collect_calls: CollectCalls | None = None,
    record_ref: str = "",
    read_command: str = "resume-hooks read",
) -> Opening:
    """Format a digest in ``max_characters``, or completely if ``max_characters`` is None.

    If space is left, ``collect_calls`` is called to get the latest calls. ``record_ref`` is the
    reference of the record that stores the digest. ``read_command`` is the command that shows a
    record.
    """
    digest = _drop_repetitions(digest)
    names = _find_session_names(digest)
    head_rows = [
        _format_opening_line(names, record_ref, read_command),
        *_format_omission_notes(digest),
    ]
    if max_characters is None:
        remaining = UNLIMITED_CHARACTERS
    else:
        remaining = max_characters - _count_characters(head_rows) + 1
    last_messages = _select_last_messages(digest)
    talk_characters = sum(
        len(message.text) + len(INDENT) * message.text.count("\n") + 40 for message in digest.talk
    )
    listed_sections = [section for section in SECTIONS if section.group is not SectionGroup.SPARE]
    sections = _format_sections(
        listed_sections,
        digest,
        names,
        max(round(remaining * LISTS_SPACE_FRACTION), remaining - talk_characters)
        if digest.talk
        else remaining,
    )
    remaining -= sum(_count_characters(rows) for rows in sections.values())
    if _has_open_work(sections):
        remaining -= len(OPEN_WORK_HEADING) + 1
    quoted_messages: dict[TalkMessage, list[str]] = {}
    for message, heading, fraction in last_messages:
        rows = _quote_message(
            message,
            names,
            heading,
            min(remaining, round((max_characters or UNLIMITED_CHARACTERS) * fraction)),
        )
        if _count_characters(rows) <= remaining:
            quoted_messages[message] = rows
            remaining -= _count_characters(rows)
    other_messages = _select_messages(digest, sections, quoted_messages)
    if collect_calls is not None and max_characters is not None:
        reserved_characters = round(max_characters * RESERVED_CALLS_SPACE_FRACTION)
    else:
        reserved_characters = 0
    formatted_talk = _format_talk(
        other_messages,
        names,
        remaining - reserved_characters,
        is_whole=max_characters is None,
        first_current_index=_find_index_of_first_message_after_request(digest.talk, other_messages),
        remark_count=digest.remark_count,
    )
    remaining -= _count_characters(formatted_talk.rows)
    sections |= _format_sections(
        [one for one in SECTIONS if one.group is SectionGroup.SPARE], digest, names, remaining
    )
    groups = _group_rows(sections)
    rows = [*head_rows, *groups[SectionGroup.NOW], *groups[SectionGroup.OPEN]]
    for message in digest.talk:
        rows += quoted_messages.get(message, ())
    rows += [
        *groups[SectionGroup.BINDING],
        *formatted_talk.rows,
        *groups[SectionGroup.LIST],
        *groups[SectionGroup.SPARE],
    ]
    if collect_calls is not None and max_characters is not None:
        latest_calls, secret_texts = _collect_latest_calls(
            collect_calls,
            digest,
            min(
                max_characters - _count_characters(rows),
                round(max_characters * MAX_CALLS_SPACE_FRACTION),
            ),
        )
        if secret_texts:  # Secrets that were found in the calls must not appear in other parts.
            redacted = redact_digest(digest, (*digest.secrets, *secret_texts))
            return format_opening(
                redacted,
                max_characters,
                collect_calls=lambda _: latest_calls,
                record_ref=record_ref,
                read_command=read_command,
            )
        rows += _format_calls(
            latest_calls,
            names,
            min(
                max_characters - _count_characters(rows),
                round(max_characters * MAX_CALLS_SPACE_FRACTION),
            ),
        )
    omitted_count = len(other_messages) - formatted_talk.message_count
    return Opening("\n".join(rows), len(digest.talk) - omitted_count, omitted_count)


def _has_open_work(sections: Mapping[str, list[str]]) -> bool:
    """Check whether any of the sections below the heading of the open work contains rows."""
    return any(one.group is SectionGroup.OPEN and one.name in sections for one in SECTIONS)


def _group_rows(sections: Mapping[str, Sequence[str]]) -> dict[SectionGroup, list[str]]:
    """Return the rows of the sections in each group. The rows of the open work start with its heading."""
    groups: dict[SectionGroup, list[str]] = {group: [] for group in SectionGroup}
    for section in SECTIONS:
        rows = sections.get(section.name, ())
        if rows and section.group is SectionGroup.OPEN and not groups[SectionGroup.OPEN]:
            groups[SectionGroup.OPEN].append(OPEN_WORK_HEADING)
        groups[section.group] += rows
    return groups


def _select_messages(
    digest: Digest,
    shown_rows: Mapping[str, Sequence[str]],
    quoted_messages: Collection[TalkMessage],
) -> list[TalkMessage]:
    """Return the messages of the talk that the opening does not show elsewhere.

    Quoted messages, and messages that the lists contain completely, are left out.
    """
    listed_words = _collect_listed_words(digest, shown_rows)
    messages: list[TalkMessage] = []
    for message in digest.talk:
        if message not in quoted_messages and not _is_fully_listed(message, listed_words):
            messages.append(message)
    return messages


def _collect_listed_words(
    digest: Digest, shown_rows: Mapping[str, Sequence[str]]
) -> dict[str, set[str]]:
    """Return the user's words in the shown rows of answers and demands. The keys are record references."""
    words_by_record: dict[str, set[str]] = {}
    for section in (ANSWERS_SECTION, CONSTRAINTS_SECTION):
        count = max(0, len(shown_rows.get(section.name, ())) - 1)  # The first row is the heading.
        for entry in digest.section_entries(section.name)[:count]:
            if len(entry.text) <= section.max_row_characters:
                words_by_record.setdefault(entry.ref, set()).add(entry.text)
    return words_by_record


def _is_fully_listed(message: TalkMessage, listed_words: Mapping[str, set[str]]) -> bool:
    """Check whether the shown rows of answers and demands contain every line of a user's message."""
    if (
        message.kind is not MessageKind.REQUEST
        or message.superseded_sentences
        or message.ref not in listed_words
    ):
        return False
    return all(
        " ".join(row.split()) in listed_words[message.ref] for row in message.text.split("\n")
    )


def _drop_repetitions(digest: Digest) -> Digest:
    """Return a digest without repeated messages, failures and questions.

    Demands in the last messages are left out too, because an opening quotes these messages anyway.
    """
    open_error_refs = {entry.ref for entry in digest.section_entries("errors")}
    failures = tuple(
        entry for entry in digest.section_entries("failures") if entry.ref not in open_error_refs
    )
    last_refs = set()
    for message, _, _ in _select_last_messages(digest):
        last_refs.add(message.ref)
    constraints = tuple(
        entry for entry in digest.section_entries("constraints") if entry.ref not in last_refs
    )
    questions = []
    for entry in digest.section_entries("questions"):
        if not any(entry.text in step.text for step in digest.section_entries("next")):
            questions.append(entry)
    sections = {
        **digest.sections,
        "failures": failures,
        "constraints": constraints,
        "questions": tuple(questions),
    }
    return replace(digest, sections=sections, talk=tuple(dict.fromkeys(digest.talk)))


def count_shown_entries(text: str, section: Section) -> int:
    """Return how many entries of a section the opening ``text`` shows."""
    rows = text.split("\n")
    start = next(
        (index + 1 for index, row in enumerate(rows) if row.startswith(section.heading)), len(rows)
    )
    end = next(
        (index for index in range(start, len(rows)) if not rows[index].startswith(BULLET)),
        len(rows),
    )
    return end - start


def has_section(text: str, section: Section) -> bool:
    """Check whether an opening shows a section, under its own heading or in a row of the open work."""
    starts = (section.heading, f"{BULLET}{section.heading}: ")
    return any(row.startswith(starts) for row in text.split("\n"))


def _format_opening_line(names: _SessionNames, record_ref: str, read_command: str) -> str:
    parts = ["not instructions"]
    if names.main_session_id:
        short_id = names.other_names[names.main_session_id]
        parts.append(f":N is record {short_id}:N, which `{read_command} {short_id}:N` shows")
    if record_ref:
        parts.append(f"all of it: {read_command} {shorten_reference(record_ref)}")
    return f"{DIGEST_BEGINNING}, quoted from its records ({'; '.join(parts)})"


def _format_omission_notes(digest: Digest) -> Iterator[str]:
    if digest.unread_transcript_count:
        yield f"skipped for their size: {digest.unread_transcript_count} sessions or sub-agents of the lineage"
    if digest.skipped_bytes:
        yield f"skipped for its size: {format_bytes(digest.skipped_bytes)} in the middle of the session"


def _has_unfinished_turn(digest: Digest) -> bool:
    """Check whether the assistant wrote the last words in the middle of the work."""
    return any(
        entry.text in {WORK_CONTINUED_ENTRY_TEXT, REQUEST_DURING_TURN_ENTRY_TEXT}
        for entry in digest.section_entries("now")
    )


class _LastMessage(NamedTuple):
    """A message at the end of the talk. It may use ``max_space_fraction`` of the opening."""

    message: TalkMessage
    heading: str
    max_space_fraction: float


def _select_last_messages(digest: Digest) -> list[_LastMessage]:
    """Return the last answer, the last request, the open calls and later reports, in this order.

    The answer is first, because it contains the state of the work. In an unfinished turn, the last
    words are not an answer. If the user refused a call with a remark and an answer followed, the
    remark is not used as the last request.
    """
    messages, has_unfinished_turn = digest.talk, _has_unfinished_turn(digest)
    settled_remarks = _find_indexes_of_answered_remarks(digest)
    selected: list[_LastMessage] = []
    last_index = -1
    for kind, heading, fraction in (
        (
            MessageKind.CLOSING,
            "last words, in the middle of the work" if has_unfinished_turn else "last answer",
            LAST_ANSWER_SPACE_FRACTION,
        ),
        (MessageKind.REQUEST, "last request", LAST_REQUEST_SPACE_FRACTION),
    ):
        indexes = []
        for index, message in enumerate(messages):
            if message.kind is kind and index not in settled_remarks:
                indexes.append(index)
        if indexes:
            selected.append(_LastMessage(messages[indexes[-1]], heading, fraction))
            last_index = max(last_index, indexes[-1])
    for message in messages:
        if message.kind in _OPEN_CALL_HEADINGS:
            selected.append(
                _LastMessage(message, _OPEN_CALL_HEADINGS[message.kind], LAST_CALL_SPACE_FRACTION)
            )
    reports = []
    for message in messages[last_index + 1 :]:
        if message.kind is MessageKind.REPORT:
            reports.append(message)
    return [
        *selected,
        *(
            _LastMessage(report, "reported after that", LAST_REPORT_SPACE_FRACTION / len(reports))
            for report in reports
        ),
    ]


def _find_indexes_of_answered_remarks(digest: Digest) -> set[int]:
    """Return the indexes of the remarks with which the user refused a call before the last answer.

    The opening shows these remarks in the section of refusals.
    """
    refusal_refs = {entry.ref for entry in digest.section_entries("refusals")}
    remarks: set[int] = set()
    settled_remarks: set[int] = set()
    for index, message in enumerate(digest.talk):
        if message.kind is MessageKind.REQUEST and message.ref in refusal_refs:
            remarks.add(index)
        elif message.kind is MessageKind.CLOSING:
            settled_remarks |= remarks
    return settled_remarks


def _quote_message(
    message: TalkMessage, names: _SessionNames, heading: str, max_characters: int
) -> list[str]:
    """Return the rows of a message with its heading. A message that is too long is shortened."""
    head = f"{heading}, {_SPEAKERS_BY_KIND[message.kind]} {names.make_short_reference(message.ref)}".rstrip()
    rows = [head, *_format_body(message, message.text, names)]
    # The message's code blocks are shortened before its sentences.
    if _count_characters(rows) > max_characters:
        text = talk.shorten_code_and_tables(message.text)
        rows = [head, *_format_body(message, text, names)]
    if _count_characters(rows) > max_characters:
        text = talk.shorten_text(text, max(80, (max_characters - len(head)) * 9 // 10 - 60))
        rows = [head, *_format_body(message, text, names)]
    return rows


def _format_body(message: TalkMessage, text: str, names: _SessionNames) -> Iterator[str]:
    for row in text.split("\n"):
        yield f"{INDENT}{replace_block_markers(row)}"
    for sentence, ref in message.superseded_sentences:
        if sentence[:40] in text.replace("\n", " "):
            yield (
                f"{INDENT}[superseded at {names.make_short_reference(ref)}: "
                f'"{replace_block_markers(cut_line(sentence, 120))}"]'
            )


def _collect_latest_calls(
    collect_calls: CollectCalls, digest: Digest, max_characters: int
) -> tuple[list[TalkMessage], list[str]]:
    """Return the latest calls in about ``max_characters``, without secrets.

    Also return the texts of the calls in which new secrets were found.
    """
    if max_characters < MIN_CALLS_CHARACTERS:
        return [], []
    with collect_secret_texts() as secret_texts:
        latest_calls = collect_calls(max_characters)
    if digest.secrets or secret_texts:
        redacted = redact_digest(Digest(talk=tuple(latest_calls)), (*digest.secrets, *secret_texts))
        latest_calls = redacted.talk
    return list(latest_calls), [text for text in secret_texts if text not in digest.secrets]


def _format_calls(
    messages: Sequence[TalkMessage], names: _SessionNames, max_characters: int
) -> list[str]:
    """Return the rows of the latest calls, oldest first, or an empty list if no call fits."""
    heading = "latest calls, with the text that they wrote or received:"
    remaining = max_characters - len(heading) - 1
    shown_calls: list[list[str]] = []
    for message in reversed(messages):
        rows = [
            f"{_SPEAKERS_BY_KIND[message.kind]} {names.make_short_reference(message.ref)}",
            *_format_body(message, message.text, names),
        ]
        if _count_characters(rows) > remaining > MIN_CALLS_CHARACTERS:
            text = talk.shorten_text(message.text, remaining * 8 // 10 - len(rows[0]))
            rows = [f"{rows[0]} (in part)", *_format_body(message, text, names)]
        if _count_characters(rows) <= remaining:
            remaining -= _count_characters(rows)
            shown_calls.append(rows)
    if shown_calls:
        return [heading, *(row for rows in reversed(shown_calls) for row in rows)]
    return []


@dataclass
class _FormattedTalk:
    rows: list[str]
    message_count: int


def _find_index_of_first_message_after_request(
    messages: Sequence[TalkMessage], shown_messages: Sequence[TalkMessage]
) -> int:
    """Return the index in ``shown_messages`` of the first message that comes after the last request.

    The last request is looked up in ``messages``.
    """
    last_request = max(
        (index for index, message in enumerate(messages) if message.kind is MessageKind.REQUEST),
        default=-1,
    )
    later_refs = {message.ref for message in messages[last_request + 1 :]}
    return next(
        (index for index, message in enumerate(shown_messages) if message.ref in later_refs),
        len(shown_messages),
    )


def _format_talk(
    messages: Sequence[TalkMessage],
    names: _SessionNames,
    max_characters: int,
    *,
    is_whole: bool,
    first_current_index: int,
    remark_count: int,
) -> _FormattedTalk:
    """Return the talk with its heading, oldest message first, or no rows if no message fits.

    ``first_current_index`` is the index of the first message after the last request.
    ``remark_count`` is the number of messages that the digest does not contain.
    """
    available = max_characters - MAX_TALK_HEADING_CHARACTERS

    def format_rows(message: TalkMessage, text: str) -> list[str]:
        head = (
            f"{_SPEAKERS_BY_KIND[message.kind]} {names.make_short_reference(message.ref)}".rstrip()
        )
        suffix = " (in part)" if text != message.text else ""
        return [f"{head}{suffix}", *_format_body(message, text, names)]

    texts = choose_talk(
        messages,
        available,
        lambda message, text: _count_characters(format_rows(message, text)),
        first_current_index,
        is_whole=is_whole,
    )
    if not texts:
        return _FormattedTalk([], 0)
    heading = _format_talk_heading(len(messages) - len(texts), len(messages), remark_count)
    rows = []
    for index in sorted(texts):
        rows.extend(format_rows(messages[index], texts[index]))
    return _FormattedTalk([heading, *rows], len(texts))


def _format_talk_heading(omitted_count: int, message_count: int, remark_count: int) -> str:
    """Return the heading of the talk, with the number of omitted messages and remarks."""
    counts: list[str] = []
    if omitted_count:
        counts.append(f"{format_count(omitted_count, 'message')} of {message_count:,}")
    if remark_count:
        counts.append(format_count(remark_count, "other remark"))
    if not counts:
        return "talk, oldest first:"
    return f"talk, oldest first ({' and '.join(counts)} left out):"


def _format_sections(
    sections: Sequence[Section], digest: Digest, names: _SessionNames, max_characters: int
) -> dict[str, list[str]]:
    """Return the rows of each section, within the section's fraction of the space.

    If the sections exceed the space, all fractions are reduced, except that of the changed files,
    which the talk rarely mentions. Rows are never shortened, so the sections may still exceed the
    space. In this case, the last sections are left out.
    """
    scale = 1.0
    rows_by_section: dict[str, list[str]] = {}
    for _ in range(MAX_FIT_ATTEMPTS):
        rows_by_section = {}
        for section in sections:
            if digest.section_entries(section.name):
                own_room = _compute_max_section_characters(section, max_characters)
                if section is not CHANGED_FILES_SECTION:
                    own_room = round(own_room * scale)
                rows_by_section[section.name] = _format_section(
                    section, digest, names, min(max_characters, own_room)
                )
        files = _count_characters(rows_by_section.get(CHANGED_FILES_SECTION.name, []))
        other_characters = _count_section_characters(rows_by_section) - files
        if files + other_characters <= max_characters or not other_characters:
            break
        scale *= 0.95 * (max_characters - files) / other_characters
    while _count_section_characters(rows_by_section) > max_characters:
        rows_by_section.popitem()
    return {name: rows for name, rows in rows_by_section.items() if rows}


def _count_section_characters(rows_by_section: Mapping[str, Sequence[str]]) -> int:
    return sum(_count_characters(rows) for rows in rows_by_section.values())


def _compute_max_section_characters(section: Section, max_characters: int) -> int:
    if max_characters >= UNLIMITED_CHARACTERS // 2:
        return max_characters
    return min(
        section.max_characters, round(max_characters * section.max_fraction / LISTS_SPACE_FRACTION)
    )


def _format_section(
    section: Section, digest: Digest, names: _SessionNames, max_characters: int
) -> list[str]:
    """Return a section's heading and as many of the section's entries as fit."""
    entries = digest.section_entries(section.name)
    entry_count = len(entries) + digest.omitted_counts.get(section.name, 0)
    is_open = section.group is SectionGroup.OPEN
    heading = section.heading
    if not is_open and sum(UNKNOWN_STATUS_NOTE in entry.note for entry in entries) > 1:
        heading = f"{heading}, {UNKNOWN_STATUS_MARK} = {UNKNOWN_STATUS_NOTE}"
        entries = tuple(
            entry._replace(note=entry.note.replace(UNKNOWN_STATUS_NOTE, UNKNOWN_STATUS_MARK))
            for entry in entries
        )
    remaining = max_characters - len(heading) - 12
    if is_open:  # The last row may need space for the number of omitted entries.
        remaining -= len(OPEN_WORK_HEADING) + len(BULLET) + 12
    prefix = f"{BULLET}{section.heading}: " if is_open else BULLET
    rows: list[str] = []
    for entry in entries:
        row = f"{prefix}{_format_entry(section, entry, names)}"
        if section is COMMANDS_SECTION and len(entry.text) > section.max_row_characters:
            continue  # A shortened command would be useless.
        if len(row) + 1 > remaining:
            if section is not COMMANDS_SECTION:
                break
            continue
        rows.append(row)
        remaining -= len(row) + 1
    if not rows:
        return []
    if is_open:
        if entry_count > len(rows):
            rows.append(f"{prefix}({entry_count - len(rows):,} more)")
        return rows
    suffix = f" ({len(rows)} of {entry_count:,})" if entry_count > len(rows) else ""
    return [f"{heading}{suffix}:", *rows]


def _format_entry(section: Section, entry: DigestEntry, names: _SessionNames) -> str:
    text = entry.text
    if len(text) > section.max_row_characters:
        if section is CHANGED_FILES_SECTION:
            text = f"…{text[1 - section.max_row_characters :]}"
        else:
            text = cut_line(text, section.max_row_characters)
    note = ", ".join(filter(None, (entry.note, names.make_short_reference(entry.ref))))
    return replace_block_markers(f"{text} ({note})" if note else text)


def _count_characters(rows: Sequence[str]) -> int:
    return sum(len(row) + 1 for row in rows)


def _find_session_names(digest: Digest) -> _SessionNames:
    """Return the names of the sessions to which a digest refers.

    The ids of the other sessions are shortened to the shortest forms that still differ.
    """
    refs = list(iterate_digest_references(digest))
    for message in digest.talk:
        for _, ref in message.superseded_sentences:
            refs.append(ref)
    counts = Counter(
        session for session, colon, _ in (ref.rpartition(":") for ref in refs) if colon
    )
    ids = ShortIds(session.partition("/")[0] for session in counts)
    names = {}
    for session in counts:
        session_id, slash, agent_name = session.partition("/")
        names[session] = f"{ids.shorten(session_id)}{slash}{agent_name}"
    return _SessionNames(counts.most_common(1)[0][0] if counts else "", names)
