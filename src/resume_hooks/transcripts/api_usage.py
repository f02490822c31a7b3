"""Read a session's token counts, to estimate the state of its cache and the cost of a turn.

The API reported these counts. They are read from the start and the end of the file. Sub-agents are
ignored, and requests are counted in the order of the file, whatever their branch.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where, find_session
from resume_hooks.transcripts import records, tokens
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import Line, SharedFile
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.provenance import read_parent
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.tokens import (
    USUAL_CACHED_TOKENS,
    USUAL_FIRST_REQUEST_TOKENS,
    FirstRequest,
    read_first_request,
)
from resume_hooks.transcripts.transcript import scan_transcript

DEFAULT_CACHE_SECONDS = 300  # Default lifetime of the cache in seconds. Each read extends it.
LONG_CACHE_SECONDS = 3_600  # Lifetime in seconds of a cache that was requested for one hour.
# Since version 2.1.329, the client records with each answer which cache lifetime it requested.
CACHE_SECONDS_BY_REQUESTED_LIFETIME = {
    "5m": DEFAULT_CACHE_SECONDS,
    "1h": LONG_CACHE_SECONDS,
}
# The medians that describe a typical turn are computed from at most this many recent turns.
MAX_TURNS_FOR_MEDIANS = 12


class RecentRequests(NamedTuple):
    """The requests at the end of a session.

    ``last_answer_time_ms`` is the time of the last answer with a token count, or None if there is
    none. ``model`` is the model that gave the last answer. ``cache_seconds`` is the lifetime of the
    API's cache, or 0 if the API keeps no cache. ``cached_tokens`` is the number of tokens in the
    cache while it is warm.

    A typical turn consists of ``median_requests_per_turn`` requests, and adds
    ``median_tokens_per_turn`` tokens to the context. The latter is the median of ``turn_count``
    turns, or 0 if it is unknown.
    """

    last_answer_time_ms: int | None
    cache_seconds: int
    cached_tokens: int
    median_requests_per_turn: int
    median_tokens_per_turn: int
    turn_count: int = 0
    model: str = ""

    def seconds_since_last_request(self, now_ms: int) -> int | None:
        """Return the number of seconds since the last request, or None if no request was counted."""
        if self.last_answer_time_ms is None:
            return None
        return max(0, (now_ms - self.last_answer_time_ms) // 1_000)

    def is_warm(self, now_ms: int) -> bool:
        """Check whether the API's cache still contains the last request."""
        age = self.seconds_since_last_request(now_ms)
        return age is not None and age < self.cache_seconds


def read_recent_requests(file: str | SharedFile) -> RecentRequests:
    """Return the requests at the end of a session.

    The function reads as little of the file as possible. If the end of the file contains too few
    turns to show how much a turn adds, it reads a longer end, but not the whole file. Raises the
    same errors as ``scan_transcript``.
    """
    for tail_bytes in (*tokens.TAIL_SIZES_BYTES, 0):
        observer = _RequestObserver()
        tail = scan_transcript(file, tail_bytes, [observer])
        requests = observer.summarize(is_whole=tail.is_whole)
        has_growth = (
            bool(requests.median_tokens_per_turn) or tail_bytes != tokens.TAIL_SIZES_BYTES[0]
        )
        if tail.is_whole or (observer.counted and has_growth):
            return requests
    raise AssertionError("a whole scan is whole")


def measure_first_request(ends: HeadTail, where: Where) -> FirstRequest:
    """Return the size of a new session's first request.

    ``ends`` is the beginning and the end of the session. The size is measured there or, failing
    that, in the nearest ancestor that has a measured first request. If there is none, the usual
    size is returned.
    """
    seen_paths = set[str]()
    with contextlib.suppress(SessionNotFound):
        while True:
            first_request_size = read_first_request(ends)
            if first_request_size is not None:
                return first_request_size
            seen_paths.add(ends.path)
            parent = read_parent(ends.file)
            if parent:
                path = find_session(parent.session_id, where)
            else:
                path = None
            if path is None or path in seen_paths:
                break
            ends = HeadTail(path)
    return FirstRequest(USUAL_FIRST_REQUEST_TOKENS, USUAL_CACHED_TOKENS)


