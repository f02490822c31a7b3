"""Find the statements that a later statement revokes: if two statements contradict each other, the newer one wins.

Precision comes before recall: two sentences contradict each other only if they give different
values for the same subject, or if the later one explicitly announces a change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import fsum
from typing import NamedTuple

from resume_hooks.redaction.lazy_patterns import compile_lazily

_WORD = compile_lazily(r"[^\W_][\w./%$€-]*")
_VALUE = compile_lazily(
    r".*\d.*|[A-Z][A-Z0-9_]+|\S*[._/]\S+|(?:[Mm]on|[Tt]ues|[Ww]ednes|[Tt]hurs|[Ff]ri|[Ss]atur|[Ss]un)days?"
)  # a number, a constant, a name with a dot or a slash, a weekday
# a word that would look like a constant if written in capitals
_UNIT = compile_lazily(r"(?<=\d)\s?(?:[kKMGT]i?B|ms)\b")
_LOGGED = compile_lazily(
    r"\W*(?:\d+[.:]\d|[\u2500-\u27bf$>|])"
)  # the start of a line of program output
# a number with its unit or its object
_MEASURE = compile_lazily(r"(?<![\w.-])(\d[\d.,:]*)\s?(%|[^\W\d_]{2,})")
_QUOTED = compile_lazily(r"`[^`\n]{1,80}`|\"[^\"\n]{1,80}\"")
# This pattern and the next two match lower-case text, because ignoring case would double the search
# time.
_STATES = compile_lazily(
    r"\b(?:is|are|be|was|equals?|means|cap|limit|budget|deadline|max(?:imum)?|min(?:imum)?|at most|at least|prefers?|"
    r"must|should|uses?|named?|called|set to|runs? on|lives? (?:in|at)|stays?|keep)\b"
)
_BINDS = compile_lazily(
    r"\b(?:never|always|only|do not|don't|want|needs?|goal|preference|like|prefer(?:red)?|let's)\b"
)
"""Signs of a sentence that is not a statement but can be revoked by a later sentence."""

_CHANGES = compile_lazily(
    r"\b(?:actually|instead|no longer|not anymore|any more|changed? (?:my|our) mind|scratch that|correction|"
    r"forget (?:that|what|the)|from now on|on second thought|rather than|switch(?:ed)? (?:back )?to|make (?:it|that)|"
    r"now (?:is|it's)|(?:is|are) now|change of plan|update:|revert(?:ed)?|let's change|i was wrong|agreed on|"
    r"(?:moved|changed?|switch(?:ed)?) (?:the|our|my|it|that)|"
    r"new (?:rule|value|limit|name|plan|goal|target)(?=[^:]*:))\b"
)
_TOPIC = compile_lazily(
    r"\bfor (?:the|our|my|all) ([^,.;:!?]{3,60}?)"
    r"(?=\s+(?:use|i|we|prefer|like|let's|instead|today|now|please)\b|[,.;:!?]|\Z)",
    re.IGNORECASE,
)
"""The object of a choice."""

_REPLACED = compile_lazily(
    r"\b(?:instead of|rather than|replacing|replace|(?:switch|move|migrate)(?:d|ed)? (?:away )?from)\s+"
    r"(?:the |our |my |an? )?[`\"']?([a-z][\w.+#/-]{2,})"
)
"""The name of a thing that a statement replaces by another one."""

_CHOOSES = r"\b(?:use|using|go with|call(?:ed)?|name(?:d)?|prefer|choose|pick|take)\s+(?:\S+\s+){0,2}[`\"']?"
"""Words before the name of a chosen thing."""

_REFUSES = compile_lazily(r"\b(?:never|not|don't|avoid|no|without|both|also|too|support)\b|\?\W*\Z")
"""Words of a statement that chooses nothing, or more than one thing."""

_NUMBERED = compile_lazily(r"\b([a-z][a-z+#]{2,}(?:\.[a-z]+)?) v?(\d+(?:\.\d+)*)\b(?!\.?\d|%|-)")
"""A name with the number of its version."""

_CHOOSES_VERSION = compile_lazily(
    r"\b(?:use|using|go with|prefer|upgrade|downgrade|switch|stay (?:on|with)|target|"
    r"(?:seems?|looks?|is) (?:sensible|good|right|fine|ok|best|better))\b"
)
_COUNTERS = frozenset({
    "step", "phase", "option", "issue", "line", "lines", "task", "item", "part", "section", "round", "day", "page",
    "record", "row", "test", "tests", "job", "number", "level", "case", "chapter", "figure", "table", "stage", "top",
    "last", "first", "next", "than", "least", "most", "about", "for", "and", "from", "with", "only", "over", "under",
    "group", "sprint", "milestone", "finding", "question", "point", "sample", "batch", "port", "the", "exit", "code",
    "these", "those", "are", "all", "use", "using", "take", "after", "before", "into", "per", "version", "approach",
    "choice", "variant", "priority", "pull", "request", "commit", "size", "within", "wait", "every", "each", "another",
})  # fmt: skip
"""Words before a number that is not a version."""

_EMPTY = frozenset({
    "a", "an", "the", "and", "or", "but", "of", "to", "in", "on", "at", "by", "for", "from", "with", "as", "is", "are",
    "be", "was", "were", "it", "its", "this", "that", "these", "those", "we", "i", "you", "they", "he", "she", "our",
    "my", "your", "their", "so", "then", "also", "just", "please", "now", "will", "would", "can", "could", "do", "does",
    "did", "not", "no", "must", "should", "stay", "stays", "keep", "make", "sure", "most", "least", "actually",
    "instead", "correction", "forget", "what", "said", "told", "about",
})  # fmt: skip
"""Words that do not help to identify the subject of a sentence."""

LEAST = 2  # the minimum number of words that two sentences about the same subject share
SAME = 0.75  # the minimum fraction of common words if only a value changes
CLOSE = 0.4  # the minimum fraction of common words if the later sentence announces a change
LOOKED_AT = 300  # the maximum number of statements that are compared; the latest are compared


class _Words(NamedTuple):
    """The words that identify the subject of a statement, and the statement's values."""

    telling: frozenset[str]
    values: frozenset[str]


