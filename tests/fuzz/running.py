"""Run cases one after another, from seeds or from hypothesis. A failure can be repeated from its bytes."""

from __future__ import annotations

import os
import random
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.builders import ConfigHome
from tests.fuzz.draws import Draws
from tests.fuzz.targets.target import Target, Try

MOST = 2_000
"""Bytes that a case is made of."""


class Figures(NamedTuple):
    """The result of a target: cases, CPU seconds, seconds of the slowest case, and each failure once."""

    target: str
    cases: int
    seconds: float
    slowest: float
    failures: dict[str, str]


def make_home(folder: Path) -> ConfigHome:
    """Return a config home in a test's own folder, and name it in the environment."""
    home = ConfigHome.at(folder)
    os.environ.update(home.environ)
    return home


@contextmanager
def restore_environment() -> Iterator[None]:
    """Restore the environment after the block."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def run_target(target: Target, try_one: Try, seconds: float, seed: int) -> Figures:
    """Run random cases for this many seconds. Of failures at the same place the first is kept, with its bytes."""
    chance = random.Random(f"{target.name} {seed}")
    deadline, began = time.monotonic() + seconds, time.process_time()
    cases, slowest = 0, 0.0
    failures: dict[str, str] = {}
    while time.monotonic() < deadline:
        raw = chance.randbytes(chance.choice((40, 200, 800, MOST)))
        at = time.process_time()
        try:
            try_one(Draws(raw))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
            last = traceback.extract_tb(error.__traceback__)[-1]
            failures.setdefault(
                f"{type(error).__name__} at {last.filename}:{last.lineno}", raw.hex()
            )
        cases, slowest = cases + 1, max(slowest, time.process_time() - at)
    return Figures(target.name, cases, time.process_time() - began, slowest, failures)
