"""The command line and the hooks, as the tests of the core run them."""

from tests.cli.conftest import cli, desk, document
from tests.hooks.conftest import run_hook, type_prompt

__all__ = ["cli", "desk", "document", "run_hook", "type_prompt"]
