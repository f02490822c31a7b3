"""Texts of records, read from the transcripts as they were indexed, and the snippets that show why they were found.

What a file holds by now may not be what was indexed: a record that is no longer where it was has no text.
"""

from __future__ import annotations

import os
import re
import sqlite3
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.paths import open_regular
from resume_hooks.search.index.archived import TranscriptPaths
from resume_hooks.search.index.extract import RecordTexts, TextExtractor
from resume_hooks.search.index.postings import Posting
from resume_hooks.search.index.tokenize import folded
from resume_hooks.search.terms import Lookup
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.text import plain
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line

_NUMBERED = re.compile(r" *\d+(?:→|\t)")
_NUMBERS = re.compile(r"(?:\A|\n) *\d+(?:→|\t)")
"""What the client puts before each line of a file that it shows to the model; no phrase goes over it."""

LARGEST = 64 * 1024 * 1024
"""Bytes of a record that is read to be shown; the text of a larger one takes ten times as much memory."""

REACH = 400_000  # characters of a text that are looked through; what was found beyond is shown by the text's start
LEAD = 1_000  # characters before a phrase that are looked through as well
MOST_MARKS = 2_000

_PART = "(?:(?<![0-9A-Za-z])|(?-i:(?<=[a-z0-9])(?=[A-Z])))"  # where a part of an identifier may begin, as a word does


class Text(NamedTuple):
    """A text on one line without controls; ``bare`` is the same, letter by letter, without accents."""

    shown: str
    bare: str


