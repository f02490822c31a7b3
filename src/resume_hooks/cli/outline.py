"""``outline``: a line for each turn of a session, for a model or a person who looks for a place in it."""

from __future__ import annotations

import functools

from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import scan_progress
from resume_hooks.cli.verbs.reading import OutlineOptions
from resume_hooks.cli.with_fields import With
from resume_hooks.reading.outline import Outline, OutlineTurn, outline, outline_text
from resume_hooks.sessions.agents.registry import row_of
from resume_hooks.sessions.locate import resolve_transcript
from resume_hooks.sessions.record_references import TranscriptNames, names_of
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts import turns as words


def show_outline(options: OutlineOptions) -> None:
    """Print the requested turns."""
    if options.turns is not None:
        asked = words.parse(options.turns)
    else:
        asked = None
    session = resolve_transcript(options.locator, current_folder(), options.where, foreign=True)
    with scan_progress(session.path, quiet=options.as_json) as watching:
        found = outline(session, watching=watching)
    if asked:
        within = asked.within(found.turn_count)
    else:
        within = range(found.turn_count + 1)
    chosen = []
    for turn in found.turns:
        if turn.number in within:
            chosen.append(turn)
    if options.touched is not None:
        ending = f"/{options.touched.strip().removeprefix('./').strip('/')}"
        chosen = [
            turn
            for turn in chosen
            if any(f"/{file.strip('/')}".endswith(ending) for file in turn.files)
        ]
    names = names_of(session, options.where)
    left = row_of(session.agent).left
    text = functools.partial(outline_text, found, chosen, names, options.max_chars, options.touched)
    options.emit(_outline_data(session, found, chosen, names), text, [left] if left else [])


def _outline_data(
    session: SessionFile, found: Outline, turns: list[OutlineTurn], names: TranscriptNames
) -> With:
    shown = {turn.number for turn in turns}

    def reference(line: int) -> str:
        return f"{names.full}:{line}"

    return With(
        found,
        {
            "session_id": session.session_id,
            "session_file": session.original,
            "turns": [With(turn, {"reference": reference(turn.line)}) for turn in turns],
            "compactions": [
                With(
                    one,
                    {
                        "reference": reference(one.line),
                        "summary": reference(one.summary) if one.summary >= 0 else None,
                    },
                )
                for one in found.compactions
                if one.turn in shown
            ],
            "subagents": [
                With(agent, {"locator": f"{names.full}/{agent.name}"})
                for agent in found.subagents
                if agent.turn is None or agent.turn in shown
            ],
        },
    )
