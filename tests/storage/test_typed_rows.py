"""Rows of JSON as values: what has another form, a missing field, or a number where none belongs, is none."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from resume_hooks.storage.typed_rows import parse_row


class Leaf(NamedTuple):
    """A row in another one."""

    name: str
    size: int = 7


class Tree(NamedTuple):
    """A row."""

    whole: bool
    words: tuple[str, ...]
    leaves: tuple[Leaf, ...] = ()


def test_objects_and_lists() -> None:
    """Both are rows; what has a default may be omitted of an object, and more may be in it."""
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
def test_another_form_is_none(row: object) -> None:
    """At any depth."""
    assert parse_row(Tree, row) is None
