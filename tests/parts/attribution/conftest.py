"""Owns the repository whose lines are asked about, and how they are asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import ConfigHome
from tests.cli.conftest import Document
from tests.parts.attribution.edited import Repository

Ask = Callable[..., str]


@pytest.fixture
def repo(config_home: ConfigHome) -> Repository:
    """A repository without a file."""
    return Repository(config_home, config_home.root / "repo")


@pytest.fixture
def ask(document: Document, repo: Repository) -> Ask:
    """Ask for a line, seen from the repository: the reference of the record that wrote it, ``""`` for nobody.

    On a busy machine the first answer may come before the index is whole; it says so, and is asked
    for again.
    """

    def asked(line: str, *words: str, cwd: Any = repo.root) -> str:
        unread = 1
        while unread:
            found = document("search", "--file", line, *words, cwd=cwd)["data"]
            hits, unread = found["hits"], found["unread"]
        assert len(hits) <= 1
        return str(hits[0]["reference"]) if hits else ""

    return asked
