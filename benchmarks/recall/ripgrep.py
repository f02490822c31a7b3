"""Search with ripgrep, like a person who greps for every word of a question.

The person counts how many of the words each line contains, which is a generous assumption.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.recall.questions import CorpusHome, Place, read_corpus_file
from benchmarks.recall.searcher import Answer, milliseconds_since
from resume_hooks.search.query import COMMON_WORDS

MAX_SHORT_WORD_LETTERS = 3
"""A word with at most this number of letters must match as a whole word. Most lines contain short
words as parts of longer words."""

_WORD_PATTERN = re.compile(r"\w[\w./-]*\w|\w")


class _Line(NamedTuple):
    """A line of a file. ``number`` counts from 0."""

    file: str
    number: int


class _FoundLines(NamedTuple):
    """The lines that contain a word, and the time of the search in milliseconds."""

    lines: list[_Line]
    ms: float


class RipgrepSearcher:
    """Ranks lines by how many different words of a question they contain.

    Of lines with equally many words, those with rarer words come first. A turn with several lines
    is one hit. A line must contain the fraction ``share`` of the words. The words of several
    wordings are searched together.
    """

    finds_turns = True

    def __init__(self, home: CorpusHome, share: float, name: str) -> None:
        self.name = name
        self._home = home
        self._share = share

    @staticmethod
    def is_installed() -> bool:
        """Check whether ripgrep is installed."""
        return shutil.which("rg") is not None

    def search(self, wordings: Sequence[str], max_hits: int) -> Answer:
        """Return the turns with the best lines, and at most ``max_hits`` of them."""
        words = find_content_words(" ".join(wordings))
        scores: dict[_Line, tuple[int, float]] = {}
        ms = 0.0
        for word in words:
            lines, spent = _find_lines_of_word(word, str(self._home.config / "projects"))
            ms += spent
            for line in lines:
                count, rarity = scores.get(line, (0, 0.0))
                scores[line] = (count + 1, rarity + 1 / len(lines))
        begun = time.perf_counter()
        enough = [line for line, (count, _) in scores.items() if count >= self._share * len(words)]
        best = sorted(sorted(enough), key=lambda line: scores[line], reverse=True)
        hits = list(dict.fromkeys(self._find_place_of_line(line) for line in best))[:max_hits]
        return Answer(hits, ms + milliseconds_since(begun))

    def _find_place_of_line(self, line: _Line) -> Place:
        name = self._home.find_path_in_corpus(line.file)
        return Place(name, read_corpus_file(name).turn_numbers[line.number])


def find_content_words(text: str) -> list[str]:
    """Return the words of a question, without common words.

    If all its words are common, return all of them.
    """
    words = dict.fromkeys(word.casefold() for word in _WORD_PATTERN.findall(text))
    return [word for word in words if word not in COMMON_WORDS] or list(words)


@functools.cache
def _find_lines_of_word(word: str, folder: str) -> _FoundLines:
    """Return the lines that contain a word. The result is cached."""
    begun = time.perf_counter()
    lines = list(_find_lines(word, folder))
    return _FoundLines(lines, milliseconds_since(begun))


def _find_lines(word: str, folder: str) -> Iterator[_Line]:
    """Yield the lines that contain a word.

    ripgrep prints only the numbers of the lines, because a line may have several megabytes.
    """
    options = [
        "-F",
        "-i",
        "-a",
        "-n",
        "--null",
        "--no-heading",
        "--with-filename",
        "--max-columns",
        "1",
    ]
    whole = ["-w"] if len(word) <= MAX_SHORT_WORD_LETTERS else []
    command = [
        "rg",
        "--no-ignore",
        "--hidden",
        "-g",
        "*.jsonl",
        *options,
        *whole,
        "-e",
        word,
        folder,
    ]
    printed = subprocess.run(command, capture_output=True, check=False).stdout
    for line in printed.split(b"\n"):
        file, null, rest = line.partition(b"\0")
        if null:
            yield _Line(file.decode(), int(rest.partition(b":")[0]) - 1)
