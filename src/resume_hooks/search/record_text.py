"""The texts of indexed records, read from the transcripts, and snippets of these texts around a query's words.

A file may have changed since it was indexed. A record that is no longer at its position has no
text.
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
from resume_hooks.search.index.tokenize import fold_letters, without_line_numbers
from resume_hooks.search.ranking import Lookup
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.text import plain_text
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line

MAX_RECORD_BYTES = 64 * 1024 * 1024
"""The maximum size in bytes of a record to display.

The record's text takes ten times as much memory.
"""

# in most texts, only these letters need to be converted one by one
_FOREIGN = re.compile(r"[^\x00-\x7f]+")

# the number of a text's characters to search; for a later match, the beginning of the text is shown
MAX_SEARCHED_TEXT = 400_000
TEXT_BEFORE_PHRASE = 1_000  # the number of characters before a phrase to search as well
MAX_MARKS = 2_000
MAX_SENTENCES = 480
"""The maximum length of three sentences in a snippet: ten such hits fit a model's output limit."""

_SENTENCE_END = re.compile(
    r"""(?:(?<=\w\w)|(?<=[^\w\s]))[.!?]+["'\u2019\u201d)\]*_`]*\s+(?=\S)|[\u3002\uff01\uff1f]+"""
)
"""The end of a sentence with the space after it. A full stop after a single letter does not end a
sentence."""

# the minimum length of a stem that is also marked inside words; a shorter stem is marked only at
# the beginning of a part
MIN_STEM_INSIDE_WORD = 5

_REST = re.compile("[0-9a-z]*")  # the rest of a word after its stem
_LETTERS = frozenset("0123456789abcdefghijklmnopqrstuvwxyz")
_IN_WORDS = _LETTERS | {"_"}

Mark = tuple[int, int, int]  # the start and end in a text, and the number of the term


class Text(NamedTuple):
    """A text on one line without control characters; ``low`` is the text without capitals and accents."""

    shown: str
    low: str


