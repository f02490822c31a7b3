"""``read``: records of a session as text: one by its reference and those around it, turns, errors, commands, pages."""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

import click

from resume_hooks.cli import passages as several
from resume_hooks.cli.output import complete_locator, current_folder, emit, json_option
from resume_hooks.cli.progress import watched
from resume_hooks.cli.record import print_raw, print_record, record_in
from resume_hooks.derive.originals import OriginalRecord, look_up
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.reading.pages import around, page
from resume_hooks.reading.passages import WHOLE, passage
from resume_hooks.reading.render import render
from resume_hooks.reading.selections import TurnReader
from resume_hooks.sessions.locate import SessionFile, names_subagent, resolve_transcript
from resume_hooks.sessions.references import (
    EXAMPLE,
    RecordLine,
    RecordLines,
    TranscriptNames,
    named_by,
    names_of,
    parse,
    place_of,
    shortened,
)
from resume_hooks.sessions.transcript_files import subagent_name, title_of
from resume_hooks.system.text import counted, one_line, plain_line
from resume_hooks.transcripts.turns import Turns
from resume_hooks.transcripts.turns import parse as parse_turns

PAGE = 100
"""Records of a page where nothing else is asked for."""


class Options(NamedTuple):
    """How an answer is printed: ``limit`` in characters, 0 for none."""

    limit: int
    as_json: bool


@click.command("read")
@click.argument("target", metavar="REF|LOCATOR", required=False, shell_complete=complete_locator)
@click.option("--before", metavar="N|ID", help="With REF: also N records before it. With --page: before this id.")
@click.option("--after", type=click.IntRange(0), metavar="N", help="With REF: also N records after it.")
@click.option("--turns", metavar="A-B", help="These turns: 12, 12-15, 12-, last, or -3 (the last three).")
@click.option("--errors", is_flag=True, help="What failed: results of tools, errors of the API.")
@click.option("--commands", is_flag=True, help="The commands of the shell, a line each, and how they ended.")
@click.option("--page", "paged", is_flag=True, help="The last records; earlier ones with --before ID.")
@click.option("--limit", type=click.IntRange(1, 10_000), help=f"Records of a page.  [default: {PAGE}]")
@click.option("--session", metavar="LOCATOR", help="The session, where REF is a line number or a uuid alone.")
@click.option("--max-chars", type=click.IntRange(0), default=WHOLE, show_default=True, help="At most; 0 for all.")
@click.option("--skip", type=click.IntRange(0), default=0, help="With REF: leave out its first characters.")
@click.option("--raw", is_flag=True, help="With REF: print the line of the file as it is.")
@json_option
def command(target: str | None, max_chars: int, as_json: bool, **asked: Any) -> None:
    """Print records of a session: one by its reference REF, <session>:<record>, or some of the session LOCATOR.

    <session> is an id, four or more of its first characters, or the path of a .jsonl; <record> a line number,
    counted from 0, a uuid, or @ and the byte where its line begins, as on pages. Of a record whose contents were
    trimmed the original is printed. A sub-agent is <session>/agent-<id>. What does not fit says how to get it;
    --max-chars counts the characters of all that is printed, of a single record those of its text.

    A page is read from the end, or from the record before which --before puts it: it stays the same while the
    session grows, and takes no longer where the file is large.

    \b
    Examples:
      resume-hooks read 1a2b3c4d:56
      resume-hooks read 1a2b3c4d:56 --before 3 --after 5
      resume-hooks read 1a2b3c4d --turns 12-15
      resume-hooks read 1a2b3c4d --errors
      resume-hooks read 1a2b3c4d --commands --turns -3
      resume-hooks read 1a2b3c4d --page --limit 50 --json
      resume-hooks read 1a2b3c4d --page --before 1a2b3c4d:@7348 --limit 50 --json
      resume-hooks read 1a2b3c4d/agent-a63d21c:12 --raw > record.json
    """
    options = Options(max_chars, as_json)
    _refuse_together(target, as_json=as_json, **asked)
    if asked["paged"]:
        _page(_session_of(target, asked["session"]), asked["before"], asked["limit"] or PAGE, options)
    elif asked["turns"] is not None or asked["errors"] or asked["commands"]:
        turns = parse_turns(asked["turns"]) if asked["turns"] is not None else None
        session = _session_of(target, asked["session"])
        if asked["commands"]:
            _commands(session, turns, options)
        else:
            _turns(session, turns, options, failed=asked["errors"])
    elif asked["before"] is not None or asked["after"] is not None:
        before = _count(asked["before"] or "0")
        _around(_look_up(target, asked["session"]), before, asked["after"] or 0, options)
    else:
        found = _look_up(target, asked["session"])
        if asked["raw"]:
            print_raw(found.original)
        else:
            print_record(found, max_chars, asked["skip"], as_json=as_json)


