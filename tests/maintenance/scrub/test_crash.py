"""Crashes: wherever a scrub in place is killed, each file is as it was or without secrets, and another run ends it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.needs import REPO

SAMPLE = 41
"""Every so-manieth step is tried; all of them with RUN_ALL=1."""


def test_killed_at_every_step() -> None:
    """No transcript is anything but whole; the next run leaves no secret, no copy and no temporary file."""
    every = 1 if os.environ.get("RUN_ALL") == "1" else SAMPLE
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "PYTHONPATH": f"{REPO / 'src'}:{REPO}", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "tests.maintenance.scrub.crashing", str(Path(folder) / "tries"), str(every)],
            env=environ,
            cwd=REPO,
            capture_output=True,
            check=False,
            timeout=1_200,
        )
    assert done.returncode == 0, done.stderr.decode()
    first, *killed, last = json.loads(done.stdout)
    assert not first["killed"]
    assert not last["killed"]
    assert len(killed) > 3
    for found in (first, *killed, last):
        assert (found["mixed"], found["left"], found["rest"]) == ([], [], [])
        assert found["same"], "a run that ends another one's work comes to the same files"
