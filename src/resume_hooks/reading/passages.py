"""Show records as passages: text for a model, with the record's reference, speaker and content.

Each record is one passage. A call takes one line. For text that the client added, the passage
contains only a note.

A page from the end of a file, and the records around a record, are read without counting turns.
Therefore the time depends on the length of the output and not on that of the file. If lines are
appended to the file, the page before a given record stays the same. To find turns, errors and
commands, the whole file is scanned once. The scan collects the calls and the position of each
record. Texts are read from the file when they are needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import BinaryIO, NamedTuple

from resume_hooks.clock import format_minute
from resume_hooks.reading.char_budget import (
    MAX_WHOLE_RECORD_CHARACTERS,
    TextPiece,
    cut_middle_and_count_characters,
    indent_text,
)
from resume_hooks.reading.render import (
    Rendering,
    find_calls_before,
    format_fields,
    render_block_text,
    render_record,
    render_record_text,
)
from resume_hooks.sessions.record_references import (
    RecordLine,
    RecordLines,
    RecordOffset,
    TranscriptNames,
    is_record_id,
)
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import collapse_line, format_count, plain_line, plain_text
from resume_hooks.transcripts import records
from resume_hooks.transcripts.attachments import QUEUED, attachment_kind
from resume_hooks.transcripts.lines import (
    Line,
    SharedFile,
    open_transcript,
    read_lines,
    read_lines_backwards,
)
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record, get_string
from resume_hooks.transcripts.transcript import RecordObserver, scan_transcript
from resume_hooks.transcripts.trimmable_pieces import ToolCall, tool_calls_of_record
from resume_hooks.transcripts.turns import TurnRange, opens_turn

# At most this many characters of a call's target, such as a path or a command, are shown.
MAX_TARGET_CHARACTERS = 200
# A notice about a call's omitted inputs is shown only if these inputs have more characters than
# this. An example of an omitted input is the description of a command.
MAX_UNMENTIONED_INPUT_CHARACTERS = 60
# The types of records that occur only in plain exports.
EXPORT_RECORD_KINDS = frozenset({"tool", records.RESULT, records.CALL})

SILENT_ATTACHMENT_TYPES = frozenset(
    {"date_change", "prompt_snapshot", "task_reminder", "todo_reminder", "total_tokens_reminder"}
)
"""Attachments that accompany many calls and contain no information about the work."""

_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"

RecordWithLine = tuple[RecordLine, Record]


class Passage(NamedTuple):
    """A record as text. ``turn_number`` is -1 if turns were not counted.

    ``speaker`` says who wrote the record. ``is_spoken`` means that the record is a message of the
    user or the model. ``is_client_addition`` means that the client added the record. In ``text``,
    notes replace the long inputs of calls and the texts that the client added.
    """

    entry: RecordLine
    turn_number: int
    uuid: str
    timestamp: str
    rendering: Rendering
    speaker: str
    text: str
    is_spoken: bool
    is_failure: bool
    is_client_addition: bool

    @property
    def record_name(self) -> str:
        """The record's name in its session: its line number, or its uuid and offset if lines were not counted.

        The uuid remains valid if the file is rewritten. The offset helps to find the record
        quickly, and distinguishes records with the same uuid.
        """
        if self.entry.number >= 0:
            return self.entry.record_part
        return RecordOffset(
            self.entry.offset, self.uuid if is_record_id(self.uuid) else ""
        ).record_part

    @property
    def character_count(self) -> int:
        """The number of characters of the record's whole text. ``text`` may contain only a part of that text."""
        return len(self.rendering.text)

    def make_text_piece(
        self, names: TranscriptNames, max_characters: int = 0, *, with_turn: bool = False
    ) -> TextPiece:
        """Return the passage, shortened for an output of ``max_characters`` characters (0: no limit)."""
        reference = names.make_reference(self.entry.record_part)
        if with_turn and self.turn_number >= 0:
            turn = f"turn {self.turn_number}"
        else:
            turn = ""
        facts = [reference, format_minute(self.timestamp)[5:], turn, self.speaker]
        head = collapse_line(
            plain_line(" · ".join(fact for fact in facts if fact)), MAX_TARGET_CHARACTERS + 120
        )
        text, missing = cut_middle_and_count_characters(self.text, max_characters)
        command = format_read_command(reference, self.character_count)
        return TextPiece(head, indent_text(plain_text(text)), command, self.is_spoken, missing)


