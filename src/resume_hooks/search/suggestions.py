"""Suggest words to add to a search without close hits. They come from the texts of its weak hits."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence

from resume_hooks.search.hits import Hit
from resume_hooks.search.index.postings import WORDS_FIELD, Postings
from resume_hooks.search.index.tokenize import fold_letters, stem_word
from resume_hooks.search.query import COMMON_WORDS

MAX_SUGGESTED_WORDS = 2  # the maximum number of suggested words
MAX_TYPO_RECORDS, MIN_FILLER_RECORDS = 2, 10
"""Limits for a word's number of records.

A rarer word may be a typo, and a more frequent word is a filler, unless only a small fraction of
all records contains it.
"""

SMALL_RECORD_FRACTION = 0.05

_WORD = re.compile(r"(?<![\w./-])[^\W\d_]{4,20}(?![\w/-])")
"""A word in a sentence, not a part of a path or a name."""


def suggest_words(
    hits: Sequence[Hit], known_stems: Collection[str], words: Postings
) -> tuple[str, ...]:
    """Return the most informative words in the snippets of hits, except words with ``known_stems``."""
    word_by_stem: dict[str, str] = {}
    counts = Counter[str]()
    for hit in hits:
        by_stem = {}
        for word in _WORD.findall(hit.snippet):
            by_stem[stem_word(fold_letters(word))] = word
        word_by_stem = {**by_stem, **word_by_stem}
        counts.update(by_stem.keys() - known_stems)
    new_stems = [
        word_stem for word_stem in counts if word_by_stem[word_stem].lower() not in COMMON_WORDS
    ]
    weights = {
        word_stem: counts[word_stem] ** 2 * _word_weight(word_stem, words)
        for word_stem in new_stems
    }
    best_stems = sorted(
        (word_stem for word_stem in weights if weights[word_stem]),
        key=lambda word_stem: (-weights[word_stem], word_stem),
    )
    return tuple(word_by_stem[word_stem].lower() for word_stem in best_stems[:MAX_SUGGESTED_WORDS])


def _word_weight(word_stem: str, words: Postings) -> float:
    """Return a word's weight, which is higher for rarer words, or 0 for a typo or a filler."""
    record_count = words.count_records_with(WORDS_FIELD, word_stem)
    max_records = max(MIN_FILLER_RECORDS, SMALL_RECORD_FRACTION * words.record_count)
    if MAX_TYPO_RECORDS <= record_count <= max_records:
        return math.log(words.record_count / record_count)
    return 0.0
