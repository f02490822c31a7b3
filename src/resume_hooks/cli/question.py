"""Questions with a few numbered answers, on any terminal.

One of them asks which of several sessions a locator names.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click

from resume_hooks.cli.output import pad_columns, print_text
from resume_hooks.clock import format_minute
from resume_hooks.errors import AmbiguousLocator
from resume_hooks.system.text import plain_line, text_width

LONGEST_WORDS = 60  # characters of a locator that are repeated
ROOM = 24  # the minimum columns of an answer's description
_BEHIND = (":", "/")  # the characters between a session's name and a record or sub-agent


class Back(click.Abort):
    """The user pressed Esc, so the previous question is asked again."""


class AnswerChoice(NamedTuple):
    """A possible answer: its ``name`` and its description."""

    name: str
    about: str = ""


def ask_question(
    question: str, answers: Sequence[AnswerChoice], usual: int = 0, *, err: bool = False
) -> int:
    """Ask, and return the index of the answer; an empty line means ``usual``.

    Raise click.Abort if the user leaves, Back if they press Esc. ``err`` asks on stderr, so that
    stdout contains only the command's output.
    """
    wide = max(text_width(plain_line(answer.name)) for answer in answers)
    print_text(question, err=err)
    for number, answer in enumerate(answers, 1):
        mark = ">" if number == usual + 1 else " "
        front = f" {mark} {number:>2}  {pad_columns(plain_line(answer.name), wide)}  "
        room = max(ROOM, shutil.get_terminal_size().columns - text_width(front))
        for row in textwrap.wrap(plain_line(answer.about), room) or [""]:
            print_text(f"{front}{row}".rstrip(), err=err)
            front = " " * text_width(front)
    while True:
        given = _read_line(
            f"Number, or q to leave [{usual + 1}]: ", err=err
        ).strip().lower() or str(usual + 1)
        if given in {"q", "quit"}:
            raise click.Abort
        if given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= len(answers):
            return int(given[:9]) - 1
        named = []
        for place, answer in enumerate(answers):
            if answer.name.lower() == given:
                named.append(place)
        if named:
            return named[0]
        print_text(f"{given!r} is not an answer: give a number from 1 to {len(answers)}.", err=err)


def is_dumb() -> bool:
    """Check whether the terminal can only print lines."""
    return os.environ.get("TERM", "dumb") == "dumb"


def command_with_choice(arguments: Sequence[str], error: AmbiguousLocator) -> list[str] | None:
    """Return the command with the id of the session that the user chooses. Raise click.Abort if they leave.

    Return None if the user cannot be asked: without a terminal, with ``--json``, or unless exactly
    one word contains the locator. The question goes to stderr, so that stdout can be captured.
    """
    places = [place for place, word in enumerate(arguments) if _named_in(word, error.locator)]
    # If two words could be the locator, one of them is something else, such as a title.
    watched = sys.stdin.isatty() and sys.stderr.isatty()
    if len(places) != 1 or "--json" in arguments or not error.candidates or not watched:
        return None
    (place,) = places
    again = list(arguments)
    chosen = ask_candidate(error)
    again[place] = again[place].replace(
        error.locator, str(chosen.get("locator", chosen["session_id"])), 1
    )
    return again


def ask_candidate(error: AmbiguousLocator) -> Mapping[str, object]:
    """Ask which candidate is meant. Raise click.Abort if the user leaves, ``error`` without candidates."""
    if not error.candidates:
        raise error
    answers = []
    for row in error.candidates:
        answers.append(
            AnswerChoice(
                str(row["session_id"])[:8], f"{format_minute(str(row['ended']))}  {row['title']}"
            )
        )
    if error.count > len(answers):
        shown = f", the newest {len(answers)}"
    else:
        shown = ""
    question = f"'{error.locator[:LONGEST_WORDS]}' fits {error.count} sessions{shown}:"
    return error.candidates[ask_question(question, answers, err=True)]


def _read_line(prompt: str, *, err: bool) -> str:
    if is_dumb():
        return str(click.prompt(prompt, default="", show_default=False, prompt_suffix="", err=err))
    from prompt_toolkit import PromptSession  # only a question needs this import
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.output.vt100 import Vt100_Output

    keys, size = KeyBindings(), Size(*reversed(shutil.get_terminal_size()))
    keys.add("escape", eager=True)(lambda event: event.app.exit(exception=Back))
    stream = sys.stderr if err else sys.stdout
    shown = Vt100_Output(stream, lambda: size, os.environ.get("TERM"), enable_cpr=False)
    try:
        return str(PromptSession[str](key_bindings=keys, output=shown).prompt(prompt))
    except (KeyboardInterrupt, EOFError):
        raise click.Abort from None


def _named_in(word: str, locator: str) -> bool:
    """Check whether a word is the locator, alone, as an option's value, or before a record or sub-agent."""
    value = word.partition("=")[2] if word.startswith("--") else word
    return value.strip() == locator or value.lstrip().startswith(
        tuple(locator + mark for mark in _BEHIND)
    )