def format_read_command(reference: str, character_count: int = 0) -> str:
    """Return the command that prints a record with ``character_count`` characters.

    If the record is long, the command includes the option that prints the whole record.
    """
    return shell_command(
        f"read {reference}{' --max-chars 0' if character_count > MAX_WHOLE_RECORD_CHARACTERS else ''}"
    )


def has_content(record: Record) -> bool:
    """Check whether a record has content. Bookkeeping and empty thinking do not count as content."""
    kind = records.get_kind(record)
    if kind == records.ATTACHMENT:
        return attachment_kind(record) not in SILENT_ATTACHMENT_TYPES
    if kind == records.SYSTEM:
        return (
            bool(get_string(record, "content").strip())
            or get_string(record, "subtype") == records.API_ERROR
        )
    if kind == records.PROGRESS or not records.get_message(record):
        return False
    if kind not in records.CHAIN_RECORD_KINDS:
        return kind in EXPORT_RECORD_KINDS
    return any(_block_has_content(block) for block in records.list_blocks(record))


def is_added_by_client(record: Record) -> bool:
    """Check whether the client added a record itself, for example a reminder or the output of a hook."""
    return records.get_kind(record) == records.ATTACHMENT and attachment_kind(record) != QUEUED


def _block_has_content(block: Record) -> bool:
    kind = get_string(block, "type")
    return kind not in {records.TEXT, records.THINKING} or bool(get_string(block, kind).strip())


class PassageFile(NamedTuple):
    """The file of a passage: the names of the transcript, and whether a sub-agent wrote it."""

    names: TranscriptNames
    is_subagent: bool = False


def make_passage(
    record: Record,
    entry: RecordLine,
    file: PassageFile,
    calls: Mapping[str, ToolCall],
    turn_number: int = -1,
) -> Passage:
    """Return a record as a passage. ``calls`` are the calls whose results the record may contain."""
    names, subagent = file
    rendering = render_record(record, calls)
    is_prompt = opens_turn(record, is_subagent=subagent)
    speaker = _describe_speaker(
        record, rendering, is_prompt=is_prompt, is_from_subagent_file=subagent
    )
    text = _format_brief_text(
        record, names.make_reference(entry.record_part), calls, len(rendering.text)
    )
    is_subagent_record = record.get("isSidechain") and not subagent
    is_message = is_prompt or (
        records.get_kind(record) == records.ASSISTANT
        and bool(records.join_text_blocks(record).strip())
        and not is_subagent_record
    )
    uuid, time = get_string(record, "uuid"), get_string(record, "timestamp")
    return Passage(
        entry,
        turn_number,
        uuid,
        time,
        rendering,
        speaker,
        text,
        bool(is_message),
        is_failure(record),
        is_added_by_client(record),
    )


def _describe_speaker(
    record: Record, rendering: Rendering, *, is_prompt: bool, is_from_subagent_file: bool
) -> str:
    kind = rendering.kind
    speaker = kind
    if kind == records.ATTACHMENT:
        speaker = f"attachment {attachment_kind(record)}".rstrip()
    elif kind == records.SYSTEM:
        speaker = f"system {get_string(record, 'subtype')}".rstrip()
    elif kind == records.RESULT or records.list_results(record):
        state = "failed result" if list_failed_call_ids(record) else "result"
        if rendering.tool_name:
            shown_target = collapse_line(rendering.target, MAX_TARGET_CHARACTERS)
            speaker = f"{state} of {rendering.tool_name} {shown_target}".rstrip()
        else:
            speaker = state
    elif kind == records.ASSISTANT and record.get("isApiErrorMessage"):
        speaker = "assistant, API error"
    elif kind == records.USER and not is_prompt:
        if record.get("isCompactSummary"):
            speaker = "user, summary of a compaction"
        else:
            speaker = "user, not a prompt"
    if record.get("isSidechain") and not is_from_subagent_file:
        speaker = f"sub-agent's {speaker}"
    return speaker


