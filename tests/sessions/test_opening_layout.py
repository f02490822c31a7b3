"""An opening in little room: the lineage and the next step stay, what lies between gives way from its end."""

from __future__ import annotations

import pytest

from resume_hooks.sessions.lineage_block import CLOSING_MARKER, OPENING_MARKER
from resume_hooks.sessions.opening_layout import NEXT_STEP_HEADING, opening_text, shorten_opening
from tests.sessions.test_lineage_block import ancestor, block

MOST = 3_800
WHOLE = "12345678:1"
DIGEST = "\n".join(f"line {number} of the digest" for number in range(400))


def opening(
    count: int = 2, step: str = "fix the tests", digest: str = DIGEST, summary: str = ""
) -> str:
    """The opening of a child with so many ancestors."""
    return opening_text(
        block([ancestor(n) for n in range(1, count + 1)]), step, digest=digest, summary=summary
    )


def test_a_short_opening_is_unchanged() -> None:
    """To the letter."""
    text = opening(digest="goal: short")
    assert shorten_opening(text, MOST, WHOLE) == text


def test_the_digest_is_replaced_by_the_line() -> None:
    """Its best lines come first; where the rest is stands in place of them."""
    text = shorten_opening(opening(), MOST, WHOLE)
    assert len(text) <= MOST
    assert text.startswith(OPENING_MARKER)
    assert text.endswith(
        f"\n(cut here; all of it: resume-hooks read {WHOLE})\n\n{NEXT_STEP_HEADING}\nfix the tests"
    )
    middle = text.partition(f"{CLOSING_MARKER}\n\n")[2].partition("\n(cut")[0].split("\n")
    assert middle == [f"line {number} of the digest" for number in range(len(middle))]
    assert len(text) > MOST - 100


@pytest.mark.parametrize("most", [MOST, 38_000])
@pytest.mark.parametrize("count", [1, 12, 60])
@pytest.mark.parametrize("step", ["", "x", "long words " * 2_000, "\n".join("abc" * 5_000)])
@pytest.mark.parametrize("summary", ["", "s" * 9_000, "s\n" * 3_000])
@pytest.mark.parametrize("digest", ["", DIGEST, "no line end " * 900])
def test_whatever_is_long(most: int, count: int, step: str, summary: str, digest: str) -> None:
    """It fits, its block is whole, and a next step is there from its beginning."""
    text = shorten_opening(opening(count, step.strip(), digest, summary.strip()), most, WHOLE)
    assert len(text) <= most
    assert text.count(OPENING_MARKER) == text.count(CLOSING_MARKER) == 1
    assert (f"{NEXT_STEP_HEADING}\n{step.strip()[:100]}" in text) is bool(step.strip())


@pytest.mark.parametrize("text", ["", "hello", f"x{OPENING_MARKER}{CLOSING_MARKER}"])
def test_a_text_that_is_not_an_opening_is_not_shortened(text: str) -> None:
    """The result is empty."""
    assert shorten_opening(text, MOST, WHOLE) == ""
