"""Whether a text kept an item: one rule a kind, the same for our digest and for a compaction summary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.going_on.truth import Item

SECTIONS = {"file": "files changed", "command": "commands that worked"}
"""Where in a digest files and commands are looked for; the rest anywhere."""

MOST = 0.6
"""The part of a sentence's telling words that one line must hold for the sentence to count as kept."""

WHOLE = 200
"""Characters of a long command that must be there; what follows is a document that it carries."""

_CD = re.compile(r"\A\s*cd\s+\S+\s*(?:&&|;)\s*")
_CUT = re.compile(r"(?:\s*2>&1)?\s*\|\s*(?:tail|head)\b[^|;&]*\Z|\s*2>&1\s*\Z|\s*2>\s*/dev/null\s*\Z")
_WORD = re.compile(r"[^\W\d_][\w./-]{2,}|[가-힣]{2,}")


class Row(NamedTuple):
    """A line of a text, and the section that it stands in; ``""`` where the text has none."""

    section: str
    text: str


def rows_of(digest: str) -> list[Row]:
    """The rows of a digest of ours, each with its section."""
    section, rows = "digest", []
    for line in digest.split("\n"):
        if line.startswith("  - "):
            rows.append(Row(section, line.removeprefix("  - ")))
        else:
            section = line
    return rows


def keeps(item: Item, rows: Sequence[Row]) -> bool:
    """Whether one of the rows keeps an item: a file among those changed, a command among those that worked."""
    named = SECTIONS.get(item.kind, "")
    texts = [row.text for row in rows if not row.section or row.section.startswith(named)]
    if item.kind == "file":
        return any(_names(text, item.text, loose=not rows[0].section) for text in texts)
    if item.kind == "command":
        wanted = core(item.text)[:WHOLE]
        return any(wanted in core(text) for text in texts)
    wanted = _flat(item.text)
    telling = {word.lower() for word in _WORD.findall(item.text)}
    return any(wanted in _flat(text) or _holds(text, telling) for text in texts)


def core(command: str) -> str:
    """A command on one line, without a leading cd and without what only cuts its output."""
    if command.startswith("eval $'"):  # several lines, as a digest has them
        command = re.sub(r"\\(.)", lambda escaped: {"n": " ", "t": " "}.get(escaped[1], escaped[1]), command[7:])
    found = " ".join(command.split())
    for pattern in (_CD, _CUT, _CUT):
        found = pattern.sub("", found)
    return found


def _flat(text: str) -> str:
    return " ".join(text.split()).lower()


def _holds(row: str, telling: set[str]) -> bool:
    said = {word.lower() for word in _WORD.findall(row)}
    return len(telling) > 2 and len(telling & said) >= MOST * len(telling)


def _names(row: str, path: str, *, loose: bool) -> bool:
    """Whether a row names a file: one path is the end of the other. ``loose``: prose that holds the file's name."""
    path = path.strip("\"'")
    if loose:
        return re.search(rf"(?<![\w.-]){re.escape(path.rpartition('/')[2])}(?![\w-])", row) is not None
    said = re.sub(r" \([^()]*\)\Z", "", row)
    return f"/{path}".endswith(f"/{said}") or f"/{said}".endswith(f"/{path}")
