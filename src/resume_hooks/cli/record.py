"""One record as an answer: its text from a place on, its documented form, or the line of the file as it is."""

from __future__ import annotations

import sys
from typing import Any

from resume_hooks.cli.output import emit
from resume_hooks.clock import minute
from resume_hooks.derive.originals import OriginalRecord, is_marked
from resume_hooks.errors import OutputFailed, ResumeHooksError
from resume_hooks.reading.outline_text import marker
from resume_hooks.reading.render import Rendering, render
from resume_hooks.sessions.references import RecordLine, shortened
from resume_hooks.sessions.transcript_files import title_of
from resume_hooks.system.text import counted, one_line, plain_line
from resume_hooks.transcripts.head_tail import TITLE_LENGTH
from resume_hooks.transcripts.records import Record, string

PARTLY = "part of this record was trimmed before, and that original is gone"


def print_record(found: OriginalRecord, limit: int, skip: int, *, as_json: bool) -> None:
    """Print what a record says, of trimmed content the original; ``limit`` characters of it after ``skip``, 0 for all.

    ResumeHooksError for a line that holds no record.
    """
    record = record_in(found.original)
    shown = render(record, found.original)
    rest = shown.text[skip:]
    kept = rest[:limit] if limit else rest
    data = _data(found, shown, kept, record)
    notice = [*_left_out(len(shown.text), skip, len(kept)), *([PARTLY] if is_marked(record) else [])]
    emit("read", data, lambda: _text(found, shown, data, notice), as_json=as_json, warnings=notice if as_json else [])


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
        "session_file": original.file,
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
    """What a shortened text has to say: how much is missing, how to go on, how to get all."""
    if kept == whole:
        return []
    on = f"--skip {skip + kept} goes on, " if skip + kept < whole else ""
    return [f"{whole - kept:,} of {counted(whole, 'character')} left out; {on}--max-chars 0 prints all"]
