"""Owns the fixtures of the tests with Codex, and on which of its versions each of them runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts.codex.e2e.client import NEWEST, OLDEST, VERSIONS, CodexHome
from tests.parts.codex.e2e.responses import MockResponses


@pytest.fixture
def responses() -> Iterator[MockResponses]:
    """A running mock with its default replies."""
    with MockResponses() as running:
        yield running


@pytest.fixture
def codex(tmp_path: Path, responses: MockResponses) -> Iterator[CodexHome]:
    """A fresh home of the newest Codex.

    Whatever still runs in it at the end of the test is ended.
    """
    yield from _home(tmp_path, responses, NEWEST)


@pytest.fixture(params=VERSIONS if os.environ.get("RUN_ALL") == "1" else (OLDEST, NEWEST))
def every_codex(
    request: pytest.FixtureRequest, tmp_path: Path, responses: MockResponses
) -> Iterator[CodexHome]:
    """A fresh home of the oldest Codex and of the newest; with RUN_ALL=1 of each."""
    yield from _home(tmp_path, responses, request.param)


def _home(folder: Path, responses: MockResponses, version: str) -> Iterator[CodexHome]:
    home = CodexHome(folder / "codex-home", responses, version)
    yield home
    home.reap()
