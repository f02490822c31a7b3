"""Read what lists show about a Codex thread, from both ends of the thread's newest file.

The file is not converted as a whole. If the thread continues an older file, the older file is not
read. Lists therefore show the first prompt of the newest file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from resume_hooks import clock
from resume_hooks.errors import SessionNotFound
from resume_hooks.parts.codex.sessions.files import is_archived
from resume_hooks.parts.codex.transcripts.as_records import RecordConverter, build_first_record
from resume_hooks.parts.codex.transcripts.lines import (
    COMPRESSED_SUFFIX,
    TITLE_KEY,
    RolloutLine,
    open_rollout,
    parse_line,
    read_rollout_lines,
)
from resume_hooks.parts.codex.transcripts.meta import ThreadMeta, parse_first_lines
from resume_hooks.paths import project_key
from resume_hooks.transcripts import records
from resume_hooks.transcripts.head_tail import (
    BYTES_READ_AT_EACH_END,
    BYTES_READ_AT_EACH_END_ON_RETRY,
    HeadTail,
    find_first_prompt,
)
from resume_hooks.transcripts.metadata_records import CUSTOM_TITLE
from resume_hooks.transcripts.records import Record, get_string, parse_positive_count

_CONTEXT_WINDOW_FIELD_PATTERN = re.compile(rb'"model_context_window":\s?(\d{1,9})\b')


class RolloutEnds(HeadTail):
    """The records at both ends of a rollout (a thread's .jsonl file).

    If the rollout is compressed, only the records at its beginning are read. ``thread_name`` is the
    name that the user gave to the thread.
    """

    def __init__(self, path: str, agent: str, thread_name: str = "") -> None:
        self.path = self.file = path
        self._agent = agent
        self._name = thread_name
        # True if the client that wrote this rollout writes a token count before the response that
        # it belongs to. None until the head has been read.
        self._usage_comes_first: bool | None = None
        try:
            status = os.stat(path)
        except OSError as error:
            raise SessionNotFound(
                f"{path} can't be read: {error.strerror}", "Check the path."
            ) from error
        with open_rollout(path) as stream:
            self.head = stream.read(BYTES_READ_AT_EACH_END)
            # The first line can be long, because it contains the instructions for the model.
            if b"\n" not in self.head:
                self.head += stream.readline(BYTES_READ_AT_EACH_END_ON_RETRY)
            is_compressed = path.endswith(COMPRESSED_SUFFIX)
            tail_start = max(len(self.head), status.st_size - BYTES_READ_AT_EACH_END)
            tail = b""
            if not is_compressed and tail_start < status.st_size:
                stream.seek(tail_start)
                tail = stream.read()
            if is_compressed:
                self.is_whole_file = not stream.read(1)
            else:
                self.is_whole_file = tail_start == len(self.head)
        self.mtime, self.size = status.st_mtime, status.st_size
        if self.is_whole_file:
            self.head += tail
            self.tail = self.head
        else:
            self.tail = tail.partition(b"\n")[2]

    @cached_property
    def meta(self) -> ThreadMeta:
        """The metadata of the thread, from the first lines of the rollout."""
        raw_lines = self.head.split(b"\n", 2)[:2]
        return parse_first_lines(
            [
                line
                for raw_line in raw_lines
                if (line := parse_line(raw_line, self.path)) is not None
            ],
            self.path,
        )

    @cached_property
    def _first_line(self) -> Record:
        return records.parse_record(self.head.partition(b"\n")[0]) or {}

    @cached_property
    def first_records(self) -> list[Record]:
        """An added first record, followed by the converted records from the head of the file.

        The added record contains the agent, the thread's parent and the size of the context window.
        """
        first_fields = build_first_record(self.meta, self._first_line, self._agent)
        if self.context_window_tokens:
            first_fields["context_window"] = self.context_window_tokens
        return [first_fields, *self._convert_bytes(self.head)]

    def _iterate_head_records(self, field: str = "") -> Iterator[Record]:  # noqa: ARG002 - the head is already converted
        return iter(self.first_records)

    @cached_property
    def last_records(self) -> list[Record]:
        """The records in the tail of the file."""
        if self.is_whole_file or not self.first_records:
            return self.first_records
        self._usage_comes_first = bool(self._usage_comes_first)
        return self._convert_bytes(self.tail)

    @property
    def all_records(self) -> list[Record] | None:
        """The records of the whole file if the head contains it, and otherwise None."""
        if self.is_whole_file:
            return self.first_records
        return None

    @cached_property
    def is_sidechain(self) -> bool:
        """Whether the thread belongs to a sub-agent of another thread."""
        return bool(self.meta.spawning_thread_id)

    @property
    def starting_session_id(self) -> str:
        """The id of the thread that started this sub-agent, or ``""`` for other threads."""
        return self.meta.spawning_thread_id

    @property
    def ended_at(self) -> str:
        """The timestamp of the last message.

        If the tail contains no message because a long line fills it, this is the timestamp of the
        last line.
        """
        message_timestamp = super().ended_at
        if message_timestamp > self.created_at:
            return message_timestamp
        line_timestamps = []
        for line in _parse_lines(self.tail, self.path):
            line_timestamps.append(clock.normalize_timestamp(line.timestamp))
        return max([message_timestamp, *line_timestamps])

    @property
    def tag(self) -> str:
        """``archived`` if the thread is archived, and otherwise ``""``. Codex has no tags of its own."""
        if is_archived(self.path):
            return "archived"
        return ""

    @property
    def cwd(self) -> str:
        """The folder in which the thread was started."""
        return self.meta.cwd

    @property
    def project(self) -> str:
        """The name that Claude Code would give the project folder of the thread's working directory."""
        if self.cwd:
            return project_key(self.cwd)
        return ""

    @cached_property
    def context_window_tokens(self) -> int:
        """The size of the model's context window in tokens, or 0 if the tail does not contain it."""
        windows = _CONTEXT_WINDOW_FIELD_PATTERN.findall(self.tail)
        if windows:
            return parse_positive_count(int(windows[-1]))
        return 0

    def has_record(self, wanted: Callable[[Record], bool]) -> bool:
        """Check whether any record of the newest file matches ``wanted``."""
        if any(wanted(record) for record in self._head_and_tail_records):
            return True
        return not self.is_whole_file and any(
            wanted(record) for record in self._convert_lines(read_rollout_lines(self.path))
        )

    @cached_property
    def first_prompt(self) -> str:
        """The text of the first prompt.

        Long instructions can precede the prompt, so the whole first megabyte of the file is
        searched for it. The lines after the prompt are not converted.
        """
        prompt = find_first_prompt(self._convert_lines(_parse_lines(self.head, self.path)))
        if prompt or self.is_whole_file:
            return prompt
        return find_first_prompt(self.early_records)

    @property
    def early_records(self) -> Iterator[Record]:
        """The records in the first megabyte of the file."""
        with open_rollout(self.path) as stream:
            file_part = stream.read(BYTES_READ_AT_EACH_END_ON_RETRY)
        return self._convert_lines(_parse_lines(file_part, self.path))

    def _find_last_metadata_value(self, record_type: str) -> str:
        if record_type == CUSTOM_TITLE:
            return self._name or get_string(self._first_line, TITLE_KEY)
        return ""

    def _convert_bytes(self, file_part: bytes) -> list[Record]:
        return list(self._convert_lines(_parse_lines(file_part, self.path)))

    def _convert_lines(self, lines: Iterable[RolloutLine]) -> Iterator[Record]:
        converter = RecordConverter(self.meta.thread_id, usage_comes_first=self._usage_comes_first)
        converter.update_session_fields(self.meta)
        for line in lines:
            yield from converter.add_line(line)
        yield from converter.finish_response()
        self._usage_comes_first = converter.usage_comes_first


def _parse_lines(file_part: bytes, path: str) -> Iterator[RolloutLine]:
    return (line for raw in file_part.split(b"\n") if (line := parse_line(raw, path)) is not None)
