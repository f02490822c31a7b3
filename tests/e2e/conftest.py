"""Owns the fixtures and marks of the end-to-end tests; wide runs wait for RUN_ALL=1."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness.client import NEWEST, VERSIONS, ClientHome, ClientVersion, TmuxTui, Tui, find_client
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.xvfb import XServer
from tests.needs import need

_HERE = Path(__file__).resolve().parent
_WIDE = ("all_versions", "whole_corpus")


def pytest_configure(config: pytest.Config) -> None:
    """Name the marks."""
    config.addinivalue_line("markers", "e2e: drives the real client")
    config.addinivalue_line("markers", "all_versions: every client version; runs only with RUN_ALL=1")
    config.addinivalue_line("markers", "whole_corpus: every transcript of the corpus; runs only with RUN_ALL=1")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark everything in this folder `e2e`; take the wide runs out unless RUN_ALL=1."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)
    if os.environ.get("RUN_ALL") == "1":
        return
    wide = [item for item in items if any(item.get_closest_marker(mark) for mark in _WIDE)]
    if wide:
        config.hook.pytest_deselected(items=wide)
        items[:] = [item for item in items if item not in wide]


def _need_tool(tool: str, package: str) -> None:
    need(tool, shutil.which(tool) is not None, f"install the system package {package}")


@pytest.fixture
def api() -> Iterator[MockApi]:
    """A running mock API with the default replies."""
    with MockApi() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ClientHome]:
    """A fresh home; whatever still runs in it at the end of the test is ended."""
    fresh = ClientHome(tmp_path / "home")
    yield fresh
    fresh.reap()


@pytest.fixture
def client() -> ClientVersion:
    """The newest client."""
    return find_client(NEWEST)


@pytest.fixture(params=VERSIONS)
def every_client(request: pytest.FixtureRequest) -> ClientVersion:
    """Each supported client in turn, oldest first."""
    return find_client(request.param)


@pytest.fixture(params=VERSIONS if os.environ.get("RUN_ALL") == "1" else [NEWEST])
def wide_client(request: pytest.FixtureRequest) -> ClientVersion:
    """The newest client; with RUN_ALL=1 each supported one in turn."""
    return find_client(request.param)


@pytest.fixture
def tui(client: ClientVersion, home: ClientHome, api: MockApi) -> Iterator[Tui]:
    """The newest client on a pseudo terminal, not started; ended after the test."""
    with Tui(client, home, api) as terminal:
        yield terminal


@pytest.fixture
def tmux_tui(client: ClientVersion, home: ClientHome, api: MockApi) -> Iterator[TmuxTui]:
    """The newest client for a private tmux server, not started; both ended after the test."""
    _need_tool("tmux", "tmux")
    with TmuxTui(client, home, api) as terminal:
        yield terminal


@pytest.fixture
def xserver() -> Iterator[XServer]:
    """A private X server with a readable clipboard."""
    _need_tool("Xvfb", "xvfb")
    _need_tool("xclip", "xclip")
    with XServer() as server:
        yield server
