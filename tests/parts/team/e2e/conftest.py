"""Fixtures for the team tests with the real client: a plugin that the client can load.

The other team tests only run the plugin's scripts.
"""

from tests.e2e.fixtures import plugin

__all__ = ["plugin"]
