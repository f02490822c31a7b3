"""A session's title, tag, branch, folder and dates, from the first and last 64 KB of its file.

The middle is read only if neither end contains a prompt.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import chain

from resume_hooks import clock
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import is_session_id, session_id_from_path
from resume_hooks.system.text import collapse_line
from resume_hooks.transcripts import records
from resume_hooks.transcripts.attachments import hook_texts_of_record, read_hook_output
from resume_hooks.transcripts.client_insertions import remove_insertions
from resume_hooks.transcripts.lines import (
    BOM,
    SharedFile,
    open_transcript,
    read_lines,
    transcript_path,
)
from resume_hooks.transcripts.metadata_records import (
    AFTER_CLEAR_BEGINNING,
    AGENT_NAME,
    AI_TITLE,
    CUSTOM_TITLE,
    LAST_PROMPT,
    PR_LINK,
    SUMMARY,
    TAG,
    VALUE_FIELDS,
    kind_after_clear,
)

END_BYTES = 65_536  # bytes to read at each end, as in the client's own listing
# bytes to read at an end whose 64 KB contain no prompt or no answer
WIDE_END_BYTES = 1024 * 1024
NO_BRANCH = "HEAD"  # the client's gitBranch outside any repository and without a branch
MAX_TITLE_CHARACTERS = 80
# the number of seconds by which a file's time may be earlier than the timestamps in the file
_TIME_RESOLUTION_SECONDS = 2
# the text by which the first line of a child of ours is recognised
_CHILD_MARK = b'"continue_metadata"'
_MAX_TITLE_SOURCE_CHARACTERS = 8_192  # characters of a text to consider for a title


def parse_version(text: str) -> tuple[int, ...]:
    """Parse a client's version into numbers, such as (2, 1, 329); ``()`` for ``""``."""
    return tuple(int(part[:9]) for part in text.split(".") if part.isdecimal())


