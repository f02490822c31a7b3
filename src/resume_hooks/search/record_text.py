"""The texts of indexed records, read from the transcripts, and the snippet of a text around a query's words.

A file may have changed since it was indexed: a record that is no longer at its place has no text.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from resume_hooks.paths import open_regular
from resume_hooks.search.index.extract import RecordTexts, TextExtractor
from resume_hooks.search.index.postings import Posting
from resume_hooks.search.index.tokenize import folded, without_line_numbers
from resume_hooks.search.ranking import Lookup
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.text import plain_text
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line

LARGEST = 64 * 1024 * 1024
"""The maximum bytes of a record to display.

Its text takes ten times as much memory.
"""

# in most texts, only these letters are converted one by one
_FOREIGN = re.compile(r"[^\x00-\x7f]+")

# characters of a text to search; a match after that is shown by the text's beginning
REACH = 400_000
LEAD = 1_000  # characters before a phrase to search as well
MOST_MARKS = 2_000
MOST_SHOWN = 480
"""The characters of three sentences in a snippet: ten such hits fit a model's output limit."""

_SENTENCE_END = re.compile(
    r"""(?:(?<=\w\w)|(?<=[^\w\s]))[.!?]+["'\u2019\u201d)\]*_`]*\s+(?=\S)|[\u3002\uff01\uff1f]+"""
)
"""The end of a sentence with the space after it; not a point after a single letter."""

# characters of a stem that is marked inside of words, too; a shorter one only at a part's beginning
ANYWHERE = 5

_REST = re.compile("[0-9a-z]*")  # the rest of a word after its stem
_LETTERS = frozenset("0123456789abcdefghijklmnopqrstuvwxyz")
_IN_WORDS = _LETTERS | {"_"}

Mark = tuple[int, int, int]  # start and end in a text, and the number of the term


class Text(NamedTuple):
    """A text on one line without control characters; ``low`` is the same text without capitals and accents."""

    shown: str
    low: str


class _Low(dict[int, str]):
    """A cache of letters without their accents, if that is a single letter."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        low = folded(letter)
        self[code] = low if len(low) == 1 else letter.lower()
        return self[code]


_low = _Low()


def shown_text(words: str) -> Text:
    """Return words in the form for display and in the form for comparison."""
    shown = " ".join(plain_text(words).split())
    if shown.isascii():
        return Text(shown, shown.lower())
    shown = unicodedata.normalize("NFC", shown)
    return Text(shown, _FOREIGN.sub(lambda run: run[0].translate(_low), shown).lower())


def words_at(path: str, inode: int, record: Posting, *, subagent: bool) -> tuple[str | None, int]:
    """Return the text of a record in a file, and the number of bytes read.

    The text is None if the record was changed after it was indexed.
    """
    if record.length > LARGEST:
        return f"(a record of {size_text(record.length)}, too large to be shown here)", 0
    raw = _raw(path, inode, record.offset, record.length)
    parsed = records.parse(Line(0, 0, raw).body)
    if parsed is not None:
        texts = TextExtractor(subagent=subagent, sifting=False).texts_of(parsed)
    else:
        texts = None
    return None if texts is None else said_text(texts), len(raw)


def _raw(path: str, inode: int, offset: int, length: int) -> bytes:
    """Return a line of a file, if the file is the indexed one and the line still begins there.

    Otherwise return nothing.
    """
    try:
        with open_regular(path, follow=False) as stream:
            if inode > 0 and inode != os.fstat(stream.fileno()).st_ino:
                return b""
            stream.seek(max(0, offset - 1))
            before = stream.read(1) if offset else b"\n"
            if before == b"\n":
                return stream.read(length)
            return b""
    except OSError:
        return b""


def said_text(texts: RecordTexts) -> str:
    """Return the text of a record; files without their line numbers, as they are indexed."""
    outer = (text for text in (texts.prompt, texts.reply) if text)
    inner = (without_line_numbers(text) for text in (texts.input, texts.result) if text)
    return "\n".join([*outer, *inner])


class Phrase:
    """A phrase: its whole words, in any case."""

    def __init__(self, words: str) -> None:
        self.low = shown_text(words).low

    def place_in(self, low: str) -> int:
        """Return its first position in a text, or -1."""
        return next(self.places_in(low), -1)

    def places_in(self, low: str) -> Iterator[int]:
        """Yield its positions in a text."""
        for place in _places(self.low, low):
            if not (_joins(low, place) or _joins(low, place + len(self.low))):
                yield place


class Marker:
    """The positions of a query's terms in texts."""

    def __init__(self, lookups: Sequence[Lookup]) -> None:
        self._phrases: list[tuple[int, Phrase]] = []
        self._stems: dict[str, int] = {}
        self.single = len(lookups) == 1
        for number, lookup in enumerate(lookups):
            if lookup.term.exact:
                self._phrases.append((number, Phrase(lookup.term.text)))
            for stem in () if lookup.term.exact else _stems(lookup):
                self._stems.setdefault(stem, number)

    def marks(self, text: Text, begin: int = 0) -> list[Mark]:
        """Return the words in a text from ``begin`` on, in order and without overlaps."""
        shown, low = text.shown[begin : begin + REACH], text.low[begin : begin + REACH]
        found = []
        for number, phrase in self._phrases:
            for place in islice(phrase.places_in(low), MOST_MARKS):
                found.append((place, place + len(phrase.low), number))
        for stem, number in self._stems.items():
            found += islice(_stemmed(stem, number, shown, low), MOST_MARKS)
        marks: list[Mark] = []
        for mark in sorted(found, key=lambda mark: (mark[0], mark[2], -mark[1])):
            if not marks or mark[0] >= marks[-1][1]:
                marks.append(mark)
        return marks[:MOST_MARKS]