def _refuse_together(target: str | None, *, as_json: bool, **asked: Any) -> None:
    """UsageError for options that mean different things of a session."""
    if asked["raw"] and as_json:
        raise UsageError("--raw and --json exclude each other", "Leave one of them out.")
    given = {"--page": asked["paged"], "--errors": asked["errors"], "--commands": asked["commands"]}
    forms = [name for name, here in given.items() if here]
    if asked["turns"] is not None and (not forms or forms == ["--page"]):
        forms.append("--turns")
    if len(forms) > 1:
        raise UsageError(f"{' and '.join(forms)} exclude each other", "Leave one of them out.")
    if asked["limit"] and not asked["paged"]:
        raise UsageError("--limit is for pages", "Use it with --page, or --max-chars for what is printed.")
    of_records = [name for name in ("after", "before", "skip", "raw") if asked[name]]
    if forms and [name for name in of_records if (name, forms) != ("before", ["--page"])]:
        raise UsageError(f"--{of_records[0]} is for a record, {forms[0]} for a session", "Leave one of them out.")
    if (asked["before"] or asked["after"]) and (asked["skip"] or asked["raw"]):
        raise UsageError("--skip and --raw are for one record alone", "Leave --before and --after out.")
    if forms and target is not None and asked["session"] is not None:
        raise UsageError("Both words name a session", "Leave --session out.")


def _count(before: str) -> int:
    if not (before.isascii() and before.isdigit() and len(before) < 8):
        raise UsageError(
            f"--before takes a number of records, not '{one_line(plain_line(before), 60)}'", "An id goes with --page."
        )
    return int(before)


def _session_of(target: str | None, session: str | None) -> SessionFile:
    return resolve_transcript(target if target is not None else session, current_folder(), Where())


def _look_up(target: str | None, session: str | None) -> OriginalRecord:
    """The record that was asked for. Those of sub-agents are never trimmed, so that they are their own originals."""
    if target is None:
        raise UsageError("No record is named", f"{EXAMPLE} Whole turns: resume-hooks read LOCATOR --turns 1-3")
    if ":" not in target and session is None:
        named = one_line(plain_line(target), 80)
        outlined = f"resume-hooks outline {shlex.quote(named)}"
        raise UsageError(f"'{named}' names no record", f"{EXAMPLE} Of a session: {outlined}, or --turns 1-3.")
    reference = parse(target, session)
    here = current_folder()
    if names_subagent(reference.session) or subagent_name(reference.session):
        found = resolve_transcript(reference.session, here, Where())
        if subagent_name(found.path):
            entry = named_by(reference, RecordLines(found.path, found.session_id))
            return OriginalRecord(entry, entry)
    return look_up(reference, here, Where())


def _turns(session: SessionFile, turns: Turns | None, options: Options, *, failed: bool) -> None:
    """The records of turns, or those that tell of failures."""
    reading = _read(session, options)
    names = names_of(session, Where())
    rows = reading.chosen(turns, failed=failed)
    passages = reading.passages(rows, names)
    calls = [reading.calling(one.entry.record() or {}) for one in passages] if failed else [[] for _ in passages]
    shown = several.passage_rows(passages, names, options.limit)
    for row, lines in zip(shown, calls, strict=True):
        row["calls"] = [f"{names.full}:{number}" for number in lines]
    gap = several.errors_gap if failed else several.records_gap
    what = _what(turns, reading.turns, "error" if failed else "", len(passages))
    emit(
        "read",
        several.passages_data(session, shown, reading.turns),
        lambda: several.passages_text(
            _about(session, names, what), passages, names, options.limit, gap(passages, names)
        ),
        as_json=options.as_json,
    )


