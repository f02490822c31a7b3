"""Choose the calls for the remaining space of an opening, and the part of each call that is shown.

The order is as follows. First come the failures that are still open, then the edits that decided
the last turn, then the latest other edits, then the latest other calls, each in a fraction of the
space. Then shortened deciding edits are shown with more of their text. Then come earlier calls that
are related to the last request, then the other calls and more of the other shortened texts. Outputs
of little use fill the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from math import fsum
from typing import NamedTuple

from resume_hooks.reading.digest import prose

# the fraction of the available space for failures that are still open
OPEN_ERRORS_FRACTION = 0.15
# the fraction of the available space for these and for edits that decided the last turn
DECIDING_FRACTION = 0.3
# the fraction of the available space for all the latest edits, which come before the latest other
# calls
EDITS_FRACTION = 0.35
# the fraction for committed edits, if the last request is about them and there are no others
COMMITTED_FRACTION = 0.3
# the fraction of the available space for earlier calls that are related to the last request
RELATED_FRACTION = 0.35
MAX_RARE_FRACTION = 0.25  # a word that occurs in a larger fraction of the calls is not significant
# the minimum number of characters by which a shortened call is extended
MIN_ADDED_CHARACTERS = 200
MAX_EXTENDED_CHARACTERS = 12_000  # the maximum number of characters in an extended call
# the same for a call that only fills spare space
MAX_SPARE_CHARACTERS = 4_000


class CallValue(Enum):
    """The usefulness of a call for continuing the work."""

    DECIDING = "deciding"
    """An edit since the last request, or of a file that the last request or the last answer names."""
    EDIT = "edit"
    """One of the latest edits of another file."""
    OPEN_ERROR = "open error"
    """A command whose failure is listed as open."""
    OTHER = "other"
    BRIEF = "brief"
    """An older check that passed, or a failed run that passed later. The start and end of its log are enough."""
    LOW = "low"
    """An older search or edit. Its result is already used or outdated."""
    COMMITTED = "committed"
    """An edit that was committed afterwards. It comes last, unless the last request is about it or a review."""


_REVIEW_WORDS = frozenset({"feedback", "review", "reviews", "reviewer"})
"""Words of a request about edits that were committed."""


class CandidateCall(NamedTuple):
    """A call, its usefulness, and its ``text``.

    ``is_recent`` means that the call came after the last request. ``is_old_read`` means that the
    call read a file or the state of git before the last request. It can be read again.
    ``format_longer`` formats the call with the given maximum number of characters in its result.
    ``is_worth_space`` means that more of the text is useful; otherwise it only fills spare space.
    """

    text: str
    value: CallValue
    is_recent: bool
    is_old_read: bool
    format_longer: Callable[[int], str]
    is_worth_space: bool

    @property
    def is_likely(self) -> bool:
        """Check whether a call is among the latest calls that are shown first."""
        return self.value not in {CallValue.LOW, CallValue.COMMITTED} and not self.is_old_read


def choose_calls(
    candidates: Sequence[CandidateCall],
    max_characters: int,
    request_words: frozenset[str],
    shorten_result: Callable[[str], str],
) -> dict[int, str]:
    """Return the indexes of the calls to show, each with its text, in about ``max_characters``.

    The candidates are ordered latest first. ``shorten_result`` shortens the text of a file that was
    read before the last request and is not related to that request.
    """
    scores = _score_calls([candidate.text for candidate in candidates], request_words)
    texts: list[str] = []
    for candidate, score in zip(candidates, scores, strict=True):
        if candidate.is_old_read and not score:
            texts.append(shorten_result(candidate.text))
        else:
            texts.append(candidate.text)
    choice = _CallChoice(candidates, texts, max_characters)
    deciding = choice.indexes_of_values(CallValue.DECIDING)
    edits = choice.indexes_of_values(CallValue.DECIDING, CallValue.EDIT)
    committed = choice.indexes_of_values(CallValue.COMMITTED)
    latest = [index for index, candidate in enumerate(candidates) if candidate.is_likely]
    open_errors = choice.indexes_of_values(CallValue.OPEN_ERROR)
    choice.show_calls(open_errors, round(max_characters * OPEN_ERRORS_FRACTION))
    choice.show_calls(deciding, round(max_characters * DECIDING_FRACTION))
    choice.show_calls(edits, round(max_characters * EDITS_FRACTION))
    if not edits and not request_words.isdisjoint(_REVIEW_WORDS):
        committed.sort(key=lambda index: (-scores[index], index))
        choice.show_calls(committed, round(max_characters * COMMITTED_FRACTION))
    choice.show_calls(latest, round(max_characters * (1 - RELATED_FRACTION)))
    choice.extend_calls(deciding)
    remaining = sorted(
        range(len(candidates)),
        key=lambda index: (-scores[index], _rank_call(candidates[index]), index),
    )
    choice.show_calls(remaining, max_characters)
    recent: list[int] = []
    for index in latest:
        if candidates[index].is_recent and candidates[index].value is not CallValue.EDIT:
            recent.append(index)
    related = [index for index in remaining if scores[index] > 0]
    choice.extend_calls([*recent, *edits, *related])
    spare: list[int] = []
    for index in remaining:
        candidate = candidates[index]  # an old read can be repeated, an outdated failure is useless
        if not candidate.is_old_read and candidate.value is not CallValue.BRIEF:
            spare.append(index)
    choice.extend_spare_calls(spare)
    return choice.texts


def _rank_call(candidate: CandidateCall) -> int:
    """Return the rank of a call that is not related to the last request; the lowest rank comes first."""
    if candidate.value is CallValue.COMMITTED:
        return 2
    return 0 if candidate.is_likely else 1


class _CallChoice:
    """The calls that were chosen so far, with their texts by index."""

    def __init__(
        self, candidates: Sequence[CandidateCall], texts: Sequence[str], max_characters: int
    ) -> None:
        self.texts: dict[int, str] = {}
        self._candidates = candidates
        self._texts = texts
        self._max_characters = max_characters

    def indexes_of_values(self, *values: CallValue) -> list[int]:
        """Return the indexes of the calls with these values, the latest call first."""
        indexes: list[int] = []
        for index, candidate in enumerate(self._candidates):
            if candidate.value in values:
                indexes.append(index)
        return indexes

    def show_calls(self, indexes: Iterable[int], max_characters: int) -> None:
        """Show these calls until all shown calls have ``max_characters``.

        The last call may exceed the space, because the space is approximate.
        """
        for index in indexes:
            if self._count_characters() >= max_characters:
                return
            self.texts.setdefault(index, self._texts[index])

    def extend_calls(self, indexes: Iterable[int]) -> None:
        """Show more of the text of those calls that are worth the space, as far as the space allows."""
        useful = [index for index in indexes if self._candidates[index].is_worth_space]
        self._extend_calls(useful, MAX_EXTENDED_CHARACTERS)

    def extend_spare_calls(self, indexes: Iterable[int]) -> None:
        """Show more of the text of any of these calls, as far as the space allows."""
        self._extend_calls(indexes, MAX_SPARE_CHARACTERS)

    def _extend_calls(self, indexes: Iterable[int], max_call_characters: int) -> None:
        for index in indexes:
            candidate = self._candidates[index]
            added_characters = self._max_characters - self._count_characters()
            if added_characters < MIN_ADDED_CHARACTERS:
                return
            if index not in self.texts:
                continue
            shown_text = self.texts[index]
            longer_text = candidate.format_longer(
                min(len(shown_text) + added_characters, max_call_characters)
            )
            if len(shown_text) < len(longer_text) <= len(shown_text) + added_characters:
                self.texts[index] = longer_text

    def _count_characters(self) -> int:
        return sum(len(text) for text in self.texts.values())


def _score_calls(texts: Sequence[str], request_words: frozenset[str]) -> list[float]:
    """Return for each call how strongly it is related to some words. A rarer word counts more."""
    shared_words = [prose.significant_words(text) & request_words for text in texts]
    counts: Counter[str] = Counter()
    for call_words in shared_words:
        counts.update(call_words)
    scores: list[float] = []
    for call_words in shared_words:
        rare_words = []
        for word in call_words:
            if counts[word] <= max(2, len(texts) * MAX_RARE_FRACTION):
                rare_words.append(word)
        # ``fsum`` returns the same result for any order
        scores.append(fsum([1 / counts[word] for word in rare_words]))
    return scores