def superseded_places(statements: Sequence[str]) -> dict[int, int]:
    """Return the index of each revoked statement, with the index of the statement that revokes it.

    The statements are in order, oldest first.
    """
    first = max(0, len(statements) - LOOKED_AT)
    words = {}
    for at in range(first, len(statements)):
        words[at] = _statement_words(statements[at])
    weights = _weigh_words(words.values())
    by_word: dict[str, list[int]] = {}
    found = _places_of_other_versions(statements, first)
    for at in range(len(statements) - 1, first - 1, -1):
        telling, values = words[at]
        shared: dict[int, int] = {}
        for word in telling:
            for later in by_word.get(word, ()):
                shared[later] = shared.get(later, 0) + 1
        for later, count in sorted(shared.items(), reverse=True):
            if count >= LEAST and _takes_back(statements, (at, later), words, weights):
                found[at] = later
                break
        if values or is_change(statements[at]) or _STATES.search(statements[at].lower()):
            for word in telling:
                by_word.setdefault(word, []).append(at)
    return found


def standing_places(statements: Sequence[str]) -> list[int]:
    """Return the indexes of the statements that no later statement revokes, the latest first."""
    last = len(statements) - 1
    taken_back = superseded_places(statements[::-1])
    places = []
    for at in range(len(statements)):
        if last - at not in taken_back:
            places.append(at)
    return places


def is_change(statement: str) -> bool:
    """Check whether a statement explicitly changes an earlier one."""
    return _CHANGES.search(statement.lower()) is not None


def corrected_sentences(
    sentences: Iterable[tuple[int, str]], statements: Sequence[tuple[int, str]]
) -> Iterator[tuple[int, int]]:
    """Return which of the assistant's ``sentences`` a later one of the user's ``statements`` explicitly revokes.

    Both have times and are ordered, oldest first. The result contains indexes of both.
    """
    changes = [
        (at, moment, _statement_words(text))
        for at, (moment, text) in enumerate(statements)
        if is_change(text)
    ]
    known = {word for _, _, words in changes for word in words.telling}
    weights = _weigh_words(words for _, _, words in changes)
    for place, (moment, sentence) in enumerate(sentences):
        # Most sentences share no words with a change, and collecting all of their words takes far
        # longer than this check.
        if len(known.intersection(sentence.lower().split())) < LEAST - 1 or not _STATES.search(
            sentence.lower()
        ):
            continue
        older, old_values = _statement_words(sentence)
        if len(older & known) < LEAST:
            continue
        for at, later, (newer, new_values) in reversed(changes):
            is_about_it = later > moment and _measure_likeness(older, newer, weights) >= CLOSE
            if is_about_it and (old_values != new_values or older != newer):
                yield place, at
                break


