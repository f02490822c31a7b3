"""The plugin as the real client loads it; the team's other tests have a plugin of scripts only."""

from tests.e2e.fixtures import plugin

__all__ = ["plugin"]
