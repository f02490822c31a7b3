"""Print records or commands as text of a limited length, and say which ones were left out."""

from __future__ import annotations

from collections.abc import Sequence

from resume_hooks.clock import format_minute
from resume_hooks.reading.char_budget import DescribeGap, TextPiece, fit_both_ends, fit_pieces
from resume_hooks.reading.outline import format_first_output_line, format_turn_range
from resume_hooks.reading.passages import Passage, ShellCall, format_read_command
from resume_hooks.sessions.record_references import TranscriptNames
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import collapse_line, format_count, plain_line

# the lengths to which commands may be cut; the largest length at which all commands fit is used
COMMAND_LENGTH_LIMITS = 400, 200, 100, 60


def passages_text(
    heading: str,
    passages: Sequence[Passage],
    names: TranscriptNames,
    max_characters: int,
    describe_gap: DescribeGap,
) -> str:
    """Return passages as text below a heading, in at most ``max_characters`` characters.

    The limit includes the line feed at the end. ``describe_gap`` returns the line for passages that
    were left out.
    """
    # Consecutive records that the client added to one turn are printed as one line. Every other
    # record is a run of its own.
    passage_runs: list[list[Passage]] = []
    for passage in passages:
        if (
            passage.is_client_addition
            and passage_runs
            and passage_runs[-1][0].is_client_addition
            and passage_runs[-1][0].turn_number == passage.turn_number
        ):
            passage_runs[-1].append(passage)
        else:
            passage_runs.append([passage])
    text_pieces = []
    for previous_passage, run in zip(
        [None, *(run[-1] for run in passage_runs)], passage_runs, strict=False
    ):
        text_pieces.append(
            _make_text_piece(run, names)
            if run[0].is_client_addition
            else run[0].make_text_piece(
                names,
                max_characters,
                with_turn=previous_passage is None
                or previous_passage.turn_number != run[0].turn_number,
            )
        )

    def describe_omitted_runs(first_run_index: int, last_run_index: int) -> str:
        start = sum(len(run) for run in passage_runs[:first_run_index])
        omitted_runs = passage_runs[first_run_index : last_run_index + 1]
        return describe_gap(start, start + sum(len(run) for run in omitted_runs) - 1)

    return fit_pieces(
        format_first_output_line("read", heading),
        text_pieces,
        max_characters,
        describe_omitted_runs,
    )


def _make_text_piece(passage_run: Sequence[Passage], names: TranscriptNames) -> TextPiece:
    reference = names.make_reference(passage_run[0].entry.record_part)
    kinds = ", ".join(
        dict.fromkeys(passage.speaker.removeprefix("attachment ") for passage in passage_run)
    )
    size = sum(passage.character_count for passage in passage_run)
    end_text = f" to {passage_run[-1].entry.record_part}" if len(passage_run) > 1 else ""
    description = collapse_line(plain_line(f"added by the client: {kinds}"), 160)
    command = format_read_command(reference, passage_run[0].character_count)
    return TextPiece(
        f"{reference}{end_text} · {description} · {format_count(size, 'character')}: {command}",
        "",
        command,
        is_spoken=False,
    )


def make_record_gap_describer(passages: Sequence[Passage], names: TranscriptNames) -> DescribeGap:
    """Return a function that formats the line shown in place of omitted records.

    The line contains the number of omitted records and the command that prints them. If whole turns
    were omitted, the line also contains their numbers, for example "turns 3-5". Otherwise the
    command begins at the first omitted record.
    """

    def describe_gap(first_index: int, last_index: int) -> str:
        count = last_index - first_index + 1
        starts_turn = (
            first_index == 0
            or passages[first_index - 1].turn_number != passages[first_index].turn_number
        )
        ends_turn = (
            last_index + 1 == len(passages)
            or passages[last_index + 1].turn_number != passages[last_index].turn_number
        )
        if (
            starts_turn
            and ends_turn
            and passages[first_index].turn_number >= 0
            and passages[first_index].turn_number != passages[last_index].turn_number
        ):
            span = format_turn_range(
                passages[first_index].turn_number, passages[last_index].turn_number
            )
            command = shell_command(f"read {names.quoted_name} --turns {span}")
            return f"… {count:,} records left out, turns {span}: {command}"
        reference = names.make_reference(passages[first_index].entry.record_part)
        following_count = sum(
            not passage.is_client_addition for passage in passages[first_index + 1 : last_index + 1]
        )
        after_option = f" --after {following_count}" if following_count else ""
        return f"… {format_count(count, 'record')} left out: {shell_command(f'read {reference}{after_option}')}"

    return describe_gap


def make_error_gap_describer(passages: Sequence[Passage], names: TranscriptNames) -> DescribeGap:
    """Return a function that formats the line for omitted errors, with the command to print them."""

    def describe_gap(first_index: int, last_index: int) -> str:
        span = format_turn_range(
            passages[first_index].turn_number, passages[last_index].turn_number
        )
        command = shell_command(f"read {names.quoted_name} --errors --turns {span}")
        return f"… {format_count(last_index - first_index + 1, 'error')} left out: {command}"

    return describe_gap


def commands_text(
    heading: str, commands: Sequence[ShellCall], names: TranscriptNames, max_characters: int
) -> str:
    """Return one line for each command. Cut long commands first, then leave out commands in the middle."""
    lines: list[str] = []
    for length in COMMAND_LENGTH_LIMITS:
        lines = [_format_command_line(shell_call, names, length) for shell_call in commands]
        if not max_characters or sum(len(line) + 1 for line in lines) < max_characters - 300:
            break

    def describe_gap(first_index: int, last_index: int) -> str:
        span = format_turn_range(
            commands[first_index].turn_number, commands[last_index].turn_number
        )
        command = shell_command(f"read {names.quoted_name} --commands --turns {span} --max-chars 0")
        return f"… {format_count(last_index - first_index + 1, 'command')} left out: {command}"

    return fit_both_ends(
        format_first_output_line("read", heading), lines, max_characters, describe_gap
    )


def _format_command_line(command: ShellCall, names: TranscriptNames, max_characters: int) -> str:
    if command.exit_code is not None:
        state = f"{command.state}, exit code {command.exit_code}"
    else:
        state = command.state
    command_text = collapse_line(plain_line(command.command), max_characters)
    # The reference names the record that contains the command's output. The record directly before
    # it contains the call.
    reference = names.make_reference(
        command.result_line_number if command.result_line_number >= 0 else command.line_number
    )
    return " · ".join(
        [
            reference,
            f"turn {command.turn_number}",
            format_minute(command.timestamp)[5:],
            state,
            command_text,
        ]
    )
