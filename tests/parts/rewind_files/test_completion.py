"""``rewind-files`` completes sessions as the verbs of the core do."""

from __future__ import annotations

from pathlib import Path

from tests.builders import ConfigHome
from tests.cli.test_completion import completed, desk

__all__ = ["desk"]


def test_it_completes_a_session(config_home: ConfigHome, desk: Path) -> None:
    """Where SESSION stands in the usage line."""
    assert completed(config_home, desk, "resume-hooks rewind-files 1a2") == ["plain,1a2b3c4d"]
