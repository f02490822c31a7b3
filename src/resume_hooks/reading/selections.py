"""What is read of a transcript besides single records: turns, errors, commands. One scan, and then only what was asked.

An observer notes where each record stands and what was called; texts stay on disk until they are wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from resume_hooks.reading.passages import Passage, PassageFile, is_failure, passage, says
from resume_hooks.sessions.record_references import RecordLine, TranscriptNames
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record, string
from resume_hooks.transcripts.transcript import Observer, scan
from resume_hooks.transcripts.trimmable_pieces import ToolCall, calls_in
from resume_hooks.transcripts.turns import Turns, opens_turn

SHELLS = frozenset({"Bash", "PowerShell"})  # tools whose calls are commands of a shell

_EXIT = re.compile(r"(?:Error: )?Exit code ([0-9]{1,3})\b")


class RecordRow(NamedTuple):
    """A record that says something, in which ``turn`` it stands, and whether it tells of a failure."""

    number: int
    offset: int
    length: int
    turn: int
    failed: bool


class ShellCall(NamedTuple):
    """A command of a shell: ``state`` is ok, failed, interrupted, rejected, background or unanswered.

    ``code`` is the exit code where the client wrote it down; ``answer`` the line of the result, -1 for none.
    """

    number: int
    turn: int
    timestamp: str
    command: str
    state: str = "unanswered"
    code: int | None = None
    answer: int = -1


class TurnReader:
    """A transcript as it is read: ``rows`` in the order of the file, how many ``turns`` and bytes (``size``) it has.

    ``watching`` are further observers of the scan.
    """

    def __init__(self, session: SessionFile, watching: Sequence[Observer] = ()) -> None:
        self.session = session
        self.subagent = subagent_name(session.path) is not None
        self.rows: list[RecordRow] = []
        self.turns = 0
        self._commands: dict[str, ShellCall] = {}
        self._calling: dict[str, RecordRow] = {}
        self.size = scan(session.path, observers=[self, *watching]).size

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Take in one record."""
        if node is not None and node.copied:
            return
        self.turns += opens_turn(record, subagent=self.subagent)
        if not says(record):
            return
        row = RecordRow(line.number, line.offset, len(line.raw), self.turns, is_failure(record))
        self.rows.append(row)
        for block in records.blocks(record) if node is None or node.calls or node.results else ():
            if block.get("type") == records.CALL:
                self._take_call(row, record, block)
            elif block.get("type") == records.RESULT:
                self._take_answer(row, record, block)

    def _take_call(self, row: RecordRow, record: Record, block: Record) -> None:
        call = string(block, "id")
        self._calling[call] = row
        if string(block, "name") in SHELLS and isinstance(block.get("input"), dict):
            words = string(block["input"], "command")
            self._commands[call or str(row.number)] = ShellCall(
                row.number, row.turn, string(record, "timestamp"), words
            )

    def _take_answer(self, row: RecordRow, record: Record, block: Record) -> None:
        command = self._commands.get(string(block, "tool_use_id"))
        if command is not None:
            state, code = _outcome(record, block)
            done = command._replace(state=state, code=code, answer=row.number)
            self._commands[string(block, "tool_use_id")] = done

    def commands(self, asked: Turns | None = None) -> list[ShellCall]:
        """The commands of the shell, in the order they were called; of the turns ``asked`` for."""
        within = self._within(asked)
        return [command for command in self._commands.values() if command.turn in within]

    def chosen(self, asked: Turns | None = None, *, failed: bool = False) -> list[RecordRow]:
        """The records of the turns ``asked`` for, all or only failures."""
        within = self._within(asked)
        return [row for row in self.rows if row.turn in within and (row.failed or not failed)]

    def _within(self, asked: Turns | None) -> range:
        return asked.within(self.turns) if asked else range(self.turns + 1)

    def entry(self, row: RecordRow) -> RecordLine:
        """Where a record lies."""
        return RecordLine(self.session.session_id, self.session.path, row.number, row.offset, row.length)

    def passages(self, rows: Iterable[RecordRow], names: TranscriptNames) -> list[Passage]:
        """Records as passages, read from disk. SessionNotFound if the file changed meanwhile."""
        found = ((row, self.entry(row), self.entry(row).record()) for row in rows)
        file = PassageFile(names, self.subagent)
        return [
            passage(record, entry, file, self.calls_of(record), row.turn)
            for row, entry, record in found
            if record is not None
        ]

    def calls_of(self, record: Record) -> dict[str, ToolCall]:
        """The calls that a record answers, by their ids, looked up where they were made."""
        rows = dict.fromkeys(self._calling[call] for call in records.answered_calls(record) if call in self._calling)
        return {call: found for row in rows for call, found in calls_in(self.entry(row).record() or {}).items()}

    def calling(self, record: Record) -> list[int]:
        """The lines of the calls that a record answers."""
        found = (self._calling[call].number for call in records.answered_calls(record) if call in self._calling)
        return list(dict.fromkeys(found))


def _outcome(record: Record, block: Record) -> tuple[str, int | None]:
    """How a command ended, as far as the client tells: a command that it does not call failed was well."""
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
