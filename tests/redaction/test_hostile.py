"""Tests that hostile texts need few function calls per byte."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from resume_hooks.redaction.json_lines import redact_bytes, redact_line
from tests.redaction.hostile import hostile_texts

MAX_CALLS_PER_BYTE = 18
"""Maximum number of function calls per byte.

``python -m benchmarks.redaction --hostile`` measures seconds.
"""


def make_record_with_text(text: str) -> bytes:
    """Return a record whose message has the text as its content."""
    return json.dumps({"message": {"content": text}}, ensure_ascii=False).encode()


def count_calls(function: Callable[[], object]) -> int:
    """Return the number of function calls in ``function``, including C functions."""
    count = 0

    def count_event(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    function()
    sys.setprofile(count_event)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "text", list(hostile_texts(4_000)), ids=lambda text: text[:16].encode("unicode_escape").decode()
)
def test_the_work_for_any_text_is_limited(text: str) -> None:
    """Redacting a hostile text makes at most ``MAX_CALLS_PER_BYTE`` function calls per byte.

    The same limit applies to a record with the text.
    """
    raw, line = text.encode(), make_record_with_text(text)
    assert count_calls(lambda: redact_bytes(raw)) <= MAX_CALLS_PER_BYTE * len(raw)
    assert count_calls(lambda: redact_line(line)) <= MAX_CALLS_PER_BYTE * len(line)