def list_failed_call_ids(record: Record) -> list[str]:
    """Return the ids of the calls that failed according to the results in a record.

    In a plain export, the id is ``""``.
    """
    if records.get_kind(record) == records.RESULT:
        if records.is_error(record) or records.is_error(records.get_message(record)):
            return [""]
        return []
    if records.get_kind(record) == records.USER:
        result_blocks = records.list_results(record)
    else:
        result_blocks = []
    return [records.call_id(block) for block in result_blocks if records.is_error(block)]


def is_failure(record: Record) -> bool:
    """Check whether a record reports a failure of a tool or of the API."""
    is_api_error = (
        records.get_kind(record) == records.SYSTEM
        and get_string(record, "subtype") == records.API_ERROR
    )
    return (
        is_api_error
        or record.get("isApiErrorMessage") is True
        or bool(list_failed_call_ids(record))
    )


def _format_brief_text(
    record: Record, reference: str, calls: Mapping[str, ToolCall], character_count: int
) -> str:
    """Return a record's text with one line for each call, and with notes instead of client additions."""
    kind = records.get_kind(record)
    if is_added_by_client(record):
        return (
            f"[{format_count(character_count, 'character')} that the client added: "
            f"{format_read_command(reference, character_count)}]"
        )
    if kind == records.ASSISTANT:
        own_calls = tool_calls_of_record(record)
        blocks = (
            _format_call(block, own_calls, reference)
            if block.get("type") == records.CALL
            else render_block_text(block)
            for block in records.list_blocks(record)
            if _block_has_content(block)
        )
        return "\n".join(blocks)
    text = render_record_text(record, calls)
    return remove_reminders(
        text.removeprefix("[error]\n") if list_failed_call_ids(record) else text, reference
    )


def _format_call(block: Record, own_calls: Mapping[str, ToolCall], reference: str) -> str:
    call = own_calls.get(get_string(block, "id"))
    subject = call.target if call else ""
    subject_line = collapse_line(
        plain_line(subject or format_fields(records.get_mapping(block, "input"))),
        MAX_TARGET_CHARACTERS,
    )
    omitted = sum(map(len, records.iterate_strings(block.get("input")))) - len(subject_line)
    if omitted > MAX_UNMENTIONED_INPUT_CHARACTERS:
        omitted_note = (
            f" (… {omitted:,} more characters of input: {format_read_command(reference)})"
        )
    else:
        omitted_note = ""
    return f"→ {plain_line(get_string(block, 'name'))} {subject_line}".rstrip() + omitted_note


def remove_reminders(text: str, reference: str = "") -> str:
    """Return a text without the client's reminders.

    If ``reference`` is given, a note replaces each reminder. The text is searched only once.
    """
    parts = []
    offset = 0
    while (start := text.find(_REMINDER, offset)) >= 0:
        end = text.find(_REMINDER_END, start)
        if end < 0:
            break
        end += len(_REMINDER_END)
        parts.append(text[offset:start])
        if reference:
            parts.append(
                f"[{end - start:,} characters of a reminder by the client: "
                f"{format_read_command(reference)}]"
            )
        offset = end
    return "".join([*parts, text[offset:]])


class PassagePage(NamedTuple):
    """A page of a transcript, oldest record first, without turn numbers.

    ``has_earlier_records`` means that there are records before this page.
    """

    passages: list[Passage]
    has_earlier_records: bool


def read_page(
    entries: RecordLines, names: TranscriptNames, before: RecordLine | None, max_records: int
) -> PassagePage:
    """Return the last ``max_records`` non-empty records that precede the line ``before``.

    If ``before`` is None, return the last such records in the file. Raises SessionNotFound.
    """
    with open_transcript(entries.file) as stream:
        end = entries.size if before is None else before.offset
        rows = list(
            _take_rows(
                _find_records_with_content(entries, read_lines_backwards(stream, end)),
                max_records + 1,
            )
        )
        return PassagePage(
            _read_passages(rows[:max_records][::-1], entries, names, stream),
            has_earlier_records=len(rows) > max_records,
        )


