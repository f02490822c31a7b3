"""``read``: print records of a session as text.

The options select one record with its neighbours, whole turns, errors, commands, or one page of the
session's records.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any

from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import show_scan_progress
from resume_hooks.cli.read_text import (
    commands_text,
    make_error_gap_describer,
    make_record_gap_describer,
    passages_text,
)
from resume_hooks.cli.value_with_fields import ValueWithFields
from resume_hooks.cli.verbs.reading import DEFAULT_PAGE_RECORDS, ReadOptions
from resume_hooks.clock import format_minute
from resume_hooks.derive.originals import OriginalRecord, is_marked_as_trimmed, look_up_original
from resume_hooks.errors import OutputFailed, ResumeHooksError, UsageError
from resume_hooks.paths import Where
from resume_hooks.reading.char_budget import (
    MAX_WHOLE_RECORD_CHARACTERS,
    divide_characters,
    find_page_end,
    indent_text,
)
from resume_hooks.reading.outline import format_first_output_line
from resume_hooks.reading.passages import (
    Passage,
    PassageFile,
    TurnReader,
    make_passage,
    read_page,
    read_passages_around,
)
from resume_hooks.reading.render import Rendering, render_line
from resume_hooks.sessions.agents.registry import agent_name_of_path, row_of_agent
from resume_hooks.sessions.agents.registry import original_path as place_of_original
from resume_hooks.sessions.locate import is_subagent_locator, resolve_transcript
from resume_hooks.sessions.record_references import (
    SESSION_REFERENCE_HELP,
    RecordLine,
    RecordLines,
    TranscriptNames,
    find_numbered_line,
    find_referenced_line,
    names_of_transcript,
    parse_reference,
    shorten_reference,
)
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import subagent_name, title_of_transcript
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import collapse_line, format_count, plain_line, plain_text
from resume_hooks.transcripts.head_tail import MAX_TITLE_CHARACTERS
from resume_hooks.transcripts.records import Record, get_string
from resume_hooks.transcripts.turns import TurnRange, parse_turns


def print_records(options: ReadOptions) -> None:
    """Print the records or commands that the options select."""
    _refuse_conflicting_options(options)
    if options.as_page:
        _print_page(_find_session(options), options)
    elif options.only_commands:
        _print_commands(_find_session(options), options)
    elif options.turn_range is not None or options.only_errors:
        _print_turns(_find_session(options), options)
    elif options.count_or_id_before is not None or options.following_record_count is not None:
        before = options.count_or_id_before or "0"
        if not (before.isascii() and before.isdigit() and len(before) < 8):
            raise UsageError(
                f"--before takes a number of records, not '{collapse_line(plain_line(before), 60)}'",
                "With --page, --before takes the id of a record.",
            )
        _print_record_with_neighbours(_look_up_record(options), int(before), options)
    elif options.as_raw_line:
        _print_raw_record(_look_up_record(options).original)
    else:
        _print_record(_look_up_record(options), options)


def _refuse_conflicting_options(options: ReadOptions) -> None:
    """Raise UsageError for options that can't be used together."""
    options.refuse_combination("as_raw_line", "as_json")
    options.refuse_combination("as_page", "only_errors", "only_commands")
    options.refuse_combination("as_page", "turn_range")
    selecting_options = {
        "--page": options.as_page,
        "--errors": options.only_errors,
        "--commands": options.only_commands,
    }
    given_options = [name for name, is_given in selecting_options.items() if is_given] or (
        ["--turns"] if options.turn_range is not None else []
    )
    if options.page_size and not options.as_page:
        raise UsageError(
            "--limit is for pages",
            "Add --page, or limit the printed text with --max-chars instead.",
        )
    record_options = []
    for name, value in (
        ("after", options.following_record_count),
        ("before", options.count_or_id_before),
        ("skip", options.skipped_character_count),
        ("raw", options.as_raw_line),
    ):
        if value:
            record_options.append(name)
    if given_options and [
        name for name in record_options if (name, given_options) != ("before", ["--page"])
    ]:
        raise UsageError(
            f"--{record_options[0]} applies to a single record, {given_options[0]} to a whole session",
            "Give only one of them.",
        )
    if (options.count_or_id_before or options.following_record_count) and (
        options.skipped_character_count or options.as_raw_line
    ):
        raise UsageError(
            "--skip and --raw only work for a single record", "Leave --before and --after out."
        )
    if given_options and options.reference_or_session is not None and options.session is not None:
        raise UsageError("The argument and --session both name a session", "Leave --session out.")


