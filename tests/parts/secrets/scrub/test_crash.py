"""Crashes: wherever a scrub in place is killed, each file is as it was or without secrets, and another run ends it."""

from __future__ import annotations

import os

from tests.crashes import crashed

SAMPLE = 83
"""Every so-manieth step is tried; all of them with RUN_ALL=1."""


def test_killed_at_every_step() -> None:
    """No transcript is anything but whole; the next run leaves no secret, no copy and no temporary file."""
    every = 1 if os.environ.get("RUN_ALL") == "1" else SAMPLE
    first, *killed, last = crashed("tests.parts.secrets.scrub.crashing", str(every))
    assert not first["killed"]
    assert not last["killed"]
    assert len(killed) > 3
    for found in (first, *killed, last):
        assert (found["mixed"], found["left"], found["rest"]) == ([], [], [])
        assert found["same"], "a run that ends another one's work comes to the same files"
