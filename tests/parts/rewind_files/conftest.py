"""Owns the project that the tests of the file history work in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import ConfigHome
from tests.parts.rewind_files.project import Project


@pytest.fixture
def project(config_home: ConfigHome, tmp_path: Path) -> Project:
    """An empty project."""
    return Project(config_home, tmp_path / "work" / "proj")
