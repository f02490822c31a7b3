"""Read the texts of indexed records from the transcripts, and cut snippets out of them.

A file may have changed since it was indexed. If a record is no longer at its indexed position, its
text is None.
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
from resume_hooks.search.index.tokenize import fold_letters, remove_line_numbers
from resume_hooks.search.ranking import Lookup
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.system.text import plain_text
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line

MAX_RECORD_BYTES = 64 * 1024 * 1024
"""The maximum size in bytes of a record whose text is shown.

To read a record, the program needs ten times the record's size in memory.
"""

# Matches runs of characters that must be converted one by one.
_NON_ASCII_RUN_PATTERN = re.compile(r"[^\x00-\x7f]+")

# At most this number of characters of a text are searched for words. If they contain no word of the
# query, the beginning of the text is shown.
MAX_SEARCHED_CHARACTERS = 400_000
# how many characters before a phrase are searched for other words
CHARACTERS_BEFORE_PHRASE = 1_000
MAX_MARKS = 2_000
MAX_SENTENCES_CHARACTERS = 480
"""Maximum length of the sentences in a snippet. A model accepts a tool's output that has ten
snippets of this length."""

_SENTENCE_END_PATTERN = re.compile(
    r"""(?:(?<=\w\w)|(?<=[^\w\s]))[.!?]+["'\u2019\u201d)\]*_`]*\s+(?=\S)|[\u3002\uff01\uff1f]+"""
)
"""Matches the end of a sentence with the space after it. A full stop after a single letter does not
end a sentence."""

# Minimum length of a stem that is also marked inside words. A shorter stem is marked only at the
# beginning of a word, or of a word in an identifier.
MIN_STEM_INSIDE_WORD = 5

_REST_OF_WORD_PATTERN = re.compile("[0-9a-z]*")  # matches the letters of a word after its stem
_LETTERS_AND_DIGITS = frozenset("0123456789abcdefghijklmnopqrstuvwxyz")
_WORD_CHARACTERS = _LETTERS_AND_DIGITS | {"_"}

# the start and end of a match in a text, and the number of the matching term
Mark = tuple[int, int, int]


class Text(NamedTuple):
    """A text on one line without control characters; ``folded_text`` is in lower case without accents.

    Both texts have the same length.
    """

    displayed_text: str
    folded_text: str


class _FoldedLetters(dict[int, str]):
    """Maps a letter's code to the letter in lower case without its accent.

    A letter stays unchanged if its plain form would consist of several letters.
    """

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        folded_letter = fold_letters(letter)
        self[code] = folded_letter if len(folded_letter) == 1 else letter.lower()
        return self[code]


_folded_letters = _FoldedLetters()


def make_display_text(text: str) -> Text:
    """Return a text as it is shown, together with its folded form, which is used for comparisons."""
    display = " ".join(plain_text(text).split())
    if display.isascii():
        return Text(display, display.lower())
    display = unicodedata.normalize("NFC", display)
    return Text(
        display,
        _NON_ASCII_RUN_PATTERN.sub(lambda run: run[0].translate(_folded_letters), display).lower(),
    )


def read_record_text_and_byte_count(
    path: str, inode: int, record: Posting, *, is_subagent: bool
) -> tuple[str | None, int]:
    """Return the text of a record in a file, and the number of bytes that were read.

    The text is None if the record has changed since it was indexed.
    """
    if record.byte_length > MAX_RECORD_BYTES:
        return f"(a record of {format_bytes(record.byte_length)}, too large to be shown here)", 0
    line = _read_line(path, inode, record.offset, record.byte_length)
    record_data = records.parse_record(Line(0, 0, line).body)
    if record_data is not None:
        texts = TextExtractor(subagent=is_subagent, omits_own_output=False).extract_texts(
            record_data
        )
    else:
        texts = None
    return None if texts is None else join_record_texts(texts), len(line)


