"""Define the fixtures of the end-to-end tests, and choose the client versions for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness.client import (
    NEWEST_VERSION,
    OLDEST_VERSION,
    PREVIOUS_VERSION,
    VERSIONS,
    ClientHome,
    ClientVersion,
    TmuxTui,
    Tui,
    find_client,
)
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.xvfb import XServer
from tests.e2e.plugin import PARENT_ID, SOURCE_SESSION, build_plugin
from tests.needs import REPO, corpus, require_for_test

TESTS_ON_OLDEST_CLIENT = frozenset(
    {
        "test_a_handoff_child_resumes_with_lineage_digest_and_step",
        "test_the_commands_of_the_readme_install_the_plugin",
        "test_resume_sends_the_history",
    }
)
"""Tests that also run on the oldest client in every test run.

They cover an installation, a child and a resumed session.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test in a folder ``e2e`` with ``e2e``, and group these tests for parallel runs.

    With pytest's option ``-n``, at most one of these tests runs per CPU core. A client needs a
    whole core while it starts. If more clients started at the same time, the tests would wait
    longer for their screens.
    """
    lane = 0
    for item in items:
        if "e2e" in item.path.relative_to(REPO).parts:
            item.add_marker(pytest.mark.e2e)
            if not item.get_closest_marker("xdist_group"):
                lane = (lane + 1) % (os.cpu_count() or 1)
                item.add_marker(pytest.mark.xdist_group(f"client-{lane}"))


def _require_program(tool: str, package: str) -> None:
    require_for_test(tool, shutil.which(tool) is not None, f"install the system package {package}")


@pytest.fixture
def api() -> Iterator[MockApi]:
    """Run a mock API with the default replies."""
    with MockApi() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ClientHome]:
    """Return a fresh home. After the test, end all processes that are still running in it."""
    fresh = ClientHome(tmp_path / "home")
    yield fresh
    fresh.end_processes()


@pytest.fixture
def parent(home: ClientHome) -> Path:
    """Copy a real session into the project, and return the path of the copy."""
    return home.install_session(corpus() / SOURCE_SESSION, PARENT_ID, set_cwd=True)


@pytest.fixture
def other_machine(tmp_path: Path) -> Iterator[ClientHome]:
    """Return the home of a second machine, on which the project has a different path."""
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
    return find_client(NEWEST_VERSION)


@pytest.fixture
def every_client(request: pytest.FixtureRequest) -> ClientVersion:
    """Return the client version that ``pytest_generate_tests`` chose for this run of the test."""
    return find_client(request.param)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that uses ``every_client`` on the newest client.

    A test in ``TESTS_ON_OLDEST_CLIENT`` also runs on the oldest client. With ``RUN_ALL=1``, all
    tests run on all clients.
    """
    if "every_client" in metafunc.fixturenames:
        if os.environ.get("RUN_ALL") == "1":
            versions: tuple[str, ...] = VERSIONS
        else:
            versions = (
                (OLDEST_VERSION, NEWEST_VERSION)
                if metafunc.function.__name__ in TESTS_ON_OLDEST_CLIENT
                else (NEWEST_VERSION,)
            )
        metafunc.parametrize("every_client", versions, indirect=True)


@pytest.fixture
def tui(client: ClientVersion, home: ClientHome, api: MockApi) -> Iterator[Tui]:
    """Return a terminal for the newest client. The test starts the client; the fixture ends it."""
    with Tui(client, home, api) as terminal:
        yield terminal


@pytest.fixture(params=[pytest.param(PREVIOUS_VERSION, marks=pytest.mark.wide), NEWEST_VERSION])
def modern_tui(request: pytest.FixtureRequest, home: ClientHome, api: MockApi) -> Iterator[Tui]:
    """Return a terminal for a client that can run the plugin's module.

    Each test runs with every such client.
    """
    with Tui(find_client(request.param), home, api) as terminal:
        yield terminal


@pytest.fixture
def tmux_tui(client: ClientVersion, home: ClientHome, api: MockApi) -> Iterator[TmuxTui]:
    """Return a terminal in a private tmux server for the newest client.

    The test starts the client; the fixture ends the client and the server.
    """
    _require_program("tmux", "tmux")
    with TmuxTui(client, home, api) as terminal:
        yield terminal


@pytest.fixture
def xserver() -> Iterator[XServer]:
    """Return a private X server, whose clipboard the test can read.

    When the server ends, every program that owns the clipboard ends too.
    """
    for tool in ("Xvfb", "xclip", "xsel"):
        _require_program(tool, tool.lower())
    with XServer() as server:
        yield server
