"""Fixtures for the tests with Codex. Each fixture determines the versions of Codex that it runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts.codex.e2e.client import CODEX_VERSIONS, NEWEST, OLDEST_VERSION, CodexHome
from tests.parts.codex.e2e.responses import MockResponses


@pytest.fixture
def responses() -> Iterator[MockResponses]:
    """Yield a running mock of the API with its default replies."""
    with MockResponses() as running:
        yield running


@pytest.fixture
def codex(tmp_path: Path, responses: MockResponses) -> Iterator[CodexHome]:
    """Yield a new home of the newest Codex, and kill its processes after the test."""
    yield from _run_codex_home(tmp_path, responses, NEWEST)


@pytest.fixture(
    params=CODEX_VERSIONS if os.environ.get("RUN_ALL") == "1" else (OLDEST_VERSION, NEWEST)
)
def every_codex(
    request: pytest.FixtureRequest, tmp_path: Path, responses: MockResponses
) -> Iterator[CodexHome]:
    """Yield new homes of the oldest and the newest Codex. With RUN_ALL=1, yield one for every version."""
    yield from _run_codex_home(tmp_path, responses, request.param)


def _run_codex_home(folder: Path, responses: MockResponses, version: str) -> Iterator[CodexHome]:
    home = CodexHome(folder / "codex-home", responses, version)
    yield home
    home.end_processes()