class _FoldedLetters(dict[int, str]):
    """A cache of letters without their accents, for those that become a single letter."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        folded_letter = fold_letters(letter)
        self[code] = folded_letter if len(folded_letter) == 1 else letter.lower()
        return self[code]


_folded_letters = _FoldedLetters()


def display_text(words: str) -> Text:
    """Return words as they are displayed, and as they are compared."""
    shown = " ".join(plain_text(words).split())
    if shown.isascii():
        return Text(shown, shown.lower())
    shown = unicodedata.normalize("NFC", shown)
    return Text(shown, _FOREIGN.sub(lambda run: run[0].translate(_folded_letters), shown).lower())


def read_record_words(
    path: str, inode: int, record: Posting, *, subagent: bool
) -> tuple[str | None, int]:
    """Return the text of a record in a file, and the number of bytes read.

    The text is None if the record has changed since it was indexed.
    """
    if record.length > MAX_RECORD_BYTES:
        return f"(a record of {size_text(record.length)}, too large to be shown here)", 0
    raw = _read_line(path, inode, record.offset, record.length)
    parsed = records.parse(Line(0, 0, raw).body)
    if parsed is not None:
        texts = TextExtractor(subagent=subagent, sifting=False).texts_of(parsed)
    else:
        texts = None
    return None if texts is None else text_of_record(texts), len(raw)


def _read_line(path: str, inode: int, offset: int, length: int) -> bytes:
    """Return a line of a file, if the file is the indexed one and the line still begins at the same position.

    Otherwise return nothing.
    """
    try:
        with open_regular(path, follow=False) as stream:
            if inode > 0 and inode != os.fstat(stream.fileno()).st_ino:
                return b""
            stream.seek(max(0, offset - 1))
            previous_byte = stream.read(1) if offset else b"\n"
            if previous_byte == b"\n":
                return stream.read(length)
            return b""
    except OSError:
        return b""


def text_of_record(texts: RecordTexts) -> str:
    """Return the text of a record. Files in it have no line numbers, as in the index."""
    outer = (text for text in (texts.prompt, texts.reply) if text)
    inner = (without_line_numbers(text) for text in (texts.input, texts.result) if text)
    return "\n".join([*outer, *inner])


class Phrase:
    """A phrase: its whole words, ignoring case."""

    def __init__(self, words: str) -> None:
        self.low = display_text(words).low

    def find_in(self, folded_text: str) -> int:
        """Return its first position in a text, or -1."""
        return next(self.find_all_in(folded_text), -1)

    def find_all_in(self, folded_text: str) -> Iterator[int]:
        """Yield its positions in a text."""
        for position in _positions(self.low, folded_text):
            if not (
                _is_inside_word(folded_text, position)
                or _is_inside_word(folded_text, position + len(self.low))
            ):
                yield position


class Marker:
    """The positions of a query's terms in texts."""

    def __init__(self, lookups: Sequence[Lookup]) -> None:
        self._phrases: list[tuple[int, Phrase]] = []
        self._stems: dict[str, int] = {}
        self.single = len(lookups) == 1
        for number, lookup in enumerate(lookups):
            if lookup.term.exact:
                self._phrases.append((number, Phrase(lookup.term.text)))
            for stem in () if lookup.term.exact else _spellings_of_term(lookup):
                self._stems.setdefault(stem, number)

    def marks(self, text: Text, start: int = 0) -> list[Mark]:
        """Return the matching words in a text from ``start`` on, in order and without overlaps."""
        display, folded_text = (
            text.shown[start : start + MAX_SEARCHED_TEXT],
            text.low[start : start + MAX_SEARCHED_TEXT],
        )
        all_marks = []
        for number, phrase in self._phrases:
            for position in islice(phrase.find_all_in(folded_text), MAX_MARKS):
                all_marks.append((position, position + len(phrase.low), number))
        for stem, number in self._stems.items():
            all_marks += islice(_words_with_stem(stem, number, display, folded_text), MAX_MARKS)
        marks: list[Mark] = []
        for mark in sorted(all_marks, key=lambda mark: (mark[0], mark[2], -mark[1])):
            if not marks or mark[0] >= marks[-1][1]:
                marks.append(mark)
        return marks[:MAX_MARKS]


class Snippet(NamedTuple):
    """A snippet of a text on one line, with the spans of the matching words.

    ``near`` is the nearness of the words, from 0 if only one of several words matches to 1 for a
    query's only word. ``terms`` are the numbers of the terms that occur anywhere in the text.
    """

    text: str
    marks: list[tuple[int, int]]
    near: float
    terms: frozenset[int]


def snippet_of(text: Text, marker: Marker, width: int, start_position: int = 0) -> Snippet:
    """Return the sentences around the part of ``text`` with the most terms.

    The search for words begins at ``start_position``.

    If there are no sentences, or they are too long, return about ``width`` characters.
    """
    excerpt_start = (
        max(0, start_position - TEXT_BEFORE_PHRASE)
        if start_position > MAX_SEARCHED_TEXT // 2
        else 0
    )
    excerpt = text.shown[excerpt_start : excerpt_start + MAX_SEARCHED_TEXT]
    marks = marker.marks(text, excerpt_start)
    first_mark, last_mark, kinds = _densest_span(marks, width)
    start, end = _sentences_around(excerpt, first_mark, last_mark) or _cut_around(
        excerpt, first_mark, last_mark, width
    )
    before = "… " if start or excerpt_start else ""
    after = " …" if end < len(excerpt) else ""
    snippet = f"{before}{excerpt[start:end].rstrip()}{after}"
    shift = start - (2 if start or excerpt_start else 0)
    spans = []
    for a, b, _ in marks:
        if a >= start and b <= end:
            spans.append((a - shift, b - shift))
    has_several = kinds > 1 or (kinds == 1 and marker.single)
    if has_several:
        spread = 1 - min(1.0, (last_mark - first_mark) / (4 * width))
    else:
        spread = 0.0
    terms = frozenset(number for *_, number in marks)
    return Snippet(snippet, spans, spread * kinds / max(1, len(terms)), terms)


