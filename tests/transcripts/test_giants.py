"""The longest line of a file, beside reading all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resume_hooks.transcripts.giants import longest_line


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60) | st.text("\na", max_size=60).map(str.encode))
def test_as_reading_all_of_them(tmp_path: Path, content: bytes) -> None:
    """Whether the last one has an ending or not; 0 of nothing."""
    path = tmp_path / "file"
    path.write_bytes(content)
    assert longest_line(str(path)) == max(map(len, content.split(b"\n")))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """The caller's to tell."""
    with pytest.raises(FileNotFoundError):
        longest_line(str(tmp_path / "gone"))
