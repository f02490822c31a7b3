"""The text around a hit, divided into pages of a given width and height.

If the text is long, only the characters near the hit are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.clock import format_minute
from resume_hooks.hooks.session_list.rows import cut_to_columns, wrap_to_columns
from resume_hooks.paths import Where
from resume_hooks.reading.passages import Passage, PassageFile, make_passage, read_passages_around
from resume_hooks.reading.render import render_line
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.sessions.locate import resolve_transcript
from resume_hooks.sessions.record_references import (
    RecordLines,
    find_numbered_line,
    names_of_transcript,
    parse_reference,
)
from resume_hooks.sessions.transcript_files import subagent_name
from resume_hooks.system.text import plain_line, plain_text

LINES_ABOVE_HIT = 1  # the number of lines that the hit's page shows above the hit
# the maximum number of characters of the hit's record, and of each record near it
MAX_HIT_CHARACTERS, MAX_OTHER_CHARACTERS = 20_000, 4_000
# To find the line of the hit, the lines are searched for the hit's first 60 characters, then for
# its first 30 characters, and so on.
SEARCHED_PREFIX_LENGTHS = 60, 30, 12, 1
INDENT = "  "
MAX_RECORD_LINES = 1_000  # the maximum number of lines of one record


class Page(NamedTuple):
    """The lines of a page, and its number.

    The page with the hit has number 0. Pages before it have negative numbers. If there are too few
    pages, the number differs from the requested one.
    """

    lines: list[str]
    page_number: int


def cut_page(lines: list[str], hit_line: int, page_number: int, height: int) -> Page:
    """Return a page of ``height`` lines. Page 0 begins with the line ``hit_line``.

    Pages before it have negative numbers. If the first or the last page would be shorter, lines of
    the page next to it are repeated.
    """
    if height < 1:
        return Page([], 0)
    first_page, last_page = -(-hit_line // height), max(0, len(lines) - hit_line - 1) // height
    page_number = max(-first_page, min(page_number, last_page))
    first_line = max(0, min(hit_line + page_number * height, len(lines) - height))
    return Page(lines[first_line : first_line + height], page_number)


def make_hit_page(
    reference: str, hit_text: str, page_number: int, columns: int, height: int, where: Where
) -> Page:
    """Return a page of the text around a record. ``hit_text`` is the record's text from the hit on.

    Raise ResumeHooksError if the record can't be read.
    """
    reference_parts = parse_reference(reference)
    session = resolve_transcript(
        reference_parts.session_locator, "", where, allow_other_agents=True
    )
    names, entries = (
        names_of_transcript(session, where),
        RecordLines(session.path, session.session_id),
    )
    hit_record = find_numbered_line(reference_parts, entries)
    record = hit_record.parse_record() or {}
    characters = (abs(page_number) + 2) * max(1, height)
    earlier_passages, later_passages = read_passages_around(
        entries, names, hit_record, characters, characters
    )
    hit_passage = make_passage(
        record, hit_record, PassageFile(names, subagent_name(hit_record.file_path) is not None), {}
    )
    hit_passage = hit_passage._replace(
        text=_cut_text_near_hit(render_line(record, hit_record).text, hit_text)
    )
    lines_before = _wrap_surrounding_passages(earlier_passages, columns)
    hit_lines = list(_wrap_passage(hit_passage, columns, MAX_HIT_CHARACTERS))
    lines_after = _wrap_surrounding_passages(later_passages, columns)
    hit_line = len(lines_before) + max(0, _find_hit_line(hit_text, hit_lines) - LINES_ABOVE_HIT)
    return cut_page([*lines_before, *hit_lines, *lines_after], hit_line, page_number, height)


def _cut_text_near_hit(text: str, hit_text: str) -> str:
    """Return the text, or only the part around the first word of ``hit_text`` if the text is long."""
    if len(text) <= MAX_HIT_CHARACTERS:
        return text
    word = hit_text.split(maxsplit=1)[:1]
    start = max(0, text.find(word[0]) - MAX_HIT_CHARACTERS // 2) if word else 0
    return text[start : start + MAX_HIT_CHARACTERS]


def _wrap_surrounding_passages(passages: list[Passage], columns: int) -> list[str]:
    """Return the lines of the records near a hit. Leave out records that the client added."""
    lines: list[str] = []
    for passage in passages:
        if not passage.is_client_addition:
            lines += _wrap_passage(passage, columns, MAX_OTHER_CHARACTERS)
    return lines


def _wrap_passage(passage: Passage, columns: int, max_characters: int) -> Iterator[str]:
    yield cut_to_columns(
        " · ".join(part for part in (passage.speaker, format_minute(passage.timestamp)) if part),
        columns,
    )
    text = Redactor().redact(plain_text(passage.text[:max_characters]))
    for line in text.splitlines():
        for part in wrap_to_columns(line, columns - len(INDENT), MAX_RECORD_LINES):
            yield f"{INDENT}{part}"
    if len(passage.text) > max_characters:
        yield f"{INDENT}…"


def _find_hit_line(hit_text: str, lines: list[str]) -> int:
    """Return the index of the line in which the hit begins, or 0 if it is not found."""
    starts: list[int] = []
    text = ""
    for line in lines:
        starts.append(len(text))
        text += f"{line.strip()} "
    words = " ".join(plain_line(hit_text).split())
    for length in SEARCHED_PREFIX_LENGTHS:
        position = text.find(words[:length])
        if words and position >= 0:
            return sum(start <= position for start in starts) - 1
    return 0
