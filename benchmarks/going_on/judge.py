"""Whether a text kept an item: one rule a kind, the same for our opening, for a plain text and for a summary."""

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
"""Sections of a digest in which files and commands are looked for, and in none of its others."""

TALK = re.compile(
    r"(?:last request, |last answer, )?(?:USER|ASSISTANT|SUB-AGENT'S REPORT|CLIENT'S SUMMARY|CALL)\b"
)
"""How the head of a message in an opening begins."""

MOST = 0.6
"""The part of a sentence's telling words that one line must hold for the sentence to count as kept."""

WHOLE = 200
"""Characters of a long command that must be there; what follows is a document that it carries."""

_CD = re.compile(r"\A\s*cd\s+\S+\s*(?:&&|;)\s*")
_CUT = re.compile(
    r"(?:\s*2>&1)?\s*\|\s*(?:tail|head)\b[^|;&]*\Z|\s*2>&1\s*\Z|\s*2>\s*/dev/null\s*\Z"
)
_WORD = re.compile(r"[^\W\d_][\w./-]{2,}|[가-힣]{2,}")


class Row(NamedTuple):
    """A line of a text, and the section that it stands in; ``""`` for a line of prose."""

    section: str
    text: str


def rows_of(opening: str) -> list[Row]:
    """The rows of an opening of ours: those of a section with its name, those of a message as prose."""
    section, rows = "head", []
    for line in opening.split("\n"):
        if not line.startswith(INDENT):
            section = "" if TALK.match(line) else line
        elif section:
            rows.append(Row(section, line.removeprefix(BULLET)))
        else:
            rows.append(Row("", line.removeprefix(INDENT)))
    return rows


def prose(text: str) -> list[Row]:
    """The rows of a text that is no opening of ours."""
    return [Row("", line) for line in text.split("\n")]


def flat(text: str) -> str:
    """A text without the difference that white space makes."""
    return " ".join(text.split())


def holds(item: Item, text: str, rows: Sequence[Row]) -> bool:
    """Whether a ``flat`` text has an item word for word, of a command what ``core`` leaves, or one of its rows."""
    wanted = core(item.text)[:WHOLE] if item.kind == "command" else flat(item.text)
    return wanted in text or keeps(item, rows)


def keeps(item: Item, rows: Sequence[Row]) -> bool:
    """Whether one of the rows keeps an item.

    A file and a command have to stand in their sections, or in prose.
    """
    named = SECTIONS.get(item.kind, ("",))
    looked_at = [row for row in rows if not row.section or row.section.startswith(named)]
    if item.kind == "file":
        return any(_names(row, item.text) for row in looked_at)
    if item.kind == "command":
        wanted = core(item.text)[:WHOLE]
        return any(wanted in core(row.text) for row in looked_at)
    wanted = flat(item.text).lower()
    telling = {word.lower() for word in _WORD.findall(item.text)}
    return any(wanted in flat(row.text).lower() or _tells(row.text, telling) for row in looked_at)


def core(command: str) -> str:
    """A command on one line, without a leading cd and without what only cuts its output."""
    if command.startswith("eval $'"):  # several lines, as a digest has them
        command = re.sub(
            r"\\(.)", lambda escaped: {"n": " ", "t": " "}.get(escaped[1], escaped[1]), command[7:]
        )
    found = " ".join(command.split())
    for pattern in (_CD, _CUT, _CUT):
        found = pattern.sub("", found)
    return found


def _tells(row: str, telling: set[str]) -> bool:
    """Whether a row has most of the telling words of a sentence."""
    said = {word.lower() for word in _WORD.findall(row)}
    return len(telling) > 2 and len(telling & said) >= MOST * len(telling)


def _names(row: Row, path: str) -> bool:
    """Whether a row names a file: one path is the end of the other.

    Prose has to hold the file's name.
    """
    path = path.strip("\"'")
    if not row.section:
        return (
            re.search(rf"(?<![\w.-]){re.escape(path.rpartition('/')[2])}(?![\w-])", row.text)
            is not None
        )
    said = re.sub(r" \([^()]*\)\Z", "", row.text)
    return f"/{path}".endswith(f"/{said}") or f"/{said}".endswith(f"/{path}")