def _find_session(options: ReadOptions) -> SessionFile:
    locator = (
        options.reference_or_session
        if options.reference_or_session is not None
        else options.session
    )
    return resolve_transcript(locator, current_folder(), options.where, allow_other_agents=True)


def _look_up_record(options: ReadOptions) -> OriginalRecord:
    """Return the record that the reference in the command names, and its untrimmed original.

    A record of a sub-agent is never trimmed, so that record is returned as its own original.
    """
    target: str | None = options.reference_or_session
    session: str | None = options.session
    if target is None:
        raise UsageError(
            "No record is named",
            f"{SESSION_REFERENCE_HELP} To read whole turns: resume-hooks read SESSION --turns 1-3",
        )
    if ":" not in target and session is None:
        short_target = collapse_line(plain_line(target), 80)
        outline_command = f"resume-hooks outline {shlex.quote(short_target)}"
        raise UsageError(
            f"'{short_target}' names no record",
            f"{SESSION_REFERENCE_HELP} To read a session: {outline_command}, or add --turns 1-3.",
        )
    reference = parse_reference(target, session)
    folder = current_folder()
    if is_subagent_locator(reference.session_locator) or subagent_name(reference.session_locator):
        session_file = resolve_transcript(
            reference.session_locator, folder, options.where, allow_other_agents=True
        )
        if subagent_name(session_file.path):
            entry = find_numbered_line(
                reference, RecordLines(session_file.path, session_file.session_id)
            )
            return OriginalRecord(entry, entry)
    return look_up_original(reference, folder, options.where)


def _print_turns(session: SessionFile, options: ReadOptions) -> None:
    reader, turns = _make_turn_reader(session, options), _parse_turns_option(options)
    names = names_of_transcript(session, options.where)
    passages = reader.read_passages_of_rows(
        reader.list_rows_of_turns(turns, only_failures=options.only_errors), names
    )
    rows = make_passage_rows(passages, names, options.max_chars)
    if options.only_errors:
        call_lines = []
        for passage in passages:
            call_lines.append(reader.line_numbers_of_calls(passage.entry.parse_record() or {}))
        call_references = []
        for numbers in call_lines:
            call_references.append([f"{names.full_name}:{number}" for number in numbers])
        rows = [
            ValueWithFields(row, {"calls": references})
            for row, references in zip(rows, call_references, strict=True)
        ]
    gap = make_error_gap_describer if options.only_errors else make_record_gap_describer
    shown_part_text = _describe_shown_part(
        turns, reader.turn_count, "error" if options.only_errors else "", len(passages)
    )
    heading = _make_heading(session, names, shown_part_text)
    options.print_answer(
        {**_get_session_data(session), "turn_count": reader.turn_count, "records": rows},
        lambda: passages_text(heading, passages, names, options.max_chars, gap(passages, names)),
    )


def _print_commands(session: SessionFile, options: ReadOptions) -> None:
    reader, turns = _make_turn_reader(session, options), _parse_turns_option(options)
    names = names_of_transcript(session, options.where)
    commands = reader.list_commands_of_turns(turns)
    heading = _make_heading(
        session, names, _describe_shown_part(turns, reader.turn_count, "command", len(commands))
    )
    rows = []
    for command in commands:
        rows.append(
            ValueWithFields(
                command,
                {
                    "reference": f"{names.full_name}:{command.line_number}",
                    "result": f"{names.full_name}:{command.result_line_number}"
                    if command.result_line_number >= 0
                    else None,
                },
            )
        )
    options.print_answer(
        {**_get_session_data(session), "turn_count": reader.turn_count, "commands": rows},
        lambda: commands_text(heading, commands, names, options.max_chars),
    )


def _parse_turns_option(options: ReadOptions) -> TurnRange | None:
    if options.turn_range is not None:
        return parse_turns(options.turn_range)
    return None


def _make_turn_reader(session: SessionFile, options: ReadOptions) -> TurnReader:
    with show_scan_progress(session.path, quiet=options.as_json) as observers:
        return TurnReader(session, observers)


