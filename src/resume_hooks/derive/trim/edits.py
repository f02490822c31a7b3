"""Edits: records with placeholders in place of what was chosen, marked with where the original is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from resume_hooks.derive.child.rewrite_chain import Edit
from resume_hooks.derive.trim.rules.superseded import WRITERS
from resume_hooks.derive.trim.selection import COMMAND_HEAD, HEAD, TAIL, Choice, Origins
from resume_hooks.transcripts.content import INPUT, MEDIA, PROMPT, RESULT, THINKING
from resume_hooks.transcripts.original_ref import Origin
from resume_hooks.transcripts.records import Record

SHOWN = WRITERS | {"AskUserQuestion", "ExitPlanMode", "Skill"}
"""Tools whose ``toolUseResult`` stays: it is small, or the coloured diff on the screen."""


def edits_of(choices: Sequence[Choice], origins: Origins) -> dict[int, Edit]:
    """One edit for each record that loses something, by line number."""
    by_record: defaultdict[int, list[Choice]] = defaultdict(list)
    for choice in choices:
        by_record[choice.piece.number].append(choice)
    return {number: Trimming(tuple(chosen), origins.of(number)) for number, chosen in by_record.items()}


class Trimming:
    """The edit of one record: each chosen value replaced at its address."""

    def __init__(self, choices: tuple[Choice, ...], origin: Origin) -> None:
        self._choices = choices
        self._origin = origin

    def __call__(self, record: Record) -> Record:
        """The trimmed record; ``record`` is the parsed line, which nobody else holds."""
        for choice in self._choices:
            _replace(record, choice)
        if any(choice.piece.kind == THINKING for choice in self._choices):
            # Of an answer that says more, clients pass an empty record over; a text in its place would be speech.
            record["message"]["content"] = [block for block in record["message"]["content"] if block is not None]
        if any(choice.piece.kind in {RESULT, MEDIA} and choice.tool not in SHOWN for choice in self._choices):
            record.pop("toolUseResult", None)  # the same output once more, for the screen
        return {**record, **self._origin.marks(min(choice.piece.block for choice in self._choices))}


def _replace(record: Record, choice: Choice) -> None:
    *path, last = choice.piece.address
    holder: Any = record
    for key in path:
        holder = holder[key]
    if choice.piece.kind == THINKING:
        holder[last] = None
    elif choice.piece.kind == MEDIA:
        holder[last] = {"type": "text", "text": choice.placeholder}
    elif choice.piece.kind == PROMPT:
        said = holder[last]
        holder[last] = f"{said[:HEAD]}\n{choice.placeholder}\n{said[-TAIL:]}"
    elif choice.piece.kind == INPUT and choice.tool == "Bash":
        holder[last] = f"{holder[last][:COMMAND_HEAD]} {choice.placeholder}"
    else:
        holder[last] = choice.placeholder
