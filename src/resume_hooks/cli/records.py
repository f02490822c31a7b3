"""One or several records of a transcript as an answer: text within a character budget, rows for programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from resume_hooks.cli.verbs.reading import ReadOptions
from resume_hooks.cli.with_fields import With
from resume_hooks.clock import minute
from resume_hooks.derive.originals import OriginalRecord, is_marked
from resume_hooks.errors import OutputFailed, ResumeHooksError
from resume_hooks.paths import Where
from resume_hooks.reading.char_budget import Gap, TextPiece, fit, fit_ends, shares
from resume_hooks.reading.outline import marker, span_text
from resume_hooks.reading.passages import Passage, ShellCall, TurnReader, whole_command
from resume_hooks.reading.render import Rendering, render
from resume_hooks.sessions.agents.registry import original as place_of_original
from resume_hooks.sessions.record_references import RecordLine, TranscriptNames, shortened
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import title_of
from resume_hooks.system.invocation import typed
from resume_hooks.system.text import counted, one_line, plain_line
from resume_hooks.transcripts.head_tail import TITLE_LENGTH
from resume_hooks.transcripts.records import Record, string

COMMAND_WIDTHS = (400, 200, 100, 60)  # characters of a command; the first width at which all of them fit is taken


def passages_text(about: str, passages: Sequence[Passage], names: TranscriptNames, limit: int, gap: Gap) -> str:
    """Passages in at most ``limit`` characters with the last line feed; ``about`` says what they are."""
    runs: list[list[Passage]] = []  # one by one, but what the client added in a row together
    for one in passages:
        if one.added and runs and runs[-1][0].added and runs[-1][0].turn == one.turn:
            runs[-1].append(one)
        else:
            runs.append([one])
    pieces = [
        _added(run, names)
        if run[0].added
        else run[0].piece(names, limit, with_turn=before is None or before.turn != run[0].turn)
        for before, run in zip([None, *(run[-1] for run in runs)], runs, strict=False)
    ]

    def gap_of_runs(first: int, last: int) -> str:
        start = sum(len(run) for run in runs[:first])
        return gap(start, start + sum(len(run) for run in runs[first : last + 1]) - 1)

    return fit(marker("read", about), pieces, limit, gap_of_runs)


def _added(run: Sequence[Passage], names: TranscriptNames) -> TextPiece:
    reference = names.reference(run[0].entry.word)
    kinds = ", ".join(dict.fromkeys(one.speaker.removeprefix("attachment ") for one in run))
    size = sum(one.characters for one in run)
    last = f" to {run[-1].entry.word}" if len(run) > 1 else ""
    words = one_line(plain_line(f"added by the client: {kinds}"), 160)
    command = whole_command(reference, run[0].characters)
    return TextPiece(f"{reference}{last} · {words} · {counted(size, 'character')}: {command}", "", command, voice=False)


def records_gap(passages: Sequence[Passage], names: TranscriptNames) -> Gap:
    """What a gap says: whole turns are got by their numbers, records by the first of them."""

    def gap(first: int, last: int) -> str:
        count = last - first + 1
        starts = first == 0 or passages[first - 1].turn != passages[first].turn
        ends = last + 1 == len(passages) or passages[last + 1].turn != passages[last].turn
        if starts and ends and passages[first].turn >= 0 and passages[first].turn != passages[last].turn:
            span = span_text(passages[first].turn, passages[last].turn)
            return f"… {count:,} records left out, turns {span}: {typed(f'read {names.word} --turns {span}')}"
        reference = names.reference(passages[first].entry.word)
        more = sum(not one.added for one in passages[first + 1 : last + 1])
        after = f" --after {more}" if more else ""
        return f"… {counted(count, 'record')} left out: {typed(f'read {reference}{after}')}"

    return gap


def errors_gap(passages: Sequence[Passage], names: TranscriptNames) -> Gap:
    """What a gap among errors says."""

    def gap(first: int, last: int) -> str:
        span = span_text(passages[first].turn, passages[last].turn)
        command = typed(f"read {names.word} --errors --turns {span}")
        return f"… {counted(last - first + 1, 'error')} left out: {command}"

    return gap


def passage_rows(passages: Sequence[Passage], names: TranscriptNames, limit: int) -> list[With]:
    """Passages in their documented form; their texts are ``limit`` characters in all at most, 0 for no limit."""
    sizes = [len(one.text) for one in passages]
    rooms = shares(sizes, [1] * len(sizes), limit) if limit else sizes
    return [
        With(one, {"reference": f"{names.full}:{one.word}", "calls": [], "text": one.text[:room]})
        for one, room in zip(passages, rooms, strict=True)
    ]


def passages_data(session: SessionFile, rows: list[With], turn_count: int | None) -> dict[str, Any]:
    """The documented form of several records."""
    return {**_session(session), "turn_count": turn_count, "records": rows}


def commands_data(reading: TurnReader, commands: Sequence[ShellCall], names: TranscriptNames) -> dict[str, Any]:
    """The documented form of the commands of a session."""
    rows = [
        With(
            one,
            {
                "reference": f"{names.full}:{one.number}",
                "result": f"{names.full}:{one.answer}" if one.answer >= 0 else None,
                "exit_code": one.code,
            },
        )
        for one in commands
    ]
    return {**_session(reading.session), "turn_count": reading.turns, "commands": rows}


def commands_text(about: str, commands: Sequence[ShellCall], names: TranscriptNames, limit: int) -> str:
    """A line a command; too many are shortened first, and then the ones in the middle are left out."""
    lines: list[str] = []
    for width in COMMAND_WIDTHS:
        lines = [_command(one, names, width) for one in commands]
        if not limit or sum(len(line) + 1 for line in lines) < limit - 300:
            break

    def gap(first: int, last: int) -> str:
        span = span_text(commands[first].turn, commands[last].turn)
        command = typed(f"read {names.word} --commands --turns {span} --max-chars 0")
        return f"… {counted(last - first + 1, 'command')} left out: {command}"

    return fit_ends(marker("read", about), lines, limit, gap)


def _command(one: ShellCall, names: TranscriptNames, width: int) -> str:
    state = f"{one.state}, exit code {one.code}" if one.code is not None else one.state
    words = one_line(plain_line(one.command), width)
    # The answer tells what a command said; its call is a line or so above it.
    reference = names.reference(one.answer if one.answer >= 0 else one.number)
    return " · ".join([reference, f"turn {one.turn}", minute(one.timestamp)[5:], state, words])


def _session(session: SessionFile) -> dict[str, Any]:
    file = place_of_original(session.path, Where())
    return {"session_id": session.session_id, "session_file": file, "title": title_of(session.path)}


PARTLY = "part of this record was trimmed before, and that original is gone"


def print_record(found: OriginalRecord, options: ReadOptions) -> None:
    """Print ``max_chars`` of a record's text after ``skip``, trimmed contents as they were. ResumeHooksError."""
    limit, skip = options.max_chars, options.skip
    record = record_in(found.original)
    shown = render(record, found.original)
    rest = shown.text[skip:]
    kept = rest[:limit] if limit else rest
    data = _data(found, shown, kept, record)
    notice = [*_left_out(len(shown.text), skip, len(kept)), *([PARTLY] if is_marked(record) else [])]
    options.emit(data, lambda: _text(found, shown, data, notice), notice if options.as_json else ())