def _print_page(session: SessionFile, options: ReadOptions) -> None:
    names = names_of_transcript(session, options.where)
    entries = RecordLines(session.path, session.session_id)
    if options.count_or_id_before is None:
        start_line = None
    else:
        start_line = _find_line_of_page_id(options.count_or_id_before, names, entries)
    page = read_page(entries, names, start_line, options.page_size or DEFAULT_PAGE_RECORDS)
    rows = make_passage_rows(page.passages, names, options.max_chars)
    data = {
        "events": [ValueWithFields(row, {"id": row.fields["reference"]}) for row in rows],
        "firstId": rows[0].fields["reference"] if rows else None,
        "hasMore": page.has_earlier_records,
        "size": entries.size,
    }
    first_reference = names.make_reference(page.passages[0].record_name) if rows else ""
    if page.has_earlier_records:
        earlier_text = f"earlier: {shell_command(f'read {names.quoted_name} --page --before {first_reference}')}"
    else:
        earlier_text = "from the first record"
    heading = _make_heading(session, names, f"{format_count(len(rows), 'record')}, {earlier_text}")
    gap = make_record_gap_describer(page.passages, names)
    options.print_answer(
        data, lambda: passages_text(heading, page.passages, names, options.max_chars, gap)
    )


def _find_line_of_page_id(page_id: str, names: TranscriptNames, entries: RecordLines) -> RecordLine:
    """Return the record that is named by an id from a printed page.

    The session id in ``page_id`` may be shortened, and ``page_id`` may also be only a line number.
    Raise UsageError for the id of another session's record.
    """
    session_part, colon, record = page_id.strip().rpartition(":")
    if (
        colon
        and not (session_part and names.full_name.startswith(session_part))
        and session_part != names.short_name
    ):
        short_id = collapse_line(plain_line(page_id), 80)
        raise UsageError(
            f"'{short_id}' is not a record of {collapse_line(names.short_name, 80)}",
            "Give an id from an earlier page.",
        )
    return find_referenced_line(parse_reference(record, names.full_name), entries)


def _print_record_with_neighbours(
    original_record: OriginalRecord, earlier_record_count: int, options: ReadOptions
) -> None:
    """Print a record between neighbouring records of its file.

    If the record was trimmed, print its original instead.
    """
    requested_record, record = (
        original_record.requested_line,
        parse_record_line(original_record.original),
    )
    session = SessionFile(
        requested_record.session_id,
        requested_record.file_path,
        0,
        0,
        agent_name_of_path(requested_record.file_path, options.where),
    )
    names = names_of_transcript(session, options.where)
    earlier_passages, later_passages = read_passages_around(
        RecordLines(requested_record.file_path, requested_record.session_id),
        names,
        requested_record,
        earlier_record_count,
        options.following_record_count or 0,
    )
    rendering = render_line(record, original_record.original)
    middle_passage = make_passage(
        record,
        requested_record,
        PassageFile(names, subagent_name(requested_record.file_path) is not None),
        {},
    )
    if original_record.original != requested_record:
        original_text = f", original {shorten_reference(original_record.original.reference)}"
    else:
        original_text = ""
    middle_passage = middle_passage._replace(
        rendering=rendering,
        text=rendering.text,
        is_spoken=True,
        speaker=f"{middle_passage.speaker}{original_text}",
    )
    passages = [*earlier_passages, middle_passage, *later_passages]
    heading = _make_heading(
        session, names, f"around {names.make_reference(requested_record.number)}"
    )
    gap = make_record_gap_describer(passages, names)
    options.print_answer(
        {
            **_get_session_data(session),
            "turn_count": None,
            "records": make_passage_rows(passages, names, options.max_chars),
        },
        lambda: passages_text(heading, passages, names, options.max_chars, gap),
    )


def _describe_shown_part(
    turns: TurnRange | None, turn_count: int, item_kind: str, found_count: int
) -> str:
    turn_range = turns.list_turn_numbers(turn_count) if turns else range(1, turn_count + 1)
    if len(turn_range) > 1:
        span = f"{turn_range[0]}-{turn_range[-1]}"
    elif turn_range:
        span = f"{turn_range[0]}"
    else:
        span = "0"
    count_text = f"{format_count(found_count, item_kind)} in " if item_kind else ""
    return f"{count_text}turn{'s' * (len(turn_range) > 1)} {span} of {turn_count}"


def _make_heading(session: SessionFile, names: TranscriptNames, shown_part: str) -> str:
    limitation = " · prompts only" if row_of_agent(session.agent).loss_note else ""
    title = collapse_line(title_of_transcript(session.path), 60)
    return f"{title} · {collapse_line(names.short_name, 60)}{limitation} · {shown_part}"


