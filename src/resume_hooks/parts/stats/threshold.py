"""Estimate what sessions would have cost if they had been reduced whenever they reached a threshold.

An example of a threshold is ``trim@150k``, which trims a session when it reaches 150,000 tokens.
The functions in this module have no side effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from resume_hooks.derive.compare import (
    CACHE_READ_RATE,
    CACHE_WRITE_PRICE_RATIOS,
    OUTPUT_PRICE_RATIO,
)
from resume_hooks.derive.opening_size import convert_size_to_tokens
from resume_hooks.derive.trim.options import DEFAULT_KEPT_TURN_COUNT
from resume_hooks.hooks.compaction import (
    MAX_RESULT_FRACTION_OF_CONTEXT,
    MIN_TURNS_BETWEEN_COMPACTIONS,
    TARGET_SIZE_FRACTION,
    TRIM_VALUE,
)
from resume_hooks.parts.stats.count import ApiRequest
from resume_hooks.settings import DEFAULT_HANDOFF_SIZE
from resume_hooks.transcripts.tokens import USUAL_CACHED_TOKENS

DEFAULT_HANDOFF_TOKENS = convert_size_to_tokens(DEFAULT_HANDOFF_SIZE)
CONTEXT_SIZE_THRESHOLDS = (200_000, 150_000, 100_000)
TRIMMED_FRACTION = 0.5
"""The fraction of a session's growth that a trim removes. According to docs/figures.md, a trim
removes 44,000 of 83,000 tokens."""

ASSUMPTIONS_TEXT = (
    "Assumptions: A trim frees half of the growth since the last trim. A handoff leaves the first "
    f"request, 12,000 tokens and up to {DEFAULT_KEPT_TURN_COUNT} turns. The next request writes everything "
    "to the cache again, except the part that all sessions share. The model reads nothing a second time. "
    "The work and the client's own compactions stay the same. Sub-agents are left out. Compared with an "
    "input token that is not cached, a token costs 0.1 if it is read from the cache, 1.25 if it is written "
    "to the cache (2 if it is kept for an hour), and 5 if it is in an answer."
)


class ThresholdCost(NamedTuple):
    """The cost of all requests and their answers, in units of an input token's cost.

    ``threshold_tokens`` is 0 for the actual cost. Otherwise, the cost applies if each session is
    reduced by a trim or a handoff whenever it reaches the threshold. ``context_reduction_count`` is
    the number of these reductions, and ``tokens_after_reduction`` is the average number of tokens after
    one.
    """

    threshold_tokens: int
    strategy: str
    context_reduction_count: int
    tokens_after_reduction: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_in_input_tokens: int


def compute_threshold_costs(
    sessions: Iterable[Sequence[ApiRequest]], first_day: str
) -> list[ThresholdCost]:
    """Return the costs of the requests since ``first_day``, one cost for each threshold and strategy.

    The first cost is the actual cost, without a threshold. A strategy is a trim or a handoff.
    """
    requests_by_session = [session for session in sessions if session]
    strategies = [(0, "")]
    for threshold_tokens in CONTEXT_SIZE_THRESHOLDS:
        strategies += [(threshold_tokens, TRIM_VALUE), (threshold_tokens, DEFAULT_HANDOFF_SIZE)]
    prices = []
    for threshold_tokens, strategy in strategies:
        replayed_sessions = [
            _ReplayedSession(threshold_tokens, strategy, first_day, session)
            for session in requests_by_session
        ]
        remaining_sizes = []
        for replayed_session in replayed_sessions:
            remaining_sizes.extend(replayed_session.remaining_sizes)
        prices.append(
            ThresholdCost(
                threshold_tokens,
                strategy,
                context_reduction_count=len(remaining_sizes),
                tokens_after_reduction=round(sum(remaining_sizes) / max(1, len(remaining_sizes))),
                cache_read_tokens=round(sum(each.cache_read_tokens for each in replayed_sessions)),
                cache_write_tokens=round(
                    sum(each.cache_write_tokens for each in replayed_sessions)
                ),
                cost_in_input_tokens=round(sum(each.cost for each in replayed_sessions)),
            )
        )
    return prices


class _ReplayedSession:
    """Replays a session's requests as if it had been reduced whenever it reached a threshold.

    ``removed_tokens`` is the number of tokens that have been removed so far.
    """

    def __init__(
        self,
        threshold_tokens: int,
        strategy: str,
        first_day: str,
        requests: Sequence[ApiRequest],
    ) -> None:
        self.threshold_tokens, self.strategy, self.first_day = (
            threshold_tokens,
            strategy,
            first_day,
        )
        self.first_request_tokens = self.min_tokens = requests[0].sent_tokens
        self.cached_tokens = min(
            requests[0].cached_tokens or USUAL_CACHED_TOKENS, self.first_request_tokens
        )
        self.removed_tokens, self.last_attempt_turn, self.next_attempt_tokens = (
            0,
            -MIN_TURNS_BETWEEN_COMPACTIONS,
            threshold_tokens,
        )
        self.turn_start_tokens = [self.first_request_tokens]
        self.remaining_sizes: list[int] = []
        self.cache_read_tokens = self.cache_write_tokens = self.cost = 0.0
        self._add_request_cost(requests[0], is_after_reduction=False)
        for before, request in pairwise(requests):
            is_after_reduction = (
                request.prompt_count != before.prompt_count
                and self._shrink_session_if_needed(before)
            )
            # If the request is smaller than the first request, the client has compacted the
            # session.
            if request.sent_tokens - self.removed_tokens < self.first_request_tokens:
                self.removed_tokens, self.min_tokens = 0, min(self.min_tokens, request.sent_tokens)
            if request.prompt_count != before.prompt_count:
                self.turn_start_tokens.append(
                    before.sent_tokens + before.answer_tokens - self.removed_tokens
                )
            self._add_request_cost(request, is_after_reduction=is_after_reduction)

    def _shrink_session_if_needed(self, last_request: ApiRequest) -> bool:
        """Reduce the session after ``last_request`` if the session has reached the threshold.

        Return whether the session was reduced.
        """
        context_tokens = last_request.sent_tokens + last_request.answer_tokens - self.removed_tokens
        if (
            not self.threshold_tokens
            or context_tokens < self.next_attempt_tokens
            or last_request.prompt_count - self.last_attempt_turn < MIN_TURNS_BETWEEN_COMPACTIONS
        ):
            return False
        remaining_tokens, self.last_attempt_turn = (
            self._estimate_remaining_tokens(context_tokens),
            last_request.prompt_count,
        )
        if remaining_tokens > context_tokens * MAX_RESULT_FRACTION_OF_CONTEXT:
            self.next_attempt_tokens = round(context_tokens / MAX_RESULT_FRACTION_OF_CONTEXT)
            return False
        self.removed_tokens += context_tokens - remaining_tokens
        self.min_tokens, self.next_attempt_tokens, self.turn_start_tokens = (
            remaining_tokens,
            self.threshold_tokens,
            [],
        )
        self.remaining_sizes += [remaining_tokens] * (last_request.day >= self.first_day)
        return True

    def _estimate_remaining_tokens(self, context_tokens: int) -> int:
        if self.strategy == TRIM_VALUE:
            return context_tokens - round((context_tokens - self.min_tokens) * TRIMMED_FRACTION)
        recent_tokens = [
            context_tokens - begun for begun in self.turn_start_tokens[-DEFAULT_KEPT_TURN_COUNT:]
        ]
        max_tokens = min(context_tokens, self.threshold_tokens) * TARGET_SIZE_FRACTION
        kept_tokens = next(
            (turns for turns in recent_tokens if turns <= max_tokens), recent_tokens[-1]
        )
        return round(self.first_request_tokens + DEFAULT_HANDOFF_TOKENS + kept_tokens)

    def _add_request_cost(self, request: ApiRequest, *, is_after_reduction: bool) -> None:
        if request.day < self.first_day:
            return
        sent_tokens = request.sent_tokens - self.removed_tokens
        if is_after_reduction:
            cache_read_tokens = self.cached_tokens
        else:
            cache_read_tokens = max(
                min(request.cached_tokens, self.cached_tokens),
                request.cached_tokens - self.removed_tokens,
            )
        if request.cached_tokens or request.cache_write_tokens:
            cache_read_tokens = min(cache_read_tokens, sent_tokens)
        else:
            cache_read_tokens = 0
        uncached_tokens = max(
            0, request.sent_tokens - request.cached_tokens - request.cache_write_tokens
        )
        if request.cached_tokens or request.cache_write_tokens:
            cache_write_tokens = max(0, sent_tokens - cache_read_tokens - uncached_tokens)
        else:
            cache_write_tokens = 0
        self.cache_read_tokens += cache_read_tokens
        self.cache_write_tokens += cache_write_tokens
        unread_tokens = sent_tokens - cache_read_tokens - cache_write_tokens
        self.cost += (
            cache_read_tokens * CACHE_READ_RATE
            + cache_write_tokens * CACHE_WRITE_PRICE_RATIOS[request.cache_seconds]
            + unread_tokens
            + request.answer_tokens * OUTPUT_PRICE_RATIO
        )
