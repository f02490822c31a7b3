"""Tests of typed rows from JSON: a wrong shape, a missing field or a number where text belongs parses to None."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from resume_hooks.storage.typed_rows import parse_row


class Leaf(NamedTuple):
    """A row within another row."""

    name: str
    size: int = 7


class Tree(NamedTuple):
    """A row that contains other rows."""

    whole: bool
    words: tuple[str, ...]
    leaves: tuple[Leaf, ...] = ()


def test_a_row_is_parsed_from_an_object_or_a_list() -> None:
    """In an object, fields with defaults may be missing and unknown fields are ignored."""
    leaves = [{"name": "a", "size": 1}, ["b", 2], {"name": "c", "more": None}]
    found = parse_row(Tree, {"whole": True, "words": ["x"], "leaves": leaves, "version": 1})
    assert found == Tree(True, ("x",), (Leaf("a", 1), Leaf("b", 2), Leaf("c")))
    assert parse_row(Tree, [False, [], []]) == Tree(False, ())


@pytest.mark.parametrize(
    "row",
    [
        None, 7, "", [], [True], {}, {"whole": True}, {"whole": 1, "words": []}, {"whole": True, "words": "xy"},
        {"whole": True, "words": [7]}, {"whole": True, "words": [], "leaves": [["a", True]]},
        {"whole": True, "words": [], "leaves": [["a", 1.0]]}, {"whole": True, "words": [], "leaves": [["a"]]},
        {"whole": True, "words": [], "leaves": [{"size": 1}]}, {"whole": True, "words": [], "leaves": {}},
    ],
)  # fmt: skip
def test_a_wrong_shape_parses_to_none(row: object) -> None:
    """A wrong value is found at any depth."""
    assert parse_row(Tree, row) is None
