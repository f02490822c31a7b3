"""Tests of an opening that must fit into a small space.

The lineage and the next step are kept, and the end of the digest is cut off.
"""

from __future__ import annotations

import pytest

from resume_hooks.sessions.lineage_block import LINEAGE_END_MARKER, LINEAGE_START_MARKER
from resume_hooks.sessions.opening_layout import NEXT_STEP_HEADING, opening_text, shorten_opening
from tests.sessions.test_lineage_block import block_of_child, present_ancestor

MAX_OPENING_CHARACTERS = 3_800
OPENING_REFERENCE = "12345678:1"
LONG_DIGEST = "\n".join(f"line {number} of the digest" for number in range(400))


def opening_of_child(
    ancestor_count: int = 2,
    step: str = "fix the tests",
    digest: str = LONG_DIGEST,
    summary: str = "",
) -> str:
    """Return the opening of a child with ``ancestor_count`` ancestors."""
    return opening_text(
        block_of_child([present_ancestor(n) for n in range(1, ancestor_count + 1)]),
        step,
        digest=digest,
        summary=summary,
    )


def test_a_short_opening_is_unchanged() -> None:
    """An opening that fits its limit is unchanged."""
    text = opening_of_child(digest="goal: short")
    assert shorten_opening(text, MAX_OPENING_CHARACTERS, OPENING_REFERENCE) == text


def test_a_long_digest_is_shortened() -> None:
    """If a digest is too long, its end is cut off, and a line names the command that shows all of it."""
    text = shorten_opening(opening_of_child(), MAX_OPENING_CHARACTERS, OPENING_REFERENCE)
    assert len(text) <= MAX_OPENING_CHARACTERS
    assert text.startswith(LINEAGE_START_MARKER)
    assert text.endswith(
        f"\n(cut here; all of it: resume-hooks read {OPENING_REFERENCE})\n\n{NEXT_STEP_HEADING}\nfix the tests"
    )
    middle = text.partition(f"{LINEAGE_END_MARKER}\n\n")[2].partition("\n(cut")[0].split("\n")
    assert middle == [f"line {number} of the digest" for number in range(len(middle))]
    assert len(text) > MAX_OPENING_CHARACTERS - 100


@pytest.mark.parametrize("max_characters", [MAX_OPENING_CHARACTERS, 38_000])
@pytest.mark.parametrize("ancestor_count", [1, 12, 60])
@pytest.mark.parametrize("step", ["", "x", "long words " * 2_000, "\n".join("abc" * 5_000)])
@pytest.mark.parametrize("summary", ["", "s" * 9_000, "s\n" * 3_000])
@pytest.mark.parametrize("digest", ["", LONG_DIGEST, "no line end " * 900])
def test_any_long_opening_fits(
    max_characters: int, ancestor_count: int, step: str, summary: str, digest: str
) -> None:
    """Any long opening can be made to fit its limit.

    The shortened opening has a complete lineage block and the beginning of the next step.
    """
    text = shorten_opening(
        opening_of_child(ancestor_count, step.strip(), digest, summary.strip()),
        max_characters,
        OPENING_REFERENCE,
    )
    assert len(text) <= max_characters
    assert text.count(LINEAGE_START_MARKER) == text.count(LINEAGE_END_MARKER) == 1
    assert (f"{NEXT_STEP_HEADING}\n{step.strip()[:100]}" in text) is bool(step.strip())


@pytest.mark.parametrize("text", ["", "hello", f"x{LINEAGE_START_MARKER}{LINEAGE_END_MARKER}"])
def test_a_text_that_is_not_an_opening_is_not_shortened(text: str) -> None:
    """``shorten_opening`` returns an empty text if its argument is not an opening."""
    assert shorten_opening(text, MAX_OPENING_CHARACTERS, OPENING_REFERENCE) == ""
