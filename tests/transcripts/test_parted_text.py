"""A text in parts: each fits a hook, they end where lines end, and put together they are the text to the letter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.system.text import cut_to_utf16_units, plain_text, utf16_length
from resume_hooks.transcripts.bookkeeping import AFTER_CLEAR, FURTHER_PART
from resume_hooks.transcripts.parted_text import LONGEST, MOST, PARTS, parts_of, put_together

CLIENT = 10_000
"""What the client takes of a hook, in the units that JavaScript counts."""

LINES = st.builds(
    str.__mul__, st.sampled_from(["a", "ü", "\U0001f680", "a b. "]), st.integers(0, 12_000)
)
TEXTS = (
    st.lists(LINES, max_size=40)
    .map("\n".join)
    .map(lambda text: cut_to_utf16_units(plain_text(text), LONGEST).strip())
)


@given(TEXTS, st.randoms(use_true_random=False))
def test_any_text_is_whole_again(text: str, random: object) -> None:
    """In whatever order its parts came, among texts of others."""
    parts = parts_of(text)
    assert 1 <= len(parts) <= PARTS
    assert max(map(utf16_length, parts)) <= MOST < CLIENT
    random.shuffle(parts)  # type: ignore[attr-defined]
    assert put_together(parts) == [text]
    assert put_together(["theirs", *parts]) == ["theirs", text]


def test_what_fits_has_no_number() -> None:
    """To the last unit that a part holds."""
    assert parts_of("x" * MOST) == ["x" * MOST]
    assert len(parts_of("x" * (MOST + 1))) == 2


def test_each_says_which_it_is() -> None:
    """The first behind its first line, which readers know a session's beginning by."""
    head = f"{AFTER_CLEAR}that left this:"
    lines = [f"{number:04} {'word ' * 20}" for number in range(250)]
    first, second, third = parts_of("\n".join([head, *lines]))
    assert first.startswith(f"{head}\n(Part 1 of 3 of what this session starts with")
    assert second.startswith(f"{FURTHER_PART}: part 2 of 3 (the parts may stand in any order):\n")
    assert third.startswith(f"{FURTHER_PART}: part 3 of 3 ")
    cut = [part.split("\n", 1)[1].strip("\n").split("\n") for part in (first, second, third)]
    assert [line for piece in cut for line in piece][1:] == lines, "no line is cut"


@pytest.mark.parametrize("letter", ["x", "ü", "\U0001f680"])
def test_a_line_longer_than_a_part_is_cut(letter: str) -> None:
    """Where a sentence ends, or a word, if that is near; else anywhere, but in no letter."""
    line = letter * (15_000 // utf16_length(letter))
    assert "".join(part.split("\n", 1)[1] for part in parts_of(line)) == line
    first, second = parts_of("a b c. " * 2_000)
    assert first.endswith("c. ")
    assert second.split("\n", 1)[1].startswith("a b")


def test_long_lines_are_cut_where_the_parts_would_not_suffice() -> None:
    """Lines of 6,000 characters would need a part each."""
    text = "\n".join(["x" * 6_000] * 6)
    assert len(parts_of(text)) == PARTS
    assert put_together(parts_of(text)) == [text]


def test_a_part_that_never_came() -> None:
    """The others are one text; one that only looks like a part of ours in its middle is none."""
    parts = parts_of("\n".join(f"line {number:05}" for number in range(2_000)))
    assert len(parts) == 3
    (text,) = put_together([parts[2], parts[0]])
    assert (text.startswith("line 00000\n"), text.endswith("line 01999")) == (True, True)
    quoted = f"they said:\n\n{parts[1]}"
    assert put_together([quoted, "more"]) == [quoted, "more"]
    assert put_together([]) == []
