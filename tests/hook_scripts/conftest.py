"""Fixtures for the tests of the hooks' scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hook_scripts.plugin_copy import PluginCopy, make_plugin


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker that these tests use."""
    config.addinivalue_line("markers", "slow: installs packages; needs the package index")


@pytest.fixture
def plugin(tmp_path: Path) -> PluginCopy:
    """Return a copy of the plugin whose engine only records how it was called."""
    return make_plugin(tmp_path)


@pytest.fixture(scope="module")
def shared_plugin(tmp_path_factory: pytest.TempPathFactory) -> PluginCopy:
    """Return a copy of the plugin that all tests of a module share. These tests do not change it."""
    return make_plugin(tmp_path_factory.mktemp("shared"))
