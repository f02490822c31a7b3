"""Search the bytes of files that are not indexed yet for the words of a query.

Searching 400 MB takes about two seconds. Indexing them would take much longer.

A file's relevance depends on its best lines: short lines with many words of the query, above all
rare ones. The words of the file as a whole matter little, because a large file contains most words
somewhere.

The search finds every word that the index would find, even if the word is capitalized, inflected or
accented, is in an identifier, or is escaped in JSON. It also finds some false matches, such as a
part of a longer word or the name of a JSON key.
"""

from __future__ import annotations

import functools
import heapq
import math
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from resume_hooks.paths import open_regular
from resume_hooks.search.index.changed_files import TermForms
from resume_hooks.search.index.tokenize import fold_letters, stem_word

CHUNK_BYTES = 8 * 1024 * 1024  # number of bytes of a file that are searched at a time
# If a line is longer than a chunk, this number of bytes is searched again with the next chunk, so
# that a word at the boundary is found.
CHUNK_OVERLAP_BYTES = 256
# In a text, the last letter of a stem may differ if it is e, i or y. Such a stem is therefore
# searched for without its last letter, if at least this number of letters remain.
MIN_STEM_LETTERS = 3

BYTES_DECODED_AROUND_LETTER = (
    64  # how many bytes before and after a non-ASCII letter are decoded with it
)

_ASCII_LIKE_LETTER_PATTERNS = (
    re.compile(rb"[\xc3-\xc9\xcc\xcd\xe1\xef]"),
    re.compile(rb"\\u(?:00[89a-f]|0[1-3]|1[de]|3[23]|a7f|d8|f[bf])"),
)
"""Two patterns for letters that ``fold_letters`` may convert to ASCII: accented letters, separate
accents and full-width letters. The first matches the first byte of such a letter, and the second
matches the beginning of the letter's JSON escape."""

_NON_ASCII_LETTER_PATTERNS = re.compile(rb"[\xc3-\xe1\xe3-\xef]"), re.compile(rb"\\u(?!00[0-7]|2)")
"""Two patterns for non-ASCII letters. They do not match symbols such as arrows and box-drawing
characters. The first pattern matches the letter's first byte, and the second matches the beginning
of its JSON escape."""

_RARE_LETTER_PATTERN = re.compile(
    rb"\xc2[\xaa\xb2\xb3\xb9\xba\xbc-\xbe]|[\xca\xcb]|\xe3[\x89-\x8f]|\xea\x9f|\xf0[\x90\x9d]"
)
"""Matches superscript letters, units and letters of mathematical typefaces. Searching with two
separate patterns is twice as fast as searching with one combined pattern."""

_ESCAPE_SEQUENCE_PATTERN = re.compile(
    rb"\\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\n]{0,4096}?(?:\\u0007|\\u001b\\\\))"
)
"""Matches a terminal's escape sequence in JSON, for example one that changes the colour. It may
occur inside a word."""

_ASCII_BYTES = bytes(range(128))
_WORD_BYTE_TABLE = bytes(
    byte if byte >= 0x80 or chr(byte).isalnum() or byte in b"_\\" else 0x20 for byte in range(256)
)
_JSON_ESCAPE_PATTERN = re.compile(r"\\u([0-9a-f]{4})")
# Stems with an inflected form that does not begin with the stem.
_IRREGULAR_FORMS = {"die": "dying", "lie": "lying", "tie": "tying"}


MAX_FULL_RELEVANCE_BYTES = 1024
"""Lines up to this number of bytes keep their full relevance."""

_LENGTH_PENALTY, _OTHER_LINES_WEIGHT, _MAX_COUNTED_LINES = 0.2, 0.1, 5
"""Three numbers for the relevance of a file.

The first is the fraction by which each doubling of a line's length reduces its relevance. The
second is the weight of the other lines relative to the best line. The third is the maximum number
of lines that are taken into account.
"""


class FileWords(NamedTuple):
    """The terms of the query that a file contains. Each term is represented by its index in the query.

    ``shortest_line_lengths`` maps a set of terms to the lengths in bytes of the shortest lines that
    contain exactly these terms.
    """

    term_numbers: frozenset[int]
    shortest_line_lengths: Mapping[frozenset[int], Sequence[int]]


