"""Tests of the client module, run in Node with a fake client: how it switches to another session."""

from __future__ import annotations

import json

from tests.hook_scripts.run_node import NEEDS_NODE_MARK, run_node
from tests.needs import REPO

pytestmark = NEEDS_NODE_MARK

SWITCH_SCRIPT = """
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
"""A script in which a switch to another session fails and the user then sends a prompt.

The switch fails because the client refuses to fill the input box.
"""


def test_a_prompt_after_a_failed_switch_is_sent() -> None:
    """If a switch to another session has failed, the next prompt is sent.

    The text that the module stored during the switch does not block the prompt.
    """
    fields = {"opening": json.dumps((REPO / "hooks" / "opening.mjs").as_uri())}
    assert run_node(SWITCH_SCRIPT % fields) == {"text": "something else"}


LATE_ENTER_SCRIPT = """
import { recordEdit } from %(draft)s
import { open, submit } from %(opening)s
const typed = 'then run it'
const box = { text: '' }
const sent = []
const $ = {
  command: { run: async () => { recordEdit({ text: '', start: 0, end: 0, inputText: typed }) } },
  session: {
    id: async () => {
      sent.push(await submit($, { text: typed }, async ({ text }) => ({ text })))
      return 'child'
    },
  },
  ui: { log: () => {} },
  prompt: { read: async () => box, fill: async ({ text }) => { box.text = text; return { isFilled: true } } },
  clock: { sleep: async () => {}, after: () => {} },
}
await open($, { open: 'child', fill: 'fix the tests' })
console.log(JSON.stringify({ sent: sent[0], box: box.text }))
"""
"""A script in which the user types words and presses Enter too early.

The session is open, but its input box has not been filled yet.
"""


def test_a_prompt_during_a_switch_keeps_the_next_step() -> None:
    """If the user sends a prompt during a switch, it is not sent but put into the box after the next step.

    If the prompt were sent, the next step would be lost.
    """
    fields = {}
    for name in ("opening", "draft"):
        fields[name] = json.dumps((REPO / "hooks" / f"{name}.mjs").as_uri())
    reply = run_node(LATE_ENTER_SCRIPT % fields)
    assert "drop" in reply["sent"]
    assert reply["box"].split("\n") == ["fix the tests", "then run it "], (
        "apart from what is typed next"
    )