def _measure_likeness(
    older: frozenset[str], newer: frozenset[str], weights: Mapping[str, float]
) -> float:
    """Return the weighted fraction of words that two statements have in common."""
    shared, rest = older & newer, older ^ newer
    # ``fsum`` returns the same result for any order
    weight = fsum([weights.get(word, 1) for word in shared])
    return weight / max(1e-9, weight + fsum([weights.get(word, 1) for word in rest]))


def _weigh_words(words: Iterable[_Words]) -> dict[str, float]:
    """Return the weight of each word: 1 if at most two statements contain it, less if more statements do."""
    counts = Counter(chain.from_iterable(each.telling for each in words))
    return {word: 1 / max(1, count - 1) for word, count in counts.items()}


def _takes_back(
    statements: Sequence[str],
    places: tuple[int, int],
    words: Mapping[int, _Words],
    weights: Mapping[str, float],
) -> bool:
    """Check whether the later of two statements revokes the earlier one."""
    (older, old_values), (newer, new_values) = (words[place] for place in places)
    likeness = _measure_likeness(older, newer, weights)
    said, again = (statements[place] for place in places)
    if likeness < CLOSE and not is_change(again) and _REPLACED.search(again.lower()) is None:
        return False
    if _STATES.search(said.lower()) or _BINDS.search(said.lower()):
        if likeness >= CLOSE and _is_measured_anew(said, again):
            return True
        is_alike = likeness >= CLOSE or _is_same_choice(said, again)
        if is_alike and is_change(again) and words[places[0]] != words[places[1]]:
            return True
    if _is_thing_replaced(said, again):
        return True
    has_other_value = bool(old_values) and bool(new_values) and not old_values & new_values
    return has_other_value and likeness >= SAME and _STATES.search(again.lower()) is not None


def _is_measured_anew(said: str, again: str) -> bool:
    """Check whether two statements give different numbers for the same things."""
    old, new = (
        {unit.lower(): number for number, unit in _MEASURE.findall(text)} for text in (said, again)
    )
    return any(
        unit in new and new[unit] != number for unit, number in old.items() if unit not in _EMPTY
    )


def _is_thing_replaced(said: str, again: str) -> bool:
    """Check whether the later statement replaces, by its name, the thing that the earlier one chooses."""
    replaced = _REPLACED.search(again.lower())
    if replaced is None or replaced[1] in _EMPTY or replaced[1].endswith("ing"):
        return False
    chosen = re.search(rf"{_CHOOSES}{re.escape(replaced[1])}\b", said.lower())
    return chosen is not None and _REFUSES.search(said.lower()) is None


def _places_of_other_versions(statements: Sequence[str], first: int) -> dict[int, int]:
    """Return the statements that choose a version, each with the later one that chooses another version of the same."""
    latest: dict[str, tuple[int, str]] = {}
    found: dict[int, int] = {}
    for at in range(len(statements) - 1, first - 1, -1):
        said = statements[at].lower()
        if _CHOOSES_VERSION.search(said) is None or _REFUSES.search(said) or _LOGGED.match(said):
            continue
        numbers: dict[str, set[str]] = {}
        for name, number in _NUMBERED.findall(said):
            if name not in _COUNTERS:
                numbers.setdefault(name, set()).add(number)
        for name, choices in numbers.items():
            if len(choices) > 1:
                continue  # a comparison, or a move from one to the other
            (number,) = choices
            later, newest = latest.setdefault(name, (at, number))
            if newest != number:
                found[at] = later
    return found


def _is_same_choice(said: str, again: str) -> bool:
    """Check whether two statements name the same object of a choice."""
    topics = []
    for topic in (_TOPIC.search(said), _TOPIC.search(again)):
        topics.append(topic and _statement_words(topic[1]))
    return topics[0] is not None and topics[0] == topics[1]


def _statement_words(statement: str) -> _Words:
    """Return the words of a statement. A log line has no words."""
    if _LOGGED.match(statement):
        return _Words(frozenset(), frozenset())
    values = set(_QUOTED.findall(statement))
    telling = set()
    for word in _WORD.findall(_UNIT.sub(" ", _QUOTED.sub(" ", statement))):
        bare = word.rstrip(".,-/")
        if _VALUE.fullmatch(bare):
            values.add(bare)
        elif bare.lower() not in _EMPTY:
            telling.add(bare.lower())
    return _Words(frozenset(telling), frozenset(values))
