"""Find the statements that a later statement revokes.

If two statements contradict each other, the later one is valid. It is better to miss a
contradiction than to report a false one. So two statements are only treated as a contradiction if
they give different values for the same subject, or if the later one explicitly announces a change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import fsum
from typing import NamedTuple

from resume_hooks.redaction.lazy_patterns import compile_lazily

_WORD_PATTERN = compile_lazily(r"[^\W_][\w./%$€-]*")
# A number, a constant, a name with a dot or a slash, or a weekday.
_VALUE_PATTERN = compile_lazily(
    r".*\d.*|[A-Z][A-Z0-9_]+|\S*[._/]\S+|(?:[Mm]on|[Tt]ues|[Ww]ednes|[Tt]hurs|[Ff]ri|[Ss]atur|[Ss]un)days?"
)
# A unit such as "MB". Units are removed because the capital letters would make them look like
# constants.
_UNIT_PATTERN = compile_lazily(r"(?<=\d)\s?(?:[kKMGT]i?B|ms)\b")
# The start of a line that a program printed.
_LOG_LINE_PATTERN = compile_lazily(r"\W*(?:\d+[.:]\d|[\u2500-\u27bf$>|])")
# A number with its unit or with the name of what it counts.
_MEASUREMENT_PATTERN = compile_lazily(r"(?<![\w.-])(\d[\d.,:]*)\s?(%|[^\W\d_]{2,})")
_QUOTED_TEXT_PATTERN = compile_lazily(r"`[^`\n]{1,80}`|\"[^\"\n]{1,80}\"")
# This pattern and the next two match lower-case text, because ignoring the case would take twice as
# long.
_STATING_WORD_PATTERN = compile_lazily(
    r"\b(?:is|are|be|was|equals?|means|cap|limit|budget|deadline|max(?:imum)?|min(?:imum)?|at most|at least|prefers?|"
    r"must|should|uses?|named?|called|set to|runs? on|lives? (?:in|at)|stays?|keep)\b"
)
_BINDING_WORD_PATTERN = compile_lazily(
    r"\b(?:never|always|only|do not|don't|want|needs?|goal|preference|like|prefer(?:red)?|let's)\b"
)
"""A later sentence can revoke a sentence with such a word, even if the sentence states no fact."""

_CHANGE_PHRASE_PATTERN = compile_lazily(
    r"\b(?:actually|instead|no longer|not anymore|any more|changed? (?:my|our) mind|scratch that|correction|"
    r"forget (?:that|what|the)|from now on|on second thought|rather than|switch(?:ed)? (?:back )?to|make (?:it|that)|"
    r"now (?:is|it's)|(?:is|are) now|change of plan|update:|revert(?:ed)?|let's change|i was wrong|agreed on|"
    r"(?:moved|changed?|switch(?:ed)?) (?:the|our|my|it|that)|"
    r"new (?:rule|value|limit|name|plan|goal|target)(?=[^:]*:))\b"
)
_CHOICE_OBJECT_PATTERN = compile_lazily(
    r"\bfor (?:the|our|my|all) ([^,.;:!?]{3,60}?)"
    r"(?=\s+(?:use|i|we|prefer|like|let's|instead|today|now|please)\b|[,.;:!?]|\Z)",
    re.IGNORECASE,
)
"""The purpose of a choice, such as "the tests" in "for the tests, use pytest"."""

_REPLACED_NAME_PATTERN = compile_lazily(
    r"\b(?:instead of|rather than|replacing|replace|(?:switch|move|migrate)(?:d|ed)? (?:away )?from)\s+"
    r"(?:the |our |my |an? )?[`\"']?([a-z][\w.+#/-]{2,})"
)
"""The name of a thing that the statement replaces, such as "tox" in "instead of tox"."""

_CHOOSING_WORDS_PATTERN = (
    r"\b(?:use|using|go with|call(?:ed)?|name(?:d)?|prefer|choose|"
    r"pick|take)\s+(?:\S+\s+){0,2}[`\"']?"
)
"""Words that come before the name of a chosen tool or option, such as "use"."""

_REFUSING_WORD_PATTERN = compile_lazily(
    r"\b(?:never|not|don't|avoid|no|without|both|also|too|support)\b|\?\W*\Z"
)
"""Words that show that a statement chooses nothing, or more than one thing."""

_NAME_WITH_VERSION_PATTERN = compile_lazily(
    r"\b([a-z][a-z+#]{2,}(?:\.[a-z]+)?) v?(\d+(?:\.\d+)*)\b(?!\.?\d|%|-)"
)
"""A name that is followed by a version number."""

_VERSION_CHOICE_PATTERN = compile_lazily(
    r"\b(?:use|using|go with|prefer|upgrade|downgrade|switch|stay (?:on|with)|target|"
    r"(?:seems?|looks?|is) (?:sensible|good|right|fine|ok|best|better))\b"
)
_WORDS_BEFORE_NUMBERS = frozenset({
    "step", "phase", "option", "issue", "line", "lines", "task", "item", "part", "section", "round", "day", "page",
    "record", "row", "test", "tests", "job", "number", "level", "case", "chapter", "figure", "table", "stage", "top",
    "last", "first", "next", "than", "least", "most", "about", "for", "and", "from", "with", "only", "over", "under",
    "group", "sprint", "milestone", "finding", "question", "point", "sample", "batch", "port", "the", "exit", "code",
    "these", "those", "are", "all", "use", "using", "take", "after", "before", "into", "per", "version", "approach",
    "choice", "variant", "priority", "pull", "request", "commit", "size", "within", "wait", "every", "each", "another",
})  # fmt: skip
"""Words that may come before a number that is not a version."""

_STOP_WORDS = frozenset({
    "a", "an", "the", "and", "or", "but", "of", "to", "in", "on", "at", "by", "for", "from", "with", "as", "is", "are",
    "be", "was", "were", "it", "its", "this", "that", "these", "those", "we", "i", "you", "they", "he", "she", "our",
    "my", "your", "their", "so", "then", "also", "just", "please", "now", "will", "would", "can", "could", "do", "does",
    "did", "not", "no", "must", "should", "stay", "stays", "keep", "make", "sure", "most", "least", "actually",
    "instead", "correction", "forget", "what", "said", "told", "about",
})  # fmt: skip
"""Words that do not help to identify the subject of a sentence."""

# The minimum number of words that two sentences about the same subject have in common.
MIN_SHARED_WORDS = 2
# If two sentences share at least this fraction of their words, they are treated as the same
# statement, even if they contain different values.
MIN_SAME_SUBJECT_FRACTION = 0.75
# If the later of two sentences announces a change, it is treated as a change of the earlier one if
# the two share at least this fraction of their words.
MIN_SIMILAR_SUBJECT_FRACTION = 0.4
# How many of the latest statements are compared with each other.
MAX_COMPARED_STATEMENTS = 300


class _StatementWords(NamedTuple):
    """The words that identify the subject of a statement, and the statement's values."""

    subject_words: frozenset[str]
    values: frozenset[str]


