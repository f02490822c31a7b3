"""Tests of a text that is split so that each part fits into the output of one hook.

Joining the parts gives exactly the text.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.system.text import cut_to_utf16_units, plain_text, utf16_length
from resume_hooks.transcripts.metadata_records import LATER_PART_PREFIX, OPENING_AFTER_CLEAR_PREFIX
from resume_hooks.transcripts.parted_text import (
    MAX_PARTS,
    MAX_TEXT_UTF16_UNITS,
    MAX_UTF16_UNITS_PER_PART,
    join_parts,
    split_into_parts,
)

MAX_HOOK_OUTPUT_UTF16_UNITS = 10_000
"""The client's limit for the output of a hook, in UTF-16 units."""

LINE_STRATEGY = st.builds(
    str.__mul__, st.sampled_from(["a", "ü", "\U0001f680", "a b. "]), st.integers(0, 12_000)
)
TEXT_STRATEGY = (
    st.lists(LINE_STRATEGY, max_size=40)
    .map("\n".join)
    .map(lambda text: cut_to_utf16_units(plain_text(text), MAX_TEXT_UTF16_UNITS).strip())
)


@given(TEXT_STRATEGY, st.randoms(use_true_random=False))
def test_parts_join_to_the_original_text(text: str, random: object) -> None:
    """The parts of a text, in any order and among other texts, are joined to the original text."""
    parts = split_into_parts(text)
    assert 1 <= len(parts) <= MAX_PARTS
    assert max(map(utf16_length, parts)) <= MAX_UTF16_UNITS_PER_PART < MAX_HOOK_OUTPUT_UTF16_UNITS
    random.shuffle(parts)  # type: ignore[attr-defined]
    assert join_parts(parts) == [text]
    assert join_parts(["theirs", *parts]) == ["theirs", text]


def test_a_single_part_has_no_number() -> None:
    """A text that fits into one part is unchanged, even if it fills the part to the last UTF-16 unit."""
    assert split_into_parts("x" * MAX_UTF16_UNITS_PER_PART) == ["x" * MAX_UTF16_UNITS_PER_PART]
    assert len(split_into_parts("x" * (MAX_UTF16_UNITS_PER_PART + 1))) == 2


def test_each_part_of_a_text_has_a_number() -> None:
    """Each part of a long text has a number, and no line of the text is cut.

    In the first part of an opening, the number comes after the opening's first line.
    """
    head = f"{OPENING_AFTER_CLEAR_PREFIX}that left this:"
    lines = [f"{number:04} {'word ' * 20}" for number in range(250)]
    first, second, third = split_into_parts("\n".join([head, *lines]))
    assert first.startswith(f"{head}\n(Part 1 of 3 of what this session starts with")
    assert second.startswith(
        f"{LATER_PART_PREFIX}: part 2 of 3 (the parts may stand in any order):\n"
    )
    assert third.startswith(f"{LATER_PART_PREFIX}: part 3 of 3 ")
    cut = [part.split("\n", 1)[1].strip("\n").split("\n") for part in (first, second, third)]
    assert [line for piece in cut for line in piece][1:] == lines, "no line is cut"


@pytest.mark.parametrize("letter", ["x", "ü", "\U0001f680"])
def test_a_line_longer_than_a_part_is_cut(letter: str) -> None:
    """A line that is longer than a part is cut after a sentence or word, and never inside a character."""
    line = letter * (15_000 // utf16_length(letter))
    assert "".join(part.split("\n", 1)[1] for part in split_into_parts(line)) == line
    first, second = split_into_parts("a b c. " * 2_000)
    assert first.endswith("c. ")
    assert second.split("\n", 1)[1].startswith("a b")


def test_long_lines_are_cut_if_there_are_too_few_parts() -> None:
    """Long lines are cut if whole lines would need too many parts."""
    text = "\n".join(["x" * 6_000] * 6)
    assert len(split_into_parts(text)) == MAX_PARTS
    assert join_parts(split_into_parts(text)) == [text]


def test_parts_of_a_text_are_joined_even_if_one_is_missing() -> None:
    """The parts of a text are joined even if one of them is missing. A quoted part is not joined."""
    parts = split_into_parts("\n".join(f"line {number:05}" for number in range(2_000)))
    assert len(parts) == 3
    (text,) = join_parts([parts[2], parts[0]])
    assert (text.startswith("line 00000\n"), text.endswith("line 01999")) == (True, True)
    quoted = f"they said:\n\n{parts[1]}"
    assert join_parts([quoted, "more"]) == [quoted, "more"]
    assert join_parts([]) == []