class HeadTail:
    """The two ends of a session file. Raises SessionNotFound if it can't be read."""

    def __init__(self, file: str | SharedFile) -> None:
        self.path = transcript_path(file)
        self.file = file
        with open_transcript(file) as stream:
            status = os.fstat(stream.fileno())
            self.head = stream.read(END_BYTES)
            if len(self.head) == END_BYTES and _CHILD_MARK in self.head.partition(b"\n")[0]:
                self.head += stream.readline(
                    WIDE_END_BYTES
                )  # a child's opening may be longer than 64 KB
            start = max(0, status.st_size - END_BYTES - 1)
            stream.seek(start)
            if len(self.head) >= END_BYTES:
                tail = stream.read(END_BYTES + 1)
            else:
                tail = b""
            if len(self.head) >= status.st_size:
                tail = b""
            # Client 2.1.330 writes 67 KB after the first answer after a start or a compaction.
            if tail and start and b'"type":"assistant"' not in tail.partition(b"\n")[2]:
                start = max(0, status.st_size - WIDE_END_BYTES - 1)
                stream.seek(start)
                tail = stream.read(WIDE_END_BYTES + 1)
        self.mtime: float = status.st_mtime
        self.size: int = status.st_size
        """The file's size in bytes when it was read; a client may be writing it."""
        self.small = not tail or not start
        """Whether the head is the whole file."""
        if self.small:
            self.head = tail or self.head
            self.size = len(self.head)
        self.tail = self.head if self.small else tail[1:]
        self._tail_starts_line = tail[:1] == b"\n"

    @cached_property
    def first_records(self) -> list[records.Record]:
        """The complete records of the head, in file order."""
        return list(_parse_region(self.head, keep_last=self.small))

    def _iterate_head(self, field: str = "") -> Iterator[records.Record]:
        """Yield the head's records one by one; none if no record has ``field``, because listings read many files."""
        if field and f'"{field}"'.encode() not in self.head:
            return iter(())
        if "first_records" in vars(self):
            return iter(self.first_records)
        return _parse_region(self.head, keep_last=self.small)

    @property
    def lacks_beginning(self) -> bool:
        """Whether the first record, which may be longer than the reach, has a parent that is not in the file."""
        first_record = _first_chain_record(self.first_records)
        if first_record is None and not self.small:
            first_record = _first_chain_record(self.early_records)
        if first_record is None or first_record.get("isSidechain"):
            return False
        return bool(first_record.get("parentUuid") or first_record.get("logicalParentUuid"))

    @cached_property
    def last_records(self) -> list[records.Record]:
        """The complete records of the tail, in file order."""
        if self.small:
            return self.first_records
        return list(_parse_region(self._tail_lines, keep_last=True))

    @property
    def _tail_lines(self) -> bytes:
        """The tail without the rest of a line that begins before it."""
        if self._tail_starts_line:
            return self.tail
        return self.tail.partition(b"\n")[2]

    @cached_property
    def custom_title(self) -> str:
        """The title given by a person or to a derived session, or ``""``."""
        return self._last_value(CUSTOM_TITLE)

    @property
    def given_title(self) -> str:
        """The title given by a person, a derived session or the client, or ``""``."""
        return self.custom_title or self._last_value(AI_TITLE) or self._last_value(SUMMARY)

    @cached_property
    def title(self) -> str:
        """A line of at most 80 characters: the custom title, the client's own, a summary, or the first prompt.

        This is the order of the client's picker in 2.1.329, except that the picker falls back on
        the last prompt, which changes with each turn. Here the last prompt is used only if the
        first is out of reach. A session that ``/clear`` started has the title of its handoff.
        Otherwise a title carried over from the previous session is followed by its kind, to
        distinguish the two.
        """
        return self.make_title(str)

    def make_title(self, clean: Callable[[str], str]) -> str:
        """Return the title, made from its full source text after ``clean`` has changed that text."""
        if (self.is_carried_over or not self.custom_title) and (
            handoff_title := self._handoff_title
        ):
            return collapse_line(clean(handoff_title), MAX_TITLE_CHARACTERS)
        title = (
            self.given_title
            or self.first_prompt
            or remove_insertions(self._last_value(LAST_PROMPT))
            or "(no prompt yet)"
        )
        if self.is_carried_over:
            kind_suffix = f" · {kind_after_clear(self.head)}"
        else:
            kind_suffix = ""
        return (
            collapse_line(
                clean(title[:_MAX_TITLE_SOURCE_CHARACTERS]), MAX_TITLE_CHARACTERS - len(kind_suffix)
            )
            + kind_suffix
        )

    @cached_property
    def is_carried_over(self) -> bool:
        """Whether the client copied the title of the previous session, as after ``/clear``, and nobody changed it."""
        first_record = next(self._iterate_head(), {})
        is_carried_title = records.get_kind(first_record) == CUSTOM_TITLE and records.get_string(
            first_record, VALUE_FIELDS[CUSTOM_TITLE]
        )
        return is_carried_title == self.custom_title and bool(kind_after_clear(self.head))

    @property
    def _handoff_title(self) -> str:
        if kind_after_clear(self.head) != "handoff":
            return ""
        title_row = re.compile(
            rf"^\d+\. (.+) · {re.escape(session_id_from_path(self.path) or '')} · ", re.MULTILINE
        )
        texts = [
            text
            for record in self.first_records
            for text in (*hook_texts_of_record(record), read_hook_output(record))
        ]
        return next(
            (
                match[1]
                for text in texts
                if text.startswith(AFTER_CLEAR_BEGINNING) and (match := title_row.search(text))
            ),
            "",
        )

    @cached_property
    def first_prompt(self) -> str:
        """The text of the first prompt, or ``""``. If the head has none, a megabyte is searched."""
        prompt = find_first_prompt(self._iterate_head())
        if prompt or self.small:
            return prompt
        return find_first_prompt(self.early_records)

    @property
    def early_records(self) -> Iterator[records.Record]:
        """The complete records of the first megabyte, one by one, because lines may be longer than the reach."""
        try:
            with open_transcript(self.file) as stream:
                region = stream.read(WIDE_END_BYTES)
                return _parse_region(region, keep_last=not stream.read(1))
        except SessionNotFound:
            return iter(())  # deleted since the first read

    @property
    def early_prompts(self) -> Iterator[str]:
        """The texts of the prompts in the head.

        If the head has no prompt, the first prompt in the first megabyte.
        """
        texts = []
        for record in self.first_records:
            if records.is_prompt(record):
                texts.append(records.prompt_text(record))
        yield from texts or [self.first_prompt]

    @cached_property
    def tag(self) -> str:
        """The last tag, or ``""``."""
        return self._last_value(TAG)

    @property
    def agent_name(self) -> str:
        """The client's name for the session's agent, or ``""``."""
        return self._last_value(AGENT_NAME)

    @cached_property
    def all_records(self) -> list[records.Record] | None:
        """All records of the file if its two ends cover it, else None."""
        if self.small:
            return self.first_records
        middle_bytes = self.size - len(self.head)
        if middle_bytes > len(self.tail):
            return None
        return list(_parse_region(self.head + self.tail[-middle_bytes:], keep_last=True))

    @property
    def created(self) -> str:
        """The timestamp of the first dated record, or the file's own time."""
        return (
            self._first_timestamp or self._last_timestamp or clock.timestamp_from_epoch(self.mtime)
        )

    @property
    def ended(self) -> str:
        """The timestamp of the last dated record of the conversation, or of any record.

        Never earlier than ``created``.
        """
        return max(self._first_timestamp, self._last_timestamp) or clock.timestamp_from_epoch(
            self.mtime
        )

    @cached_property
    def _first_timestamp(self) -> str:
        timestamps = (
            clock.normalize_timestamp(record.get("timestamp")) for record in self.first_records
        )
        return next(filter(None, timestamps), "") or clock.normalize_timestamp(
            self._read_raw_field("timestamp")
        )

    @cached_property
    def _last_timestamp(self) -> str:
        message_records = (
            record
            for record in reversed(self.last_records)
            if records.get_kind(record) in records.CHAIN_KINDS
        )
        timestamps = (
            clock.normalize_timestamp(record.get("timestamp"))
            for candidates in (message_records, reversed(self.last_records))
            for record in candidates
        )
        return next(filter(None, timestamps), "")

    @property
    def cwd(self) -> str:
        """The working directory at the session's start.

        Later records follow the model's ``cd``.
        """
        return self._first_field("cwd") or self._read_raw_field("cwd")

    @property
    def project(self) -> str:
        """The name of the session's project folder."""
        return os.path.basename(os.path.dirname(self.path))

    @property
    def branch(self) -> str:
        """The last git branch seen, or ``""``, also outside any repository and without a branch."""
        return "" if self.recorded_branch == NO_BRANCH else self.recorded_branch

    @property
    def recorded_branch(self) -> str:
        """The last git branch as recorded. If there is none, clients wrote ``NO_BRANCH``, older ones ``""``."""
        return self._last_field("gitBranch")

    @property
    def slug(self) -> str:
        """The client's name for the session's plan file, or ``""``."""
        return self._last_field("slug")

    @property
    def version(self) -> str:
        """The version of the last client."""
        return self._last_field("version") or self._first_field("version")

    @property
    def first_version(self) -> str:
        """The version of the first client, or ``""`` if the head has none."""
        return self._first_field("version")

    @property
    def model(self) -> str:
        """The model of the last answer, or ``""``."""
        return next(
            (
                name
                for record in reversed(self.last_records)
                if (name := records.answering_model(record))
            ),
            "",
        )

    @property
    def entrypoint(self) -> str:
        """How the session was started: cli, sdk-cli, sdk-py, sdk-ts; ``""`` for old clients."""
        return self._first_field("entrypoint")

    @cached_property
    def has_own_turns(self) -> bool:
        """Whether the session has turns: false for new sessions and for untouched children of ours."""
        return self.has_record(is_conversation)

    @property
    def is_blank(self) -> bool:
        """Whether this session has no prompts yet, so that there is nothing to hand off."""
        return not self.has_own_turns and not self.is_sidechain

    @cached_property
    def was_continued(self) -> bool:
        """Whether the session was continued.

        False for a child of ours that was never resumed, whatever it contains.

        Ignore a child's creation time if it is later than its file's time, because it must be
        wrong.
        """
        derived_at = self.derived_at
        if not derived_at or derived_at > clock.timestamp_from_epoch(
            self.mtime + _TIME_RESOLUTION_SECONDS
        ):
            return self.has_own_turns
        return self.has_record(
            lambda record: (
                is_conversation(record)
                and clock.normalize_timestamp(record.get("timestamp")) > derived_at
            )
        )

    @cached_property
    def prompts(self) -> int:
        """The number of prompts in the two ends; copies made by a trim in place count once."""
        prompt_records = filter(
            records.is_prompt,
            self._records_within_reach if self.all_records is None else self.all_records,
        )
        return len(
            {
                (records.get_string(record, "timestamp"), records.prompt_text(record))
                for record in prompt_records
            }
        )

    @property
    def is_headless_run(self) -> bool:
        """Whether the session is a headless run with one prompt, as far as the ends show."""
        return self.entrypoint.startswith("sdk") and self.prompts <= 1

    @property
    def has_messages(self) -> bool:
        """Whether the session has any messages or is an unopened child. A file longer than its two ends always has."""
        if any(map(is_conversation, self._iterate_head())) or self.derived_at:
            return True
        return self.all_records is None or any(map(is_conversation, self.all_records))

    @property
    def is_listed(self) -> bool:
        """Whether listings show the session. They omit sub-agents, helpers and empty sessions."""
        return not self.is_sidechain and not self.is_headless_run and self.has_messages

    @property
    def pull_requests(self) -> frozenset[str]:
        """The numbers and lower-case addresses of the pull requests linked in the two ends."""
        links = []
        for record in self._records_within_reach:
            if records.get_kind(record) == PR_LINK:
                links.append(record)
        numbers = (record.get("prNumber") for record in links)
        addresses = set()
        for number in numbers:
            if isinstance(number, int) and number is not True:
                addresses.add(str(number))
        return frozenset(
            addresses | {records.get_string(record, "prUrl").lower() for record in links} - {""}
        )

    def has_record(self, condition: Callable[[records.Record], bool]) -> bool:
        """Check whether any record satisfies ``condition``.

        Read the middle of the file only if no record in the ends does.
        """
        if any(condition(record) for record in self._records_within_reach):
            return True
        if self.small:
            return False
        try:
            with open_transcript(self.file) as stream:
                bodies = (line.body for line in read_lines(stream))
                return any(
                    (record := records.parse_record(body)) is not None and condition(record)
                    for body in bodies
                )
        except SessionNotFound:
            return False  # deleted since the first read

    @cached_property
    def derived_at(self) -> str:
        """The time at which the session was made from another, from its first line; ``""`` for an original."""
        first_record = next(self._iterate_head(), {})
        for kind, field in (("continue_metadata", "continued_at"), ("trim_metadata", "trimmed_at")):
            if timestamp := clock.normalize_timestamp(
                records.get_mapping(first_record, kind).get(field)
            ):
                return timestamp
        return ""

    @cached_property
    def is_sidechain(self) -> bool:
        """Whether the file is a sub-agent's transcript and not a session of its own."""
        first_record = next(self._iterate_head(), None)
        if first_record is None:
            return b'"isSidechain":true' in self.head  # the first line is longer than the reach
        return bool(first_record.get("isSidechain"))

    @property
    def starting_session_id(self) -> str:
        """The id of the session that started a sub-agent; ``""`` for any other file."""
        if self.is_sidechain:
            session_id = self._first_field("sessionId")
        else:
            session_id = ""
        if is_session_id(session_id):
            return session_id
        return ""

    @property
    def folders(self) -> list[str]:
        """The working directories at both ends, in order of appearance."""
        recorded_folders = []
        for record in self._records_within_reach:
            recorded_folders.append(records.get_string(record, "cwd"))
        return list(dict.fromkeys(folder for folder in (self.cwd, *recorded_folders) if folder))

    @property
    def _records_within_reach(self) -> list[records.Record]:
        if self.small:
            return self.first_records
        return [*self.first_records, *self.last_records]

    def _last_value(self, kind: str) -> str:
        """Return a metadata value: the last one in the tail, or else in the head."""
        marker = f'"{kind}"'.encode()
        candidates = _find_last_records(self.head, marker, keep_last=self.small)
        if not self.small:
            tail_candidates = _find_last_records(self._tail_lines, marker, keep_last=True)
            candidates = chain(tail_candidates, candidates)
        for record in candidates:
            if records.get_kind(record) == kind:
                return records.get_string(record, VALUE_FIELDS[kind])
        return ""

    def _first_field(self, field: str) -> str:
        return next(
            (
                value
                for record in self._iterate_head(field)
                if (value := records.get_string(record, field))
            ),
            "",
        )

    def _last_field(self, field: str) -> str:
        return next(
            (
                value
                for record in reversed(self.last_records)
                if (value := records.get_string(record, field))
            ),
            "",
        )

    def _read_raw_field(self, field: str) -> str:
        """Extract a field from the text of a first line that is longer than the reach."""
        start = self.head.find(f'"{field}":"'.encode())
        if start < 0:
            return ""
        start += len(field) + 4
        end = self.head.find(b'"', start)
        try:
            value = json.loads(b'"' + self.head[start:end] + b'"')
        except ValueError:
            return ""
        return str(value)