def find_indexes_of_revoked_statements(statements: Sequence[str]) -> dict[int, int]:
    """Map the index of each revoked statement to the index of the statement that revokes it.

    The statements are ordered oldest first.
    """
    first_index = max(0, len(statements) - MAX_COMPARED_STATEMENTS)
    words = {}
    for index in range(first_index, len(statements)):
        words[index] = _parse_statement(statements[index])
    weights = _weigh_words(words.values())
    indexes_by_word: dict[str, list[int]] = {}
    revocations = _find_indexes_of_replaced_versions(statements, first_index)
    for index in range(len(statements) - 1, first_index - 1, -1):
        subject_words, values = words[index]
        shared_counts: dict[int, int] = {}
        for word in subject_words:
            for later_index in indexes_by_word.get(word, ()):
                shared_counts[later_index] = shared_counts.get(later_index, 0) + 1
        for later_index, count in sorted(shared_counts.items(), reverse=True):
            if count >= MIN_SHARED_WORDS and _is_revoked(
                statements, (index, later_index), words, weights
            ):
                revocations[index] = later_index
                break
        if (
            values
            or announces_change(statements[index])
            or _STATING_WORD_PATTERN.search(statements[index].lower())
        ):
            for word in subject_words:
                indexes_by_word.setdefault(word, []).append(index)
    return revocations


