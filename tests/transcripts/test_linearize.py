"""Tests of the linear order of a conversation.

Each record follows the previous record, and each call has one result in the user's next turn.
"""

from __future__ import annotations

import pytest

from resume_hooks.transcripts.linearize import (
    LinearChain,
    find_max_valid_record_count,
    find_min_valid_record_count,
    linearize_chain,
)
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node, make_node
from tests.builders import assistant, attachment, call, result, system, user


def chain_of_story(story: str) -> list[Node]:
    """Return the nodes that a story describes.

    The words of a story are: ``u`` prompt, ``m`` remark, ``s`` note, ``+`` attachment, ``1:a,b`` an
    answer with message id 1 and the calls a and b, ``1:`` a text answer, ``=a,b`` the results of a
    and b.
    """
    nodes = []
    for number, word in enumerate(story.split()):
        uuid = f"{number}"
        name, colon, calls = word.partition(":")
        if colon:
            blocks = [call(one) for one in calls.split(",") if one] or [
                {"type": "text", "text": "said"}
            ]
            row = assistant(blocks, uuid=uuid, message_id=name or None)
            row["message"]["id"] = name
        elif word.startswith("="):
            row = user([result(one) for one in word[1:].split(",")], uuid=uuid)
        else:
            row = {
                "u": user("asked", uuid=uuid),
                "m": user("remark", uuid=uuid, isMeta=True),
                "s": system("informational", uuid=uuid),
                "+": attachment("text", uuid=uuid, parent=None),
            }[word]
        nodes.append(make_node(row, Line(number, 0, b"")))
    return nodes


def linear_order(story: str) -> str:
    """Return the numbers of the records in linear order."""
    return " ".join(str(node.line_number) for node in linearize_chain(chain_of_story(story)).nodes)


def format_dropped_calls(linear_chain: LinearChain) -> str:
    """Return the dropped calls as ``number:call``."""
    return " ".join(
        f"{number}:{','.join(sorted(calls))}"
        for number, calls in sorted(linear_chain.dropped_call_ids.items())
    )


EXPECTED_ORDERS = {
    "nothing parallel": ("u 1:a =a 2:", "0 1 2 3"),
    "results between the calls of an answer": ("u 1:a =a 1:b =b 2:", "0 1 3 2 4 5"),
    "three of them": ("u 1:a =a 1:b =b 1:c =c", "0 1 3 5 2 4 6"),
    "remarks stay behind the result they came after": ("u 1:a =a m s 1:b =b +", "0 1 5 2 3 4 6 7"),
    "a result comes first in the user's turn": ("u 1:a m s =a 1:b =b", "0 1 5 4 2 3 6"),
    "in order already": ("u 1:a 1:b =a =b 2:", "0 1 2 3 4 5"),
    "notes between the calls stay": ("u 1:a s 1:b =a =b", "0 1 2 3 4 5"),
    "a remark between the calls is sent as the user's": ("u 1:a m 1:b =a,b", "0 1 3 4 2"),
    "an answer without an id is alone": ("u :a =a :b =b", "0 1 2 3 4"),
    "another answer between": ("u 1:a 2:b =a =b 1:c =c", "0 1 2 3 4 5 6"),
    "a prompt ends an answer": ("u 1:a =a u 1:b =b", "0 1 2 3 4 5"),
}


@pytest.mark.parametrize("name", EXPECTED_ORDERS)
def test_results_follow_the_answer_with_their_calls(name: str) -> None:
    """The records of an answer are followed by the results of its calls, and then by later remarks."""
    story, wanted = EXPECTED_ORDERS[name]
    assert linear_order(story) == wanted


