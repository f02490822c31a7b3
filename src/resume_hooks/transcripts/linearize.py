"""Arrange the records of a conversation in one sequence, so that every client reads all of them.

If parallel calls do not directly follow each other, clients before 2.1.112 read only one of them.
In the sequence, every call has exactly one tool result. The functions work with nodes and read no
files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import ASSISTANT, USER


class LinearChain(NamedTuple):
    """The records of a conversation in one sequence.

    ``dropped_call_ids`` maps the line number of a record to the ids of its calls and results that the
    API would reject. ``open_call_ids`` are the ids of the calls at the end of the sequence that have
    no result.
    """

    nodes: tuple[Node, ...]
    dropped_call_ids: Mapping[int, frozenset[str]]
    open_call_ids: tuple[str, ...]


def linearize_chain(chain: Sequence[Node]) -> LinearChain:
    """Arrange the records of a chain in one sequence, in which each result follows its call."""
    nodes = tuple(_order_records_by_answer(chain))
    call_matcher = _CallMatcher()
    for node in nodes:
        call_matcher.add_node(node)
    nodes_since_answer = takewhile(lambda node: node.kind != ASSISTANT, reversed(nodes))
    # A prompt follows the last answer, so the open calls can no longer get a result.
    if any(not (node.answered_call_ids or node.is_remark) for node in nodes_since_answer):
        call_matcher.drop_pending_calls()
    return LinearChain(nodes, call_matcher.dropped_call_ids, tuple(call_matcher.pending_calls))


def find_max_valid_record_count(linear_chain: LinearChain, end: int) -> int:
    """Return the number of records in the longest valid start of the chain, at most ``end``.

    A start of the chain is valid if its records form a valid conversation.
    """
    return max(
        takewhile(lambda place: place <= end, _iterate_valid_record_counts(linear_chain)), default=0
    )


def find_min_valid_record_count(linear_chain: LinearChain, start: int) -> int:
    """Return the number of records in the shortest valid start of the chain, at least ``start``.

    If there is none, return 0. A start of the chain is valid if its records form a valid
    conversation.
    """
    return next(
        (count for count in _iterate_valid_record_counts(linear_chain) if count >= start), 0
    )


def are_records_of_one_answer(previous: Node, node: Node) -> bool:
    """Check whether two successive messages are different answers of a model.

    Messages without token counts do not come from a model, and clients do not send them.
    """
    are_answers = previous.kind == node.kind == ASSISTANT
    return (
        are_answers
        and bool(previous.context_tokens and node.context_tokens)
        and previous.message_id != node.message_id
    )


def _iterate_valid_record_counts(linear_chain: LinearChain) -> Iterator[int]:
    """Yield the lengths of the valid starts of the chain, the shortest first.

    A length is a number of records. A start of the chain is valid if its calls have results and its
    last answer is complete.
    """
    pending_calls = set[str]()
    for count, node in enumerate(linear_chain.nodes, 1):
        pending_calls.update(
            set(node.call_ids) - linear_chain.dropped_call_ids.get(node.line_number, frozenset())
        )
        pending_calls.difference_update(node.answered_call_ids)
        next_node = linear_chain.nodes[count] if count < len(linear_chain.nodes) else None
        is_continued = (
            next_node
            and next_node.message_id
            and (node.kind, node.message_id) == (next_node.kind, next_node.message_id)
        )
        if not pending_calls and not is_continued:
            yield count


def _order_records_by_answer(chain: Sequence[Node]) -> Iterable[Node]:
    """Yield the records of a chain in an order in which an answer precedes the results of its calls.

    All records of the answer come before these results. Remarks stay after the record that they
    followed.
    """
    index = 0
    while index < len(chain):
        first_node, region_end = chain[index], index + 1
        for candidate_index in (
            range(region_end, len(chain))
            if first_node.kind == ASSISTANT and first_node.message_id
            else ()
        ):
            node = chain[candidate_index]
            if (
                node.kind == ASSISTANT and node.message_id == first_node.message_id
            ) or node.answered_call_ids:
                region_end = candidate_index + 1
            elif not node.is_remark:
                break
        region = chain[index:region_end]
        index = region_end
        first_user_index = next(
            (candidate_index for candidate_index, node in enumerate(region) if node.kind == USER),
            len(region),
        )
        if not any(node.kind == ASSISTANT for node in region[first_user_index:]):
            yield from region
            continue
        yield from (node for node in region if node.kind == ASSISTANT)
        answers = [node for node in region if node.kind != ASSISTANT]
        first_result_index = next(
            (index for index, node in enumerate(answers) if node.answered_call_ids), len(answers)
        )
        # The first record of the user's turn must be a result, so a remark that came between the
        # answer and this result is moved after the result.
        yield from answers[first_result_index : first_result_index + 1]
        yield from answers[:first_result_index]
        yield from answers[first_result_index + 1 :]


class _CallMatcher:
    """Finds the calls and results that violate the API's rule for tool calls.

    The rule: the result of a call must be in the user's turn that directly follows the call.
    ``pending_calls`` maps the ids of calls without a result to the line numbers of their records.
    ``answered_calls`` contains the ids of calls with a result.
    """

    def __init__(self) -> None:
        self.pending_calls: dict[str, int] = {}
        self.answered_calls: set[str] = set()
        self._has_user_answered = False
        self._dropped_call_ids: dict[int, set[str]] = {}

    def add_node(self, node: Node) -> None:
        if node.kind == ASSISTANT:
            if self._has_user_answered:
                self.drop_pending_calls()
            for call in dict.fromkeys(node.call_ids):
                if call in self.pending_calls or call in self.answered_calls:
                    self._drop_call(node.line_number, call)
                else:
                    self.pending_calls[call] = node.line_number
        elif node.kind == USER:
            self._has_user_answered = True
            for call in dict.fromkeys(node.answered_call_ids):
                if self.pending_calls.pop(call, None) is None:
                    self._drop_call(node.line_number, call)
                else:
                    self.answered_calls.add(call)

    def drop_pending_calls(self) -> None:
        """Drop all calls without a result, because their results can no longer follow."""
        for call_id, record_number in self.pending_calls.items():
            self._drop_call(record_number, call_id)
        self.pending_calls.clear()
        self._has_user_answered = False

    @property
    def dropped_call_ids(self) -> Mapping[int, frozenset[str]]:
        """The ids of the calls and results that the API would reject, by the line number of their record."""
        return {number: frozenset(calls) for number, calls in self._dropped_call_ids.items()}

    def _drop_call(self, record_number: int, call_id: str) -> None:
        self._dropped_call_ids.setdefault(record_number, set()).add(call_id)
