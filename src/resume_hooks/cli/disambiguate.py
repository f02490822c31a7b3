"""Which of several sessions was meant: asked where somebody sits at a terminal, then the command is run with its id."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from resume_hooks.cli.menu import Answer, ask
from resume_hooks.clock import minute
from resume_hooks.errors import AmbiguousLocator

LONGEST_WORDS = 60
"""Characters of a locator that are repeated."""

_BEHIND = (":", "/")
"""What may follow a session's name in one word: a record, or a sub-agent."""


def meant(arguments: Sequence[str], error: AmbiguousLocator) -> list[str] | None:
    """The words of the command with the id of the session that was chosen; click.Abort where the user leaves.

    None where nobody can be asked: not on a terminal, with ``--json``, or where not one word alone holds the locator.
    The question goes to stderr, so that what the command prints can be caught all the same.
    """
    places = [place for place, word in enumerate(arguments) if _named_in(word, error.locator)]
    # Of two words that could be the locator, one is something else that was typed, a title or an instruction.
    if len(places) != 1 or "--json" in arguments or not error.candidates or not _is_watched():
        return None
    (place,) = places
    again = list(arguments)
    chosen = picked(error)
    again[place] = again[place].replace(error.locator, str(chosen.get("locator", chosen["session_id"])), 1)
    return again


def picked(error: AmbiguousLocator) -> Mapping[str, object]:
    """The candidate that is chosen; click.Abort where the user leaves, the error itself where there is none left."""
    if not error.candidates:
        raise error
    answers = [Answer(str(row["session_id"])[:8], _about(row)) for row in error.candidates]
    shown = f", the newest {len(answers)}" if error.count > len(answers) else ""
    question = f"'{error.locator[:LONGEST_WORDS]}' fits {error.count} sessions{shown}:"
    return error.candidates[ask(question, answers, err=True)]


def _named_in(word: str, locator: str) -> bool:
    """Whether a word of the command is a locator, alone, as an option's value, or with a record or sub-agent behind."""
    value = word.partition("=")[2] if word.startswith("--") else word
    return value.strip() == locator or value.lstrip().startswith(tuple(locator + mark for mark in _BEHIND))


def _about(row: Mapping[str, object]) -> str:
    return f"{minute(str(row['ended']))}  {row['title']}"


def _is_watched() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
