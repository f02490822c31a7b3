"""What a mark and the way back load."""

from __future__ import annotations

import pytest

from tests.builders import ConfigHome
from tests.test_import_budget import reads_a_transcript


@pytest.mark.parametrize("prompt", [">checkpoint x", ">rewind x"])
def test_the_lanes_of_a_mark(config_home: ConfigHome, prompt: str) -> None:
    """No more than others that read a transcript."""
    reads_a_transcript(config_home, prompt)
