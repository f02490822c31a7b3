"""ripgrep as a searcher: a generous stand-in for a person who greps, tries every word and keeps count of the lines."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.recall.questions import Home, Place, corpus_file
from resume_hooks.search.query import COMMON

SHORT = 3
"""Letters up to which a word is looked for as a whole only; as a part it would be in every line."""

_WORD = re.compile(r"\w[\w./-]*\w|\w")


class _Line(NamedTuple):
    """A line of a file, counted from 0."""

    file: str
    number: int


class Ripgrep:
    """Ranks lines by how many different words of a question they hold, the rarer words first; one hit a turn.

    ``share`` is the part of the words that a line must hold to be taken for an answer at all.
    """

    by_turn = True

    def __init__(self, home: Home, share: float, name: str) -> None:
        self.name = name
        self._home = home
        self._share = share
        self._known: dict[str, list[_Line]] = {}

    @staticmethod
    def there() -> bool:
        """Whether the program is installed."""
        return shutil.which("rg") is not None

    def search(self, text: str, most: int) -> list[Place]:
        """The turns of the best lines."""
        words = content_words(text)
        scores: dict[_Line, tuple[int, float]] = {}
        for word in words:
            lines = self._lines(word)
            for line in lines:
                count, rarity = scores.get(line, (0, 0.0))
                scores[line] = (count + 1, rarity + 1 / len(lines))
        enough = [line for line, (count, _) in scores.items() if count >= self._share * len(words)]
        best = sorted(sorted(enough), key=lambda line: scores[line], reverse=True)
        return list(dict.fromkeys(self._place(line) for line in best))[:most]

    def _place(self, line: _Line) -> Place:
        name = self._home.name(line.file)
        return Place(name, corpus_file(name).turns[line.number])

    def _lines(self, word: str) -> list[_Line]:
        if word not in self._known:
            self._known[word] = list(_grep(word, str(self._home.config / "projects")))
        return self._known[word]


def content_words(text: str) -> list[str]:
    """The words of a question but for those that every question has."""
    words = dict.fromkeys(word.casefold() for word in _WORD.findall(text))
    return [word for word in words if word not in COMMON] or list(words)


def _grep(word: str, folder: str) -> Iterator[_Line]:
    """The lines that hold a word; lines of megabytes are not printed."""
    options = ["-F", "-i", "-a", "-n", "--null", "--no-heading", "--with-filename", "--max-columns", "1"]
    whole = ["-w"] if len(word) <= SHORT else []
    command = ["rg", "--no-ignore", "--hidden", "-g", "*.jsonl", *options, *whole, "-e", word, folder]
    printed = subprocess.run(command, capture_output=True, check=False).stdout
    for line in printed.split(b"\n"):
        file, null, rest = line.partition(b"\0")
        if null:
            yield _Line(file.decode(), int(rest.partition(b":")[0]) - 1)
