"""Rank chunks of 400 words of the raw transcripts by BM25, without any code of ours.

This is the naive baseline.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.recall.questions import Place, list_corpus_files, read_corpus_file
from benchmarks.recall.searcher import Answer, milliseconds_since
from tests.needs import corpus_folder

MAX_CHUNK_WORDS = 400
"""The maximum number of words in a chunk.

A chunk ends with its turn. Longer chunks would find the right turn less often.
"""

K1, B = 1.2, 0.75
RANK_OFFSET = 60
"""The number that is added to each rank before the reciprocals of ranks are summed."""

HITS_PER_WORDING = 100
"""The number of hits of each wording. The ranks of these hits are combined."""

STOP_WORDS = frozenset(
    """a about after all also an and any are as at be because been before but by can could did do does for from get got
    had has have how i if in into is it its just me my no not of on or our out over should so some than that the their
    them then there these they this those to too up us use used was we were what when where which while who why will
    with would you your""".split()  # noqa: SIM905
)


class NaiveSearcher:
    """Ranks chunks of words. A hit is the turn that contains the chunk.

    The words of several wordings are searched together.
    """

    name = "naive: BM25 of 400 words"
    finds_turns = True

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._lengths: list[int] = []
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for name in list_corpus_files():
            for turn, said in itertools.groupby(
                read_words_with_turn_numbers(name), key=lambda word: word[1]
            ):
                words = [word for word, _ in said]
                for start in range(0, len(words), MAX_CHUNK_WORDS):
                    self._add_chunk(Place(name, turn), words[start : start + MAX_CHUNK_WORDS])

    def _add_chunk(self, place: Place, words: Sequence[str]) -> None:
        for word, count in Counter(words).items():
            self._postings[word].append((len(self._places), count))
        self._places.append(place)
        self._lengths.append(len(words))

    def search(self, wordings: Sequence[str], max_hits: int) -> Answer:
        """Return the turns with the best chunks, best first, and at most ``max_hits`` of them."""
        begun = time.perf_counter()
        scores: dict[int, float] = defaultdict(float)
        count, usual = len(self._places), sum(self._lengths) / max(1, len(self._places))
        for word in set(find_words(" ".join(wordings))):
            found = self._postings.get(word, ())
            rarity = math.log(1 + (count - len(found) + 0.5) / (len(found) + 0.5))
            for chunk, often in found:
                length = 1 - B + B * self._lengths[chunk] / usual
                scores[chunk] += rarity * often * (K1 + 1) / (often + K1 * length)
        best = sorted(scores, key=lambda chunk: -scores[chunk])
        return Answer(
            list(dict.fromkeys(self._places[chunk] for chunk in best))[:max_hits],
            milliseconds_since(begun),
        )


class FusedNaiveSearcher:
    """Ranks like ``NaiveSearcher``, but combines the rankings of several wordings by reciprocal ranks."""

    finds_turns = True

    def __init__(self, naive: NaiveSearcher) -> None:
        self.name = f"{naive.name}, ranks fused"
        self._naive = naive

    def search(self, wordings: Sequence[str], max_hits: int) -> Answer:
        """Return the turns with the highest sums of reciprocal ranks over all wordings."""
        begun = time.perf_counter()
        scores: dict[Place, float] = defaultdict(float)
        for wording in wordings:
            for rank, place in enumerate(self._naive.search([wording], HITS_PER_WORDING).hits, 1):
                scores[place] += 1 / (RANK_OFFSET + rank)
        return Answer(
            sorted(scores, key=lambda place: -scores[place])[:max_hits], milliseconds_since(begun)
        )


def read_words_with_turn_numbers(name: str) -> Iterator[tuple[str, int]]:
    """Yield the words of the messages in a transcript, each with the number of its turn."""
    turns = read_corpus_file(name).turn_numbers
    for number, line in enumerate((corpus_folder() / name).read_bytes().split(b"\n")):
        try:
            message = json.loads(line).get("message")
            content = message.get("content")
        except (ValueError, AttributeError):
            continue
        for text in _find_texts(content):
            for word in find_words(text):
                yield word, turns[number]


def find_words(text: str) -> Iterator[str]:
    """Yield the words of a text without their endings. The most common words are left out."""
    for word in re.findall("[a-z0-9]+", text.lower()):
        if word not in STOP_WORDS:
            yield next(
                (
                    word[: -len(end)]
                    for end in ("ing", "ed", "es", "s")
                    if _can_remove_ending(word, end)
                ),
                word,
            )


def _can_remove_ending(word: str, ending: str) -> bool:
    return word.endswith(ending) and len(word) - len(ending) >= 3


def _find_texts(content: object) -> Iterator[str]:
    """Yield all texts of a message, including thinking, tool inputs and tool results."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for block in content:
            yield from _find_texts(block)
    elif isinstance(content, dict):
        if content.get("type") == "tool_use":
            yield from _find_strings(content.get("input"))
        for key in ("text", "thinking", "content"):
            yield from _find_texts(content.get(key))


def _find_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _find_strings(part)
