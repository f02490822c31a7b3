"""Words to add to a search without close hits: words near those that it found."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence

from resume_hooks.search.hits import Hit
from resume_hooks.search.index.postings import WORDS, Postings
from resume_hooks.search.index.tokenize import folded, stem
from resume_hooks.search.query import COMMON

SUGGESTED = 2  # words
SLIP, FILLER = 2, 10
"""A word in fewer records may be a typo, one in more is a filler, unless it is in a small share of all records."""

SMALL_PART = 0.05

_WORD = re.compile(r"(?<![\w./-])[^\W\d_]{4,20}(?![\w/-])")
"""A word of a sentence, not a part of a path or a name."""


def suggested(hits: Sequence[Hit], known: Collection[str], words: Postings) -> tuple[str, ...]:
    """Return the most telling words in the snippets of hits, except stems that are ``known``."""
    shown: dict[str, str] = {}
    counts = Counter[str]()
    for hit in hits:
        by_stem = {}
        for word in _WORD.findall(hit.snippet):
            by_stem[stem(folded(word))] = word
        shown = {**by_stem, **shown}
        counts.update(by_stem.keys() - known)
    new = [root for root in counts if shown[root].lower() not in COMMON]
    telling = {root: counts[root] ** 2 * _word_weight(root, words) for root in new}
    best = sorted(
        (root for root in telling if telling[root]), key=lambda root: (-telling[root], root)
    )
    return tuple(shown[root].lower() for root in best[:SUGGESTED])


def _word_weight(root: str, words: Postings) -> float:
    """Return a word's weight by its rarity, or 0 for a typo or a filler."""
    rows = words.frequency(WORDS, root)
    most = max(FILLER, SMALL_PART * words.records)
    if SLIP <= rows <= most:
        return math.log(words.records / rows)
    return 0.0
