"""Help and completion see a verb's declaration alone; what they show and do is that of the whole module."""

from __future__ import annotations

import re

import click
import pytest

from resume_hooks.cli.declaration import declared, loaded
from resume_hooks.cli.main import VERBS, module_of
from resume_hooks.cli.main import cli as group
from tests.builders import SESSION, ConfigHome, conversation, write_session
from tests.cli.conftest import Cli


@pytest.mark.parametrize("verb", [*VERBS, "slash"])
def test_a_declaration_is_that_of_the_module(verb: str) -> None:
    """Its help and its options, to the letter; the help begins with a plain word."""
    found, whole = declared(module_of(verb)), loaded(module_of(verb))
    assert re.match(r"[A-Z][a-z]+[ :]", whole.help or "")
    parent = click.Context(group, **group.context_settings)
    with click.Context(whole, parent, info_name=verb, **whole.context_settings) as context:
        assert found.get_help(context) == whole.get_help(context)
        assert [option.to_info_dict() for option in found.params] == [option.to_info_dict() for option in whole.params]


def test_a_value_that_looks_like_help(config_home: ConfigHome, cli: Cli) -> None:
    """A --help that is the value of an option shows no help: the verb is called."""
    write_session(config_home.project(), SESSION, conversation(2))
    done = cli("handoff", SESSION, "--print", "-n", "--help")
    assert done.returncode == 0
    assert b"--help" in done.stdout
    assert b"Usage:" not in done.stdout
