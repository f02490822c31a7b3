"""Passages: records as text for a model, each with its reference, speaker, and content.

A call is one line, and the client's own additions are only mentioned. Each record is one passage.
Records around a record, and pages from the end of a file, are read without turn numbers: the cost
depends on the output and not on the file, and appended lines do not change the page before a
record. Turns, errors and commands need one scan: an observer collects the position of each record
and the calls, and texts are read from disk when needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import BinaryIO, NamedTuple

from resume_hooks.clock import format_minute
from resume_hooks.reading.char_budget import WHOLE, TextPiece, cut_middle, indent_text
from resume_hooks.reading.render import (
    Rendering,
    block_text,
    calls_before,
    fields_text,
    rendering_of,
    text_of,
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
from resume_hooks.transcripts.attachments import QUEUED, kind_of
from resume_hooks.transcripts.lines import Line, OneOpen, lines_before, open_transcript, read_lines
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record, string
from resume_hooks.transcripts.transcript import Observer, scan
from resume_hooks.transcripts.trimmable_pieces import ToolCall, calls_in
from resume_hooks.transcripts.turns import Turns, opens_turn

TARGET = 200  # characters of a call's subject
# characters of further input that do not justify a notice, such as a command's description
SLIGHT = 60
# kinds that occur only in plain exports
EXPORTED = frozenset({"tool", records.RESULT, records.CALL})

UNSAID = frozenset(
    {"date_change", "prompt_snapshot", "task_reminder", "todo_reminder", "total_tokens_reminder"}
)
"""Attachments that come with many calls and say nothing about the work."""

_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"

Row = tuple[RecordLine, Record]


class Passage(NamedTuple):
    """A record as text. ``turn`` is -1 if turns were not counted, ``speaker`` describes the author.

    ``voice`` means that the user or the model speaks, ``added`` that the client added the record by
    itself. ``text`` only mentions inputs of calls and the client's additions.
    """

    entry: RecordLine
    turn: int
    uuid: str
    timestamp: str
    shown: Rendering
    speaker: str
    text: str
    voice: bool
    failed: bool
    added: bool

    @property
    def word(self) -> str:
        """The record's name within its session: its line, or its uuid and offset if lines were not counted.

        The uuid survives a rewrite of the file. The offset finds the record at once, and
        distinguishes records with the same uuid.
        """
        if self.entry.number >= 0:
            return self.entry.word
        return RecordOffset(self.entry.offset, self.uuid if is_record_id(self.uuid) else "").word

    @property
    def characters(self) -> int:
        """The number of characters of the whole text, of which ``text`` may be a part."""
        return len(self.shown.text)

    def piece(
        self, names: TranscriptNames, limit: int = 0, *, with_turn: bool = False
    ) -> TextPiece:
        """Return the passage for an answer of ``limit`` characters (0: no limit)."""
        reference = names.reference(self.entry.word)
        if with_turn and self.turn >= 0:
            turn = f"turn {self.turn}"
        else:
            turn = ""
        facts = [reference, format_minute(self.timestamp)[5:], turn, self.speaker]
        head = collapse_line(plain_line(" · ".join(fact for fact in facts if fact)), TARGET + 120)
        text, missing = cut_middle(self.text, limit)
        command = whole_command(reference, self.characters)
        return TextPiece(head, indent_text(plain_text(text)), command, self.voice, missing)


def whole_command(reference: str, characters: int = 0) -> str:
    """Return the command that prints a record, with the option for long records if ``characters`` requires it."""
    return shell_command(f"read {reference}{' --max-chars 0' if characters > WHOLE else ''}")


def says_something(record: Record) -> bool:
    """Check whether a record has content. Bookkeeping and empty thinking do not count."""
    kind = records.kind(record)
    if kind == records.ATTACHMENT:
        return kind_of(record) not in UNSAID
    if kind == records.SYSTEM:
        return (
            bool(string(record, "content").strip())
            or string(record, "subtype") == records.API_ERROR
        )
    if kind == records.PROGRESS or not records.message(record):
        return False
    if kind not in records.CHAIN_KINDS:
        return kind in EXPORTED
    return any(_block_says_something(block) for block in records.blocks(record))


def is_added(record: Record) -> bool:
    """Check whether the client added a record by itself: listings, reminders, hook output."""
    return records.kind(record) == records.ATTACHMENT and kind_of(record) != QUEUED


def _block_says_something(block: Record) -> bool:
    kind = string(block, "type")
    return kind not in {records.TEXT, records.THINKING} or bool(string(block, kind).strip())


class PassageFile(NamedTuple):
    """The file of a passage: its names, and whether it is a sub-agent's."""

    names: TranscriptNames
    subagent: bool = False


