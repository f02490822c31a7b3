"""Decide whether a text kept an item, by one rule per kind for openings of ours, plain texts and summaries."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.going_on.truth import Item
from resume_hooks.reading.digest.opening import BULLET, INDENT

SECTIONS = {
    "file": ("files changed",),
    "command": ("commands to run again", "other commands that worked"),
}
"""The only sections of a digest in which files and commands are searched."""

TALK = re.compile(
    r"(?:last request, |last answer, )?(?:USER|ASSISTANT|SUB-AGENT'S REPORT|CLIENT'S SUMMARY|CALL)\b"
)
"""The beginnings of a message's heading in an opening."""

MOST = 0.6
"""A sentence counts as kept if one line contains this part of its rarest words."""

WHOLE = 200
"""The number of characters of a long command that must be there; the rest is a document in it."""

_CD = re.compile(r"\A\s*cd\s+\S+\s*(?:&&|;)\s*")
_SHORTENING_COMMANDS = re.compile(
    r"(?:\s*2>&1)?\s*\|\s*(?:tail|head)\b[^|;&]*\Z|\s*2>&1\s*\Z|\s*2>\s*/dev/null\s*\Z"
)
_WORD = re.compile(r"[^\W\d_][\w./-]{2,}|[가-힣]{2,}")


class Row(NamedTuple):
    """A line of a text, and its section, or ``""`` for a line of prose."""

    section: str
    text: str


def rows_of(opening: str) -> list[Row]:
    """Return the rows of an opening of ours: rows of a section with its name, rows of a message as prose."""
    section, rows = "head", []
    for line in opening.split("\n"):
        if not line.startswith(INDENT):
            section = "" if TALK.match(line) else line
        elif section:
            rows.append(Row(section, line.removeprefix(BULLET)))
        else:
            rows.append(Row("", line.removeprefix(INDENT)))
    return rows


def rows_of_prose(text: str) -> list[Row]:
    """Return the rows of any other text."""
    return [Row("", line) for line in text.split("\n")]


def collapse_spaces(text: str) -> str:
    """Return a text in which all white space is the same."""
    return " ".join(text.split())


def text_keeps_item(item: Item, text: str, rows: Sequence[Row]) -> bool:
    """Check whether a ``flat`` text has an item (a command: its ``core``) verbatim, or one of its rows keeps it."""
    wanted = (
        command_core(item.text)[:WHOLE] if item.kind == "command" else collapse_spaces(item.text)
    )
    return wanted in text or row_keeps_item(item, rows)


def row_keeps_item(item: Item, rows: Sequence[Row]) -> bool:
    """Check whether one of the rows keeps an item.

    A file or command must be in one of its sections, or in prose.
    """
    named = SECTIONS.get(item.kind, ("",))
    looked_at = [row for row in rows if not row.section or row.section.startswith(named)]
    if item.kind == "file":
        return any(_names_file(row, item.text) for row in looked_at)
    if item.kind == "command":
        wanted = command_core(item.text)[:WHOLE]
        return any(wanted in command_core(row.text) for row in looked_at)
    wanted = collapse_spaces(item.text).lower()
    telling = {word.lower() for word in _WORD.findall(item.text)}
    return any(
        wanted in collapse_spaces(row.text).lower() or _states_rarest_words(row.text, telling)
        for row in looked_at
    )


def command_core(command: str) -> str:
    """Return a command on one line, without a leading cd and without commands that only shorten its output."""
    if command.startswith("eval $'"):  # several lines, as in a digest
        command = re.sub(
            r"\\(.)", lambda escaped: {"n": " ", "t": " "}.get(escaped[1], escaped[1]), command[7:]
        )
    found = " ".join(command.split())
    for pattern in (_CD, _SHORTENING_COMMANDS, _SHORTENING_COMMANDS):
        found = pattern.sub("", found)
    return found


def _states_rarest_words(row: str, telling: set[str]) -> bool:
    """Check whether a row contains most of the rarest words of a sentence."""
    said = {word.lower() for word in _WORD.findall(row)}
    return len(telling) > 2 and len(telling & said) >= MOST * len(telling)


def _names_file(row: Row, path: str) -> bool:
    """Check whether a row names a file: one path is the end of the other.

    Prose must contain the file's name.
    """
    path = path.strip("\"'")
    if not row.section:
        return (
            re.search(rf"(?<![\w.-]){re.escape(path.rpartition('/')[2])}(?![\w-])", row.text)
            is not None
        )
    said = re.sub(r" \([^()]*\)\Z", "", row.text)
    return f"/{path}".endswith(f"/{said}") or f"/{said}".endswith(f"/{path}")