def _commands(session: SessionFile, turns: Turns | None, options: Options) -> None:
    reading = _read(session, options)
    names = names_of(session, Where())
    found = reading.commands(turns)
    about = _about(session, names, _what(turns, reading.turns, "command", len(found)))
    data = several.commands_data(reading, found, names)
    emit("read", data, lambda: several.commands_text(about, found, names, options.limit), as_json=options.as_json)


def _read(session: SessionFile, options: Options) -> TurnReader:
    with watched(session.path, quiet=options.as_json) as watching:
        return TurnReader(session, watching)


def _page(session: SessionFile, before: str | None, limit: int, options: Options) -> None:
    names = names_of(session, Where())
    entries = RecordLines(session.path, session.session_id)
    place = None if before is None else _place_of(before, names, entries)
    found = page(entries, names, place, limit)
    rows = several.passage_rows(found.passages, names, options.limit)
    data = {
        "events": [{"id": row["reference"], **row} for row in rows],
        "firstId": rows[0]["reference"] if rows else None,
        "hasMore": found.more,
        "size": entries.size,
    }
    first = names.reference(found.passages[0].word) if rows else ""
    earlier = (
        f"earlier: resume-hooks read {names.word} --page --before {first}" if found.more else "from the first record on"
    )
    about = _about(session, names, f"{counted(len(rows), 'record')}, {earlier}")
    gap = several.records_gap(found.passages, names)
    emit(
        "read", data, lambda: several.passages_text(about, found.passages, names, options.limit, gap),
        as_json=options.as_json,
    )  # fmt: skip


def _place_of(before: str, names: TranscriptNames, entries: RecordLines) -> RecordLine:
    """The line of an id on a page, which is a reference; its record's part alone will do. UsageError for no record."""
    named, colon, record = before.strip().rpartition(":")
    if colon and not (named and names.full.startswith(named)) and named != names.short:
        shown = one_line(plain_line(before), 80)
        raise UsageError(f"'{shown}' is no record of {one_line(names.short, 80)}", "Give an id from an earlier page.")
    return place_of(parse(record, names.full), entries)


def _around(found: OriginalRecord, before: int, after: int, options: Options) -> None:
    """A record, of trimmed content the original, between those that stand around it in its own file."""
    asked, record = found.asked, record_in(found.original)
    session = SessionFile(asked.session_id, asked.file, 0, 0)
    names = names_of(session, Where())
    entries = RecordLines(asked.file, asked.session_id)
    earlier, later = around(entries, names, asked, before, after)
    shown = render(record, found.original)
    subagent = subagent_name(asked.file) is not None
    middle = passage(record, asked, names, {}, subagent=subagent)
    original = f", original {shortened(found.original.reference)}" if found.original != asked else ""
    middle = middle._replace(shown=shown, text=shown.text, voice=True, speaker=f"{middle.speaker}{original}")
    passages = [*earlier, middle, *later]
    data = several.passages_data(session, several.passage_rows(passages, names, options.limit), None)
    about = _about(session, names, f"around {names.reference(asked.number)}")
    gap = several.records_gap(passages, names)
    emit(
        "read", data, lambda: several.passages_text(about, passages, names, options.limit, gap), as_json=options.as_json
    )


def _what(turns: Turns | None, count: int, kind: str, found: int) -> str:
    """Which part of a session is shown."""
    within = turns.within(count) if turns else range(1, count + 1)
    span = f"{within[0]}-{within[-1]}" if len(within) > 1 else f"{within[0]}" if within else "0"
    shown = f"{counted(found, kind)} in " if kind else ""
    return f"{shown}turn{'s' * (len(within) > 1)} {span} of {count}"


def _about(session: SessionFile, names: TranscriptNames, what: str) -> str:
    return f"{one_line(title_of(session.path), 60)} · {one_line(names.short, 60)} · {what}"