def read_passages_around(
    entries: RecordLines, names: TranscriptNames, entry: RecordLine, max_before: int, max_after: int
) -> tuple[list[Passage], list[Passage]]:
    """Return up to ``max_before`` records before a line and up to ``max_after`` records after it.

    Only records with content are returned. Records that the client added are also returned, but do
    not count towards these limits.
    """
    with open_transcript(entries.file) as stream:
        backwards = zip(read_lines_backwards(stream, entry.offset), count(entry.number - 1, -1))
        rows = _find_records_with_content(
            entries, (line._replace(number=number) for line, number in backwards)
        )
        earlier_rows = list(_take_rows(rows, max_before, is_uncounted=is_added_by_client))[::-1]
        end = entry.offset + entry.length
        stream.seek(end)
        later_rows = list(
            _take_rows(
                _find_records_with_content(entries, read_lines(stream, end, entry.number + 1)),
                max_after,
                is_uncounted=is_added_by_client,
            )
        )
        return _read_passages(earlier_rows, entries, names, stream), _read_passages(
            later_rows, entries, names, stream
        )


def _read_passages(
    rows: list[RecordWithLine], entries: RecordLines, names: TranscriptNames, stream: BinaryIO
) -> list[Passage]:
    """Return records as passages.

    If a record contains a result, the result's call is searched for in these records and in earlier
    records.
    """
    calls_in_rows: dict[str, ToolCall] = {}
    answered_ids: list[str] = []
    for _, record in rows:
        calls_in_rows |= tool_calls_of_record(record)
        answered_ids += records.list_answered_call_ids(record)
    missing_ids = [call for call in answered_ids if call not in calls_in_rows]
    calls = calls_in_rows | (
        find_calls_before(stream, rows[0][0].offset, missing_ids) if missing_ids else {}
    )
    file = PassageFile(names, subagent_name(entries.file) is not None)
    passages = []
    for entry, record in rows:
        passages.append(make_passage(record, entry, file, calls))
    return passages


def _find_records_with_content(
    entries: RecordLines, lines: Iterable[Line]
) -> Iterator[RecordWithLine]:
    for line in lines:
        record = records.parse_record(line.body)
        if record is not None and has_content(record):
            yield (
                RecordLine(
                    entries.session_id, entries.file, line.number, line.offset, len(line.raw)
                ),
                record,
            )


def _take_rows(
    rows: Iterator[RecordWithLine],
    max_records: int,
    is_uncounted: Callable[[Record], bool] = lambda _: False,
) -> Iterator[RecordWithLine]:
    while max_records > 0 and (row := next(rows, None)):
        max_records -= not is_uncounted(row[1])
        yield row


SHELL_TOOLS = frozenset({"Bash", "PowerShell"})  # The tools that run shell commands.

_EXIT_CODE_PATTERN = re.compile(r"(?:Error: )?Exit code ([0-9]{1,3})\b")


class RecordRow(NamedTuple):
    """A record with content: its line number, position in the file and turn.

    ``offset`` and ``byte_count`` are numbers of bytes. ``is_failure`` means that the record reports
    a failure.
    """

    line_number: int
    offset: int
    byte_count: int
    turn_number: int
    is_failure: bool


class ShellCall(NamedTuple):
    """A shell command of a transcript.

    ``state`` is ok, failed, interrupted, rejected, background or unanswered. ``exit_code`` is None
    if the client did not record it. ``result_line_number`` is -1 if there is no result.
    """

    line_number: int
    turn_number: int
    timestamp: str
    command: str
    state: str = "unanswered"
    exit_code: int | None = None
    result_line_number: int = -1


