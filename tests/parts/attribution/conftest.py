"""Fixtures: a repository, and a function that finds the record that wrote a line of a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import ConfigHome
from tests.cli.conftest import Document
from tests.parts.attribution.edited import Repository

FindWriter = Callable[..., str]


@pytest.fixture
def repo(config_home: ConfigHome) -> Repository:
    """Return a repository without files."""
    return Repository(config_home, config_home.root / "repo")


@pytest.fixture
def find_writer(document: Document, repo: Repository) -> FindWriter:
    """Return a function that searches for the writer of a line and returns the record's reference.

    The result is ``""`` if no record is found. The search is repeated while the index is
    incomplete, as on a busy machine.
    """

    def reference_of_line(line: str, *words: str, cwd: Any = repo.root) -> str:
        unread = 1
        while unread:
            found = document("search", "--file", line, *words, cwd=cwd)["data"]
            hits, unread = found["hits"], found["unread"]
        assert len(hits) <= 1
        return str(hits[0]["reference"]) if hits else ""

    return reference_of_line
