"""Run a script with node, as the client runs the module."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")


def run_node(script: str) -> Any:
    """Return the JSON value that a script prints."""
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
