"""Files that the index has not read yet: which of them hold the words of a search, told from their bytes alone.

400 MB take about a second, far less than to index them. Whatever a full index finds in a file is found here, too: in
capitals, with an ending, in an identifier, with accents or without, escaped as JSON may have it. What is found here may
be less: a piece of a longer word, or a name of a key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resume_hooks.paths import open_regular
from resume_hooks.search.index.tokenize import folded, stem
from resume_hooks.sessions.transcript_files import TranscriptFile

CHUNK = 8 * 1024 * 1024  # bytes of a file that are looked through at a time
OVERLAP = 256  # bytes of one that are looked through with the next, so that no word is cut
SHORTEST = 3  # letters that a stem keeps where its last one may be another in the text

AROUND = 64  # bytes before and behind a letter beyond ASCII that are looked at with it

_LIKE_ASCII = (
    re.compile(rb"[\xc3-\xc9\xcc\xcd\xe1\xef]"),
    re.compile(rb"\\u(?:00[89a-f]|0[1-3]|1[de]|3[23]|a7f|d8|f[bf])"),
)
"""What begins a letter of which ``folded`` may make one of ASCII: accented, apart from its accent, full width; and its
escape."""

_ANY_LETTER = re.compile(rb"[\xc3-\xe1\xe3-\xef]"), re.compile(rb"\\u(?!00[0-7]|2)")
"""The same of any letter beyond ASCII; arrows, frames and other symbols are none."""

_RARE = re.compile(rb"\xc2[\xaa\xb2\xb3\xb9\xba\xbc-\xbe]|[\xca\xcb]|\xe3[\x89-\x8f]|\xea\x9f|\xf0[\x90\x9d]")
"""Raised letters, units and typefaces, in both cases: looked for apart, since a set of bytes is found twice as fast."""

_SEQUENCE = re.compile(rb"\\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\n]{0,4096}?(?:\\u0007|\\u001b\\\\))")
"""An escape sequence of a terminal, as JSON has it: colours stand within words."""

_ASCII = bytes(range(128))
_NOT_WORDS = bytes(byte if byte >= 0x80 or chr(byte).isalnum() or byte in b"_\\" else 0x20 for byte in range(256))
_ESCAPES = re.compile(r"\\u([0-9a-f]{4})")
_IRREGULAR = {"die": "dying", "lie": "lying", "tie": "tying"}  # stems that no inflected form begins with


Forms = tuple[tuple[str, ...], ...]
"""A term as the index has it: for each token in it the whole, then its parts."""


@dataclass(frozen=True, slots=True)
class Sought:
    """The words of a search, and which files it is meant for."""

    terms: tuple[Forms, ...]
    is_meant: Callable[[TranscriptFile], bool]


class UnreadFile(NamedTuple):
    """A file that the index has not as it is; ``held`` are the numbers of the terms in it, None if nobody can tell."""

    file: TranscriptFile
    held: frozenset[int] | None


class RawWords:
    """Finds terms in the bytes of files."""

    def __init__(self, terms: Sequence[Forms]) -> None:
        self._ways = [[_ways(token) for token in term] for term in terms]
        every = {needle for tokens in self._ways for ways in tokens for way in ways for needle in way}
        self._needles = sorted(every, key=len, reverse=True)

    def held(self, path: str, offset: int = 0) -> frozenset[int] | None:
        """The numbers of the terms that a file holds from an offset on; None where it can't be read."""
        found = set[bytes]()
        try:
            with open_regular(path, follow=False) as stream:
                stream.seek(offset)
                before = b""
                while len(found) < len(self._needles) and (chunk := stream.read(CHUNK)):
                    left = [needle for needle in self._needles if needle not in found]
                    found |= self._in((before + chunk).lower(), left)
                    before = chunk[-OVERLAP:]
        except OSError:
            return None
        return frozenset(
            number
            for number, tokens in enumerate(self._ways)
            if all(any(found.issuperset(way) for way in ways) for ways in tokens)
        )

    @staticmethod
    def _in(low: bytes, needles: Sequence[bytes]) -> set[bytes]:
        if b"\\u001b" in low:
            low = _SEQUENCE.sub(b"", low)
        found = {needle for needle in needles if needle in low}
        left = [needle for needle in needles if needle not in found]
        if left:
            begins = _LIKE_ASCII if all(needle.isascii() for needle in left) else _ANY_LETTER
            words = b" ".join(_words_with(low, *begins)).decode("utf-8", "replace")
            text = _ESCAPES.sub(lambda escape: chr(int(escape[1], 16)), words)
            # An escaped pair is one letter.
            text = folded(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
            found.update(needle for needle in left if needle.decode() in text)
        return found


def ranks(held: Mapping[str, frozenset[int]]) -> dict[str, float]:
    """What files count by the terms that they hold: those that few others hold count most."""
    numbers = {number for each in held.values() for number in each}
    having = {number: sum(number in each for each in held.values()) for number in numbers}
    weights = {number: math.log(1 + len(held) / count) for number, count in having.items()}
    return {path: sum(map(weights.__getitem__, each)) for path, each in held.items()}


def _ways(forms: Iterable[str]) -> list[tuple[bytes, ...]]:
    """The ways in which a token may stand in a text: the whole, or all of its parts."""
    whole, *parts = forms
    ways = [(_needle(whole),), *([tuple(map(_needle, parts))] if parts else [])]
    return [*ways, *([(_IRREGULAR[whole].encode(),)] if whole in _IRREGULAR else [])]


def _needle(word: str) -> bytes:
    """The beginning that all words with one stem share."""
    root = stem(word)
    shared = next((word[:end] for end in range(len(word), 0, -1) if root.startswith(word[:end])), word)
    return (shared[:-1] if len(shared) > SHORTEST and shared[-1] in "eiy" else shared).encode()


def _words_with(low: bytes, letter: re.Pattern[bytes], escape: re.Pattern[bytes]) -> set[bytes]:
    """The words of a text in which a letter of some kind stands."""
    beyond = low.translate(None, _ASCII)  # ten times as fast as looking through the ASCII, too
    ways = [way for way in (letter, _RARE) if way.search(beyond)]
    places = [found.start() for way in ways for found in way.finditer(low)]
    places += [found.start() for found in escape.finditer(low)]
    pieces, start, end = list[bytes](), 0, 0
    for place in sorted(places):
        if place - AROUND > end:
            pieces.append(low[start:end])
            start = place - AROUND
        end = place + AROUND
    pieces.append(low[start:end])
    words = b" ".join(pieces).translate(_NOT_WORDS).split()
    return {word for word in words if not word.isascii() or b"\\u" in word}
