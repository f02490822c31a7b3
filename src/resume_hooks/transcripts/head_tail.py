"""Read a session's title, tag, branch, folder and dates from the first and last 64 KB of its file.

The middle of the file is read only if the two ends contain no prompt.
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
from resume_hooks.transcripts.attachments import list_hook_texts, read_hook_output
from resume_hooks.transcripts.client_insertions import remove_insertions
from resume_hooks.transcripts.lines import (
    BOM,
    SharedFile,
    open_transcript,
    read_lines,
    transcript_path,
)
from resume_hooks.transcripts.metadata_records import (
    AGENT_NAME,
    AI_TITLE,
    CUSTOM_TITLE,
    LAST_PROMPT,
    OPENING_AFTER_CLEAR_PREFIX,
    PR_LINK,
    SUMMARY,
    TAG,
    VALUE_FIELDS_BY_KIND,
    detect_start_after_clear,
)

# Number of bytes to read at each end of a file. Clients read the same number of bytes for their
# lists of sessions.
BYTES_READ_AT_EACH_END = 65_536
# If the 64 KB at an end of a file contain no prompt or no answer, this number of bytes is read at
# that end instead.
BYTES_READ_AT_EACH_END_ON_RETRY = 1024 * 1024
# Clients record this instead of a branch if a folder is in no repository, or if the repository has
# no current branch.
MISSING_BRANCH_MARKER = "HEAD"
MAX_TITLE_CHARACTERS = 80
# A file's modification time may be up to this many seconds earlier than the times recorded in it.
_TIME_RESOLUTION_SECONDS = 2
# The first line of a child that we made contains this text.
_CHILD_FIRST_LINE_KEY = b'"continue_metadata"'
# Maximum number of characters of a text from which a title is made.
_MAX_TITLE_SOURCE_CHARACTERS = 8_192


def parse_version(text: str) -> tuple[int, ...]:
    """Return the numbers of a client's version, for example ``(2, 1, 329)``, or ``()`` for ``""``."""
    return tuple(int(part[:9]) for part in text.split(".") if part.isdecimal())


