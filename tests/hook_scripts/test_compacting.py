"""The module's compaction between turns, run by node with a client and an engine that stand in."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from tests.needs import REPO

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")

STAND_IN = """
import { compact, keepBelow } from %(compacting)s
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
for (let turn = 0; turn < 6; turn += 1) await keepBelow($, { line, tokens: 74000 })
console.log(tries)
"""
"""Six turns of one size above the line; the engine answers each try with ``plan``."""


@pytest.mark.parametrize(
    ("plan", "tries"),
    [
        ({"skip": "Fewer than 5 turns since the last compaction", "rests": True}, 2),
        ({"skip": "frees too little"}, 1),
    ],
)
def test_a_refusal_soon_after_a_compaction_is_tried_again(plan: dict[str, Any], tries: int) -> None:
    """Five turns later, at the same size; one that frees too little waits for a larger session."""
    fields = {
        "compacting": json.dumps((REPO / "hooks" / "compacting.mjs").as_uri()),
        "plan": json.dumps(plan),
    }
    done = subprocess.run(
        ["node", "--input-type=module", "-e", STAND_IN % fields],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == tries
