"""``outline``: the turns of a session in a line each, for a model or a person who looks for a place in it."""

from __future__ import annotations

from typing import Any

import click

from resume_hooks.cli.output import current_folder, emit, json_option, locator_argument
from resume_hooks.cli.progress import watched
from resume_hooks.paths import Where
from resume_hooks.reading.outline import Outline, OutlineTurn, outline
from resume_hooks.reading.outline_text import outline_text
from resume_hooks.sessions.locate import SessionFile, resolve_transcript
from resume_hooks.sessions.references import TranscriptNames, names_of
from resume_hooks.transcripts import turns as words

MAX_CHARACTERS = 8_000
"""Characters that are printed where nothing else is asked for: about 2,000 tokens of a model that reads along."""


@click.command("outline")
@locator_argument
@click.option("--turns", metavar="A-B", help="Only these: 12, 12-15, 12-, last, or -3 (the last three).")
@click.option("--file", "touched", metavar="PATH", help="Only turns in which a tool read or wrote this file.")
@click.option(
    "--max-chars", type=click.IntRange(0), default=MAX_CHARACTERS, show_default=True,
    help="Characters of the text at most; 0 for all.",
)  # fmt: skip
@json_option
def command(locator: str | None, turns: str | None, touched: str | None, max_chars: int, as_json: bool) -> None:
    """Show the turns of a session, a line each: what was asked, the tools, the files, the size of the context.

    LOCATOR may be <session>/agent-<id>, a sub-agent. Turns count in the order of the file, so a number stays when the
    session grows or is compacted. The number at the end of a line is a reference: `read` prints what stands there.

    \b
    Examples:
      resume-hooks outline
      resume-hooks outline 1a2b3c4d --turns 40-60
      resume-hooks outline 1a2b3c4d --file src/parser.py
      resume-hooks outline 1a2b3c4d/agent-a63d21c --json
    """
    asked = words.parse(turns) if turns is not None else None
    session = resolve_transcript(locator, current_folder(), Where())
    with watched(session.path, quiet=as_json) as watching:
        found = outline(session, watching=watching)
    within = asked.within(found.turn_count) if asked else range(found.turn_count + 1)
    chosen = [turn for turn in found.turns if turn.number in within and _touches(turn, touched)]
    names = names_of(session, Where())
    emit(
        "outline", _data(session, found, chosen, names), lambda: outline_text(found, chosen, names, max_chars, touched),
        as_json=as_json,
    )  # fmt: skip


def _touches(turn: OutlineTurn, path: str | None) -> bool:
    """Whether a turn worked on a file, named whole or by its last parts."""
    if path is None:
        return True
    wanted = path.strip().removeprefix("./").strip("/")
    return any(f"/{file.strip('/')}".endswith(f"/{wanted}") for file in turn.files)


def _data(session: SessionFile, found: Outline, turns: list[OutlineTurn], names: TranscriptNames) -> dict[str, Any]:
    """The documented form; references are in full."""
    shown = {turn.number for turn in turns}
    return {
        "session_id": session.session_id,
        "session_file": session.path,
        "title": found.title,
        "created": found.created,
        "ended": found.ended,
        "size": found.size,
        "lines": found.lines,
        "bad_lines": list(found.bad_lines),
        "turn_count": found.turn_count,
        "turns": [
            {
                "number": turn.number,
                "reference": f"{names.full}:{turn.line}",
                "time": turn.time,
                "first_words": turn.first_words,
                "tools": turn.tools,
                "failed": turn.failed,
                "files": list(turn.files),
                "edited": list(turn.edited),
                "tokens": turn.tokens,
                "growth": turn.growth,
                "place": turn.place,
            }
            for turn in turns
        ],
        "compactions": [
            {
                "turn": compaction.turn,
                "reference": f"{names.full}:{compaction.line}",
                "time": compaction.time,
                "trigger": compaction.trigger,
                "tokens_before": compaction.tokens_before,
                "summary": f"{names.full}:{compaction.summary}" if compaction.summary >= 0 else None,
            }
            for compaction in found.compactions
            if compaction.turn in shown
        ],
        "subagents": [
            {"locator": f"{names.full}/{agent.name}", **agent._asdict()}
            for agent in found.subagents
            if agent.turn is None or agent.turn in shown
        ],
    }
