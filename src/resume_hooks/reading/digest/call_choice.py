"""Choose the tool calls that an opening shows in its remaining space, and the length of each call.

The calls are added in this order, and each group may use only a fraction of the space:

1. commands whose failure is unresolved
2. edits that concern the last request or the last answer
3. the latest of the other edits
4. the latest of the other calls

Then more text of the edits in group 2 is shown. Next, earlier calls that are related to the last
request are added, and then all remaining calls. If space is still left, more text of the shortened
calls is shown, starting with the most useful calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from math import fsum
from typing import NamedTuple

from resume_hooks.reading.digest import prose

# The fraction of the space that commands with open failures may use.
SPACE_FRACTION_FOR_UNRESOLVED_ERRORS = 0.15
# The fraction of the space that these two groups may fill together: commands whose failure is
# unresolved, and edits that concern the last request or the last answer.
SPACE_FRACTION_FOR_RELEVANT_EDITS = 0.3
# The fraction of the space that unresolved failures and all the latest edits may fill together,
# before other calls are added.
LATEST_EDITS_SPACE_FRACTION = 0.35
# The fraction of the space that committed edits may use if the last request is about a review and
# there are no uncommitted edits.
SPACE_FRACTION_FOR_COMMITTED_EDITS = 0.3
# The fraction of the space that is reserved for earlier calls that are related to the last request.
RELATED_CALLS_SPACE_FRACTION = 0.35
# A word of the last request counts only if it occurs in at most this fraction of the calls.
MAX_RARE_WORD_FRACTION = 0.25
# A shortened call is extended only if at least this number of characters is available.
MIN_EXTENSION_CHARACTERS = 200
# An extended call is shown with at most this many characters.
MAX_EXTENDED_CALL_CHARACTERS = 12_000
# A call that is not worth extending may only fill the space that is left at the end, and is shown
# with at most this many characters.
MAX_CALL_CHARACTERS_IN_SPARE_SPACE = 4_000


class CallUsefulness(Enum):
    """How useful a call is for continuing the work."""

    RELEVANT_EDIT = "relevant_edit"
    """An edit after the last request, or an edit of a file that the last request or the last answer
    mentions."""
    OTHER_EDIT = "other_edit"
    """An edit that is not a RELEVANT_EDIT, but one of the latest edits of its file."""
    UNRESOLVED_ERROR = "unresolved_error"
    """A call whose command failed and whose failure the digest lists as unresolved."""
    OTHER = "other"
    OLD_RUN = "old_run"
    """An older check that passed, or a failed run of a command that passed later. Only the start
    and the end of the output are shown."""
    LOW = "low"
    """An older search or edit whose result the session has already used or which is outdated."""
    COMMITTED_EDIT = "committed_edit"
    """An edit that was committed afterwards. It is shown last, unless the last request is about the
    edit or about a review."""


_REVIEW_WORDS = frozenset({"feedback", "review", "reviews", "reviewer"})
"""If the last request contains one of these words, it is about a review, so committed edits are
shown too."""


class CandidateCall(NamedTuple):
    """A call that an opening may show.

    ``text`` is the shortened call as it is shown. ``is_recent`` means that the call came after the
    last request. ``is_read_before_last_request`` means that the call read a file or the state of git before the
    last request, so that the new session can repeat it. ``format_with_limit`` takes a number of
    characters and returns the call with at most this number of characters from its result.
    ``is_worth_extending`` means that more of the call's text is useful. For other calls, more text
    is only shown if space is left.
    """

    text: str
    usefulness: CallUsefulness
    is_recent: bool
    is_read_before_last_request: bool
    format_with_limit: Callable[[int], str]
    is_worth_extending: bool

    @property
    def is_shown_first(self) -> bool:
        """Whether a call belongs to the latest calls, which are shown before the others."""
        return (
            self.usefulness not in {CallUsefulness.LOW, CallUsefulness.COMMITTED_EDIT}
            and not self.is_read_before_last_request
        )


def choose_calls(
    candidates: Sequence[CandidateCall],
    max_characters: int,
    request_words: frozenset[str],
    shorten_result: Callable[[str], str],
) -> dict[int, str]:
    """Return the texts of the calls to show, by the index of each call.

    The texts have about ``max_characters`` characters in total. The candidates are ordered latest
    first. If a call only read something before the last request and is not related to that request,
    ``shorten_result`` shortens its result.
    """
    scores = _score_calls([candidate.text for candidate in candidates], request_words)
    texts: list[str] = []
    for candidate, score in zip(candidates, scores, strict=True):
        if candidate.is_read_before_last_request and not score:
            texts.append(shorten_result(candidate.text))
        else:
            texts.append(candidate.text)
    choice = _CallSelector(candidates, texts, max_characters)
    relevant_edits = choice.find_call_indexes_by_usefulness(CallUsefulness.RELEVANT_EDIT)
    edits = choice.find_call_indexes_by_usefulness(
        CallUsefulness.RELEVANT_EDIT, CallUsefulness.OTHER_EDIT
    )
    committed = choice.find_call_indexes_by_usefulness(CallUsefulness.COMMITTED_EDIT)
    latest = [index for index, candidate in enumerate(candidates) if candidate.is_shown_first]
    unresolved_errors = choice.find_call_indexes_by_usefulness(CallUsefulness.UNRESOLVED_ERROR)
    choice.select_calls(
        unresolved_errors, round(max_characters * SPACE_FRACTION_FOR_UNRESOLVED_ERRORS)
    )
    choice.select_calls(relevant_edits, round(max_characters * SPACE_FRACTION_FOR_RELEVANT_EDITS))
    choice.select_calls(edits, round(max_characters * LATEST_EDITS_SPACE_FRACTION))
    if not edits and not request_words.isdisjoint(_REVIEW_WORDS):
        committed.sort(key=lambda index: (-scores[index], index))
        choice.select_calls(committed, round(max_characters * SPACE_FRACTION_FOR_COMMITTED_EDITS))
    choice.select_calls(latest, round(max_characters * (1 - RELATED_CALLS_SPACE_FRACTION)))
    choice.extend_calls(relevant_edits)
    remaining = sorted(
        range(len(candidates)),
        key=lambda index: (-scores[index], _rank_call(candidates[index]), index),
    )
    choice.select_calls(remaining, max_characters)
    recent: list[int] = []
    for index in latest:
        if (
            candidates[index].is_recent
            and candidates[index].usefulness is not CallUsefulness.OTHER_EDIT
        ):
            recent.append(index)
    related = [index for index in remaining if scores[index] > 0]
    choice.extend_calls([*recent, *edits, *related])
    spare: list[int] = []
    for index in remaining:
        # Leave out old reads, because the new session can repeat them, and failures that were fixed
        # later, because they are no longer useful.
        candidate = candidates[index]
        if (
            not candidate.is_read_before_last_request
            and candidate.usefulness is not CallUsefulness.OLD_RUN
        ):
            spare.append(index)
    choice.extend_calls_in_spare_space(spare)
    return choice.texts


def _rank_call(candidate: CandidateCall) -> int:
    """Return the rank of a call among calls that are equally related to the last request.

    Rank 0 is shown first.
    """
    if candidate.usefulness is CallUsefulness.COMMITTED_EDIT:
        return 2
    return 0 if candidate.is_shown_first else 1


class _CallSelector:
    """The calls that have been chosen so far. ``texts`` maps the index of each call to its text."""

    def __init__(
        self, candidates: Sequence[CandidateCall], texts: Sequence[str], max_characters: int
    ) -> None:
        self.texts: dict[int, str] = {}
        self._candidates = candidates
        self._texts = texts
        self._max_characters = max_characters

    def find_call_indexes_by_usefulness(self, *values: CallUsefulness) -> list[int]:
        """Return the indexes of the calls with any of these values, the latest call first."""
        indexes: list[int] = []
        for index, candidate in enumerate(self._candidates):
            if candidate.usefulness in values:
                indexes.append(index)
        return indexes

    def select_calls(self, indexes: Iterable[int], max_characters: int) -> None:
        """Select the calls at ``indexes`` in order, until the selected calls fill ``max_characters``.

        The last call may exceed this limit, because an opening's size need not be exact.
        """
        for index in indexes:
            if self._count_characters() >= max_characters:
                return
            self.texts.setdefault(index, self._texts[index])

    def extend_calls(self, indexes: Iterable[int]) -> None:
        """Show more text of those calls at ``indexes`` that are worth extending, as long as space is left."""
        useful = [index for index in indexes if self._candidates[index].is_worth_extending]
        self._show_more_of_calls(useful, MAX_EXTENDED_CALL_CHARACTERS)

    def extend_calls_in_spare_space(self, indexes: Iterable[int]) -> None:
        """Show more text of all calls at ``indexes``, as long as space is left."""
        self._show_more_of_calls(indexes, MAX_CALL_CHARACTERS_IN_SPARE_SPACE)

    def _show_more_of_calls(self, indexes: Iterable[int], max_call_characters: int) -> None:
        for index in indexes:
            candidate = self._candidates[index]
            added_characters = self._max_characters - self._count_characters()
            if added_characters < MIN_EXTENSION_CHARACTERS:
                return
            if index not in self.texts:
                continue
            shown_text = self.texts[index]
            longer_text = candidate.format_with_limit(
                min(len(shown_text) + added_characters, max_call_characters)
            )
            if len(shown_text) < len(longer_text) <= len(shown_text) + added_characters:
                self.texts[index] = longer_text

    def _count_characters(self) -> int:
        return sum(len(text) for text in self.texts.values())


def _score_calls(texts: Sequence[str], request_words: frozenset[str]) -> list[float]:
    """Return, for each call, a number that says how strongly the call is related to the last request.

    A word in the request counts more if it occurs in fewer calls.
    """
    shared_words = [prose.find_significant_words(text) & request_words for text in texts]
    counts: Counter[str] = Counter()
    for call_words in shared_words:
        counts.update(call_words)
    scores: list[float] = []
    for call_words in shared_words:
        rare_words = []
        for word in call_words:
            if counts[word] <= max(2, len(texts) * MAX_RARE_WORD_FRACTION):
                rare_words.append(word)
        # Unlike ``sum``, ``fsum`` does not depend on the order of the words.
        scores.append(fsum([1 / counts[word] for word in rare_words]))
    return scores
