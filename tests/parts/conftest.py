"""The command line, as the tests of the core's verbs run it."""

from tests.cli.conftest import cli, document

__all__ = ["cli", "document"]