class RawWordSearch:
    """Searches the bytes of files for terms.

    A needle is a sequence of bytes with which all forms of a word begin.
    """

    def __init__(self, terms: Sequence[TermForms]) -> None:
        self._needle_sets_by_term = []
        for term in terms:
            self._needle_sets_by_term.append([_make_needle_sets(token) for token in term])
        all_needles = set()
        for tokens in self._needle_sets_by_term:
            for needle_sets in tokens:
                for needle_set in needle_sets:
                    for needle in needle_set:
                        all_needles.add(needle)
        self._needles = sorted(all_needles, key=len, reverse=True)

    def find_words_in_file(self, path: str, offset: int = 0) -> FileWords | None:
        """Return the terms that a file contains after an offset, or None if it cannot be read."""
        lengths = defaultdict[int, list[int]](list)
        other_needles = 0
        try:
            with open_regular(path, follow=False) as stream:
                stream.seek(offset)
                unfinished_line = b""
                while chunk := stream.read(CHUNK_BYTES):
                    lines_text, unfinished_line = _split_off_incomplete_line(
                        unfinished_line + chunk
                    )
                    other_needles |= self._scan_chunk(lines_text.lower(), lengths, other_needles)
                other_needles |= self._scan_chunk(unfinished_line.lower(), lengths, other_needles)
        except OSError:
            return None
        all_needles = functools.reduce(operator.or_, lengths, other_needles)
        lines = defaultdict[frozenset[int], list[int]](list)
        for needles, shortest in lengths.items():
            if terms := self._find_complete_terms(needles):
                lines[terms] = heapq.nsmallest(_MAX_COUNTED_LINES, [*lines[terms], *shortest])
        return FileWords(self._find_complete_terms(all_needles), lines)

    def _scan_chunk(self, text: bytes, lengths: dict[int, list[int]], known_needles: int) -> int:
        """Find needles in lower-case text, and add the lengths of their lines to ``lengths``.

        A set of needles is an integer with one bit per needle. ``lengths`` maps the set of needles
        that a line contains to the lengths of all lines with this set.

        Return ``known_needles`` together with the needles that occur in this text only in words
        with non-ASCII letters. The sets of the lines do not contain these needles.
        ``known_needles`` were found in such words before, and are not searched for there again.
        """
        if b"\\u001b" in text:
            text = _ESCAPE_SEQUENCE_PATTERN.sub(b"", text)
        needles_by_line, ends = defaultdict[int, int](int), dict[int, int]()
        all_needles = 0
        for number, needle in enumerate(self._needles):
            for start in _starts_of_lines_containing(needle, text, ends):
                needles_by_line[start] |= 1 << number
                all_needles |= 1 << number
        for start, needles in needles_by_line.items():
            lengths[needles].append(ends[start] - start)
        for needles, line_lengths in lengths.items():
            if len(line_lengths) > _MAX_COUNTED_LINES:
                lengths[needles] = heapq.nsmallest(_MAX_COUNTED_LINES, line_lengths)
        missing_numbers = []
        for number in range(len(self._needles)):
            if not (all_needles | known_needles) >> number & 1:
                missing_numbers.append(number)
        if missing_numbers:
            other_needles = _find_needles_in_non_ascii_words(
                text, [self._needles[number] for number in missing_numbers]
            )
        else:
            other_needles = set()
        return known_needles | sum(
            1 << number for number in missing_numbers if self._needles[number] in other_needles
        )

    def _find_complete_terms(self, needle_bits: int) -> frozenset[int]:
        """Return the numbers of the terms whose needles are all in a set of needles.

        ``needle_bits`` is this set, with one bit for each needle.
        """
        needle_set = set()
        for number, needle in enumerate(self._needles):
            if needle_bits >> number & 1:
                needle_set.add(needle)
        numbers = set()
        for number, tokens in enumerate(self._needle_sets_by_term):
            if all(any(map(needle_set.issuperset, needle_sets)) for needle_sets in tokens):
                numbers.add(number)
        return frozenset(numbers)


def _starts_of_lines_containing(
    needle: bytes, text: bytes, line_ends: dict[int, int]
) -> Iterator[int]:
    """Yield the start of each line that contains a needle.

    Also store the line's end in ``line_ends``, under the line's start.
    """
    position = text.find(needle)
    while position >= 0:
        start = text.rfind(b"\n", 0, position) + 1
        end = line_ends.get(start)
        if end is None:
            end = text.find(b"\n", position)
            end = line_ends[start] = end if end >= 0 else len(text)
        yield start
        position = text.find(needle, end)


def _split_off_incomplete_line(text: bytes) -> tuple[bytes, bytes]:
    """Return the complete lines of a text, and the bytes that must be searched with the next chunk."""
    end = text.rfind(b"\n") + 1
    if end:
        return text[:end], text[end:]
    # If a line is longer than a chunk, each chunk is searched as if it were a line.
    return text, text[-CHUNK_OVERLAP_BYTES:]