def _sentences_around(flat: str, first_mark: int, last_mark: int) -> tuple[int, int] | None:
    """Return the start and end of the sentence around a position, with the sentences before and after it if they fit.

    Return None if the sentence is too long.
    """
    region_start = max(0, first_mark - MAX_SENTENCES)
    region = flat[region_start : last_mark + MAX_SENTENCES]
    ends = []
    for match in _SENTENCE_END.finditer(region):
        ends.append(region_start + match.end())
    starts = [0] * (region_start == 0) + [end for end in ends if end <= first_mark]
    following_ends = [end for end in ends if end >= last_mark] + [len(flat)] * (
        region_start + len(region) == len(flat)
    )
    if not starts or not following_ends or following_ends[0] - starts[-1] > MAX_SENTENCES:
        return None
    start, end = starts[-1], following_ends[0]
    if len(starts) > 1 and end - starts[-2] <= MAX_SENTENCES:
        start = starts[-2]
    if len(following_ends) > 1 and following_ends[1] - start <= MAX_SENTENCES:
        end = following_ends[1]
    return start, end


def _cut_around(flat: str, first_mark: int, last_mark: int, width: int) -> tuple[int, int]:
    """Return the start and end of ``width`` characters around a position, beginning at the start of a word."""
    start = max(
        0, min(first_mark - max(0, width - (last_mark - first_mark)) // 3, len(flat) - width)
    )
    space = flat.find(" ", start, start + 20) if start else -1
    start = space + 1 if space >= 0 else start
    return start, min(len(flat), start + width)


def _densest_span(marks: Sequence[Mark], width: int) -> tuple[int, int, int]:
    """Return the start and end of the ``width`` characters with the most different terms, and their number."""
    best = (0, 0, 0)
    first_index = 0
    for right in range(len(marks)):
        while marks[right][1] - marks[first_index][0] > width and first_index < right:
            first_index += 1
        kinds = len({kind for *_, kind in marks[first_index : right + 1]})
        if kinds > best[2]:
            best = (marks[first_index][0], marks[right][1], kinds)
    return best


def _words_with_stem(stem: str, number: int, display: str, folded_text: str) -> Iterator[Mark]:
    """Yield the words with a stem, in a text and its folded form.

    A short stem counts only at the beginning of a word or part.
    """
    for position in _positions(stem, folded_text):
        begins = not position or folded_text[position - 1] not in _LETTERS
        if not stem.isascii():
            yield position, position + len(stem), number
        elif (
            len(stem) >= MIN_STEM_INSIDE_WORD
            or begins
            or (display[position].isupper() and not display[position - 1].isupper())
        ):
            ending = _REST.match(folded_text, position + len(stem))
            yield position, ending.end() if ending else position + len(stem), number


def _is_inside_word(folded_text: str, position: int) -> bool:
    """Check whether a position in a text is inside a word."""
    return (
        0 < position < len(folded_text)
        and {folded_text[position - 1], folded_text[position]} <= _IN_WORDS
    )


def _positions(words: str, folded_text: str) -> Iterator[int]:
    position = folded_text.find(words)
    while position >= 0:
        yield position
        position = folded_text.find(words, position + 1)


def _spellings_of_term(lookup: Lookup) -> Iterator[str]:
    """Yield the occurrences of a term in a text, which begin with any of its stems.

    The final letters y and i are equivalent.
    """
    whole_word = [] if lookup.term.text.isascii() else [lookup.term.text]
    for stem in map(display_text, [*lookup.marks, *whole_word]):
        yield stem.low
        if stem.low.endswith("i") and len(stem.low) > 2:
            yield f"{stem.low[:-1]}y"
