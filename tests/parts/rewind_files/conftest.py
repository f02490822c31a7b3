"""A fixture that creates the project for the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import ConfigHome
from tests.parts.rewind_files.project import Project


@pytest.fixture
def project(config_home: ConfigHome, tmp_path: Path) -> Project:
    """Return an empty project."""
    return Project(config_home, tmp_path / "work" / "proj")
