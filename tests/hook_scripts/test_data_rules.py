"""Tests that the module sends the account's data rules with every request to the engine."""

from __future__ import annotations

import json

import pytest

from tests.hook_scripts.run_node import NEEDS_NODE_MARK, run_node
from tests.needs import REPO

RULES_SCRIPT = """
import { ask } from %s
const $ = {
  plugin: { root: '' },
  session: {
    id: async () => '', info: async () => (%s), surfaces: async () => [], usage: async () => ({ context: {} }),
  },
  process: { hookEnv: async () => ({}), run: async (_, { stdin }) => ({ exitCode: 0, stdout: stdin }) },
}
console.log(JSON.stringify((await ask($, { command: 'rules' })).rules ?? null))
"""


@NEEDS_NODE_MARK
@pytest.mark.parametrize(
    ("info", "sent_rules"), [({"dataRules": ["zdr"]}, ["zdr"]), ({"dataRules": []}, []), ({}, None)]
)
def test_the_module_sends_the_rules_of_the_account(
    info: dict[str, object], sent_rules: object
) -> None:
    """The module sends the data rules of the client's account.

    If the client is too old to know them, the module sends none.
    """
    script = RULES_SCRIPT % (json.dumps(str(REPO / "hooks" / "asking.mjs")), json.dumps(info))
    assert run_node(script) == sent_rules
