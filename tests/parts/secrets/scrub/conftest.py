"""Fixtures for all tests of the scrub."""

from __future__ import annotations

import pytest

from resume_hooks.storage import append_carryover


@pytest.fixture(autouse=True)
def skip_waiting_for_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a replacement of a file not wait for other writers of the file."""
    for name in ("OPEN_GRACE_SECONDS", "QUIET_SECONDS_BEFORE_END", "MAX_PARTIAL_LINE_WAIT_SECONDS"):
        monkeypatch.setattr(append_carryover, name, 0.0)
