"""Runs cases one after another, with random or given bytes.

A failed case can be repeated from its bytes.
"""

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
from tests.fuzz.targets.target import Target, TryCase

MAX_CASE_BYTES = 2_000
"""Maximum number of bytes for a case."""


class TargetResult(NamedTuple):
    """The result of a target.

    The keys of ``failures`` are errors with their places in the code, and the values are the bytes
    of the first case that caused each error.
    """

    target_name: str
    case_count: int
    cpu_seconds: float
    slowest_seconds: float
    failures: dict[str, str]


def make_home(folder: Path) -> ConfigHome:
    """Create a config home in ``folder``, and make it the home of this process."""
    home = ConfigHome.at(folder)
    os.environ.update(home.environ)
    return home


@contextmanager
def restore_environment() -> Iterator[None]:
    """Restore the environment variables after the ``with`` block."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def run_target(target: Target, try_one: TryCase, seconds: float, seed: int) -> TargetResult:
    """Run random cases for ``seconds``, and return the result.

    For each place in the code where a case fails, the bytes of the first such case are kept.
    """
    chance = random.Random(f"{target.name} {seed}")
    deadline, began = time.monotonic() + seconds, time.process_time()
    cases, slowest = 0, 0.0
    failures: dict[str, str] = {}
    while time.monotonic() < deadline:
        raw = chance.randbytes(chance.choice((40, 200, 800, MAX_CASE_BYTES)))
        at = time.process_time()
        try:
            try_one(Draws(raw))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
            last = traceback.extract_tb(error.__traceback__)[-1]
            failures.setdefault(
                f"{type(error).__name__} at {last.filename}:{last.lineno}", raw.hex()
            )
        cases, slowest = cases + 1, max(slowest, time.process_time() - at)
    return TargetResult(target.name, cases, time.process_time() - began, slowest, failures)