DROPPED_CALL_CASES = {
    "answered": ("u 1:a =a 2:b =b 3:", "", ()),
    "a prompt before the result": ("u 1:a u =a 2:", "", ()),
    "another answer before it, in the same turn": ("u 1:a 2: =a", "", ()),
    "orphan": ("u =a 1:", "1:a", ()),
    "result before its call": ("u =a 1:a =a 2:", "1:a", ()),
    "result before its call alone": ("u =a 1:a 2: u", "1:a 2:a", ()),
    "unanswered": ("u 1:a u 2:", "1:a", ()),
    "late": ("u 1:a u 2: =a 3:", "1:a 4:a", ()),
    "one of two late": ("u 1:a,b =a 2: =b", "1:b 4:b", ()),
    "called twice at once": ("u 1:a 1:a =a", "2:a", ()),
    "called again after its answer": ("u 1:a =a 2:a =a 3:", "3:a 4:a", ()),
    "unanswered, then called again and answered": ("u 1:a u 2:a =a 3:", "1:a", ()),
    "answered twice": ("u 1:a =a =a", "3:a", ()),
    "open at the end": ("u 1:a", "", ("a",)),
    "one of two open": ("u 1:a,b =a", "", ("b",)),
    "open behind remarks": ("u 1:a m s +", "", ("a",)),
    "open, then asked": ("u 1:a u", "1:a", ()),
    "an older one is not open": ("u 1:a u 2:b", "1:a", ("b",)),
    "without message ids": ("u :a u :b", "1:a", ("b",)),
    "nothing said": ("s", "", ()),
    "nothing": ("", "", ()),
}


@pytest.mark.parametrize("name", DROPPED_CALL_CASES)
def test_records_that_no_api_accepts_are_dropped(name: str) -> None:
    """Calls without a result and results without a call are dropped.

    Calls in the last answer are kept as open calls.
    """
    story, gone, waiting = DROPPED_CALL_CASES[name]
    row = linearize_chain(chain_of_story(story))
    assert (format_dropped_calls(row), row.open_call_ids) == (gone, waiting)
    assert sorted(node.line_number for node in row.nodes) == list(range(len(story.split())))


LARGEST_COUNT_CASES = {
    "plain": ("u 1: u 2:", [1, 2, 3, 4]),
    "in a call": ("u 1:a =a 2:", [1, 1, 3, 4]),
    "in words before a call": ("u 1: 1:a =a 2:", [1, 1, 1, 4, 5]),
    "between two results": ("u 1:a 1:b =a =b 2:", [1, 1, 1, 1, 5, 6]),
    "remarks": ("u 1:a + =a m 2:", [1, 1, 1, 4, 5, 6]),
    "an old call without its answer": ("u 1:a u 2:", [1, 2, 3, 4]),
    "a call that waits": ("u 1:a", [1, 1]),
    "nothing before a call": ("1:a =a", [0, 2]),
    "without message ids": ("u : :", [1, 2, 3]),
}


@pytest.mark.parametrize("name", LARGEST_COUNT_CASES)
def test_largest_valid_count_excludes_open_calls(name: str) -> None:
    """``find_max_valid_record_count`` returns how many records at the start form a valid conversation.

    In a valid conversation, no call is open and no answer is cut.
    """
    story, counts = LARGEST_COUNT_CASES[name]
    row = linearize_chain(chain_of_story(story))
    assert [find_max_valid_record_count(row, end) for end in range(1, len(row.nodes) + 1)] == counts
    assert find_max_valid_record_count(row, 0) == 0


SMALLEST_COUNT_CASES = {
    "where nothing is open it is there": ("u 1: u 2:", 2, 2),
    "behind the result": ("u 1:a =a 2:", 2, 3),
    "behind the results of all calls of an answer": ("u 1:a 1:b =a =b 2:", 2, 5),
    "behind the rest of the answer": ("u 1: 1: u", 2, 3),
    "nowhere, where the last call waits": ("u 1:a", 2, 0),
    "a call that can't be answered any more is not waited for": ("u 1:a u 2:", 2, 2),
}


@pytest.mark.parametrize("name", SMALLEST_COUNT_CASES)
def test_smallest_valid_count_excludes_open_calls(name: str) -> None:
    """``find_min_valid_record_count`` returns the smallest valid number that is at least ``start``.

    A number of records is valid if no call is open and no answer is cut after these records.
    """
    story, start, expected = SMALLEST_COUNT_CASES[name]
    assert find_min_valid_record_count(linearize_chain(chain_of_story(story)), start) == expected
