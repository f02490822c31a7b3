"""Texts that are there to take time get no more work than others: counted in calls, not in seconds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from resume_hooks.redaction.json_lines import redact_bytes, redact_line
from tests.redaction.hostile import hostile

MOST = 17
"""Calls for a byte. ``python -m benchmarks.redaction --hostile`` has seconds."""


def in_line(text: str) -> bytes:
    """A record that says a text."""
    return json.dumps({"message": {"content": text}}, ensure_ascii=False).encode()


def calls(work: Callable[[], object]) -> int:
    """Return the number of called functions, including C functions."""
    count = 0

    def one(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    work()
    sys.setprofile(one)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "text", list(hostile(4_000)), ids=lambda text: text[:16].encode("unicode_escape").decode()
)
def test_no_text_takes_more_than_its_share(text: str) -> None:
    """As a text and as a line of a transcript."""
    raw, line = text.encode(), in_line(text)
    assert calls(lambda: redact_bytes(raw)) <= MOST * len(raw)
    assert calls(lambda: redact_line(line)) <= MOST * len(line)
