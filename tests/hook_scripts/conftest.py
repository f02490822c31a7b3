"""Owns the fixtures of the hooks' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hook_scripts.plugin_copy import PluginCopy, make_plugin


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark."""
    config.addinivalue_line("markers", "slow: installs packages; needs the package index")


@pytest.fixture
def plugin(tmp_path: Path) -> PluginCopy:
    """Return a copy of the plugin with a stand-in engine."""
    return make_plugin(tmp_path)


@pytest.fixture(scope="module")
def shared_plugin(tmp_path_factory: pytest.TempPathFactory) -> PluginCopy:
    """The same, one for a module's many read-only runs."""
    return make_plugin(tmp_path_factory.mktemp("shared"))
