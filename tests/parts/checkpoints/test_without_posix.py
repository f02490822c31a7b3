"""A mark and the way back without POSIX."""

from __future__ import annotations

from pathlib import Path

from tests.builders import SESSION, ConfigHome
from tests.test_without_posix import run, session

__all__ = ["session"]


def test_a_mark_and_the_way_back(config_home: ConfigHome, session: Path) -> None:
    """Both are made, and the parent stays."""
    before = session.read_bytes()
    run(config_home, "checkpoint", SESSION)
    run(config_home, "rewind", SESSION, "--report", "nothing was there")
    assert session.read_bytes() == before
    assert len(list(session.parent.glob("*.jsonl"))) == 2
