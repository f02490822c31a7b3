"""Run a script with node, which runs the client's module as the client does."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

NEEDS_NODE_MARK = pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")


def run_node(script: str) -> Any:
    """Run a script with node, and return the JSON value that it prints."""
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