def find_first_prompt(early_records: Iterable[records.Record]) -> str:
    """Return the user's words in the first prompt among the records that has any, or ``""``."""
    for record in early_records:
        if records.is_prompt(record) and (words := remove_insertions(records.prompt_text(record))):
            return words
    return ""


def is_conversation(record: records.Record) -> bool:
    """Check whether a record belongs to a conversation: a prompt or a model's answer."""
    return records.is_prompt(record) or (
        records.get_kind(record) == records.ASSISTANT and bool(records.answering_model(record))
    )


def _first_chain_record(early_records: Iterable[records.Record]) -> records.Record | None:
    for record in early_records:
        if isinstance(record.get("uuid"), str):
            return record
    return None


def _parse_region(region: bytes, *, keep_last: bool) -> Iterator[records.Record]:
    start, end = len(BOM) * region.startswith(BOM), 0
    while end >= 0:
        end = region.find(b"\n", start)
        if (end >= 0 or keep_last) and (
            record := records.parse_record(region[start : end if end >= 0 else None])
        ) is not None:
            yield record
        start = end + 1


def _find_last_records(
    region: bytes, marker: bytes, *, keep_last: bool
) -> Iterator[records.Record]:
    """Yield the records whose lines contain ``marker``, the last one first. Other lines are not parsed."""
    if keep_last:
        end = len(region)
    else:
        end = region.rfind(b"\n") + 1
    while (position := region.rfind(marker, 0, end)) >= 0:
        start = region.rfind(b"\n", 0, position) + 1
        line = region[start:end].partition(b"\n")[0]
        if start == 0:
            line = line.removeprefix(BOM)
        record = records.parse_record(line)
        if record is not None:
            yield record
        end = start