def passage(
    record: Record,
    entry: RecordLine,
    file: PassageFile,
    calls: Mapping[str, ToolCall],
    turn: int = -1,
) -> Passage:
    """Return a record as a passage. ``calls`` are the calls whose results it may contain."""
    names, subagent = file
    shown = rendering_of(record, calls)
    prompt = opens_turn(record, subagent=subagent)
    speaker = _speaker_of(record, shown, prompt=prompt, subagent=subagent)
    text = _brief_text(record, names.reference(entry.word), calls, len(shown.text))
    aside = record.get("isSidechain") and not subagent
    voice = prompt or (
        records.kind(record) == records.ASSISTANT
        and bool(records.text(record).strip())
        and not aside
    )
    uuid, time = string(record, "uuid"), string(record, "timestamp")
    return Passage(
        entry,
        turn,
        uuid,
        time,
        shown,
        speaker,
        text,
        bool(voice),
        is_failure(record),
        is_added(record),
    )


def _speaker_of(record: Record, shown: Rendering, *, prompt: bool, subagent: bool) -> str:
    kind = shown.kind
    who = kind
    if kind == records.ATTACHMENT:
        who = f"attachment {kind_of(record)}".rstrip()
    elif kind == records.SYSTEM:
        who = f"system {string(record, 'subtype')}".rstrip()
    elif kind == records.RESULT or records.results(record):
        state = "failed result" if failed_in(record) else "result"
        if shown.tool:
            who = f"{state} of {shown.tool} {collapse_line(shown.target, TARGET)}".rstrip()
        else:
            who = state
    elif kind == records.ASSISTANT and record.get("isApiErrorMessage"):
        who = "assistant, API error"
    elif kind == records.USER and not prompt:
        if record.get("isCompactSummary"):
            who = "user, summary of a compaction"
        else:
            who = "user, not a prompt"
    if record.get("isSidechain") and not subagent:
        who = f"sub-agent's {who}"
    return who


def failed_in(record: Record) -> list[str]:
    """Return the ids of calls with an error result in a record.

    The id is ``""`` in a plain export.
    """
    if records.kind(record) == records.RESULT:
        if records.is_error(record) or records.is_error(records.message(record)):
            return [""]
        return []
    if records.kind(record) == records.USER:
        answers = records.results(record)
    else:
        answers = []
    return [records.call_id(block) for block in answers if records.is_error(block)]


def is_failure(record: Record) -> bool:
    """Check whether a record reports a failure of a tool or of the API."""
    api = records.kind(record) == records.SYSTEM and string(record, "subtype") == records.API_ERROR
    return api or record.get("isApiErrorMessage") is True or bool(failed_in(record))


def _brief_text(
    record: Record, reference: str, calls: Mapping[str, ToolCall], characters: int
) -> str:
    """Return a record's text, with each call as one line and without the client's additions."""
    kind = records.kind(record)
    if is_added(record):
        return (
            f"[{format_count(characters, 'character')} that the client added: "
            f"{whole_command(reference, characters)}]"
        )
    if kind == records.ASSISTANT:
        own = calls_in(record)
        blocks = (_call_line(block, own, reference) if block.get("type") == records.CALL else block_text(block)
                  for block in records.blocks(record) if _block_says_something(block))  # fmt: skip
        return "\n".join(blocks)
    said = text_of(record, calls)
    return without_reminders(
        said.removeprefix("[error]\n") if failed_in(record) else said, reference
    )


def _call_line(block: Record, own: Mapping[str, ToolCall], reference: str) -> str:
    call = own.get(string(block, "id"))
    about = call.target if call else ""
    shown = collapse_line(plain_line(about or fields_text(records.mapping(block, "input"))), TARGET)
    left = sum(map(len, records.strings(block.get("input")))) - len(shown)
    if left > SLIGHT:
        rest = f" (… {left:,} more characters of input: {whole_command(reference)})"
    else:
        rest = ""
    return f"→ {plain_line(string(block, 'name'))} {shown}".rstrip() + rest


