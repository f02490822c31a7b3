"""Estimate the cost of sessions if each had been trimmed or handed off at a threshold, such as ``trim@150k``.

No function in this module has side effects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from resume_hooks.derive.compare import CACHE_READ_RATE, OUTPUT_RATE, WRITE_RATES
from resume_hooks.derive.opening_size import parse_tokens
from resume_hooks.derive.trim.options import DEFAULT_KEEP_RECENT
from resume_hooks.hooks.compaction import (
    MAX_RESULT_FRACTION,
    MIN_TURNS_BETWEEN,
    TARGET_FRACTION,
    TRIM_VALUE,
)
from resume_hooks.parts.stats.count import Request
from resume_hooks.settings import DEFAULT_HANDOFF_SIZE
from resume_hooks.transcripts.tokens import USUAL_CACHED_TOKENS

HANDOFF_SIZE = parse_tokens(DEFAULT_HANDOFF_SIZE)
LINES = (200_000, 150_000, 100_000)
FREED_SHARE = 0.5
"""The fraction of a session's growth that a trim frees: 44,000 of 83,000 tokens according to docs/figures.md."""

ASSUMPTIONS = (
    "Assumptions: a trim frees half of the growth since the last one; a handoff leaves the first "
    f"request, 12,000 tokens and up to {DEFAULT_KEEP_RECENT} turns; the next request writes everything "
    "again except the part that sessions share; nothing is read again; work and the client's own "
    "compactions do not change; sub-agents are left out. Cost is in input tokens: 0.1 read, 1.25 "
    "written (2 for an hour), 5 answered."
)


class Price(NamedTuple):
    """The cost of all requests, including answers, in input tokens, with a threshold of ``line`` tokens (0 for none).

    Sessions reached the threshold and were reduced ``times`` times, to ``left`` tokens on average.
    """

    line: int
    way: str
    times: int
    left: int
    read: int
    written: int
    cost: int


def price_lines(sessions: Iterable[Sequence[Request]], since: str) -> list[Price]:
    """Return the cost for every threshold and way, the actual cost first, for requests since the day ``since``."""
    requests_by_session = [session for session in sessions if session]
    ways = [(0, "")]
    for line in LINES:
        ways += [(line, TRIM_VALUE), (line, DEFAULT_HANDOFF_SIZE)]
    priced = []
    for line, way in ways:
        replayed = [_ReplayedSession(line, way, since, session) for session in requests_by_session]
        sizes_left = []
        for replayed_session in replayed:
            sizes_left.extend(replayed_session.lefts)
        priced.append(
            Price(
                line,
                way,
                times=len(sizes_left),
                left=round(sum(sizes_left) / max(1, len(sizes_left))),
                read=round(sum(each.read for each in replayed)),
                written=round(sum(each.written for each in replayed)),
                cost=round(sum(each.cost for each in replayed)),
            )
        )
    return priced


class _ReplayedSession:
    """A session whose requests are replayed without the ``removed`` tokens."""

    def __init__(self, line: int, way: str, since: str, requests: Sequence[Request]) -> None:
        self.line, self.way, self.since = line, way, since
        self.base = self.floor = requests[0].sent
        self.shared = min(requests[0].cached or USUAL_CACHED_TOKENS, self.base)
        self.removed_paths, self.tried_at, self.worth = 0, -MIN_TURNS_BETWEEN, line
        self.begun = [self.base]
        self.lefts: list[int] = []
        self.read = self.written = self.cost = 0.0
        self._pay_request(requests[0], is_anew=False)
        for before, request in pairwise(requests):
            is_anew = request.turn != before.turn and self._make_smaller(before)
            if request.sent - self.removed_paths < self.base:  # the client compacted the session
                self.removed_paths, self.floor = 0, min(self.floor, request.sent)
            if request.turn != before.turn:
                self.begun.append(before.sent + before.answered - self.removed_paths)
            self._pay_request(request, is_anew=is_anew)

    def _make_smaller(self, last: Request) -> bool:
        """Reduce the session after its ``last`` request if it has reached the threshold.

        Return whether it was reduced.
        """
        size = last.sent + last.answered - self.removed_paths
        if not self.line or size < self.worth or last.turn - self.tried_at < MIN_TURNS_BETWEEN:
            return False
        size_after, self.tried_at = self._size_left(size), last.turn
        if size_after > size * MAX_RESULT_FRACTION:
            self.worth = round(size / MAX_RESULT_FRACTION)
            return False
        self.removed_paths += size - size_after
        self.floor, self.worth, self.begun = size_after, self.line, []
        self.lefts += [size_after] * (last.day >= self.since)
        return True

    def _size_left(self, size: int) -> int:
        if self.way == TRIM_VALUE:
            return size - round((size - self.floor) * FREED_SHARE)
        recent = [size - begun for begun in self.begun[-DEFAULT_KEEP_RECENT:]]
        most = min(size, self.line) * TARGET_FRACTION
        kept_tokens = next((turns for turns in recent if turns <= most), recent[-1])
        return round(self.base + HANDOFF_SIZE + kept_tokens)

    def _pay_request(self, request: Request, *, is_anew: bool) -> None:
        if request.day < self.since:
            return
        sent = request.sent - self.removed_paths
        if is_anew:
            read = self.shared
        else:
            read = max(min(request.cached, self.shared), request.cached - self.removed_paths)
        if request.cached or request.written:
            read = min(read, sent)
        else:
            read = 0
        plain = max(0, request.sent - request.cached - request.written)
        if request.cached or request.written:
            written = max(0, sent - read - plain)
        else:
            written = 0
        self.read += read
        self.written += written
        rest = sent - read - written
        self.cost += (
            read * CACHE_READ_RATE
            + written * WRITE_RATES[request.lifetime]
            + rest
            + request.answered * OUTPUT_RATE
        )
