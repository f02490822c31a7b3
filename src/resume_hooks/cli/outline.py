"""``outline``: print one line for each turn, so that a model or a person finds a turn quickly."""

from __future__ import annotations

import functools

from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import show_scan_progress
from resume_hooks.cli.value_with_fields import ValueWithFields
from resume_hooks.cli.verbs.reading import OutlineOptions
from resume_hooks.reading.outline import Outline, OutlineTurn, format_outline, make_outline
from resume_hooks.sessions.agents.registry import row_of_agent
from resume_hooks.sessions.locate import resolve_transcript
from resume_hooks.sessions.record_references import TranscriptNames, names_of_transcript
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts import turns as words


def show_outline(options: OutlineOptions) -> None:
    """Print the turns that the options select, one line for each turn."""
    if options.turn_range is not None:
        requested_turns = words.parse_turns(options.turn_range)
    else:
        requested_turns = None
    session = resolve_transcript(
        options.locator, current_folder(), options.where, allow_other_agents=True
    )
    with show_scan_progress(session.path, quiet=options.as_json) as observers:
        session_outline = make_outline(session, observers=observers)
    if requested_turns:
        turn_range = requested_turns.list_turn_numbers(session_outline.turn_count)
    else:
        turn_range = range(session_outline.turn_count + 1)
    turns = []
    for turn in session_outline.turns:
        if turn.number in turn_range:
            turns.append(turn)
    if options.touched_file is not None:
        path_end = f"/{options.touched_file.strip().removeprefix('./').strip('/')}"
        turns = [
            turn
            for turn in turns
            if any(f"/{file.strip('/')}".endswith(path_end) for file in turn.files)
        ]
    names = names_of_transcript(session, options.where)
    limitation = row_of_agent(session.agent).loss_note
    text = functools.partial(
        format_outline, session_outline, turns, names, options.max_chars, options.touched_file
    )
    options.print_answer(
        _make_outline_data(session, session_outline, turns, names),
        text,
        [limitation] if limitation else [],
    )


def _make_outline_data(
    session: SessionFile, session_outline: Outline, turns: list[OutlineTurn], names: TranscriptNames
) -> ValueWithFields:
    shown_turns = {turn.number for turn in turns}

    def format_reference(line: int) -> str:
        return f"{names.full_name}:{line}"

    return ValueWithFields(
        session_outline,
        {
            "session_id": session.session_id,
            "session_file": session.original_path,
            "turns": [
                ValueWithFields(turn, {"reference": format_reference(turn.line_number)})
                for turn in turns
            ],
            "compactions": [
                ValueWithFields(
                    compaction,
                    {
                        "reference": format_reference(compaction.line_number),
                        "summary": format_reference(compaction.summary_line_number)
                        if compaction.summary_line_number >= 0
                        else None,
                    },
                )
                for compaction in session_outline.compactions
                if compaction.turn_number in shown_turns
            ],
            "subagents": [
                ValueWithFields(agent, {"locator": f"{names.full_name}/{agent.name}"})
                for agent in session_outline.subagents
                if agent.turn_number is None or agent.turn_number in shown_turns
            ],
        },
    )