class Snippet(NamedTuple):
    """A snippet of a text on one line, with the spans of the words in it.

    ``near`` is the nearness of the words, 0 to 1: 0 for one of several words, up to 1 for a query's
    only word. ``terms`` are the numbers of the terms anywhere in the text.
    """

    text: str
    marks: list[tuple[int, int]]
    near: float
    terms: frozenset[int]


def snippet_of(text: Text, marker: Marker, width: int, place: int = 0) -> Snippet:
    """Return the sentences around the part of ``text`` with the most terms.

    The search for words begins at ``place``.

    Without sentences, or with overlong ones, return about ``width`` characters.
    """
    begin = max(0, place - LEAD) if place > REACH // 2 else 0
    flat = text.shown[begin : begin + REACH]
    marks = marker.marks(text, begin)
    first, last, kinds = _densest(marks, width)
    start, end = _sentences_around(flat, first, last) or _cut_around(flat, first, last, width)
    shown = f"{'… ' if start or begin else ''}{flat[start:end].rstrip()}{' …' if end < len(flat) else ''}"
    shift = start - (2 if start or begin else 0)
    spans = []
    for a, b, _ in marks:
        if a >= start and b <= end:
            spans.append((a - shift, b - shift))
    together = kinds > 1 or (kinds == 1 and marker.single)
    if together:
        spread = 1 - min(1.0, (last - first) / (4 * width))
    else:
        spread = 0.0
    terms = frozenset(number for *_, number in marks)
    return Snippet(shown, spans, spread * kinds / max(1, len(terms)), terms)


def _sentences_around(flat: str, first: int, last: int) -> tuple[int, int] | None:
    """Return the start and end of the sentence around a position, with the one before and after it if they fit.

    Return None if it is too long.
    """
    low = max(0, first - MOST_SHOWN)
    region = flat[low : last + MOST_SHOWN]
    ends = []
    for found in _SENTENCE_END.finditer(region):
        ends.append(low + found.end())
    before = [0] * (low == 0) + [end for end in ends if end <= first]
    after = [end for end in ends if end >= last] + [len(flat)] * (low + len(region) == len(flat))
    if not before or not after or after[0] - before[-1] > MOST_SHOWN:
        return None
    start, end = before[-1], after[0]
    if len(before) > 1 and end - before[-2] <= MOST_SHOWN:
        start = before[-2]
    if len(after) > 1 and after[1] - start <= MOST_SHOWN:
        end = after[1]
    return start, end


def _cut_around(flat: str, first: int, last: int, width: int) -> tuple[int, int]:
    """Return the start and end of ``width`` characters around a position, from the beginning of a word."""
    start = max(0, min(first - max(0, width - (last - first)) // 3, len(flat) - width))
    space = flat.find(" ", start, start + 20) if start else -1
    start = space + 1 if space >= 0 else start
    return start, min(len(flat), start + width)


def _densest(marks: Sequence[Mark], width: int) -> tuple[int, int, int]:
    """Return the start and end of ``width`` characters with the most different terms, and their number."""
    best = (0, 0, 0)
    left = 0
    for right in range(len(marks)):
        while marks[right][1] - marks[left][0] > width and left < right:
            left += 1
        kinds = len({kind for *_, kind in marks[left : right + 1]})
        if kinds > best[2]:
            best = (marks[left][0], marks[right][1], kinds)
    return best


def _stemmed(stem: str, number: int, shown: str, low: str) -> Iterator[Mark]:
    """Yield the words with a stem, in a text and its folded form.

    A short stem counts only at the beginning of a word or part.
    """
    for place in _places(stem, low):
        begins = not place or low[place - 1] not in _LETTERS
        if not stem.isascii():
            yield place, place + len(stem), number
        elif (
            len(stem) >= ANYWHERE
            or begins
            or (shown[place].isupper() and not shown[place - 1].isupper())
        ):
            rest = _REST.match(low, place + len(stem))
            yield place, rest.end() if rest else place + len(stem), number


def _joins(low: str, place: int) -> bool:
    """Check whether a position in a text is inside a word."""
    return 0 < place < len(low) and {low[place - 1], low[place]} <= _IN_WORDS


def _places(words: str, low: str) -> Iterator[int]:
    place = low.find(words)
    while place >= 0:
        yield place
        place = low.find(words, place + 1)


def _stems(lookup: Lookup) -> Iterator[str]:
    """Yield the spellings of a term in a text: any of its stems.

    The endings y and i are equivalent.
    """
    whole = [] if lookup.term.text.isascii() else [lookup.term.text]
    for stem in map(shown_text, [*lookup.marks, *whole]):
        yield stem.low
        if stem.low.endswith("i") and len(stem.low) > 2:
            yield f"{stem.low[:-1]}y"
