"""Every target on its share of 2,000 cases, the same in every run.

A failure is shortened and printed by bytes.

With RUN_ALL=1 it is 10,000; ``python -m tests.fuzz`` tries random ones for as long as asked.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.__main__ import TARGETS
from tests.fuzz.draws import Draws
from tests.fuzz.running import MOST, home_in, own_environment
from tests.fuzz.targets.target import Target

CASES = 10_000 if os.environ.get("RUN_ALL") == "1" else 2_000
"""In all, at least."""


def share(target: Target) -> int:
    """The cases of a target."""
    return -(-target.cases * CASES // 10_000)


def test_the_shares_come_to_enough() -> None:
    """The figure that the documents give."""
    assert sum(share(target) for target in TARGETS) >= CASES
    assert len({target.name for target in TARGETS}) == len(TARGETS)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name.replace(" ", "-"))
def test_nothing_gets_in(target: Target, tmp_path: Path) -> None:
    """No case raises an unexpected error, or breaks a target's invariant."""
    tried = 0
    with own_environment():
        try_one = target.prepare(home_in(tmp_path))

        @settings(
            max_examples=share(target),
            derandomize=True,
            database=None,
            deadline=None,
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(st.binary(min_size=MOST // 40, max_size=MOST))
        def one(raw: bytes) -> None:
            nonlocal tried
            tried += 1
            try_one(Draws(raw))

        one()
    assert tried >= share(target)