class _Bare(dict[int, str]):
    """Each letter without its accent, where that is one letter too; worked out once."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        low = folded(letter)
        upper = low.upper() if letter.isupper() else low
        self[code] = upper if len(upper) == 1 else letter
        return self[code]


_bare = _Bare()


def text_of(words: str) -> Text:
    """Words as they are shown and compared."""
    shown = " ".join(plain(words).split())
    if shown.isascii():
        return Text(shown, shown)
    shown = unicodedata.normalize("NFC", shown)
    return Text(shown, shown.translate(_bare))


def phrase_of(words: str) -> re.Pattern[str]:
    """What finds a phrase in a ``bare`` text: its words whole, whatever their case."""
    bare = text_of(words).bare.lower()
    start = r"(?<![0-9a-z_])" if re.match("[0-9a-z_]", bare) else ""
    end = r"(?![0-9a-z_])" if re.search("[0-9a-z_]$", bare) else ""
    return re.compile(f"{start}{re.escape(bare)}{end}")


class IndexedFile(NamedTuple):
    """A file as the index knows it; ``parent`` is the session that its own was made from, "" for none."""

    path: str
    session_id: str
    agent: str
    inode: int
    parent: str
    mtime: int


class Texts:
    """Reads the texts of records; ``size`` is how many bytes that were."""

    def __init__(self, db: sqlite3.Connection, opening: TranscriptPaths) -> None:
        self._db = db
        self._opening = opening
        self._files: dict[int, IndexedFile | None] = {}
        self.size = 0

    def file(self, number: int) -> IndexedFile | None:
        """A file by its number in the index; None for one that is no longer there."""
        if number not in self._files:
            query = "SELECT path, session, agent, inode, parent, mtime FROM files WHERE id=?"
            row = self._db.execute(query, (number,)).fetchone()
            self._files[number] = IndexedFile(*row) if row else None
        return self._files[number]

    def of(self, record: Posting) -> Text | None:
        """The text of a record; None where it is no longer what was indexed."""
        file = self.file(record.file)
        if file is None:
            return None
        if record.length > LARGEST:
            large = f"(a record of {size_text(record.length)}, too large to be shown here)"
            return Text(large, large)
        raw = _raw(self._opening.path_of(file.path, file.session_id), file.inode, record.offset, record.length)
        self.size += len(raw)
        parsed = records.parse(Line(0, 0, raw).body)
        texts = TextExtractor(subagent=bool(file.agent), sifting=False).texts_of(parsed) if parsed is not None else None
        return None if texts is None else text_of(_joined(texts))


def _raw(path: str, inode: int, offset: int, length: int) -> bytes:
    """A line of a file, if it is still the file that was indexed and the line begins there; else nothing."""
    try:
        with open_regular(path, follow=False) as stream:
            if inode > 0 and inode != os.fstat(stream.fileno()).st_ino:
                return b""
            stream.seek(max(0, offset - 1))
            before = stream.read(1) if offset else b"\n"
            return stream.read(length) if before == b"\n" else b""
    except OSError:
        return b""


def _joined(texts: RecordTexts) -> str:
    """What a record says; files without the numbers of their lines, as they are indexed."""
    outer = (text for text in (texts.prompt, texts.reply) if text)
    inner = (
        _NUMBERS.sub("\n", text) if _NUMBERED.match(text) else text for text in (texts.input, texts.result) if text
    )
    return "\n".join([*outer, *inner])


class Snippet(NamedTuple):
    """A piece of a text on one line, with the spans of the words in it.

    ``near`` is how closely they stand, 0 to 1; ``terms`` are the numbers of the terms that stand anywhere in the text.
    """

    text: str
    marks: list[tuple[int, int]]
    near: float
    terms: frozenset[int]


def pattern_of(lookups: Sequence[Lookup]) -> re.Pattern[str] | None:
    """What marks words in a bare text: one group for each term, matching what was found for it."""
    groups = ["|".join(_words(lookup)) or "(?!)" for lookup in lookups]
    return re.compile("|".join(f"({group})" for group in groups), re.IGNORECASE) if groups else None


def snippet_of(text: Text, pattern: re.Pattern[str] | None, width: int, place: int = 0) -> Snippet:
    """About ``width`` characters around the densest place of ``text``; the words are looked for from ``place`` on."""
    begin = max(0, place - LEAD) if place > REACH // 2 else 0
    flat = text.shown[begin : begin + REACH]
    bare = text.bare[begin : begin + REACH]
    matches = [] if pattern is None else [(m.start(), m.end(), m.lastindex or 0) for m in _some(pattern, bare)]
    first, last, kinds = _densest(matches, width)
    start = max(0, min(first - max(0, width - (last - first)) // 3, len(flat) - width))
    start = _word_start(flat, start)
    end = min(len(flat), start + width)
    shown = f"{'… ' if start or begin else ''}{flat[start:end].rstrip()}{' …' if end < len(flat) else ''}"
    shift = start - (2 if start or begin else 0)
    marks = [(a - shift, b - shift) for a, b, _ in matches if a >= start and b <= end]
    spread = 1 - min(1.0, (last - first) / (4 * width)) if kinds > 1 else 0.0
    terms = frozenset(kind - 1 for *_, kind in matches)
    return Snippet(shown, marks, spread * kinds / max(1, len(terms)), terms)


def _some(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    return [match for match, _ in zip(pattern.finditer(text), range(MOST_MARKS), strict=False)]


def _densest(matches: Sequence[tuple[int, int, int]], width: int) -> tuple[int, int, int]:
    """Where the most different words stand within ``width`` characters: start, end, and how many."""
    best = (0, 0, 0)
    left = 0
    for right in range(len(matches)):
        while matches[right][1] - matches[left][0] > width and left < right:
            left += 1
        kinds = len({kind for *_, kind in matches[left : right + 1]})
        if kinds > best[2]:
            best = (matches[left][0], matches[right][1], kinds)
    return best


def _word_start(text: str, start: int) -> int:
    """The start of a word at or soon after a place."""
    space = text.find(" ", start, start + 20) if start else -1
    return space + 1 if space >= 0 else start


def _words(lookup: Lookup) -> list[str]:
    """What a term is in a text: the phrase that it is, or any of the stems that were found, the longest first."""
    if lookup.term.exact:
        return [phrase_of(lookup.term.text).pattern]
    whole = set() if lookup.term.text.isascii() else {text_of(lookup.term.text).bare.lower()}
    return [_stem(stem) for stem in sorted({*lookup.marks} | whole, key=lambda stem: (-len(stem), stem))]


def _stem(stem: str) -> str:
    """What a stem matches: it at the start of a word (a short one), or anywhere; endings y and i are the same."""
    stem = text_of(stem).bare
    body = re.escape(stem[:-1]) + "[iy]" if stem.endswith("i") and len(stem) > 2 else re.escape(stem)
    if not stem.isascii():
        return body
    return f"{_PART}{body}[0-9A-Za-z]*" if len(stem) < 5 else f"{body}[0-9A-Za-z]*"