def find_indexes_of_binding_statements(statements: Sequence[str]) -> list[int]:
    """Return the indexes of the statements that no later statement revokes.

    The statements, and the indexes in the result, are ordered latest first.
    """
    last_index = len(statements) - 1
    revoked = find_indexes_of_revoked_statements(statements[::-1])
    indexes = []
    for index in range(len(statements)):
        if last_index - index not in revoked:
            indexes.append(index)
    return indexes


def announces_change(statement: str) -> bool:
    """Check whether a statement explicitly changes an earlier statement."""
    return _CHANGE_PHRASE_PATTERN.search(statement.lower()) is not None


def find_indexes_of_corrected_sentences(
    sentences: Iterable[tuple[int, str]], statements: Sequence[tuple[int, str]]
) -> Iterator[tuple[int, int]]:
    """Find the assistant's ``sentences`` that a later statement by the user explicitly revokes.

    Each sentence and each statement comes with the index of its message. Both are ordered oldest
    first. Yield the index of each revoked sentence and the index of the statement that revokes it.
    """
    changes = [
        (index, message_index, _parse_statement(text))
        for index, (message_index, text) in enumerate(statements)
        if announces_change(text)
    ]
    change_words = {word for _, _, words in changes for word in words.subject_words}
    weights = _weigh_words(words for _, _, words in changes)
    for sentence_index, (message_index, sentence) in enumerate(sentences):
        # Most sentences share no words with a change. Checking this first is much faster than
        # collecting all words in each sentence.
        if len(
            change_words.intersection(sentence.lower().split())
        ) < MIN_SHARED_WORDS - 1 or not _STATING_WORD_PATTERN.search(sentence.lower()):
            continue
        old_words, old_values = _parse_statement(sentence)
        if len(old_words & change_words) < MIN_SHARED_WORDS:
            continue
        for index, change_message_index, (new_words, new_values) in reversed(changes):
            is_related = (
                change_message_index > message_index
                and _measure_similarity(old_words, new_words, weights)
                >= MIN_SIMILAR_SUBJECT_FRACTION
            )
            if is_related and (old_values != new_values or old_words != new_words):
                yield sentence_index, index
                break


def _measure_similarity(
    old_words: frozenset[str], new_words: frozenset[str], weights: Mapping[str, float]
) -> float:
    """Return the weighted fraction of words that two statements have in common."""
    shared_words, other_words = old_words & new_words, old_words ^ new_words
    # Unlike ``sum``, ``fsum`` does not depend on the order of the words.
    shared_weight = fsum([weights.get(word, 1) for word in shared_words])
    return shared_weight / max(
        1e-9, shared_weight + fsum([weights.get(word, 1) for word in other_words])
    )


def _weigh_words(statements: Iterable[_StatementWords]) -> dict[str, float]:
    """Return the weight of each word. It is 1 for a word in one or two statements, and less for others."""
    counts = Counter(chain.from_iterable(statement.subject_words for statement in statements))
    return {word: 1 / max(1, count - 1) for word, count in counts.items()}


def _is_revoked(
    statements: Sequence[str],
    indexes: tuple[int, int],
    words_by_index: Mapping[int, _StatementWords],
    weights: Mapping[str, float],
) -> bool:
    """Check whether the later of two statements revokes the earlier one.

    ``indexes`` contains the index of the earlier statement and the index of the later statement.
    """
    (old_words, old_values), (new_words, new_values) = (words_by_index[index] for index in indexes)
    similarity = _measure_similarity(old_words, new_words, weights)
    old_statement, new_statement = (statements[index] for index in indexes)
    if (
        similarity < MIN_SIMILAR_SUBJECT_FRACTION
        and not announces_change(new_statement)
        and _REPLACED_NAME_PATTERN.search(new_statement.lower()) is None
    ):
        return False
    if _STATING_WORD_PATTERN.search(old_statement.lower()) or _BINDING_WORD_PATTERN.search(
        old_statement.lower()
    ):
        if similarity >= MIN_SIMILAR_SUBJECT_FRACTION and _have_different_numbers(
            old_statement, new_statement
        ):
            return True
        is_similar = similarity >= MIN_SIMILAR_SUBJECT_FRACTION or _have_same_purpose(
            old_statement, new_statement
        )
        if (
            is_similar
            and announces_change(new_statement)
            and words_by_index[indexes[0]] != words_by_index[indexes[1]]
        ):
            return True
    if _is_thing_replaced(old_statement, new_statement):
        return True
    has_other_value = bool(old_values) and bool(new_values) and not old_values & new_values
    return (
        has_other_value
        and similarity >= MIN_SAME_SUBJECT_FRACTION
        and _STATING_WORD_PATTERN.search(new_statement.lower()) is not None
    )


