"""``outline``: the turns of a session in a line each, for a model or a person who looks for a place in it."""

from __future__ import annotations

import functools
from typing import Any

from resume_hooks.cli.options import (
    current_folder,
)
from resume_hooks.cli.progress import watched
from resume_hooks.cli.verbs.reading import OutlineOptions
from resume_hooks.reading.outline import Outline, OutlineTurn, outline
from resume_hooks.reading.outline_scan import Compaction
from resume_hooks.reading.outline_text import outline_text
from resume_hooks.sessions.agents.registry import left_of
from resume_hooks.sessions.locate import SessionFile, resolve_transcript
from resume_hooks.sessions.record_references import TranscriptNames, names_of
from resume_hooks.transcripts import turns as words


def show_outline(options: OutlineOptions) -> None:
    """Print the turns that were asked for."""
    asked = words.parse(options.turns) if options.turns is not None else None
    session = resolve_transcript(options.locator, current_folder(), options.where, foreign=True)
    with watched(session.path, quiet=options.as_json) as watching:
        found = outline(session, watching=watching)
    within = asked.within(found.turn_count) if asked else range(found.turn_count + 1)
    chosen = [turn for turn in found.turns if turn.number in within and _touches(turn, options.touched)]
    names = names_of(session, options.where)
    shown = options.max_chars, options.touched
    left = left_of(session.agent)
    text = functools.partial(outline_text, found, chosen, names, *shown)
    options.emit(_data(session, found, chosen, names), text, [left] if left else [])


def _touches(turn: OutlineTurn, path: str | None) -> bool:
    """Whether a turn worked on a file, named whole or by its last parts."""
    if path is None:
        return True
    wanted = path.strip().removeprefix("./").strip("/")
    return any(f"/{file.strip('/')}".endswith(f"/{wanted}") for file in turn.files)


def _data(session: SessionFile, found: Outline, turns: list[OutlineTurn], names: TranscriptNames) -> dict[str, Any]:
    """The documented form; references are in full."""
    shown = {turn.number for turn in turns}
    compactions = [_row(compaction, names) for compaction in found.compactions if compaction.turn in shown]
    for row in compactions:
        row["summary"] = f"{names.full}:{row['summary']}" if row["summary"] >= 0 else None
    return {
        **found._asdict(),
        "session_id": session.session_id,
        "session_file": session.original,
        "turns": [_row(turn, names) for turn in turns],
        "compactions": compactions,
        "subagents": [
            {"locator": f"{names.full}/{agent.name}", **agent._asdict()}
            for agent in found.subagents
            if agent.turn is None or agent.turn in shown
        ],
    }


def _row(value: OutlineTurn | Compaction, names: TranscriptNames) -> dict[str, Any]:
    """A turn or a compaction with its reference in place of its line."""
    row = value._asdict()
    row["reference"] = f"{names.full}:{row.pop('line')}"
    return row
