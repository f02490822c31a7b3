"""The verb on a session of which only an archived copy is left."""

from __future__ import annotations

from tests.builders import SESSION, ConfigHome
from tests.cli.conftest import Cli
from tests.sessions.archived.test_verbs import assert_refused


def test_it_is_refused(config_home: ConfigHome, cli: Cli) -> None:
    """With the one command that brings it back; nothing of the copy changes."""
    assert_refused(config_home, cli, ("checkpoint", SESSION))
