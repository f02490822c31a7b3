"""Reorder a conversation so that every client reads all of it: one line of records, each call answered once.

Clients before 2.1.112 lose all but one parallel call unless the calls are in one line. Pure
functions over nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import ASSISTANT, USER


class LinearChain(NamedTuple):
    """``nodes`` in order, calls ``dropped`` because no API accepts them by record, and unanswered ``open_calls``."""

    nodes: tuple[Node, ...]
    dropped: Mapping[int, frozenset[str]]
    open_calls: tuple[str, ...]


def linearize_chain(chain: Sequence[Node]) -> LinearChain:
    """Put a live chain, or any other, into one line."""
    nodes = tuple(_group_answers(chain))
    pairing = _Pairing()
    for node in nodes:
        pairing.take_node(node)
    since = takewhile(lambda node: node.kind != ASSISTANT, reversed(nodes))
    if any(not (node.results or node.aside) for node in since):  # neither a result nor a remark
        pairing.give_up()
    return LinearChain(nodes, pairing.dropped, tuple(pairing.waiting))


def largest_valid_count(row: LinearChain, end: int) -> int:
    """Return the largest count up to ``end`` of first records that form a valid conversation."""
    return max(takewhile(lambda place: place <= end, _valid_counts(row)), default=0)


def smallest_valid_count(row: LinearChain, start: int) -> int:
    """Return the smallest valid count of first records from ``start``, or 0."""
    return next((place for place in _valid_counts(row) if place >= start), 0)


def are_adjacent_answers(before: Node, node: Node) -> bool:
    """Check whether two answers of a model follow each other.

    Messages without token counts did not come from a model and are not sent.
    """
    both = before.kind == node.kind == ASSISTANT
    return (
        both
        and bool(before.context_tokens and node.context_tokens)
        and before.message_id != node.message_id
    )


def _valid_counts(row: LinearChain) -> Iterator[int]:
    """Yield every count of first records that form a valid conversation, smallest first."""
    waiting = set[str]()
    for place, node in enumerate(row.nodes, 1):
        waiting.update(set(node.calls) - row.dropped.get(node.number, frozenset()))
        waiting.difference_update(node.results)
        after = row.nodes[place] if place < len(row.nodes) else None
        goes_on = (
            after
            and after.message_id
            and (node.kind, node.message_id) == (after.kind, after.message_id)
        )
        if not waiting and not goes_on:
            yield place


def _group_answers(chain: Sequence[Node]) -> Iterable[Node]:
    """Yield the chain with each answer of several calls as its records, then their results, each with its remarks."""
    place = 0
    while place < len(chain):
        head, end = chain[place], place + 1
        for at in range(end, len(chain)) if head.kind == ASSISTANT and head.message_id else ():
            node = chain[at]
            if (node.kind == ASSISTANT and node.message_id == head.message_id) or node.results:
                end = at + 1
            elif not node.aside:
                break
        region = chain[place:end]
        place = end
        heard = next((at for at, node in enumerate(region) if node.kind == USER), len(region))
        if not any(node.kind == ASSISTANT for node in region[heard:]):
            yield from region
            continue
        yield from (node for node in region if node.kind == ASSISTANT)
        answers = [node for node in region if node.kind != ASSISTANT]
        first = next((place for place, node in enumerate(answers) if node.results), len(answers))
        # A result comes first in the user's turn; a remark follows the record that it came after.
        yield from answers[first : first + 1]
        yield from answers[:first]
        yield from answers[first + 1 :]


class _Pairing:
    """Matches calls and results by the API's rule: results are in the user's turn after their call.

    ``waiting`` maps calls without results yet to the records that made them; ``done`` has the
    answered calls.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, int] = {}
        self.done: set[str] = set()
        self._heard = False
        self._dropped: dict[int, set[str]] = {}

    def take_node(self, node: Node) -> None:
        if node.kind == ASSISTANT:
            if self._heard:
                self.give_up()
            for call in dict.fromkeys(node.calls):
                if call in self.waiting or call in self.done:
                    self._drop_call(node.number, call)
                else:
                    self.waiting[call] = node.number
        elif node.kind == USER:
            self._heard = True
            for call in dict.fromkeys(node.results):
                if self.waiting.pop(call, None) is None:
                    self._drop_call(node.number, call)
                else:
                    self.done.add(call)

    def give_up(self) -> None:
        """Drop all calls that are still waiting, because their results can't follow any more."""
        for call, number in self.waiting.items():
            self._drop_call(number, call)
        self.waiting.clear()
        self._heard = False

    @property
    def dropped(self) -> Mapping[int, frozenset[str]]:
        """The calls that violate the rule of one result per call, by record."""
        return {number: frozenset(calls) for number, calls in self._dropped.items()}

    def _drop_call(self, number: int, call: str) -> None:
        self._dropped.setdefault(number, set()).add(call)
