"""A conversation in an order that every client reads whole: one record after the other, each call answered once.

Clients before 2.1.112 lose all but one of the calls that a model made in parallel, unless they stand in one line.
Pure functions over nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from resume_hooks.nodes import Node


class Linear(NamedTuple):
    """``nodes`` in their order; ``dropped`` are ids of calls, by record number, whose blocks no API takes.

    ``open_calls`` were made at the very end and wait for an answer.
    """

    nodes: tuple[Node, ...]
    dropped: Mapping[int, frozenset[str]]
    open_calls: tuple[str, ...]


def linear(chain: Sequence[Node]) -> Linear:
    """The live chain, or any other, in one line."""
    nodes = tuple(_grouped(chain))
    dropped, open_calls = _unpaired(nodes)
    return Linear(nodes, dropped, open_calls)


def _grouped(chain: Sequence[Node]) -> Iterable[Node]:
    """The chain with each answer of several calls as: its own records, their results, what accompanies them."""
    place = 0
    while place < len(chain):
        end = _end_of_answer(chain, place)
        region = chain[place:end]
        place = end
        if not _interleaved(region):
            yield from region
            continue
        yield from (node for node in region if node.kind == "assistant")
        yield from (node for node in region if node.results)
        yield from (node for node in region if node.kind != "assistant" and not node.results)


def _end_of_answer(chain: Sequence[Node], start: int) -> int:
    """The place after the records that belong to the answer that begins at ``start``; of another record, after it."""
    first = chain[start]
    end = start + 1
    if first.kind != "assistant" or not first.message_id:
        return end
    for place in range(end, len(chain)):
        node = chain[place]
        own = node.kind == "assistant" and node.message_id == first.message_id
        if own or node.results:
            end = place + 1
        elif not node.aside:
            break
    return end


def _interleaved(region: Sequence[Node]) -> bool:
    """Whether a record of the answer stands behind a result."""
    first = next((place for place, node in enumerate(region) if node.results), len(region))
    return any(node.kind == "assistant" for node in region[first:])


def _unpaired(nodes: Sequence[Node]) -> tuple[Mapping[int, frozenset[str]], tuple[str, ...]]:
    """What breaks the rule of one answer a call, by record; and the calls at the end that still wait for theirs."""
    dropped: dict[int, set[str]] = {}
    called: dict[str, int] = {}
    answered: set[str] = set()
    for node in nodes:
        for call in dict.fromkeys(node.calls):
            if call in called:
                dropped.setdefault(node.number, set()).add(call)
            else:
                called[call] = node.number
        for call in dict.fromkeys(node.results):
            if call not in called or call in answered:
                dropped.setdefault(node.number, set()).add(call)
            answered.add(call)
    last = _last_answer(nodes)
    open_calls = []
    for call, number in called.items():
        if call in answered:
            continue
        if number in last:
            open_calls.append(call)
        else:
            dropped.setdefault(number, set()).add(call)
    return {number: frozenset(calls) for number, calls in dropped.items()}, tuple(open_calls)


def _last_answer(nodes: Sequence[Node]) -> set[int]:
    """The records of an answer that nothing but results and remarks follow; empty where something was said since."""
    found: set[int] = set()
    answer = ""
    for node in reversed(nodes):
        if node.kind == "assistant":
            if found and node.message_id != answer:
                break
            answer = node.message_id
            found.add(node.number)
        elif not (node.results or node.aside):
            break
    return found