def record_in(entry: RecordLine) -> Record:
    """The record in a line. ResumeHooksError where it holds none."""
    record = entry.record()
    if record is None:
        raise ResumeHooksError(f"Line {entry.number} of {entry.file} holds no record", "See --raw.")
    return record


def print_raw(entry: RecordLine) -> None:
    """Print a line of a file as it is, and nothing else."""
    line = entry.raw()
    try:
        sys.stdout.buffer.write(line)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(f"The record could not be printed: {error.strerror}") from error


def _data(found: OriginalRecord, shown: Rendering, text: str, record: Record) -> dict[str, Any]:
    original = found.original
    return {
        "reference": original.reference,
        "session_id": original.session_id,
        "session_file": place_of_original(original.file, Where()),
        "record": original.number,
        "uuid": string(record, "uuid"),
        "kind": shown.kind,
        "role": shown.role,
        "timestamp": string(record, "timestamp"),
        "tool": shown.tool,
        "truncated": found.asked != original,
        "characters": len(shown.text),
        "text": text,
    }


def _text(found: OriginalRecord, shown: Rendering, data: dict[str, Any], notice: list[str]) -> str:
    """The marker, a line on where the record stands, whose it is, when, and of which tool; then what it says."""
    original = found.original
    facts = (
        title_of(original.file),
        shortened(original.reference),
        " ".join(dict.fromkeys(word for word in (shown.role, shown.kind) if word)),
        minute(data["timestamp"]),
        f"{shown.tool} {shown.target}".strip(),
        f"original of {shortened(found.asked.reference)}" if found.asked != original else "",
    )
    heading = " · ".join(one_line(plain_line(fact), TITLE_LENGTH) for fact in facts if fact)
    first = marker("read", shortened(original.reference))
    return "\n".join([first, heading, "", data["text"], *(f"\n[{sentence}]" for sentence in notice)])


def _left_out(whole: int, skip: int, kept: int) -> list[str]:
    """What a shortened text says: how much is missing, how to read on, how to get all."""
    if kept == whole:
        return []
    on = f"--skip {skip + kept} continues, " if skip + kept < whole else ""
    return [f"{whole - kept:,} of {counted(whole, 'character')} left out; {on}--max-chars 0 prints all"]
