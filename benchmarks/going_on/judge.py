"""Decide whether a text contains an item.

The same rule applies to our openings, plain texts and summaries. There is a rule for each kind of
item.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.going_on.truth import Item
from resume_hooks.reading.digest.opening import BULLET, INDENT

SECTIONS_BY_KIND = {
    "file": ("files changed",),
    "command": ("commands to run again", "other commands that worked"),
}
"""The sections of a digest in which files and commands are searched."""

MESSAGE_HEADING_PATTERN = re.compile(
    r"(?:last request, |last answer, )?(?:USER|ASSISTANT|SUB-AGENT'S REPORT|CLIENT'S SUMMARY|CALL)\b"
)
"""Matches the beginning of a message's heading in an opening."""

MIN_WORD_FRACTION = 0.6
"""A line contains a sentence if it has this fraction of the sentence's longer words."""

MAX_COMMAND_CHARACTERS = 200
"""A text contains a long command if it contains this number of its first characters. The rest of a
long command is usually a document."""

_CD_PATTERN = re.compile(r"\A\s*cd\s+\S+\s*(?:&&|;)\s*")
_OUTPUT_FILTER_PATTERN = re.compile(
    r"(?:\s*2>&1)?\s*\|\s*(?:tail|head)\b[^|;&]*\Z|\s*2>&1\s*\Z|\s*2>\s*/dev/null\s*\Z"
)
_WORD_PATTERN = re.compile(r"[^\W\d_][\w./-]{2,}|[가-힣]{2,}")


class Row(NamedTuple):
    """A line of a text. ``section`` is the heading above it, or ``""`` for prose."""

    section: str
    text: str


def split_opening_rows(opening: str) -> list[Row]:
    """Return the lines of our opening. A line of a message has the section ``""``."""
    section, rows = "head", []
    for line in opening.split("\n"):
        if not line.startswith(INDENT):
            section = "" if MESSAGE_HEADING_PATTERN.match(line) else line
        elif section:
            rows.append(Row(section, line.removeprefix(BULLET)))
        else:
            rows.append(Row("", line.removeprefix(INDENT)))
    return rows


def split_prose_rows(text: str) -> list[Row]:
    """Return the lines of a text without sections, each as a row of prose."""
    return [Row("", line) for line in text.split("\n")]


def collapse_spaces(text: str) -> str:
    """Replace each run of white space in a text with a space."""
    return " ".join(text.split())


def text_contains_item(item: Item, text: str, rows: Sequence[Row]) -> bool:
    """Check whether a text contains an item verbatim, or whether one of its rows contains the item.

    White space in ``text`` must be collapsed. A command is compared by its ``command_core``.
    """
    wanted = (
        command_core(item.text)[:MAX_COMMAND_CHARACTERS]
        if item.kind == "command"
        else collapse_spaces(item.text)
    )
    return wanted in text or row_contains_item(item, rows)


def row_contains_item(item: Item, rows: Sequence[Row]) -> bool:
    """Check whether one of the rows contains an item.

    A file or command counts only if its row is in a section for this kind of item, or in prose.
    """
    named = SECTIONS_BY_KIND.get(item.kind, ("",))
    looked_at = [row for row in rows if not row.section or row.section.startswith(named)]
    if item.kind == "file":
        return any(_names_file(row, item.text) for row in looked_at)
    if item.kind == "command":
        wanted = command_core(item.text)[:MAX_COMMAND_CHARACTERS]
        return any(wanted in command_core(row.text) for row in looked_at)
    wanted = collapse_spaces(item.text).lower()
    telling = {word.lower() for word in _WORD_PATTERN.findall(item.text)}
    return any(
        wanted in collapse_spaces(row.text).lower() or _contains_most_words(row.text, telling)
        for row in looked_at
    )


def command_core(command: str) -> str:
    """Return a command on one line, without a leading cd and without filters that only shorten its output."""
    if command.startswith("eval $'"):  # In a digest, a command of several lines has this form.
        command = re.sub(
            r"\\(.)", lambda escaped: {"n": " ", "t": " "}.get(escaped[1], escaped[1]), command[7:]
        )
    found = " ".join(command.split())
    for pattern in (_CD_PATTERN, _OUTPUT_FILTER_PATTERN, _OUTPUT_FILTER_PATTERN):
        found = pattern.sub("", found)
    return found


def _contains_most_words(row: str, words: set[str]) -> bool:
    """Check whether a row contains most of these words. Two words or fewer are never enough."""
    said = {word.lower() for word in _WORD_PATTERN.findall(row)}
    return len(words) > 2 and len(words & said) >= MIN_WORD_FRACTION * len(words)


def _names_file(row: Row, path: str) -> bool:
    """Check whether a row names a file.

    In a section, the path in the row must end with ``path``, or ``path`` must end with the path in
    the row. In prose, the file's bare name is enough.
    """
    path = path.strip("\"'")
    if not row.section:
        return (
            re.search(rf"(?<![\w.-]){re.escape(path.rpartition('/')[2])}(?![\w-])", row.text)
            is not None
        )
    said = re.sub(r" \([^()]*\)\Z", "", row.text)
    return f"/{path}".endswith(f"/{said}") or f"/{said}".endswith(f"/{path}")
