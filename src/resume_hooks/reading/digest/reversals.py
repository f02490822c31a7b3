"""Which statements a later one takes back: of two that contradict each other, the newest wins.

Precision before recall: two sentences are told to contradict each other where they say of the same thing that it has
another value, or where the later one says in so many words that it is a change. Nothing is understood.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from resume_hooks.redaction.lazy_patterns import late

_WORD = late(r"[^\W_][\w./%$€-]*")
_VALUE = late(r".*\d.*|[A-Z][A-Z0-9_]+|\S*[._/]\S+")  # a number, a constant, a name with a dot or a slash in it
_QUOTED = late(r"`[^`\n]{1,80}`|\"[^\"\n]{1,80}\"")
_STATES = late(
    r"\b(?:is|are|be|was|equals?|means|cap|limit|budget|deadline|max(?:imum)?|min(?:imum)?|at most|at least|prefers?|"
    r"must|should|uses?|named?|called|set to|runs? on|lives? (?:in|at))\b",
    re.IGNORECASE,
)
_CHANGES = late(
    r"\b(?:actually|instead|no longer|not anymore|any more|changed? (?:my|our) mind|scratch that|correction|"
    r"forget (?:that|what|the)|from now on|on second thought|rather than|switch(?:ed)? (?:back )?to|make (?:it|that)|"
    r"now (?:is|it's)|update:|revert(?:ed)?)\b",
    re.IGNORECASE,
)
_EMPTY = frozenset({
    "a", "an", "the", "and", "or", "but", "of", "to", "in", "on", "at", "by", "for", "from", "with", "as", "is", "are",
    "be", "was", "were", "it", "its", "this", "that", "these", "those", "we", "i", "you", "they", "he", "she", "our",
    "my", "your", "their", "so", "then", "also", "just", "please", "now", "will", "would", "can", "could", "do", "does",
    "did", "not", "no",
})  # fmt: skip
"""Words that do not say what a sentence is about."""

LEAST = 2  # words that two sentences must share to be about the same thing
SAME = 0.75  # part of the words of both that a change of a value leaves alone
CLOSE = 0.4  # the same where the later sentence says that it is a change
LOOKED_AT = 400  # statements that are compared, the latest


def superseded(statements: Sequence[str]) -> dict[int, int]:
    """The places of statements that a later one takes back, each with the place of that one. Oldest first."""
    first = max(0, len(statements) - LOOKED_AT)
    words = {at: _words(statements[at]) for at in range(first, len(statements))}
    by_word: dict[str, list[int]] = {}
    found: dict[int, int] = {}
    for at in range(len(statements) - 1, first - 1, -1):
        telling, values = words[at]
        shared: dict[int, int] = {}
        for word in telling:
            for later in by_word.get(word, ()):
                shared[later] = shared.get(later, 0) + 1
        for later, count in sorted(shared.items(), reverse=True):
            if count >= LEAST and _takes_back(statements, (at, later), words):
                found[at] = later
                break
        if values or _CHANGES.search(statements[at]) or _STATES.search(statements[at]):
            for word in telling:
                by_word.setdefault(word, []).append(at)
    return found


def _takes_back(
    statements: Sequence[str], places: tuple[int, int], words: dict[int, tuple[frozenset[str], frozenset[str]]]
) -> bool:
    """Whether the later one of two statements takes back the older one."""
    (older, old_values), (newer, new_values) = (words[place] for place in places)
    likeness = len(older & newer) / max(1, len(older | newer))
    said, again = (statements[place] for place in places)
    changes = _CHANGES.search(again) is not None
    if changes and likeness >= CLOSE and (old_values != new_values or older != newer):
        return _STATES.search(said) is not None
    has_other_value = bool(old_values) and bool(new_values) and not old_values & new_values
    return has_other_value and likeness >= SAME and _STATES.search(again) is not None


def _words(statement: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words that say what a statement is about, and the values in it."""
    values = set(_QUOTED.findall(statement))
    telling = set()
    for word in _WORD.findall(_QUOTED.sub(" ", statement)):
        bare = word.rstrip(".,-/")
        if _VALUE.fullmatch(bare):
            values.add(bare)
        elif bare.lower() not in _EMPTY:
            telling.add(bare.lower())
    return frozenset(telling), frozenset(values)
