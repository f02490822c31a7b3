"""Questions with a few numbered answers, on any terminal.

One of the questions asks which of several sessions a locator means.
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

# the maximum number of characters of a locator that the question repeats
MAX_LOCATOR_CHARACTERS = 60
MIN_DESCRIPTION_COLUMNS = 24  # the minimum width of an answer's description in columns
_SEPARATORS = (":", "/")  # the characters that separate a session's name from a record or sub-agent


class BackRequested(click.Abort):
    """Raised if the user pressed Esc, so that the previous question is asked again."""


class AnswerChoice(NamedTuple):
    """A possible answer: its ``name`` and its description."""

    name: str
    description: str = ""


def ask_question(
    question: str, answers: Sequence[AnswerChoice], default: int = 0, *, err: bool = False
) -> int:
    """Ask a question and return the index of the answer. An empty line means ``default``.

    Raise click.Abort if the user leaves, Back if they press Esc. If ``err``, ask on stderr, so that
    stdout contains only the command's output.
    """
    name_columns = max(text_width(plain_line(answer.name)) for answer in answers)
    print_text(question, err=err)
    for number, answer in enumerate(answers, 1):
        mark = ">" if number == default + 1 else " "
        row_start = f" {mark} {number:>2}  {pad_columns(plain_line(answer.name), name_columns)}  "
        description_columns = max(
            MIN_DESCRIPTION_COLUMNS, shutil.get_terminal_size().columns - text_width(row_start)
        )
        for row in textwrap.wrap(plain_line(answer.description), description_columns) or [""]:
            print_text(f"{row_start}{row}".rstrip(), err=err)
            row_start = " " * text_width(row_start)
    while True:
        reply = _read_line(
            f"Number, or q to leave [{default + 1}]: ", err=err
        ).strip().lower() or str(default + 1)
        if reply in {"q", "quit"}:
            raise click.Abort
        if reply.isascii() and reply.isdigit() and 1 <= int(reply[:9]) <= len(answers):
            return int(reply[:9]) - 1
        matches = []
        for index, answer in enumerate(answers):
            if answer.name.lower() == reply:
                matches.append(index)
        if matches:
            return matches[0]
        print_text(f"{reply!r} is not an answer: give a number from 1 to {len(answers)}.", err=err)


def is_dumb_terminal() -> bool:
    """Check whether the terminal can only print lines."""
    return os.environ.get("TERM", "dumb") == "dumb"


def choose_candidate_in_command(
    arguments: Sequence[str], error: AmbiguousLocator
) -> list[str] | None:
    """Return the command with the id of the session that the user chooses. Raise click.Abort if they leave.

    Return None if the user cannot be asked, because there is no terminal or ``--json`` was given.
    Also return None unless exactly one argument contains the locator. The question goes to stderr,
    so that stdout can be captured.
    """
    positions = [
        position
        for position, word in enumerate(arguments)
        if _contains_locator(word, error.locator)
    ]
    # If two arguments could be the locator, one of them is something else, such as a title.
    is_interactive = sys.stdin.isatty() and sys.stderr.isatty()
    if len(positions) != 1 or "--json" in arguments or not error.candidates or not is_interactive:
        return None
    (position,) = positions
    chosen_command = list(arguments)
    candidate = ask_candidate(error)
    chosen_command[position] = chosen_command[position].replace(
        error.locator, str(candidate.get("locator", candidate["session_id"])), 1
    )
    return chosen_command


def ask_candidate(error: AmbiguousLocator) -> Mapping[str, object]:
    """Ask which candidate is meant. Raise click.Abort if the user leaves, ``error`` if there are no candidates."""
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
        newest_text = f", the newest {len(answers)}"
    else:
        newest_text = ""
    question = (
        f"'{error.locator[:MAX_LOCATOR_CHARACTERS]}' fits {error.count} sessions{newest_text}:"
    )
    return error.candidates[ask_question(question, answers, err=True)]


def _read_line(prompt: str, *, err: bool) -> str:
    if is_dumb_terminal():
        return str(click.prompt(prompt, default="", show_default=False, prompt_suffix="", err=err))
    from prompt_toolkit import PromptSession  # only a question needs this import
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.output.vt100 import Vt100_Output

    keys, size = KeyBindings(), Size(*reversed(shutil.get_terminal_size()))
    keys.add("escape", eager=True)(lambda event: event.app.exit(exception=BackRequested))
    stream = sys.stderr if err else sys.stdout
    output = Vt100_Output(stream, lambda: size, os.environ.get("TERM"), enable_cpr=False)
    try:
        return str(PromptSession[str](key_bindings=keys, output=output).prompt(prompt))
    except (KeyboardInterrupt, EOFError):
        raise click.Abort from None


def _contains_locator(word: str, locator: str) -> bool:
    """Check whether an argument is the locator: alone, as an option's value, or before a record or sub-agent."""
    text = word.partition("=")[2] if word.startswith("--") else word
    return text.strip() == locator or text.lstrip().startswith(
        tuple(locator + mark for mark in _SEPARATORS)
    )
