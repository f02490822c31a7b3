"""Records one after the other, without turns: those around one, and pages from the end of a file to its start.

What is read grows with what is shown, not with the file, and nothing that is appended changes the page before a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import BinaryIO, NamedTuple

from resume_hooks.reading.passages import Passage, PassageFile, is_added, passage, says
from resume_hooks.reading.render import calls_before
from resume_hooks.sessions.record_references import RecordLine, RecordLines, TranscriptNames
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line, lines_before, open_transcript, read_lines
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.trimmable_pieces import ToolCall, calls_in

Row = tuple[RecordLine, Record]


class PassagePage(NamedTuple):
    """A page of a transcript, oldest first, its records not counted; ``more``: there is something before it."""

    passages: list[Passage]
    more: bool


def page(entries: RecordLines, names: TranscriptNames, before: RecordLine | None, limit: int) -> PassagePage:
    """The last ``limit`` records that say something before a line; None: before the end.

    A last line that is still being written is no record yet. SessionNotFound if the file gets shorter meanwhile.
    """
    with open_transcript(entries.file) as stream:
        end = entries.size if before is None else before.offset
        found = list(_take(_saying(entries, lines_before(stream, end)), limit + 1))
        return PassagePage(_read(found[:limit][::-1], entries, names, stream), more=len(found) > limit)


def around(
    entries: RecordLines, names: TranscriptNames, entry: RecordLine, before: int, after: int
) -> tuple[list[Passage], list[Passage]]:
    """The ``before`` and ``after`` records that say something around a line, itself in neither.

    What the client added between them comes along uncounted.
    """
    with open_transcript(entries.file) as stream:
        backwards = zip(lines_before(stream, entry.offset), count(entry.number - 1, -1))
        rows = _saying(entries, (line._replace(number=number) for line, number in backwards))
        earlier = list(_take(rows, before, uncounted=is_added))[::-1]
        end = entry.offset + entry.length
        stream.seek(end)
        later = list(_take(_saying(entries, read_lines(stream, end, entry.number + 1)), after, uncounted=is_added))
        return _read(earlier, entries, names, stream), _read(later, entries, names, stream)


def _read(rows: list[Row], entries: RecordLines, names: TranscriptNames, stream: BinaryIO) -> list[Passage]:
    """Records as passages, the calls that they answer looked up among them and before them."""
    calls = _calls(rows, stream)
    file = PassageFile(names, subagent_name(entries.file) is not None)
    return [passage(record, entry, file, calls) for entry, record in rows]


def _saying(entries: RecordLines, lines: Iterable[Line]) -> Iterator[Row]:
    for line in lines:
        record = records.parse(line.body)
        if record is not None and says(record):
            yield RecordLine(entries.session_id, entries.file, line.number, line.offset, len(line.raw)), record


def _take(found: Iterator[Row], limit: int, uncounted: Callable[[Record], bool] = lambda _: False) -> Iterator[Row]:
    while limit > 0 and (row := next(found, None)):
        limit -= not uncounted(row[1])
        yield row


def _calls(rows: list[Row], stream: BinaryIO) -> dict[str, ToolCall]:
    made: dict[str, ToolCall] = {}
    answered: list[str] = []
    for _, record in rows:
        made |= calls_in(record)
        answered += records.answered_calls(record)
    wanted = [call for call in answered if call not in made]
    return made | (calls_before(stream, rows[0][0].offset, wanted) if wanted else {})
