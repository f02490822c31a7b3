"""A mark where the state folder can't be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import ConfigHome
from tests.test_state_failures import TROUBLES, path, said

__all__ = ["path"]


@pytest.mark.parametrize("name", TROUBLES)
def test_it_says_that_it_could_not_be_kept(config_home: ConfigHome, path: str, name: str) -> None:
    """Nothing is claimed, and the way back has nothing to go to."""
    before = Path(path).read_bytes()
    with TROUBLES[name](config_home.config / "resume-hooks"):
        answers = [said(path, ">checkpoint goal"), said(path, ">rewind report")]
    for answer in answers:
        assert answer
        assert "resume-hooks failed" not in answer
    if name != "vanishing":  # there some writes succeed
        assert "could not be kept" in answers[0]
    assert Path(path).read_bytes() == before