def _have_different_numbers(old_statement: str, new_statement: str) -> bool:
    """Check whether two statements give different numbers for the same things."""
    old_numbers, new_numbers = (
        {unit.lower(): number for number, unit in _MEASUREMENT_PATTERN.findall(text)}
        for text in (old_statement, new_statement)
    )
    return any(
        unit in new_numbers and new_numbers[unit] != number
        for unit, number in old_numbers.items()
        if unit not in _STOP_WORDS
    )


def _is_thing_replaced(old_statement: str, new_statement: str) -> bool:
    """Check whether the later statement replaces a thing that the earlier statement chooses."""
    replaced = _REPLACED_NAME_PATTERN.search(new_statement.lower())
    if replaced is None or replaced[1] in _STOP_WORDS or replaced[1].endswith("ing"):
        return False
    chosen = re.search(
        rf"{_CHOOSING_WORDS_PATTERN}{re.escape(replaced[1])}\b", old_statement.lower()
    )
    return chosen is not None and _REFUSING_WORD_PATTERN.search(old_statement.lower()) is None


def _find_indexes_of_replaced_versions(
    statements: Sequence[str], first_index: int
) -> dict[int, int]:
    """Find the statements whose choice of a version was replaced by a later statement.

    Map the index of each replaced statement to the index of the later one, which chooses a
    different version of the same thing. Statements before ``first_index`` are not compared.
    """
    latest_choices: dict[str, tuple[int, str]] = {}
    replacements: dict[int, int] = {}
    for index in range(len(statements) - 1, first_index - 1, -1):
        statement = statements[index].lower()
        if (
            _VERSION_CHOICE_PATTERN.search(statement) is None
            or _REFUSING_WORD_PATTERN.search(statement)
            or _LOG_LINE_PATTERN.match(statement)
        ):
            continue
        numbers: dict[str, set[str]] = {}
        for name, number in _NAME_WITH_VERSION_PATTERN.findall(statement):
            if name not in _WORDS_BEFORE_NUMBERS:
                numbers.setdefault(name, set()).add(number)
        for name, choices in numbers.items():
            if len(choices) > 1:
                continue  # The statement compares versions, or moves from one version to another.
            (number,) = choices
            later_index, latest_number = latest_choices.setdefault(name, (index, number))
            if latest_number != number:
                replacements[index] = later_index
    return replacements


def _have_same_purpose(old_statement: str, new_statement: str) -> bool:
    """Check whether two statements name the same purpose, for example "the tests" in "for the tests, use"."""
    topics = []
    for topic in (
        _CHOICE_OBJECT_PATTERN.search(old_statement),
        _CHOICE_OBJECT_PATTERN.search(new_statement),
    ):
        topics.append(topic and _parse_statement(topic[1]))
    return topics[0] is not None and topics[0] == topics[1]


def _parse_statement(statement: str) -> _StatementWords:
    """Return the words of a statement's subject, and its values.

    If the statement is a line of output, both are empty.
    """
    if _LOG_LINE_PATTERN.match(statement):
        return _StatementWords(frozenset(), frozenset())
    values = set(_QUOTED_TEXT_PATTERN.findall(statement))
    subject_words = set()
    for word in _WORD_PATTERN.findall(
        _UNIT_PATTERN.sub(" ", _QUOTED_TEXT_PATTERN.sub(" ", statement))
    ):
        stripped = word.rstrip(".,-/")
        if _VALUE_PATTERN.fullmatch(stripped):
            values.add(stripped)
        elif stripped.lower() not in _STOP_WORDS:
            subject_words.add(stripped.lower())
    return _StatementWords(frozenset(subject_words), frozenset(values))
