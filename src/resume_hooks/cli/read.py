"""``read``: records of a session as text: one by its reference and those around it, turns, errors, commands, pages."""

from __future__ import annotations

import shlex

from resume_hooks.cli import records
from resume_hooks.cli.options import current_folder
from resume_hooks.cli.progress import watched
from resume_hooks.cli.verbs.reading import PAGE, ReadOptions
from resume_hooks.cli.with_fields import With
from resume_hooks.derive.originals import OriginalRecord, look_up
from resume_hooks.errors import UsageError
from resume_hooks.reading.passages import PassageFile, TurnReader, around, page, passage
from resume_hooks.reading.render import render
from resume_hooks.sessions.agents.registry import left_of, name_at
from resume_hooks.sessions.locate import names_subagent, resolve_transcript
from resume_hooks.sessions.record_references import (
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
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import subagent_name, title_of
from resume_hooks.system.invocation import typed
from resume_hooks.system.text import counted, one_line, plain_line
from resume_hooks.transcripts.turns import Turns
from resume_hooks.transcripts.turns import parse as parse_turns


def read(options: ReadOptions) -> None:
    """Print the records that were asked for."""
    _refuse_together(options)
    if options.paged:
        _page(_session_of(options), options)
    elif options.commands:
        _commands(_session_of(options), options)
    elif options.turns is not None or options.errors:
        _turns(_session_of(options), options)
    elif options.before is not None or options.after is not None:
        before = options.before or "0"
        if not (before.isascii() and before.isdigit() and len(before) < 8):
            raise UsageError(
                f"--before takes a number of records, not '{one_line(plain_line(before), 60)}'",
                "An id goes with --page.",
            )
        _around(_look_up(options), int(before), options)
    elif options.raw:
        records.print_raw(_look_up(options).original)
    else:
        records.print_record(_look_up(options), options)


def _refuse_together(options: ReadOptions) -> None:
    """UsageError for options that mean different things of a session."""
    options.refuse_together("raw", "as_json")
    options.refuse_together("paged", "errors", "commands")
    options.refuse_together("paged", "turns")
    given = {"--page": options.paged, "--errors": options.errors, "--commands": options.commands}
    forms = [name for name, here in given.items() if here] or (["--turns"] if options.turns is not None else [])
    if options.limit and not options.paged:
        raise UsageError("--limit is for pages", "Use it with --page, or --max-chars for what is printed.")
    of_records = [name for name in ("after", "before", "skip", "raw") if getattr(options, name)]
    if forms and [name for name in of_records if (name, forms) != ("before", ["--page"])]:
        raise UsageError(f"--{of_records[0]} is for a record, {forms[0]} for a session", "Leave one of them out.")
    if (options.before or options.after) and (options.skip or options.raw):
        raise UsageError("--skip and --raw are for one record alone", "Leave --before and --after out.")
    if forms and options.target is not None and options.session is not None:
        raise UsageError("Both words name a session", "Leave --session out.")


def _session_of(options: ReadOptions) -> SessionFile:
    locator = options.target if options.target is not None else options.session
    return resolve_transcript(locator, current_folder(), options.where, foreign=True)


def _look_up(options: ReadOptions) -> OriginalRecord:
    """The record that was asked for. Those of sub-agents are never trimmed, so that they are their own originals."""
    target: str | None = options.target
    session: str | None = options.session
    if target is None:
        raise UsageError("No record is named", f"{EXAMPLE} Whole turns: resume-hooks read SESSION --turns 1-3")
    if ":" not in target and session is None:
        named = one_line(plain_line(target), 80)
        outlined = f"resume-hooks outline {shlex.quote(named)}"
        raise UsageError(f"'{named}' names no record", f"{EXAMPLE} Of a session: {outlined}, or --turns 1-3.")
    reference = parse(target, session)
    here = current_folder()
    if names_subagent(reference.session) or subagent_name(reference.session):
        found = resolve_transcript(reference.session, here, options.where, foreign=True)
        if subagent_name(found.path):
            entry = named_by(reference, RecordLines(found.path, found.session_id))
            return OriginalRecord(entry, entry)
    return look_up(reference, here, options.where)


def _turns(session: SessionFile, options: ReadOptions) -> None:
    reader, turns = _reader(session, options), _turns_of(options)
    names = names_of(session, options.where)
    passages = reader.passages(reader.chosen(turns, failed=options.errors), names)
    shown = records.passage_rows(passages, names, options.max_chars)
    if options.errors:
        calls = [reader.calling(one.entry.record() or {}) for one in passages]
        numbered = [[f"{names.full}:{number}" for number in numbers] for numbers in calls]
        shown = [With(row, {"calls": found}) for row, found in zip(shown, numbered, strict=True)]
    gap = records.errors_gap if options.errors else records.records_gap
    what = _what(turns, reader.turns, "error" if options.errors else "", len(passages))
    about = _about(session, names, what)
    options.emit(
        records.passages_data(session, shown, reader.turns),
        lambda: records.passages_text(about, passages, names, options.max_chars, gap(passages, names)),
    )


def _commands(session: SessionFile, options: ReadOptions) -> None:
    reader, turns = _reader(session, options), _turns_of(options)
    names = names_of(session, options.where)
    found = reader.commands(turns)
    about = _about(session, names, _what(turns, reader.turns, "command", len(found)))
    options.emit(
        records.commands_data(reader, found, names),
        lambda: records.commands_text(about, found, names, options.max_chars),
    )


def _turns_of(options: ReadOptions) -> Turns | None:
    return parse_turns(options.turns) if options.turns is not None else None


def _reader(session: SessionFile, options: ReadOptions) -> TurnReader:
    with watched(session.path, quiet=options.as_json) as watching:
        return TurnReader(session, watching)


def _page(session: SessionFile, options: ReadOptions) -> None:
    names = names_of(session, options.where)
    entries = RecordLines(session.path, session.session_id)
    place = None if options.before is None else _place_of(options.before, names, entries)
    found = page(entries, names, place, options.limit or PAGE)
    rows = records.passage_rows(found.passages, names, options.max_chars)
    data = {
        "events": [With(row, {"id": row.fields["reference"]}) for row in rows],
        "firstId": rows[0].fields["reference"] if rows else None,
        "hasMore": found.more,
        "size": entries.size,
    }
    first = names.reference(found.passages[0].word) if rows else ""
    earlier = (
        f"earlier: {typed(f'read {names.word} --page --before {first}')}" if found.more else "from the first record on"
    )
    about = _about(session, names, f"{counted(len(rows), 'record')}, {earlier}")
    gap = records.records_gap(found.passages, names)
    options.emit(data, lambda: records.passages_text(about, found.passages, names, options.max_chars, gap))


def _place_of(before: str, names: TranscriptNames, entries: RecordLines) -> RecordLine:
    """The line of an id on a page, which is a reference; its record's part alone will do. UsageError for no record."""
    named, colon, record = before.strip().rpartition(":")
    if colon and not (named and names.full.startswith(named)) and named != names.short:
        shown = one_line(plain_line(before), 80)
        raise UsageError(
            f"'{shown}' is not a record of {one_line(names.short, 80)}", "Give an id from an earlier page."
        )
    return place_of(parse(record, names.full), entries)


def _around(found: OriginalRecord, before: int, options: ReadOptions) -> None:
    """A record, of trimmed content the original, between those that stand around it in its own file."""
    asked, record = found.asked, records.record_in(found.original)
    session = SessionFile(asked.session_id, asked.file, 0, 0, name_at(asked.file, options.where))
    names = names_of(session, options.where)
    earlier, later = around(RecordLines(asked.file, asked.session_id), names, asked, before, options.after or 0)
    shown = render(record, found.original)
    middle = passage(record, asked, PassageFile(names, subagent_name(asked.file) is not None), {})
    original = f", original {shortened(found.original.reference)}" if found.original != asked else ""
    middle = middle._replace(shown=shown, text=shown.text, voice=True, speaker=f"{middle.speaker}{original}")
    passages = [*earlier, middle, *later]
    about = _about(session, names, f"around {names.reference(asked.number)}")
    gap = records.records_gap(passages, names)
    options.emit(
        records.passages_data(session, records.passage_rows(passages, names, options.max_chars), None),
        lambda: records.passages_text(about, passages, names, options.max_chars, gap),
    )


def _what(turns: Turns | None, count: int, kind: str, found: int) -> str:
    within = turns.within(count) if turns else range(1, count + 1)
    span = f"{within[0]}-{within[-1]}" if len(within) > 1 else f"{within[0]}" if within else "0"
    shown = f"{counted(found, kind)} in " if kind else ""
    return f"{shown}turn{'s' * (len(within) > 1)} {span} of {count}"


def _about(session: SessionFile, names: TranscriptNames, what: str) -> str:
    left = " · prompts only" if left_of(session.agent) else ""
    return f"{one_line(title_of(session.path), 60)} · {one_line(names.short, 60)}{left} · {what}"