def without_reminders(text: str, reference: str = "") -> str:
    """Return ``text`` without reminders. If ``reference`` is given, a note replaces each of them.

    The text is searched only once.
    """
    parts = []
    place = 0
    while (start := text.find(_REMINDER, place)) >= 0:
        end = text.find(_REMINDER_END, start)
        if end < 0:
            break
        end += len(_REMINDER_END)
        parts.append(text[place:start])
        if reference:
            parts.append(
                f"[{end - start:,} characters of a reminder by the client: "
                f"{whole_command(reference)}]"
            )
        place = end
    return "".join([*parts, text[place:]])


class PassagePage(NamedTuple):
    """A page of a transcript, oldest record first, without turn numbers.

    ``more`` means that there are earlier records.
    """

    passages: list[Passage]
    more: bool


def page(
    entries: RecordLines, names: TranscriptNames, before: RecordLine | None, limit: int
) -> PassagePage:
    """Return the last ``limit`` whole records with content before a line, or before the end if None.

    Raises SessionNotFound.
    """
    with open_transcript(entries.file) as stream:
        end = entries.size if before is None else before.offset
        found = list(_take_rows(_saying(entries, lines_before(stream, end)), limit + 1))
        return PassagePage(
            _read_passages(found[:limit][::-1], entries, names, stream), more=len(found) > limit
        )


def around(
    entries: RecordLines, names: TranscriptNames, entry: RecordLine, before: int, after: int
) -> tuple[list[Passage], list[Passage]]:
    """Return the ``before`` and ``after`` records with content around a line.

    The client's additions do not count.
    """
    with open_transcript(entries.file) as stream:
        backwards = zip(lines_before(stream, entry.offset), count(entry.number - 1, -1))
        rows = _saying(entries, (line._replace(number=number) for line, number in backwards))
        earlier = list(_take_rows(rows, before, uncounted=is_added))[::-1]
        end = entry.offset + entry.length
        stream.seek(end)
        later = list(
            _take_rows(
                _saying(entries, read_lines(stream, end, entry.number + 1)),
                after,
                uncounted=is_added,
            )
        )
        return _read_passages(earlier, entries, names, stream), _read_passages(
            later, entries, names, stream
        )


def _read_passages(
    rows: list[Row], entries: RecordLines, names: TranscriptNames, stream: BinaryIO
) -> list[Passage]:
    """Return records as passages. Their calls are searched in these records and before them."""
    made: dict[str, ToolCall] = {}
    answered: list[str] = []
    for _, record in rows:
        made |= calls_in(record)
        answered += records.answered_calls(record)
    wanted = [call for call in answered if call not in made]
    calls = made | (calls_before(stream, rows[0][0].offset, wanted) if wanted else {})
    file = PassageFile(names, subagent_name(entries.file) is not None)
    passages = []
    for entry, record in rows:
        passages.append(passage(record, entry, file, calls))
    return passages


def _saying(entries: RecordLines, lines: Iterable[Line]) -> Iterator[Row]:
    for line in lines:
        record = records.parse(line.body)
        if record is not None and says_something(record):
            yield (
                RecordLine(
                    entries.session_id, entries.file, line.number, line.offset, len(line.raw)
                ),
                record,
            )


def _take_rows(
    found: Iterator[Row], limit: int, uncounted: Callable[[Record], bool] = lambda _: False
) -> Iterator[Row]:
    while limit > 0 and (row := next(found, None)):
        limit -= not uncounted(row[1])
        yield row


SHELLS = frozenset({"Bash", "PowerShell"})  # tools whose calls are shell commands

_EXIT = re.compile(r"(?:Error: )?Exit code ([0-9]{1,3})\b")


class RecordRow(NamedTuple):
    """A record with content, its turn, and whether it reports a failure."""

    number: int
    offset: int
    length: int
    turn: int
    failed: bool


class ShellCall(NamedTuple):
    """A shell command. ``state`` is ok, failed, interrupted, rejected, background or unanswered.

    ``code`` is the exit code if the client recorded it. ``answer`` is the line of the result, or
    -1.
    """

    number: int
    turn: int
    timestamp: str
    command: str
    state: str = "unanswered"
    code: int | None = None
    answer: int = -1


