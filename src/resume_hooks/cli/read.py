"""``read``: one record by its reference, as text; of trimmed content the original."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from resume_hooks.cli.output import current_folder, emit, json_option
from resume_hooks.clock import minute
from resume_hooks.errors import OutputFailed, ResumeHooksError, UsageError
from resume_hooks.glance import TITLE_LENGTH, Glance, one_line
from resume_hooks.originals import Found, is_marked, look_up
from resume_hooks.plain import plain_line
from resume_hooks.records import Record, string
from resume_hooks.reference import Entries, Entry, parse
from resume_hooks.rendering import Rendering, render

PARTLY = "part of this record was trimmed before, and that original is gone"

MAX_CHARACTERS = 20_000
"""Characters that are printed where nothing else is asked for: about 5,000 tokens of a model that reads along."""


@click.command("read")
@click.argument("reference", metavar="REF")
@click.option("--session", metavar="LOCATOR", help="The session, where REF is a line number or a uuid alone.")
@click.option(
    "--max-chars", type=click.IntRange(0), default=MAX_CHARACTERS, show_default=True, help="At most; 0 for all."
)
@click.option("--raw", is_flag=True, help="Print the line of the file as it is.")
@json_option
def command(reference: str, session: str | None, max_chars: int, raw: bool, as_json: bool) -> None:
    """Print one record of a session by its reference REF, <session>:<record>.

    <session> is an id, four or more of its first characters, or the path of a .jsonl; <record> a line number,
    counted from 0, or a uuid. Of a record whose contents were trimmed the original is printed.

    \b
    Examples:
      resume-hooks read 1a2b3c4d:56
      resume-hooks read 1a2b3c4d:56 --max-chars 0
      resume-hooks read 56 --session "Fix the parser" --json
      resume-hooks read 1a2b3c4d:56 --raw > record.json
    """
    if raw and as_json:
        raise UsageError("--raw and --json exclude each other", "Leave one of them out.")
    found = look_up(parse(reference, session), current_folder(), os.environ)
    if raw:
        _print_raw(found.original)
        return
    record = found.original.record()
    if record is None:
        raise ResumeHooksError(f"Line {found.original.number} of {found.original.file} holds no record", "See --raw.")
    shown = render(record, Entries(found.original.file, found.original.session_id))
    kept = shown.text[:max_chars] if max_chars else shown.text
    data = _data(found, shown, kept, record)
    notice = [*_left_out(len(shown.text), len(kept)), *([PARTLY] if is_marked(record) else [])]
    emit("read", data, lambda: _text(found, shown, data, notice), as_json=as_json, warnings=notice if as_json else [])


def _print_raw(entry: Entry) -> None:
    line = entry.raw()
    try:
        sys.stdout.buffer.write(line)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(f"The record could not be printed: {error.strerror}") from error


def _data(found: Found, shown: Rendering, text: str, record: Record) -> dict[str, Any]:
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


def _text(found: Found, shown: Rendering, data: dict[str, Any], notice: list[str]) -> str:
    """One line on where the record stands, whose it is, when, and of which tool; then what it says."""
    original = found.original
    facts = (
        Glance(original.file).title,
        _short(original.reference),
        " ".join(dict.fromkeys(word for word in (shown.role, shown.kind) if word)),
        minute(data["timestamp"]),
        f"{shown.tool} {shown.target}".strip(),
        f"original of {_short(found.asked.reference)}" if found.asked != original else "",
    )
    heading = " · ".join(one_line(plain_line(fact), TITLE_LENGTH) for fact in facts if fact)
    return "\n".join([heading, "", data["text"], *(f"\n[{sentence}]" for sentence in notice)])


def _short(reference: str) -> str:
    session_id, _, record = reference.rpartition(":")
    return f"{session_id[:8]}:{record}"


def _left_out(whole: int, kept: int) -> list[str]:
    """What a shortened text has to say."""
    if kept == whole:
        return []
    return [f"{whole - kept:,} of {whole:,} characters left out; --max-chars {whole} prints all"]