def _read_line(path: str, inode: int, offset: int, length: int) -> bytes:
    """Return a line of a file, or ``b""`` if the file has changed.

    The inode must still be the same (unless it is 0 or negative), and a line must begin at
    ``offset``.
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


def join_record_texts(texts: RecordTexts) -> str:
    """Join the texts of a record. As in the index, line numbers of files are removed."""
    spoken_texts = (text for text in (texts.prompt, texts.reply) if text)
    tool_texts = (remove_line_numbers(text) for text in (texts.input, texts.result) if text)
    return "\n".join([*spoken_texts, *tool_texts])


class Phrase:
    """A phrase that is found only as whole words. Case and accents do not matter."""

    def __init__(self, words: str) -> None:
        self.folded = make_display_text(words).folded_text

    def find_first_position(self, folded_text: str) -> int:
        """Return the first position of the phrase in a text, or -1."""
        return next(self.find_positions(folded_text), -1)

    def find_positions(self, folded_text: str) -> Iterator[int]:
        """Yield each position of the phrase in a text."""
        for position in _find_all_positions(self.folded, folded_text):
            if not (
                _is_inside_word(folded_text, position)
                or _is_inside_word(folded_text, position + len(self.folded))
            ):
                yield position


class Marker:
    """Finds the terms of a query in texts."""

    def __init__(self, lookups: Sequence[Lookup]) -> None:
        self._phrases: list[tuple[int, Phrase]] = []
        self._stems: dict[str, int] = {}
        self.has_single_term = len(lookups) == 1
        for number, lookup in enumerate(lookups):
            if lookup.term.is_phrase:
                self._phrases.append((number, Phrase(lookup.term.text)))
            for stem in () if lookup.term.is_phrase else _word_beginnings(lookup):
                self._stems.setdefault(stem, number)

    def find_marks(self, text: Text, start: int = 0) -> list[Mark]:
        """Return the matches of all terms in a text, in order and without overlaps.

        The search begins at the position ``start``. The positions of the matches are relative to
        ``start``.
        """
        display, folded_text = (
            text.displayed_text[start : start + MAX_SEARCHED_CHARACTERS],
            text.folded_text[start : start + MAX_SEARCHED_CHARACTERS],
        )
        all_marks = []
        for number, phrase in self._phrases:
            for position in islice(phrase.find_positions(folded_text), MAX_MARKS):
                all_marks.append((position, position + len(phrase.folded), number))
        for stem, number in self._stems.items():
            all_marks += islice(_words_with_stem(stem, number, display, folded_text), MAX_MARKS)
        marks: list[Mark] = []
        for mark in sorted(all_marks, key=lambda mark: (mark[0], mark[2], -mark[1])):
            if not marks or mark[0] >= marks[-1][1]:
                marks.append(mark)
        return marks[:MAX_MARKS]


class Snippet(NamedTuple):
    """A snippet of a text, on one line.

    ``marks`` are the start and end positions of the matching words. ``nearness`` (0 to 1) is higher
    if these words are closer together. It is 1 if the query has only one word and the text contains
    it, and 0 if the text contains only one of several words. ``term_numbers`` are the numbers of
    the terms that occur anywhere in the text.
    """

    text: str
    marks: list[tuple[int, int]]
    nearness: float
    term_numbers: frozenset[int]


def make_snippet(text: Text, marker: Marker, width: int, start_position: int = 0) -> Snippet:
    """Return the sentences around the part of a text that contains the most terms.

    A term that occurs several times counts once. If ``start_position`` is far into the text, the
    text is searched only from shortly before that position. If there are no sentences, or if they
    are too long, return about ``width`` characters.
    """
    excerpt_start = (
        max(0, start_position - CHARACTERS_BEFORE_PHRASE)
        if start_position > MAX_SEARCHED_CHARACTERS // 2
        else 0
    )
    excerpt = text.displayed_text[excerpt_start : excerpt_start + MAX_SEARCHED_CHARACTERS]
    marks = marker.find_marks(text, excerpt_start)
    span = _densest_span(marks, width)
    span_start, span_end, term_count = span.start, span.end, span.term_count
    start, end = _sentences_around(excerpt, span_start, span_end) or _cut_around(
        excerpt, span_start, span_end, width
    )
    leading_mark = "… " if start or excerpt_start else ""
    trailing_mark = " …" if end < len(excerpt) else ""
    snippet = f"{leading_mark}{excerpt[start:end].rstrip()}{trailing_mark}"
    shift = start - (2 if start or excerpt_start else 0)
    spans = []
    for mark_start, mark_end, _ in marks:
        if mark_start >= start and mark_end <= end:
            spans.append((mark_start - shift, mark_end - shift))
    has_several = term_count > 1 or (term_count == 1 and marker.has_single_term)
    if has_several:
        nearness = 1 - min(1.0, (span_end - span_start) / (4 * width))
    else:
        nearness = 0.0
    terms = frozenset(number for *_, number in marks)
    return Snippet(snippet, spans, nearness * term_count / max(1, len(terms)), terms)


def _sentences_around(text: str, span_start: int, span_end: int) -> tuple[int, int] | None:
    """Return the start and end of the sentence that contains the marked span.

    The sentence before it and the sentence after it are included if they fit. Return None if the
    sentence with the span is too long.
    """
    region_start = max(0, span_start - MAX_SENTENCES_CHARACTERS)
    region = text[region_start : span_end + MAX_SENTENCES_CHARACTERS]
    ends = []
    for match in _SENTENCE_END_PATTERN.finditer(region):
        ends.append(region_start + match.end())
    starts = [0] * (region_start == 0) + [end for end in ends if end <= span_start]
    following_ends = [end for end in ends if end >= span_end] + [len(text)] * (
        region_start + len(region) == len(text)
    )
    if (
        not starts
        or not following_ends
        or following_ends[0] - starts[-1] > MAX_SENTENCES_CHARACTERS
    ):
        return None
    start, end = starts[-1], following_ends[0]
    if len(starts) > 1 and end - starts[-2] <= MAX_SENTENCES_CHARACTERS:
        start = starts[-2]
    if len(following_ends) > 1 and following_ends[1] - start <= MAX_SENTENCES_CHARACTERS:
        end = following_ends[1]
    return start, end


def _cut_around(text: str, span_start: int, span_end: int, width: int) -> tuple[int, int]:
    """Return the start and end of ``width`` characters around the marked span.

    The start is the beginning of a word if possible.
    """
    start = max(
        0, min(span_start - max(0, width - (span_end - span_start)) // 3, len(text) - width)
    )
    space = text.find(" ", start, start + 20) if start else -1
    start = space + 1 if space >= 0 else start
    return start, min(len(text), start + width)


class _MarkedSpan(NamedTuple):
    start: int
    end: int
    term_count: int


def _densest_span(marks: Sequence[Mark], width: int) -> _MarkedSpan:
    """Return the span that contains the most terms.

    A term that occurs several times counts once. The span has at most ``width`` characters.
    """
    best_span = _MarkedSpan(0, 0, 0)
    first_index = 0
    for last_index in range(len(marks)):
        while marks[last_index][1] - marks[first_index][0] > width and first_index < last_index:
            first_index += 1
        term_count = len({kind for *_, kind in marks[first_index : last_index + 1]})
        if term_count > best_span.term_count:
            best_span = _MarkedSpan(marks[first_index][0], marks[last_index][1], term_count)
    return best_span


def _words_with_stem(
    stem: str, term_number: int, displayed_text: str, folded_text: str
) -> Iterator[Mark]:
    """Yield the words that contain a stem.

    A short stem must be at the beginning of a word, or of a word in an identifier.
    """
    for position in _find_all_positions(stem, folded_text):
        begins_word = not position or folded_text[position - 1] not in _LETTERS_AND_DIGITS
        if not stem.isascii():
            yield position, position + len(stem), term_number
        elif (
            len(stem) >= MIN_STEM_INSIDE_WORD
            or begins_word
            or (displayed_text[position].isupper() and not displayed_text[position - 1].isupper())
        ):
            word_rest = _REST_OF_WORD_PATTERN.match(folded_text, position + len(stem))
            yield position, word_rest.end() if word_rest else position + len(stem), term_number


def _is_inside_word(folded_text: str, position: int) -> bool:
    """Check whether the characters before and at a position belong to the same word."""
    return (
        0 < position < len(folded_text)
        and {folded_text[position - 1], folded_text[position]} <= _WORD_CHARACTERS
    )


def _find_all_positions(phrase: str, folded_text: str) -> Iterator[int]:
    position = folded_text.find(phrase)
    while position >= 0:
        yield position
        position = folded_text.find(phrase, position + 1)


def _word_beginnings(lookup: Lookup) -> Iterator[str]:
    """Yield the strings with which a word that matches a term may begin.

    These are the term's stems. If a stem ends in i, the stem with y instead of the i is also
    yielded.
    """
    whole_word = [] if lookup.term.text.isascii() else [lookup.term.text]
    for stem in map(make_display_text, [*lookup.stems_to_mark, *whole_word]):
        yield stem.folded_text
        if stem.folded_text.endswith("i") and len(stem.folded_text) > 2:
            yield f"{stem.folded_text[:-1]}y"