class TurnReader:
    """Scans a transcript for its ``rows``, ``turns`` and ``size`` in bytes.

    ``watching`` are additional observers.
    """

    def __init__(self, session: SessionFile, watching: Sequence[Observer] = ()) -> None:
        self.session = session
        self.subagent = subagent_name(session.path) is not None
        self.rows: list[RecordRow] = []
        self.turns = 0
        self._commands: dict[str, ShellCall] = {}
        self._calling: dict[str, RecordRow] = {}
        self.size = scan(session.file, observers=[self, *watching]).size

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Process one record."""
        if node is not None and node.copied:
            return
        self.turns += opens_turn(record, subagent=self.subagent)
        if not says_something(record):
            return
        row = RecordRow(line.number, line.offset, len(line.raw), self.turns, is_failure(record))
        self.rows.append(row)
        for block in records.blocks(record) if node is None or node.calls or node.results else ():
            if block.get("type") == records.CALL:
                call = string(block, "id")
                self._calling[call] = row
                if string(block, "name") in SHELLS and isinstance(block.get("input"), dict):
                    at, words = string(record, "timestamp"), string(block["input"], "command")
                    self._commands[call or str(row.number)] = ShellCall(
                        row.number, row.turn, at, words
                    )
            elif block.get("type") == records.RESULT:
                call = string(block, "tool_use_id")
                if call in self._commands:
                    state, code = _outcome_of_command(record, block)
                    done = self._commands[call]._replace(state=state, code=code, answer=row.number)
                    self._commands[call] = done

    def commands_of_turns(self, asked: Turns | None = None) -> list[ShellCall]:
        """Return the shell commands in the order of their calls, optionally only those of the turns ``asked`` for."""
        within = self._lines_of_turns(asked)
        turns = []
        for command in self._commands.values():
            if command.turn in within:
                turns.append(command)
        return turns

    def rows_of_turns(self, asked: Turns | None = None, *, failed: bool = False) -> list[RecordRow]:
        """Return the records of the turns ``asked`` for, or only the failures among them."""
        within = self._lines_of_turns(asked)
        turns = []
        for row in self.rows:
            if row.turn in within and (row.failed or not failed):
                turns.append(row)
        return turns

    def _lines_of_turns(self, asked: Turns | None) -> range:
        if asked:
            return asked.within(self.turns)
        return range(self.turns + 1)

    def entry_of_row(self, row: RecordRow) -> RecordLine:
        """Return a record's position in the file."""
        opened = self.session.file if isinstance(self.session.file, OneOpen) else None
        return RecordLine(
            self.session.session_id,
            self.session.path,
            row.number,
            row.offset,
            row.length,
            opened,
        )

    def passages_of_rows(self, rows: Iterable[RecordRow], names: TranscriptNames) -> list[Passage]:
        """Read records from disk as passages.

        Raises SessionNotFound if the file changed meanwhile.
        """
        found = ((row, self.entry_of_row(row), self.entry_of_row(row).record()) for row in rows)
        file = PassageFile(names, self.subagent)
        return [
            passage(record, entry, file, self.calls_of(record), row.turn)
            for row, entry, record in found
            if record is not None
        ]

    def calls_of(self, record: Record) -> dict[str, ToolCall]:
        """Return the calls whose results are in a record, by id."""
        rows = dict.fromkeys(
            self._calling[call] for call in records.answered_calls(record) if call in self._calling
        )
        found: dict[str, ToolCall] = {}
        for row in rows:
            found.update(calls_in(self.entry_of_row(row).record() or {}))
        return found

    def lines_of_calls(self, record: Record) -> list[int]:
        """Return the lines of the calls whose results are in a record."""
        found = (
            self._calling[call].number
            for call in records.answered_calls(record)
            if call in self._calling
        )
        return list(dict.fromkeys(found))


def _outcome_of_command(record: Record, block: Record) -> tuple[str, int | None]:
    """Return a command's outcome from the client's record.

    A command without a recorded failure succeeded.
    """
    details = records.tool_details(record)
    if not records.is_error(block):
        if details.get("backgroundTaskId"):
            return "background", None
        return ("interrupted" if details.get("interrupted") is True else "ok"), None
    text = records.result_text(block).lstrip()
    if text.startswith(records.REJECTION):
        return "rejected", None
    code = _EXIT.match(text)
    return "failed", int(code.group(1)) if code else None