def _find_needles_in_non_ascii_words(lower_text: bytes, needles: Sequence[bytes]) -> set[bytes]:
    """Return the needles that occur in words with non-ASCII letters.

    These letters may be accented, full-width, capital, or escaped in JSON.
    """
    if all(needle.isascii() for needle in needles):
        letter_patterns = _ASCII_LIKE_LETTER_PATTERNS
    else:
        letter_patterns = _NON_ASCII_LETTER_PATTERNS
    words = b" ".join(_find_non_ascii_words(lower_text, *letter_patterns)).decode(
        "utf-8", "replace"
    )
    text = _JSON_ESCAPE_PATTERN.sub(lambda escape: chr(int(escape[1], 16)), words)
    # JSON escapes some letters as two surrogates. This line joins them.
    text = fold_letters(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    matches = set()
    for needle in needles:
        if needle.decode() in text:
            matches.add(needle)
    return matches


def relevance_by_file(files: Mapping[str, FileWords]) -> dict[str, float]:
    """Return the relevance of each file, computed from its best lines.

    A word has a higher weight if fewer of the files contain it.
    """
    file_counts = Counter[int]()
    for words in files.values():
        file_counts.update(words.term_numbers)
    weights = {}
    for number, count in file_counts.items():
        weights[number] = math.log(1 + len(files) / count)
    return {path: _file_relevance(words, weights) for path, words in files.items()}


def _file_relevance(words: FileWords, weights: Mapping[int, float]) -> float:
    """Return the relevance of a file's best line, plus a fraction of the next best lines' relevance.

    The fraction is ``_OTHER_LINES_WEIGHT``. A term that was found only in words with non-ASCII
    letters adds this fraction of its weight.
    """
    line_relevances = []
    for terms, lengths in words.shortest_line_lengths.items():
        weight = sum(map(weights.__getitem__, terms))
        for length in lengths:
            line_relevances.append(
                weight
                / (
                    1
                    + _LENGTH_PENALTY
                    * max(0.0, math.log2(max(1, length) / MAX_FULL_RELEVANCE_BYTES))
                )
            )
    best_relevances = heapq.nlargest(_MAX_COUNTED_LINES, line_relevances)
    other_terms = words.term_numbers.difference(*words.shortest_line_lengths)
    return sum(best_relevances[:1]) + _OTHER_LINES_WEIGHT * (
        sum(best_relevances[1:]) + sum(map(weights.__getitem__, other_terms))
    )


def _make_needle_sets(forms: Iterable[str]) -> list[tuple[bytes, ...]]:
    """Return the alternative sets of needles that match a token: the whole token, or all of its parts."""
    whole_form, *parts = forms
    needle_sets = [
        (_make_needle(whole_form),),
        *([tuple(map(_make_needle, parts))] if parts else []),
    ]
    return [
        *needle_sets,
        *([(_IRREGULAR_FORMS[whole_form].encode(),)] if whole_form in _IRREGULAR_FORMS else []),
    ]


def _make_needle(word: str) -> bytes:
    """Return a prefix, as bytes, that all words with the same stem as ``word`` share."""
    word_stem = stem_word(word)
    shared_prefix = next(
        (word[:end] for end in range(len(word), 0, -1) if word_stem.startswith(word[:end])), word
    )
    return (
        shared_prefix[:-1]
        if len(shared_prefix) > MIN_STEM_LETTERS and shared_prefix[-1] in "eiy"
        else shared_prefix
    ).encode()


def _find_non_ascii_words(
    text: bytes, letter: re.Pattern[bytes], escape: re.Pattern[bytes]
) -> set[bytes]:
    """Return the words around the letters that the patterns match.

    Words without a non-ASCII letter or a JSON escape of one are left out.
    """
    # Searching only the non-ASCII bytes first makes this function ten times as fast.
    non_ascii = text.translate(None, _ASCII_BYTES)
    letter_patterns = []
    for letter_pattern in (letter, _RARE_LETTER_PATTERN):
        if letter_pattern.search(non_ascii):
            letter_patterns.append(letter_pattern)
    positions = []
    for letter_pattern in letter_patterns:
        for match in letter_pattern.finditer(text):
            positions.append(match.start())
    for match in escape.finditer(text):
        positions.append(match.start())
    excerpts, start, end = list[bytes](), 0, 0
    for position in sorted(positions):
        if position - BYTES_DECODED_AROUND_LETTER > end:
            excerpts.append(text[start:end])
            start = position - BYTES_DECODED_AROUND_LETTER
        end = position + BYTES_DECODED_AROUND_LETTER
    excerpts.append(text[start:end])
    words = b" ".join(excerpts).translate(_WORD_BYTE_TABLE).split()
    return {word for word in words if not word.isascii() or b"\\u" in word}