class TurnReader:
    """Scans a transcript and finds its records by turn.

    ``rows`` are the records with content, ``turn_count`` is the number of turns, and ``byte_count``
    is the number of bytes that were read. ``extra_observers`` are additional observers for the scan.
    """

    def __init__(
        self, session: SessionFile, extra_observers: Sequence[RecordObserver] = ()
    ) -> None:
        self.session = session
        self.is_subagent = subagent_name(session.path) is not None
        self.rows: list[RecordRow] = []
        self.turn_count = 0
        self._commands: dict[str, ShellCall] = {}
        self._rows_by_call: dict[str, RecordRow] = {}
        self.byte_count = scan_transcript(session.file, observers=[self, *extra_observers]).size

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Process one record."""
        if node is not None and node.is_copied:
            return
        self.turn_count += opens_turn(record, is_subagent=self.is_subagent)
        if not has_content(record):
            return
        row = RecordRow(
            line.number, line.offset, len(line.raw), self.turn_count, is_failure(record)
        )
        self.rows.append(row)
        for block in (
            records.list_blocks(record)
            if node is None or node.call_ids or node.answered_call_ids
            else ()
        ):
            if block.get("type") == records.CALL:
                call = get_string(block, "id")
                self._rows_by_call[call] = row
                if get_string(block, "name") in SHELL_TOOLS and isinstance(
                    block.get("input"), dict
                ):
                    timestamp, command = (
                        get_string(record, "timestamp"),
                        get_string(block["input"], "command"),
                    )
                    self._commands[call or str(row.line_number)] = ShellCall(
                        row.line_number, row.turn_number, timestamp, command
                    )
            elif block.get("type") == records.RESULT:
                call = get_string(block, "tool_use_id")
                if call in self._commands:
                    state, code = _find_command_outcome(record, block)
                    answered_command = self._commands[call]._replace(
                        state=state, exit_code=code, result_line_number=row.line_number
                    )
                    self._commands[call] = answered_command

    def list_commands_of_turns(self, requested_turns: TurnRange | None = None) -> list[ShellCall]:
        """Return the shell commands of the requested turns, in the order of their calls.

        If ``requested_turns`` is None, return those of all turns.
        """
        turn_range = self._find_turn_numbers(requested_turns)
        commands = []
        for command in self._commands.values():
            if command.turn_number in turn_range:
                commands.append(command)
        return commands

    def list_rows_of_turns(
        self, requested_turns: TurnRange | None = None, *, only_failures: bool = False
    ) -> list[RecordRow]:
        """Return the records of the requested turns, or of all turns.

        If ``only_failures`` is True, return only the records that report failures.
        """
        turn_range = self._find_turn_numbers(requested_turns)
        rows = []
        for row in self.rows:
            if row.turn_number in turn_range and (row.is_failure or not only_failures):
                rows.append(row)
        return rows

    def _find_turn_numbers(self, requested_turns: TurnRange | None) -> range:
        if requested_turns:
            return requested_turns.list_turn_numbers(self.turn_count)
        return range(self.turn_count + 1)

    def locate_row(self, row: RecordRow) -> RecordLine:
        """Return the position in the file of a record that was found in the scan."""
        shared_file = self.session.file if isinstance(self.session.file, SharedFile) else None
        return RecordLine(
            self.session.session_id,
            self.session.path,
            row.line_number,
            row.offset,
            row.byte_count,
            shared_file,
        )

    def read_passages_of_rows(
        self, rows: Iterable[RecordRow], names: TranscriptNames
    ) -> list[Passage]:
        """Return records as passages, with their texts read from the file.

        Raises SessionNotFound if the file has changed since the scan.
        """
        rows_with_records = (
            (row, self.locate_row(row), self.locate_row(row).parse_record()) for row in rows
        )
        file = PassageFile(names, self.is_subagent)
        return [
            make_passage(record, entry, file, self.find_calls(record), row.turn_number)
            for row, entry, record in rows_with_records
            if record is not None
        ]

    def find_calls(self, record: Record) -> dict[str, ToolCall]:
        """Return the calls whose results a record contains, by the calls' ids."""
        rows = dict.fromkeys(
            self._rows_by_call[call]
            for call in records.list_answered_call_ids(record)
            if call in self._rows_by_call
        )
        calls: dict[str, ToolCall] = {}
        for row in rows:
            calls.update(tool_calls_of_record(self.locate_row(row).parse_record() or {}))
        return calls

    def line_numbers_of_calls(self, record: Record) -> list[int]:
        """Return the line numbers of the calls whose results a record contains."""
        lines = (
            self._rows_by_call[call].line_number
            for call in records.list_answered_call_ids(record)
            if call in self._rows_by_call
        )
        return list(dict.fromkeys(lines))


def _find_command_outcome(record: Record, block: Record) -> tuple[str, int | None]:
    """Return the state and the exit code of a command from the record of its result.

    If the record contains no failure, the command succeeded.
    """
    details = records.tool_details(record)
    if not records.is_error(block):
        if details.get("backgroundTaskId"):
            return "background", None
        return ("interrupted" if details.get("interrupted") is True else "ok"), None
    text = records.result_text(block).lstrip()
    if text.startswith(records.REJECTION_BEGINNING):
        return "rejected", None
    exit_match = _EXIT_CODE_PATTERN.match(text)
    return "failed", int(exit_match.group(1)) if exit_match else None
