"""The plugin as the real client loads it, where the team's other tests have one of scripts alone."""

from tests.e2e.fixtures import plugin

__all__ = ["plugin"]