class HeadTail:
    """The start and the end of a transcript, and the session's properties that they show.

    Raises SessionNotFound if the file cannot be read.
    """

    def __init__(self, file: str | SharedFile) -> None:
        self.path = transcript_path(file)
        self.file = file
        with open_transcript(file) as stream:
            status = os.fstat(stream.fileno())
            self.head = stream.read(BYTES_READ_AT_EACH_END)
            if (
                len(self.head) == BYTES_READ_AT_EACH_END
                and _CHILD_FIRST_LINE_KEY in self.head.partition(b"\n")[0]
            ):
                # The opening of a child may be longer than 64 KB.
                self.head += stream.readline(BYTES_READ_AT_EACH_END_ON_RETRY)
            start = max(0, status.st_size - BYTES_READ_AT_EACH_END - 1)
            stream.seek(start)
            if len(self.head) >= BYTES_READ_AT_EACH_END:
                tail = stream.read(BYTES_READ_AT_EACH_END + 1)
            else:
                tail = b""
            if len(self.head) >= status.st_size:
                tail = b""
            # Client 2.1.330 writes 67 KB after the first answer that follows a start or a
            # compaction, so the answer may be before the tail.
            if tail and start and b'"type":"assistant"' not in tail.partition(b"\n")[2]:
                start = max(0, status.st_size - BYTES_READ_AT_EACH_END_ON_RETRY - 1)
                stream.seek(start)
                tail = stream.read(BYTES_READ_AT_EACH_END_ON_RETRY + 1)
        self.mtime: float = status.st_mtime
        self.size: int = status.st_size
        """The size of the file in bytes when it was read. A client may have written more since
        then."""
        self.is_whole_file = not tail or not start
        """Whether the head or the tail contains the whole file."""
        if self.is_whole_file:
            self.head = tail or self.head
            self.size = len(self.head)
        self.tail = self.head if self.is_whole_file else tail[1:]
        self._tail_starts_at_line = tail[:1] == b"\n"

    @cached_property
    def first_records(self) -> list[records.Record]:
        """The head's complete records, in the order of the file."""
        return list(_parse_region(self.head, keep_last_line=self.is_whole_file))

    def _iterate_head_records(self, field: str = "") -> Iterator[records.Record]:
        """Yield the records of the head, or none if the text of the head does not contain ``field``.

        Skipping a head without the field saves time, because lists of sessions read many files.
        """
        if field and f'"{field}"'.encode() not in self.head:
            return iter(())
        if "first_records" in vars(self):
            return iter(self.first_records)
        return _parse_region(self.head, keep_last_line=self.is_whole_file)

    @property
    def lacks_beginning(self) -> bool:
        """Whether the parent of the file's first record is missing from the file.

        The first record may be longer than the head, so up to a megabyte is read.
        """
        first_record = _find_first_chain_record(self.first_records)
        if first_record is None and not self.is_whole_file:
            first_record = _find_first_chain_record(self.early_records)
        if first_record is None or first_record.get("isSidechain"):
            return False
        return bool(first_record.get("parentUuid") or first_record.get("logicalParentUuid"))

    @cached_property
    def last_records(self) -> list[records.Record]:
        """The tail's complete records, in the order of the file."""
        if self.is_whole_file:
            return self.first_records
        return list(_parse_region(self._tail_lines, keep_last_line=True))

    @property
    def _tail_lines(self) -> bytes:
        """The tail from the start of its first whole line."""
        if self._tail_starts_at_line:
            return self.tail
        return self.tail.partition(b"\n")[2]

    @cached_property
    def custom_title(self) -> str:
        """The title that a user has set, or that we gave to a child, or ``""``."""
        return self._find_last_metadata_value(CUSTOM_TITLE)

    @property
    def given_title(self) -> str:
        """The title that a user or the client has set, or that we gave to a child, or ``""``."""
        return (
            self.custom_title
            or self._find_last_metadata_value(AI_TITLE)
            or self._find_last_metadata_value(SUMMARY)
        )

    @cached_property
    def title(self) -> str:
        """The title of the session, a line of at most 80 characters.

        The title is the first of these that exists: the custom title, the client's title, a
        summary, the first prompt. Client 2.1.329 uses the same order in its picker, but instead of
        the first prompt it shows the last one, which changes with each turn. Here the last prompt
        is used only if the first one was not read.

        A session that ``/clear`` started has the title of its handoff. If it has only a title that
        the client copied from the previous session, ``clear`` or ``handoff`` is added, so that the
        two titles differ.
        """
        return self.make_title(str)

    def make_title(self, clean: Callable[[str], str]) -> str:
        """Return the title of the session. ``clean`` is applied to the source text before it is shortened."""
        if (self.is_title_from_previous_session or not self.custom_title) and (
            handoff_title := self._title_from_handoff
        ):
            return collapse_line(clean(handoff_title), MAX_TITLE_CHARACTERS)
        title = (
            self.given_title
            or self.first_prompt
            or remove_insertions(self._find_last_metadata_value(LAST_PROMPT))
            or "(no prompt yet)"
        )
        if self.is_title_from_previous_session:
            kind_suffix = f" · {detect_start_after_clear(self.head)}"
        else:
            kind_suffix = ""
        return (
            collapse_line(
                clean(title[:_MAX_TITLE_SOURCE_CHARACTERS]), MAX_TITLE_CHARACTERS - len(kind_suffix)
            )
            + kind_suffix
        )

    @cached_property
    def is_title_from_previous_session(self) -> bool:
        """Whether the session still has the title of the previous session.

        The client copies the title after ``/clear``. The result is false if the user has changed
        the title since then.
        """
        first_record = next(self._iterate_head_records(), {})
        is_carried_title = records.get_kind(first_record) == CUSTOM_TITLE and records.get_string(
            first_record, VALUE_FIELDS_BY_KIND[CUSTOM_TITLE]
        )
        return is_carried_title == self.custom_title and bool(detect_start_after_clear(self.head))

    @property
    def _title_from_handoff(self) -> str:
        if detect_start_after_clear(self.head) != "handoff":
            return ""
        title_row = re.compile(
            rf"^\d+\. (.+) · {re.escape(session_id_from_path(self.path) or '')} · ", re.MULTILINE
        )
        texts = [
            text
            for record in self.first_records
            for text in (*list_hook_texts(record), read_hook_output(record))
        ]
        return next(
            (
                match[1]
                for text in texts
                if text.startswith(OPENING_AFTER_CLEAR_PREFIX) and (match := title_row.search(text))
            ),
            "",
        )

    @cached_property
    def first_prompt(self) -> str:
        """The text of the first prompt, or ``""``. Up to a megabyte of the file is read."""
        prompt = find_first_prompt(self._iterate_head_records())
        if prompt or self.is_whole_file:
            return prompt
        return find_first_prompt(self.early_records)

    @property
    def early_records(self) -> Iterator[records.Record]:
        """The complete records of the first megabyte. Lines may be longer than the head."""
        try:
            with open_transcript(self.file) as stream:
                region = stream.read(BYTES_READ_AT_EACH_END_ON_RETRY)
                return _parse_region(region, keep_last_line=not stream.read(1))
        except SessionNotFound:
            return iter(())  # The file was deleted after its head was read.

    @property
    def early_prompts(self) -> Iterator[str]:
        """The texts of the prompts in the head or, if the head has no prompt, the text of the first prompt.

        The first megabyte of the file is searched for the first prompt.
        """
        texts = []
        for record in self.first_records:
            if records.is_prompt(record):
                texts.append(records.prompt_text(record))
        yield from texts or [self.first_prompt]

    @cached_property
    def tag(self) -> str:
        """The last tag that was set, or ``""``."""
        return self._find_last_metadata_value(TAG)

    @property
    def agent_name(self) -> str:
        """The name that the client recorded for the session's agent, or ``""``."""
        return self._find_last_metadata_value(AGENT_NAME)

    @cached_property
    def all_records(self) -> list[records.Record] | None:
        """All records of the file if head and tail together contain it, else None."""
        if self.is_whole_file:
            return self.first_records
        middle_bytes = self.size - len(self.head)
        if middle_bytes > len(self.tail):
            return None
        return list(_parse_region(self.head + self.tail[-middle_bytes:], keep_last_line=True))

    @property
    def created_at(self) -> str:
        """The time of the first record that has one.

        If no record has a time, it is the modification time of the file.
        """
        return (
            self._first_timestamp or self._last_timestamp or clock.timestamp_from_epoch(self.mtime)
        )

    @property
    def ended_at(self) -> str:
        """The time of the last record of the conversation or, if it has none, of the last record of any kind.

        The time is never earlier than ``created_at``.
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
            self._find_value_in_first_line("timestamp")
        )

    @cached_property
    def _last_timestamp(self) -> str:
        message_records = (
            record
            for record in reversed(self.last_records)
            if records.get_kind(record) in records.CHAIN_RECORD_KINDS
        )
        timestamps = (
            clock.normalize_timestamp(record.get("timestamp"))
            for candidates in (message_records, reversed(self.last_records))
            for record in candidates
        )
        return next(filter(None, timestamps), "")

    @property
    def cwd(self) -> str:
        """The working directory of the first record that has one.

        Later records may have other working directories, because the model can change its directory
        with ``cd``.
        """
        return self._find_first_value("cwd") or self._find_value_in_first_line("cwd")

    @property
    def project(self) -> str:
        """The name of the session's project folder."""
        return os.path.basename(os.path.dirname(self.path))

    @property
    def branch(self) -> str:
        """The last git branch that was recorded, or ``""`` if none was recorded."""
        return "" if self.recorded_branch == MISSING_BRANCH_MARKER else self.recorded_branch

    @property
    def recorded_branch(self) -> str:
        """The last git branch exactly as the client recorded it.

        Without a repository or a current branch, clients record ``MISSING_BRANCH_MARKER``. Older clients record
        ``""``.
        """
        return self._find_last_value("gitBranch")

    @property
    def plan_slug(self) -> str:
        """The name of the session's plan file in the client's folder, without the suffix, or ``""``."""
        return self._find_last_value("slug")

    @property
    def version(self) -> str:
        """The version of the client that last wrote to the session.

        The result is ``""`` if head and tail do not contain a version.
        """
        return self._find_last_value("version") or self._find_first_value("version")

    @property
    def first_client_version(self) -> str:
        """The version of the client in the first record that states one.

        The result is ``""`` if the head does not contain a version.
        """
        return self._find_first_value("version")

    @property
    def model(self) -> str:
        """The model of the last answer in the tail, or ``""``."""
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
        """The kind of program that started the session: ``cli``, ``sdk-cli``, ``sdk-py`` or ``sdk-ts``.

        If an old client recorded none, the result is ``""``.
        """
        return self._find_first_value("entrypoint")

    @cached_property
    def has_own_turns(self) -> bool:
        """Whether the session contains a prompt or an answer of its own, unlike a new or unused session."""
        return self.has_record(is_prompt_or_answer)

    @property
    def is_blank(self) -> bool:
        """Whether this session has no prompt yet. Such a session cannot be handed off."""
        return not self.has_own_turns and not self.is_sidechain

    @cached_property
    def was_continued(self) -> bool:
        """Whether turns were added to the session after it was created.

        The result is false for a child of ours that was never resumed, whatever the child contains.
        If the creation time in a child's first line is later than the file's modification time, the
        creation time must be wrong and is ignored.
        """
        derived_at = self.derived_at
        if not derived_at or derived_at > clock.timestamp_from_epoch(
            self.mtime + _TIME_RESOLUTION_SECONDS
        ):
            return self.has_own_turns
        return self.has_record(
            lambda record: (
                is_prompt_or_answer(record)
                and clock.normalize_timestamp(record.get("timestamp")) > derived_at
            )
        )

    @cached_property
    def prompt_count(self) -> int:
        """The number of prompts in head and tail.

        A trim in place copies prompts. A prompt and its copy are counted once.
        """
        prompt_records = filter(
            records.is_prompt,
            self._head_and_tail_records if self.all_records is None else self.all_records,
        )
        return len(
            {
                (records.get_string(record, "timestamp"), records.prompt_text(record))
                for record in prompt_records
            }
        )

    @property
    def is_headless_run(self) -> bool:
        """Whether the session is a headless run, with at most one prompt in head and tail."""
        return self.entrypoint.startswith("sdk") and self.prompt_count <= 1

    @property
    def has_messages(self) -> bool:
        """Whether the session has messages or was created by this plugin.

        If head and tail do not cover the whole file, the session is assumed to have messages.
        """
        if any(map(is_prompt_or_answer, self._iterate_head_records())) or self.derived_at:
            return True
        return self.all_records is None or any(map(is_prompt_or_answer, self.all_records))

    @property
    def is_shown_in_lists(self) -> bool:
        """Whether lists of sessions show the session.

        Lists do not show sub-agents, headless runs and sessions without messages.
        """
        return not self.is_sidechain and not self.is_headless_run and self.has_messages

    @property
    def pull_requests(self) -> frozenset[str]:
        """The pull requests that records in the head or the tail link to.

        The result contains both their numbers and their addresses, the latter in lower case.
        """
        links = []
        for record in self._head_and_tail_records:
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

        The middle of the file is read only if no record of the head or the tail satisfies it.
        """
        if any(condition(record) for record in self._head_and_tail_records):
            return True
        if self.is_whole_file:
            return False
        try:
            with open_transcript(self.file) as stream:
                bodies = (line.body for line in read_lines(stream))
                return any(
                    (record := records.parse_record(body)) is not None and condition(record)
                    for body in bodies
                )
        except SessionNotFound:
            return False  # The file was deleted after its head was read.

    @cached_property
    def derived_at(self) -> str:
        """The time at which the session was derived from another one, or ``""`` if it was not derived.

        The time is read from the first line.
        """
        first_record = next(self._iterate_head_records(), {})
        for kind, field in (("continue_metadata", "continued_at"), ("trim_metadata", "trimmed_at")):
            if timestamp := clock.normalize_timestamp(
                records.get_mapping(first_record, kind).get(field)
            ):
                return timestamp
        return ""

    @cached_property
    def is_sidechain(self) -> bool:
        """Whether the file is the transcript of a sub-agent, which is not a separate session."""
        first_record = next(self._iterate_head_records(), None)
        if first_record is None:
            # The first line is longer than the head, so it cannot be parsed.
            return b'"isSidechain":true' in self.head
        return bool(first_record.get("isSidechain"))

    @property
    def starting_session_id(self) -> str:
        """The id of the session that started this sub-agent, or ``""`` if the file is not a sub-agent's."""
        if self.is_sidechain:
            session_id = self._find_first_value("sessionId")
        else:
            session_id = ""
        if is_session_id(session_id):
            return session_id
        return ""

    @property
    def folders(self) -> list[str]:
        """The working directories in head and tail, in the order in which they first appear."""
        recorded_folders = []
        for record in self._head_and_tail_records:
            recorded_folders.append(records.get_string(record, "cwd"))
        return list(dict.fromkeys(folder for folder in (self.cwd, *recorded_folders) if folder))

    @property
    def _head_and_tail_records(self) -> list[records.Record]:
        if self.is_whole_file:
            return self.first_records
        return [*self.first_records, *self.last_records]

    def _find_last_metadata_value(self, record_type: str) -> str:
        """Return the value of the last metadata record of this type, or ``""``.

        The tail is searched first, then the head.
        """
        marker = f'"{record_type}"'.encode()
        candidates = _find_last_records(self.head, marker, keep_last_line=self.is_whole_file)
        if not self.is_whole_file:
            tail_candidates = _find_last_records(self._tail_lines, marker, keep_last_line=True)
            candidates = chain(tail_candidates, candidates)
        for record in candidates:
            if records.get_kind(record) == record_type:
                return records.get_string(record, VALUE_FIELDS_BY_KIND[record_type])
        return ""

    def _find_first_value(self, field: str) -> str:
        return next(
            (
                value
                for record in self._iterate_head_records(field)
                if (value := records.get_string(record, field))
            ),
            "",
        )

    def _find_last_value(self, field: str) -> str:
        return next(
            (
                value
                for record in reversed(self.last_records)
                if (value := records.get_string(record, field))
            ),
            "",
        )

    def _find_value_in_first_line(self, field: str) -> str:
        """Return the value of a field in the first line of the head, or ``""``.

        If the line is longer than the head, it cannot be parsed. Therefore the text of the line is
        searched for the field.
        """
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
    """Return the user's words in the first prompt that contains words of the user, or ``""``."""
    for record in early_records:
        if records.is_prompt(record) and (words := remove_insertions(records.prompt_text(record))):
            return words
    return ""


def is_prompt_or_answer(record: records.Record) -> bool:
    """Check whether a record is a prompt or a model's answer."""
    return records.is_prompt(record) or (
        records.get_kind(record) == records.ASSISTANT and bool(records.answering_model(record))
    )


def _find_first_chain_record(early_records: Iterable[records.Record]) -> records.Record | None:
    for record in early_records:
        if isinstance(record.get("uuid"), str):
            return record
    return None


def _parse_region(region: bytes, *, keep_last_line: bool) -> Iterator[records.Record]:
    start, end = len(BOM) * region.startswith(BOM), 0
    while end >= 0:
        end = region.find(b"\n", start)
        if (end >= 0 or keep_last_line) and (
            record := records.parse_record(region[start : end if end >= 0 else None])
        ) is not None:
            yield record
        start = end + 1


def _find_last_records(
    region: bytes, marker: bytes, *, keep_last_line: bool
) -> Iterator[records.Record]:
    """Yield the records whose lines contain ``marker``, the last one first.

    Other lines are not parsed. A last line without a line ending is read only if ``keep_last_line`` is
    true.
    """
    if keep_last_line:
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
