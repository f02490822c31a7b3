"""Runs every fuzz target with its share of 2,000 cases, which are the same in every run.

A failing case is shortened, and its bytes are printed. With RUN_ALL=1, 10,000 cases run. The module
``tests.fuzz`` runs random cases for a given time.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.__main__ import TARGETS
from tests.fuzz.draws import Draws
from tests.fuzz.running import MAX_CASE_BYTES, make_home, restore_environment
from tests.fuzz.targets.target import Target

CASE_COUNT = 10_000 if os.environ.get("RUN_ALL") == "1" else 2_000
"""Minimum number of cases of all targets together."""


def count_target_cases(target: Target) -> int:
    """Return the number of cases that a target runs."""
    return -(-target.case_count * CASE_COUNT // 10_000)


def test_the_cases_of_the_targets_add_up_to_the_documented_number() -> None:
    """The numbers of cases of all targets add up to at least the documented number."""
    assert sum(count_target_cases(target) for target in TARGETS) >= CASE_COUNT
    assert len({target.name for target in TARGETS}) == len(TARGETS)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name.replace(" ", "-"))
def test_every_target_keeps_its_invariants(target: Target, tmp_path: Path) -> None:
    """No case of a target raises an unexpected error."""
    tried = 0
    with restore_environment():
        try_one = target.prepare(make_home(tmp_path))

        @settings(
            max_examples=count_target_cases(target),
            derandomize=True,
            database=None,
            deadline=None,
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(st.binary(min_size=MAX_CASE_BYTES // 40, max_size=MAX_CASE_BYTES))
        def try_bytes(raw: bytes) -> None:
            nonlocal tried
            tried += 1
            try_one(Draws(raw))

        try_bytes()
    assert tried >= count_target_cases(target)
