"""Owns the fixtures of the end-to-end tests, and on which clients each of them runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness.client import (
    NEWEST,
    OLDEST,
    PREVIOUS,
    VERSIONS,
    ClientHome,
    ClientVersion,
    TmuxTui,
    Tui,
    find_client,
)
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.xvfb import XServer
from tests.e2e.plugin import PARENT, SOURCE, build_plugin
from tests.needs import REPO, corpus, need

CONFORMANCE = frozenset(
    {
        "test_a_handoff_child_resumes_with_lineage_digest_and_step",
        "test_it_installs_by_the_lines_of_readme_and_answers",
        "test_resume_sends_the_history",
    }
)
"""The tests that every run takes to the oldest client, too: what a plugin or a child needs of any of them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in a folder `e2e` as such.

    Under ``-n`` as many of them run at a time as there are cores.

    A client takes a core while it starts: with more of them at once each waits for the others on
    its screen.
    """
    lane = 0
    for item in items:
        if "e2e" in item.path.relative_to(REPO).parts:
            item.add_marker(pytest.mark.e2e)
            if not item.get_closest_marker("xdist_group"):
                lane = (lane + 1) % (os.cpu_count() or 1)
                item.add_marker(pytest.mark.xdist_group(f"client-{lane}"))


def _need_tool(tool: str, package: str) -> None:
    need(tool, shutil.which(tool) is not None, f"install the system package {package}")


@pytest.fixture
def api() -> Iterator[MockApi]:
    """Run a mock API with the default replies."""
    with MockApi() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ClientHome]:
    """Return a fresh home. Processes that still run in it at the end of the test are ended."""
    fresh = ClientHome(tmp_path / "home")
    yield fresh
    fresh.end_processes()


@pytest.fixture
def parent(home: ClientHome) -> Path:
    """Copy a real session into the project as its own."""
    return home.install_session(corpus() / SOURCE, PARENT, set_cwd=True)


@pytest.fixture
def other_machine(tmp_path: Path) -> Iterator[ClientHome]:
    """Return another machine, with the project under another path."""
    fresh = ClientHome(tmp_path / "elsewhere", project="moved")
    yield fresh
    fresh.end_processes()


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """Return a freshly built plugin."""
    return build_plugin(tmp_path / "plugin")


@pytest.fixture
def client() -> ClientVersion:
    """Return the newest client."""
    return find_client(NEWEST)


@pytest.fixture
def every_client(request: pytest.FixtureRequest) -> ClientVersion:
    """Return each client that ``pytest_generate_tests`` chooses."""
    return find_client(request.param)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes ``every_client`` on the newest client.

    A test in CONFORMANCE also runs on the oldest one. With RUN_ALL=1 all tests run on all
    clients.
    """
    if "every_client" in metafunc.fixturenames:
        if os.environ.get("RUN_ALL") == "1":
            versions: tuple[str, ...] = VERSIONS
        else:
            versions = (OLDEST, NEWEST) if metafunc.function.__name__ in CONFORMANCE else (NEWEST,)
        metafunc.parametrize("every_client", versions, indirect=True)


@pytest.fixture
def tui(client: ClientVersion, home: ClientHome, api: MockApi) -> Iterator[Tui]:
    """Return the newest client on a pseudo terminal, not started, and end it after the test."""
    with Tui(client, home, api) as terminal:
        yield terminal


@pytest.fixture(params=[pytest.param(PREVIOUS, marks=pytest.mark.wide), NEWEST])
def modern_tui(request: pytest.FixtureRequest, home: ClientHome, api: MockApi) -> Iterator[Tui]:
    """Return the clients that run modules, on a pseudo terminal."""
    with Tui(find_client(request.param), home, api) as terminal:
        yield terminal


@pytest.fixture
def tmux_tui(client: ClientVersion, home: ClientHome, api: MockApi) -> Iterator[TmuxTui]:
    """Return the newest client for a private tmux server, not started, and end both after the test."""
    _need_tool("tmux", "tmux")
    with TmuxTui(client, home, api) as terminal:
        yield terminal


@pytest.fixture
def xserver() -> Iterator[XServer]:
    """Return a private X server with a readable clipboard.

    Its end also ends every program that owned the clipboard.
    """
    for tool in ("Xvfb", "xclip", "xsel"):
        _need_tool(tool, tool.lower())
    with XServer() as server:
        yield server