def make_passage_rows(
    passages: Sequence[Passage], names: TranscriptNames, max_characters: int
) -> list[ValueWithFields]:
    """Return passages in the form of the JSON schema of ``read``.

    All texts together are cut to at most ``max_characters`` characters (0: no limit).
    """
    sizes = [len(passage.text) for passage in passages]
    max_lengths = (
        divide_characters(sizes, [1] * len(sizes), max_characters) if max_characters else sizes
    )
    rows = []
    for passage, max_length in zip(passages, max_lengths, strict=True):
        rows.append(
            ValueWithFields(
                passage,
                {
                    "reference": f"{names.full_name}:{passage.record_name}",
                    "calls": [],
                    "text": passage.text[:max_length],
                },
            )
        )
    return rows


def _get_session_data(session: SessionFile) -> dict[str, Any]:
    original_path = place_of_original(session.path, Where())
    return {
        "session_id": session.session_id,
        "session_file": original_path,
        "title": title_of_transcript(session.path),
    }


LOST_ORIGINAL_NOTICE = (
    "part of this record had been trimmed before, and the original of that part no longer exists"
)


def _print_record(original_record: OriginalRecord, options: ReadOptions) -> None:
    max_characters, first_character = options.max_chars, options.skipped_character_count
    record = parse_record_line(original_record.original)
    rendering = render_line(record, original_record.original)
    text_length, end = (
        len(rendering.text),
        find_page_end(rendering.text, first_character, max_characters),
    )
    page, is_last_page = rendering.text[first_character:end], end >= text_length
    data = _make_record_data(original_record, rendering, page, record) | {
        "next_skip": None if is_last_page else end
    }
    notice = [LOST_ORIGINAL_NOTICE] if is_marked_as_trimmed(record) else []
    if len(page) < text_length:
        omitted_text = (
            f"{text_length - len(page):,} of {format_count(text_length, 'character')} left out"
        )
        if max_characters in {0, MAX_WHOLE_RECORD_CHARACTERS}:
            size_option = ""
        else:
            size_option = f" --max-chars {max_characters}"
        next_command = shell_command(
            f"read {shorten_reference(original_record.requested_line.reference)} --skip {end}{size_option}"
        )
        next_page_text = "" if is_last_page else f"the next page: {next_command}; "
        notice.insert(0, f"{omitted_text}; {next_page_text}--max-chars 0 prints all")
    options.print_answer(
        data,
        lambda: _record_text(original_record, rendering, data, notice),
        notice if options.as_json else (),
    )


def parse_record_line(entry: RecordLine) -> Record:
    """Return the record in a line of a transcript. Raise ResumeHooksError if the line contains no record."""
    record = entry.parse_record()
    if record is None:
        raise ResumeHooksError(
            f"Line {entry.number} of {entry.file_path} contains no record", "See --raw."
        )
    return record


def _print_raw_record(entry: RecordLine) -> None:
    line = entry.read_raw_line()
    try:
        sys.stdout.buffer.write(line)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(f"The record could not be printed: {error.strerror}") from error


def _make_record_data(
    original_record: OriginalRecord, rendering: Rendering, text: str, record: Record
) -> dict[str, Any]:
    original = original_record.original
    return {
        "reference": original.reference,
        "session_id": original.session_id,
        "session_file": place_of_original(original.file_path, Where()),
        "record": original.number,
        "uuid": get_string(record, "uuid"),
        "kind": rendering.kind,
        "role": rendering.role,
        "timestamp": get_string(record, "timestamp"),
        "tool": rendering.tool_name,
        "truncated": original_record.requested_line != original,
        "characters": len(rendering.text),
        "text": text,
    }


def _record_text(
    original_record: OriginalRecord, rendering: Rendering, data: dict[str, Any], notices: list[str]
) -> str:
    """Return a record as text: a first line that marks ``read`` output, a heading, the text, and notices.

    The heading has the session's title, the reference, the speaker, the time and the tool.
    """
    original = original_record.original
    facts = (
        title_of_transcript(original.file_path),
        shorten_reference(original.reference),
        " ".join(dict.fromkeys(word for word in (rendering.role, rendering.kind) if word)),
        format_minute(data["timestamp"]),
        f"{rendering.tool_name} {rendering.target}".strip(),
        f"original of {shorten_reference(original_record.requested_line.reference)}"
        if original_record.requested_line != original
        else "",
    )
    heading = " · ".join(
        collapse_line(plain_line(fact), MAX_TITLE_CHARACTERS) for fact in facts if fact
    )
    marker_line = format_first_output_line("read", shorten_reference(original.reference))
    return "\n".join(
        [
            marker_line,
            heading,
            "",
            indent_text(plain_text(data["text"])),
            *(f"\n[{sentence}]" for sentence in notices),
        ]
    )
