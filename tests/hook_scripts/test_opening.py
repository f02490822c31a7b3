"""The module's switch to another session, run by node with a client that stands in."""

from __future__ import annotations

import json

from tests.hook_scripts.run_node import needs_node, run_node
from tests.needs import REPO

pytestmark = needs_node

STAND_IN = """
import { open, submit } from %(opening)s
const $ = {
  command: { run: async () => {} },
  session: { id: async () => 'child' },
  ui: { log: () => {} },
  prompt: {
    read: async () => ({ text: '' }),
    fill: async () => { throw new Error('no box') },
  },
  clock: { sleep: async () => {}, after: () => {} },
}
await open($, { open: 'child', fill: 'fix the tests' }).catch(() => {})
const sent = await submit($, { text: 'something else' }, async ({ text }) => ({ text }))
console.log(JSON.stringify(sent))
"""
"""A switch in which the client refuses to fill the box, and a prompt after it."""


def test_a_prompt_after_a_failed_switch_is_sent() -> None:
    """What was kept of the box while the session opened holds back no later prompt."""
    fields = {"opening": json.dumps((REPO / "hooks" / "opening.mjs").as_uri())}
    assert run_node(STAND_IN % fields) == {"text": "something else"}
