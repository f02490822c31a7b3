"""The text around a hit, on pages of lines with a given width.

A long text is cut to the characters near the hit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.clock import format_minute
from resume_hooks.hooks.session_list.rows import cut_to_columns, wrap_to_columns
from resume_hooks.paths import Where
from resume_hooks.reading.passages import Passage, PassageFile, around, passage
from resume_hooks.reading.render import render
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.sessions.locate import resolve_transcript
from resume_hooks.sessions.record_references import (
    RecordLines,
    line_of_reference,
    names_of,
    parse_reference,
)
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.system.text import plain_line, plain_text

BEFORE = 1  # lines above the hit on its page
OWN, OTHER = (
    20_000,
    4_000,
)  # the maximum characters of the hit's record, and of each record around it
SURE = (60, 30, 12, 1)  # numbers of characters after the first hit word with which to find its line
INDENT = "  "
MOST = 1_000  # lines of a record


class Page(NamedTuple):
    """The lines of a page, and its number: 0 for the hit's page, negative before it.

    The number may be lower than requested.
    """

    lines: list[str]
    number: int


def page_at(lines: list[str], place: int, number: int, room: int) -> Page:
    """Return the page of ``room`` lines that is ``number`` pages after line ``place``; full if possible."""
    if room < 1:
        return Page([], 0)
    first, last = -(-place // room), max(0, len(lines) - place - 1) // room
    number = max(-first, min(number, last))
    top = max(0, min(place + number * room, len(lines) - room))
    return Page(lines[top : top + room], number)


def hit_page(
    reference: str, found: str, number: int, columns: int, room: int, where: Where
) -> Page:
    """Return a page of the text around a record; ``found`` is its text from the hit on.

    Raise ResumeHooksError.
    """
    asked = parse_reference(reference)
    session = resolve_transcript(asked.session, "", where, foreign=True)
    names, entries = names_of(session, where), RecordLines(session.path, session.session_id)
    entry = line_of_reference(asked, entries)
    record = entry.record() or {}
    reach = (abs(number) + 2) * max(1, room)
    earlier, later = around(entries, names, entry, reach, reach)
    own = passage(record, entry, PassageFile(names, subagent_name(entry.file) is not None), {})
    own = own._replace(text=_text_near_hit(render(record, entry).text, found))
    before = [line for one in earlier for line in _wrapped_lines(one, columns, OTHER)]
    middle = list(_wrapped_lines(own, columns, OWN))
    after = [line for one in later for line in _wrapped_lines(one, columns, OTHER)]
    place = len(before) + max(0, _line_of_hit(found, middle) - BEFORE)
    return page_at([*before, *middle, *after], place, number, room)


def _text_near_hit(text: str, found: str) -> str:
    """Return a text, or the part of a long one around the first word of ``found``."""
    if len(text) <= OWN:
        return text
    word = found.split(maxsplit=1)[:1]
    start = max(0, text.find(word[0]) - OWN // 2) if word else 0
    return text[start : start + OWN]


def _wrapped_lines(one: Passage, columns: int, most: int) -> Iterator[str]:
    yield cut_to_columns(
        " · ".join(part for part in (one.speaker, format_minute(one.timestamp)) if part), columns
    )
    text = Redactor().redact(plain_text(one.text[:most]))
    for line in text.splitlines():
        for part in wrap_to_columns(line, columns - len(INDENT), MOST):
            yield f"{INDENT}{part}"
    if len(one.text) > most:
        yield f"{INDENT}…"


def _line_of_hit(found: str, lines: list[str]) -> int:
    """Return the number of the line in which the hit begins.

    Return 0 if the words are not in the lines.
    """
    starts: list[int] = []
    text = ""
    for line in lines:
        starts.append(len(text))
        text += f"{line.strip()} "
    words = " ".join(plain_line(found).split())
    for size in SURE:
        place = text.find(words[:size])
        if words and place >= 0:
            return sum(start <= place for start in starts) - 1
    return 0