class _TurnRequests:
    """The requests of a turn.

    ``answers`` contains the message ids of the answers. ``tokens_before`` and ``tokens_after`` are
    the sizes of the context before and after the turn, or 0 if they are unknown.
    """

    def __init__(self, tokens_before: int) -> None:
        self.answers: set[str] = set()
        self.tokens_before = tokens_before
        self.tokens_after = 0

    @property
    def growth_tokens(self) -> int:
        if self.tokens_before and self.tokens_after > self.tokens_before:
            return self.tokens_after - self.tokens_before
        return 0


class _RequestObserver:
    """An observer of a scan that counts requests."""

    def __init__(self) -> None:
        self.turns = [_TurnRequests(0)]
        self.last: tuple[int | None, int] = None, 0
        self.lifetime: int | None = None
        self.model = ""
        self.counted = False

    def __call__(self, _: Line, record: Record, node: Node | None) -> None:
        if node is None or node.is_sidechain:
            return
        if node.is_boundary:
            self.turns.append(_TurnRequests(0))
            # After a compaction, the cached conversation is not sent again.
            self.last = (
                self.last[0],
                0,
            )
        elif node.is_prompt:
            self.turns.append(_TurnRequests(self.turns[-1].tokens_after))
        elif node.input_tokens and records.answering_model(record):
            self.counted = True
            self.model = records.answering_model(record)
            turn = self.turns[-1]
            turn.answers.add(node.message_id)
            turn.tokens_after = node.context_tokens
            counts = map(
                records.token_usage(record).get,
                ("cache_creation_input_tokens", "cache_read_input_tokens"),
            )
            cached = sum(map(records.parse_positive_count, counts))
            self.last = node.time_ms, cached
            # The lifetime counts only if tokens were cached, because clients request a cache even
            # if the API keeps none.
            if cached:
                self.lifetime = (
                    _find_cache_lifetime(record) or self.lifetime or DEFAULT_CACHE_SECONDS
                )

    def summarize(self, *, is_whole: bool) -> RecentRequests:
        # If only the end of a file was read, the first turn may be incomplete and is ignored. In a
        # whole file, the first turn is the part before the first prompt, which has no requests.
        turns = [turn for turn in self.turns if turn.answers]
        if not is_whole and len(turns) > 1 and turns[0] is self.turns[0]:
            turns = turns[1:]
        last_ms, cached_tokens = self.last
        growths = []
        for turn in turns[-MAX_TURNS_FOR_MEDIANS:]:
            if turn.growth_tokens:
                growths.append(turn.growth_tokens)
        default_lifetime = DEFAULT_CACHE_SECONDS if not self.counted else 0
        return RecentRequests(
            last_answer_time_ms=last_ms,
            cache_seconds=default_lifetime if self.lifetime is None else self.lifetime,
            cached_tokens=cached_tokens,
            median_requests_per_turn=max(
                1, _compute_median([len(turn.answers) for turn in turns[-MAX_TURNS_FOR_MEDIANS:]])
            ),
            median_tokens_per_turn=_compute_median(growths),
            turn_count=len(growths),
            model=self.model,
        )


def _find_cache_lifetime(record: Record) -> int | None:
    """Return the lifetime of the cache in seconds according to an answer's record.

    Return None if the record does not show the lifetime.
    """
    requested_lifetime = CACHE_SECONDS_BY_REQUESTED_LIFETIME.get(
        records.get_string(record, "promptCacheRequested")
    )
    if requested_lifetime is not None:
        return requested_lifetime
    cache_creation = records.get_mapping(records.token_usage(record), "cache_creation")
    # If parts of the cache have different lifetimes, return the shortest: after one part expires,
    # everything that follows it must be cached again.
    for key, seconds in (
        ("ephemeral_5m_input_tokens", DEFAULT_CACHE_SECONDS),
        ("ephemeral_1h_input_tokens", LONG_CACHE_SECONDS),
    ):
        if records.parse_positive_count(cache_creation.get(key)):
            return seconds
    return None


def _compute_median(numbers: list[int]) -> int:
    """Return the median, or the larger of the two middle numbers. For an empty list, return 0.

    The function exists because importing ``statistics`` takes 10 ms.
    """
    if numbers:
        return sorted(numbers)[len(numbers) // 2]
    return 0
