"""Tests of parsing typed rows from JSON. A row with a value of a wrong type is parsed to None."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from resume_hooks.storage.typed_rows import parse_row


class Leaf(NamedTuple):
    """A row that another row contains."""

    name: str
    size: int = 7


class Tree(NamedTuple):
    """A row that contains other rows, its leaves."""

    is_whole: bool
    words: tuple[str, ...]
    leaves: tuple[Leaf, ...] = ()


def test_a_row_is_parsed_from_an_object_or_a_list() -> None:
    """A row is parsed from an object or a list.

    In an object, fields with defaults may be missing and unknown fields are ignored.
    """
    leaves = [{"name": "a", "size": 1}, ["b", 2], {"name": "c", "more": None}]
    found = parse_row(Tree, {"is_whole": True, "words": ["x"], "leaves": leaves, "version": 1})
    assert found == Tree(True, ("x",), (Leaf("a", 1), Leaf("b", 2), Leaf("c")))
    assert parse_row(Tree, [False, [], []]) == Tree(False, ())


@pytest.mark.parametrize(
    "row",
    [
        None, 7, "", [], [True], {}, {"is_whole": True}, {"is_whole": 1, "words": []},
        {"is_whole": True, "words": "xy"},
        {"is_whole": True, "words": [7]}, {"is_whole": True, "words": [], "leaves": [["a", True]]},
        {"is_whole": True, "words": [], "leaves": [["a", 1.0]]}, {"is_whole": True, "words": [], "leaves": [["a"]]},
        {"is_whole": True, "words": [], "leaves": [{"size": 1}]}, {"is_whole": True, "words": [], "leaves": {}},
    ],
)  # fmt: skip
def test_a_row_of_a_wrong_shape_parses_to_none(row: object) -> None:
    """A row with a missing field or a value of a wrong type at any depth is parsed to None."""
    assert parse_row(Tree, row) is None
