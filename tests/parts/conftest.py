"""Fixtures that run the command line and the hooks, taken from the tests of the core."""

from tests.cli.conftest import cli, document, terminal_home
from tests.hooks.conftest import run_hook, type_prompt

__all__ = ["cli", "document", "run_hook", "terminal_home", "type_prompt"]
