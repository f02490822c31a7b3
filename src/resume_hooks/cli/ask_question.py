"""Ask the user a question with a few numbered answers, on any terminal.

``ask_which_session`` asks which of several matching sessions the user meant.
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

# the maximum number of characters of a locator to show in the question
MAX_LOCATOR_CHARACTERS = 60
MIN_DESCRIPTION_COLUMNS = 24  # the minimum width in columns of an answer's description
# the characters that may separate a session's name from a record number or a sub-agent's name
_LOCATOR_SEPARATORS = (
    ":",
    "/",
)


class BackRequested(click.Abort):
    """The user pressed Esc to go back to the previous question."""


class AnswerChoice(NamedTuple):
    """A possible answer to a question: its name, which the user may type, and a description."""

    name: str
    description: str = ""


def ask_question(
    question: str, answers: Sequence[AnswerChoice], default: int = 0, *, err: bool = False
) -> int:
    """Ask a question and return the index of the chosen answer in ``answers``.

    The user types the number or the name of an answer, or presses Enter for the answer at index
    ``default``. Raise click.Abort if the user leaves, and BackRequested if the user presses Esc. If
    ``err``, print the question on stderr, so that stdout contains only the verb's output.
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
    """Check whether the terminal ignores the escape sequences that move the cursor and style text."""
    return os.environ.get("TERM", "dumb") == "dumb"


def choose_candidate_in_command(
    arguments: Sequence[str], error: AmbiguousLocator
) -> list[str] | None:
    """Ask which session the user meant. Return the command's arguments with the id of that session.

    Return None without a question if there is no terminal or ``--json`` was given. Also return None
    if several arguments contain the locator, because one of them may be other text, such as a
    title. The question is printed on stderr, because a shell may capture stdout. Raise click.Abort
    if the user leaves.
    """
    positions = [
        position
        for position, word in enumerate(arguments)
        if _contains_locator(word, error.locator)
    ]
    is_interactive = sys.stdin.isatty() and sys.stderr.isatty()
    if len(positions) != 1 or "--json" in arguments or not error.candidates or not is_interactive:
        return None
    (position,) = positions
    chosen_command = list(arguments)
    candidate = ask_which_session(error)
    chosen_command[position] = chosen_command[position].replace(
        error.locator, str(candidate.get("locator", candidate["session_id"])), 1
    )
    return chosen_command


def ask_which_session(error: AmbiguousLocator) -> Mapping[str, object]:
    """Ask which of the error's candidates the user meant, and return the chosen candidate.

    Raise ``error`` if it has no candidates, and click.Abort if the user leaves.
    """
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
        newest_text = f". These are the newest {len(answers)}"
    else:
        newest_text = ""
    question = (
        f"'{error.locator[:MAX_LOCATOR_CHARACTERS]}' fits {error.count} sessions{newest_text}:"
    )
    return error.candidates[ask_question(question, answers, err=True)]


def _read_line(prompt: str, *, err: bool) -> str:
    if is_dumb_terminal():
        return str(click.prompt(prompt, default="", show_default=False, prompt_suffix="", err=err))
    from prompt_toolkit import PromptSession  # Imported late because only a question needs it.
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
    """Check whether an argument contains the locator.

    The locator may be the whole argument or the value of an option (``--session=LOCATOR``). A
    record number or a sub-agent's name may follow (``LOCATOR:12``, ``LOCATOR/agent``).
    """
    text = word.partition("=")[2] if word.startswith("--") else word
    return text.strip() == locator or text.lstrip().startswith(
        tuple(locator + mark for mark in _LOCATOR_SEPARATORS)
    )
