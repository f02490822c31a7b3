"""A question with a few numbered answers, on any terminal; Ctrl+C, Ctrl+D and q leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click

from resume_hooks.cli.output import say
from resume_hooks.cli.text_width import width
from resume_hooks.system.text import plain_line


class Answer(NamedTuple):
    """An answer that can be given: its ``name``, and what is said of it."""

    name: str
    about: str = ""


def ask(question: str, answers: Sequence[Answer], usual: int = 0, *, err: bool = False) -> int:
    """Which answer is given, by its place; ``usual`` is taken for an empty line. click.Abort where the user leaves.

    ``err`` asks on stderr, so that stdout is left to what the command prints.
    """
    wide = max(width(plain_line(answer.name)) for answer in answers)
    say(question, err=err)
    for number, answer in enumerate(answers, 1):
        mark = ">" if number == usual + 1 else " "
        name = plain_line(answer.name)
        say(f" {mark} {number:>2}  {name}{' ' * (wide - width(name))}  {plain_line(answer.about)}".rstrip(), err=err)
    while True:
        given = str(click.prompt("Number, or q to leave", default=str(usual + 1), err=err)).strip().lower()
        if given in {"q", "quit"}:
            raise click.Abort
        if given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= len(answers):
            return int(given[:9]) - 1
        named = [place for place, answer in enumerate(answers) if answer.name.lower() == given]
        if named:
            return named[0]
        say(f"There is no {given!r} here: a number from 1 to {len(answers)}.", err=err)
