"""Tests of the module's compaction between turns.

The module runs in node, with fake objects in place of the client and the engine.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.hook_scripts.run_node import NEEDS_NODE_MARK, run_node
from tests.needs import REPO

pytestmark = NEEDS_NODE_MARK

COMPACTION_SCRIPT = """
import { compact, compactAboveThreshold } from %(compacting)s
let tries = 0
const $ = {
  plugin: { root: '' },
  session: {
    id: async () => 'one', info: async () => ({}), surfaces: async () => ['terminal'],
    usage: async () => ({ context: {} }),
  },
  process: {
    hookEnv: async () => ({}),
    run: async () => ({ exitCode: 0, stdout: JSON.stringify(%(plan)s) }),
  },
  clock: { sleep: async () => {} },
  prompt: { read: async () => ({ text: '' }) },
  ui: { status: () => {}, log: () => {} },
  command: {
    run: async () => {
      tries += 1
      await compact($, { trigger: 'manual', messages: [] }, () => {})
    },
  },
}
const line = { from: 70000, trigger: 'line', compact: '' }
for (let turn = 0; turn < 6; turn += 1) await compactAboveThreshold($, { line, tokens: 74000 })
console.log(tries)
"""
"""A script with six turns. After each turn, the context has the same size, above the limit.

The engine answers each attempt to compact with ``plan``.
"""


@pytest.mark.parametrize(
    ("plan", "attempt_count"),
    [
        ({"skip": "Fewer than 5 turns since the last compaction", "rests": True}, 2),
        ({"skip": "frees too little"}, 1),
    ],
)
def test_a_refused_compaction_is_tried_again_later(
    plan: dict[str, Any], attempt_count: int
) -> None:
    """If a compaction is refused because there are too few turns, it is tried again five turns later.

    If it is refused because it would save too little, it is tried again when the session has grown.
    """
    fields = {
        "compacting": json.dumps((REPO / "hooks" / "compacting.mjs").as_uri()),
        "plan": json.dumps(plan),
    }
    assert run_node(COMPACTION_SCRIPT % fields) == attempt_count
