"""Texts that are there to take time get no more of a scrub than others, which looks at all again after a change."""

from __future__ import annotations

import pytest

from resume_hooks.parts.secrets.cleaner import Cleaner
from tests.redaction.hostile import hostile
from tests.redaction.test_hostile import MOST, calls, in_line


@pytest.mark.parametrize("text", list(hostile(4_000)), ids=lambda text: text[:16].encode("unicode_escape").decode())
def test_no_text_takes_more_than_its_share(text: str) -> None:
    """Twice that of a redaction."""
    dirty = in_line(f"password: Hx7kQ2mZp9Lr4Tw8 {text}")
    assert calls(lambda: Cleaner().line(dirty)) <= 2 * MOST * len(dirty)


def test_blank_lines_cost_next_to_nothing() -> None:
    """A scrub passes them over."""
    cleaner = Cleaner()
    assert calls(lambda: cleaner.line(b"\r\n")) <= 8
